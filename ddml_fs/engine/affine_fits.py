"""Ridge nuisances as affine functions of a row, to be evaluated where the rows are not at hand."""

import numpy as np

from ddml_fs.engine.ridge import Fit, Rows


def basis(D):
    """New rows (D + 1, D) on which an affine function is evaluated: zeros, and unit vectors."""
    return np.vstack([np.zeros(D), np.eye(D)])


def affine(values, mean, inverse):
    """Intercepts (F,) and slopes (D, F) for rows as they are, from values (D + 1, F) on a basis.

    Parameters
    ----------
    values : array of shape (D + 1, F)
        Values of F affine functions of standardised rows on :func:`basis`.
    mean, inverse : arrays of shape (D,)
        Standardised rows are (x − mean)·inverse.
    """
    slopes = (values[1:] - values[0]) * inverse[:, None]
    return values[0] - mean @ slopes, slopes


def forms_of(rows, mean, sd, covariates, penalty, block, outcomes):
    """Residuals of all columns, and predictions of the outcomes, as affine functions of a row.

    Parameters
    ----------
    rows : ProductRows
        Standardised training rows, (n, D).
    mean, sd : arrays of shape (D,)
        By which they are standardised; sd is 0 for columns that are constant in training.
    covariates, penalty, block
        As in :class:`~ddml_fs.engine.ridge.Fit`.
    outcomes : list of callables
        From the Fit to predictions (D + 1, D) on its new rows.

    Returns
    -------
    forms : list of pairs of arrays of shapes (D,) and (D, D)
        Intercepts and slopes: first of the residuals v of every column, then of the predictions of
        each outcome without this column.
    """
    inverse = np.divide(1.0, sd, out=np.zeros(len(sd)), where=sd > 0)
    fit = Fit(Rows(rows, basis(len(sd)), sd), covariates, penalty, block)
    intercept, slope = affine(fit.residual * sd, mean, inverse)
    flat = np.flatnonzero(sd == 0)  # such columns are predicted by their means
    slope[flat, flat], intercept[flat] = 1.0, -mean[flat]
    return [(intercept, slope), *(affine(predict(fit), mean, inverse) for predict in outcomes)]
