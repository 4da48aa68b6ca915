"""Standardised rows of a wide table, and the inverse of a ridge regression on them.

No table of rows is copied: rows are standardised a few at a time. What stays in memory is one
inverse, of the columns or of the rows, whichever are fewer.
"""

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_matrix, diags, vstack

from ddml_fs.chunks import chunks
from ddml_fs.engine.devices import in_threads
from ddml_fs.engine.ridge import FLAT
from ddml_fs.weights import weighted_mean

LEVEL = 30.0  # mean of a column in standard deviations, up to which it can be subtracted last
SMALL = 640  # columns up to which LAPACK inverts a matrix at once
SPARSE = 0.05  # share of values that are not 0, below which products skip the zeros


def sparse_of(X):
    """A table as a sparse matrix in double precision if it holds zeros mostly, or None.

    Parameters
    ----------
    X : array of shape (N, D)
    """
    first = X[: max(1, len(X) // 8)]
    if np.count_nonzero(first) >= SPARSE * first.size:
        return None
    at = chunks(len(X), 8 * X.shape[1])
    return csr_matrix(vstack([csr_matrix(X[rows], dtype=np.float64) for rows in at]))


class Standard:
    """Standardised rows (x − mean)·inverse of a table, which are made when they are needed.

    Parameters
    ----------
    X : array of shape (N, D)
    mean, inverse : arrays of shape (D,)
    dtype : dtype
        Of the rows that are made.
    sparse : csr_matrix of shape (N, D), optional
        X without its zeros, see :func:`sparse_of`; products then skip them.
    """

    def __init__(self, X, mean, inverse, dtype, sparse=None):
        self.X, self.mean, self.inverse, self.dtype = X, mean, inverse, np.dtype(dtype)
        self.shape, self.sparse = X.shape, sparse

    @classmethod
    def of(cls, X, train, weight, dtype, sparse=None):
        """Rows that are standardised by the training rows; columns constant there become 0."""
        if sparse is None:
            mean, sd = np.empty(X.shape[1]), np.empty(X.shape[1])
            for at in chunks(X.shape[1], 8 * len(train)):
                part = X[train, at].astype(np.float64)
                mean[at] = weighted_mean(part, weight[train])
                sd[at] = np.sqrt(weighted_mean((part - mean[at]) ** 2, weight[train]))
        else:
            mean, sd = sparse_scales(sparse[train], weight[train])
        inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > FLAT)
        return cls(X, mean, inverse, dtype, sparse)

    @property
    def scale(self):
        """Standard deviations (D,), 0 for columns that are constant in training."""
        return np.divide(1.0, self.inverse, out=np.zeros_like(self.inverse), where=self.inverse > 0)

    def shifted(self, centre):
        """The rows minus a row (D,)."""
        mean = self.mean + centre * self.scale
        return Standard(self.X, mean, self.inverse, self.dtype, self.sparse)

    def part(self, rows, columns):
        """Some rows and columns, each given by a slice or an array of numbers, (n, d)."""
        mean, inverse = (a[columns].astype(self.X.dtype) for a in (self.mean, self.inverse))
        both = not isinstance(rows, slice) and not isinstance(columns, slice)
        values = self.X[np.ix_(rows, columns) if both else (rows, columns)] - mean
        values *= inverse
        return values.astype(self.dtype, copy=False)

    def row_chunks(self, rows, columns):
        """Slices of ``rows``, and the standardised rows of each."""
        for at in chunks(len(rows), self.dtype.itemsize * max(1, len(columns))):
            yield at, self.part(rows[at], columns)

    def times(self, rows, columns, slopes):
        """Some rows and columns times slopes (d, k), (n, k)."""
        mean, inverse = self.mean[columns], self.inverse[columns]
        # Columns that are near their means can be centred afterwards.
        near = np.abs(mean * inverse).max(initial=0.0) <= LEVEL
        if self.sparse is not None and near:
            scaled = np.multiply(inverse[:, None].astype(self.dtype), slopes, order="C")
            part = self.sparse[rows].astype(self.dtype)
            out = (part if len(columns) == self.shape[1] else part[:, columns]) @ scaled
            out -= mean.astype(self.dtype) @ scaled
            return out
        out = np.empty((len(rows), slopes.shape[1]), self.dtype)
        if self.X.dtype != self.dtype or not near:
            for at, part in self.row_chunks(rows, columns):
                out[at] = part @ slopes
            return out
        scaled = inverse[:, None].astype(self.dtype) * slopes
        every = len(rows) == len(self.X) and (np.diff(rows) == 1).all()
        for at in chunks(len(rows), self.dtype.itemsize * self.shape[1]):
            part = self.X[at] if every else self.X[rows[at]]
            out[at] = (part if len(columns) == self.shape[1] else part[:, columns]) @ scaled
        out -= mean.astype(self.dtype) @ scaled
        return out

    def dot(self, beta):
        """All rows times coefficients (D,), (N,)."""
        scaled = self.inverse * beta
        if self.sparse is not None:
            return self.sparse @ scaled - self.mean @ scaled
        return self.X @ scaled.astype(self.X.dtype) - self.mean @ scaled

    def cross(self, values):
        """Sums (D,) of the rows times values (N,)."""
        if self.sparse is not None:
            sums = self.sparse.T @ values
        else:
            sums = values.astype(self.X.dtype) @ self.X
        return (sums - values.sum() * self.mean) * self.inverse

    def products(self, rows, columns, weight):
        """AᵀWA of some rows (n,) with weights (n,) and of some columns (d,), (d, d).

        It is symmetric, and only the diagonal and what is above it are sure to be there.
        """
        root = np.sqrt(weight)
        if self.sparse is not None:
            return self._sparse_products(rows, columns, root.astype(np.float64))
        G = np.zeros((len(columns),) * 2, self.dtype)
        for at, part in self.row_chunks(rows, columns):
            part *= root[at, None]
            G += part.T @ part
        return G

    def _sparse_products(self, rows, columns, root):
        """The same for a table of zeros, mostly."""
        inverse = self.inverse[columns]
        part = self.sparse[rows]
        part = part if len(columns) == self.shape[1] else part[:, columns]
        X = csr_matrix(diags(root) @ part @ diags(inverse))
        mean = self.mean[columns] * inverse
        left = X.T @ root - (root @ root) / 2 * mean
        G, turned = np.empty((len(columns),) * 2, self.dtype), csr_matrix(X.T)
        both, swapped = np.column_stack([left, mean]), np.stack([mean, left])

        def write(at):
            above = slice(at.start, None)  # the rest is never read
            block = (turned[at] @ X[:, above]).toarray()
            block -= both[at] @ swapped[:, above]
            G[at, above] = block

        for _ in in_threads(write, chunks(len(G), 8 * len(G))):
            pass
        return G


def sparse_scales(X, weight):
    """Weighted means and standard deviations (D,) of the columns of a sparse matrix (n, D).

    Squares are those of centred values, so that a constant column has no spread.
    """
    total = weight.sum()
    mean = X.T @ weight / total
    own = np.repeat(weight, np.diff(X.indptr))  # of each value that is not 0
    D = X.shape[1]
    squares = np.bincount(X.indices, own * (X.data - mean[X.indices]) ** 2, D)
    zeros = np.maximum(total - np.bincount(X.indices, own, D), 0.0)
    zeros[np.bincount(X.indices, minlength=D) == X.shape[0]] = 0.0
    return mean, np.sqrt((squares + zeros * mean**2) / total)


def inverse_of(G):
    """Inverse of a symmetric, positive definite matrix, which is overwritten.

    Nothing below the diagonal of ``G`` is read. A large matrix is inverted in halves: with
    G = [[A, B], [Bᵀ, C]], W = A⁻¹B and S = C − BᵀW, the inverse is
    [[A⁻¹ + WS⁻¹Wᵀ, −WS⁻¹], [., S⁻¹]]. So nearly all time is spent in products, which threads share
    well and which release Python's lock.
    """
    n, half = len(G), len(G) // 2
    if n <= SMALL:
        G[:] = inverse_of_small(G)
        return G
    A, B, C = G[:half, :half], G[:half, half:], G[half:, half:]
    W = inverse_of(A) @ B
    C -= B.T @ W
    V = W @ inverse_of(C)
    A += V @ W.T
    np.negative(V, out=B)
    G[half:, :half] = B.T
    return G


def inverse_of_small(G):
    """The same by LAPACK, as a new matrix."""
    if not len(G):
        return G
    kind = "s" if G.dtype == np.float32 else "d"
    upper = np.triu(G)
    # The transpose is in Fortran's order, so that LAPACK works in place.
    factor, failed = getattr(lapack, kind + "potrf")(upper.T, lower=True, overwrite_a=True)
    if not failed:
        factor, failed = getattr(lapack, kind + "potri")(factor, lower=True, overwrite_c=True)
    if failed:
        raise np.linalg.LinAlgError("the matrix of a ridge regression is not positive definite")
    upper = np.triu(factor.T)
    return upper + np.triu(upper, 1).T


class Inverse:
    """Ω = (AᵀWA/n + λI)⁻¹ of standardised rows A, as far as residuals need it.

    With fewer rows than columns, AΩ = (A − K·M·A)/λ, where K = AAᵀ/n and
    M = √W(√W·K·√W + λI)⁻¹√W. So no matrix is larger than rows × rows.

    Parameters
    ----------
    A : Standard
    train : int array of shape (n,)
        Rows of A that are fitted on.
    weight : array of shape (n,)
        Weights of these rows.
    penalty : float
    use : int array
        The columns that are covariates.
    new : int array
        Rows of A that are predicted.
    """

    def __init__(self, A, train, weight, penalty, use, new):
        self.A, self.train, self.penalty, self.use, self.new = A, train, penalty, use, new
        self.weight = (weight / len(train)).astype(A.dtype)
        self.by_rows = len(train) < len(use)
        if self.by_rows:
            self._factor_rows()
        else:
            self._factor_columns()

    def _factor_rows(self):
        rows = np.r_[self.train, self.new]
        n, root = len(self.train), np.sqrt(self.weight)
        K = np.zeros((len(rows), n), self.A.dtype)
        for at in chunks(len(self.use), self.A.dtype.itemsize * len(rows)):
            part = self.A.part(rows, self.use[at])
            K += part @ part[:n].T
        M = root[:, None] * K[:n] * root
        M[np.diag_indices_from(M)] += self.penalty
        self.M = root[:, None] * inverse_of(M) * root
        self.smooth = K[n:] @ self.M  # from values of the training rows to fits of the new ones

    def _factor_columns(self):
        G = self.A.products(self.train, self.use, self.weight)
        G[np.diag_indices_from(G)] += self.penalty
        self.omega = inverse_of(G)

    def raw(self, at):
        """Columns ``at`` of AΩ for the new rows, and Ω of all pairs or of each, see below.

        Parameters
        ----------
        at : int array of shape (d,)
            Places in ``use``.

        Returns
        -------
        values : array of shape (n_new, d)
        omega : callable
            From places in ``at`` (k,) to Ω of these columns, (k, k).
        diagonal : array of shape (d,)
        """
        if not self.by_rows:
            values = self.A.times(self.new, self.use, self.omega[at].T)
            return values, lambda i: self.omega[np.ix_(at[i], at[i])], self.omega[at, at]
        columns = self.A.part(self.train, self.use[at])
        inner = self.M @ columns
        values = self.A.part(self.new, self.use[at]) - self.smooth @ columns
        values /= self.penalty

        def omega(i):
            return (np.eye(len(i)) - columns[:, i].T @ inner[:, i]) / self.penalty

        diagonal = (1 - np.einsum("ij,ij->j", columns, inner)) / self.penalty
        return values, omega, diagonal

    def fitted(self, targets):
        """Ridge regressions of centred targets (n, d) of the training rows on all covariates.

        Returns
        -------
        fits : array of shape (n_new, d)
        coefficients : callable
            From places in ``use`` to the coefficients of these covariates, (…, d).
        """
        if self.by_rows:
            inner = self.M @ targets
            fits = self.smooth @ targets
            return fits, lambda at: self.A.part(self.train, self.use[at]).T @ inner
        cross = np.zeros((len(self.use), targets.shape[1]), self.A.dtype)
        for at, part in self.A.row_chunks(self.train, self.use):
            cross += part.T @ (self.weight[at, None] * targets[at])
        gamma = self.omega @ cross
        return self.A.times(self.new, self.use, gamma), lambda at: gamma[at]
