"""Warnings of ``fit``: each is one sentence that says what was found and what to do."""

import numpy as np

from ddml_fs.diagnostics import FEW, WEAK_OVERLAP, copies_of
from ddml_fs.readers import RARE
from ddml_fs.warning import DDMLWarning, caution, joined, listed

__all__ = ["DDMLWarning"]  # the name by which filters of warnings know it

OUTCOME_COPY = 1e-3  # share of the outcome's variance that a copy among covariates leaves
LABEL_COPY = 0.02  # the same among features: a correlation of 0.99
SMALL_DOMAIN = 30  # rows
FEW_EFFECTIVE = 30  # the same for rows of unequal weights
# Standard errors of the estimate, and of the difference, by which an estimate with linear nuisances
# differs if confounding is not linear.
CURVED, CERTAIN = 1.5, 2.0


# --- Tables ---


def warn_of_unread(encoding):
    """Warn of text in which no value is frequent enough to have an indicator.

    Parameters
    ----------
    encoding : Encoding
    """
    unread = [r.name for r, k in zip(encoding.readers, encoding.width, strict=True) if not k]
    if unread:
        caution(
            f"No value of {listed(unread)} is in {RARE:.1%} of the rows, so nothing of it is used; "
            "group its values, or turn dates and numbers in it into dates and numbers."
        )


# --- DDML ---


def warn_of_outcome_copies(X, y, names):
    """Warn of covariates that are the outcome itself.

    Parameters
    ----------
    X : array of shape (N, D)
    y : array of shape (N,)
    names : array of shape (D,)
    """
    copies = np.asarray(names)[copies_of(y, X, OUTCOME_COPY)]
    if len(copies):
        caution(
            f"X contains the outcome, or nearly: {listed(copies)}; drop it, because every effect "
            "is 0 given a copy of the outcome."
        )


def warn_of_overlap(table, clip, estimand):
    """Warn if the covariates leave little of the treatment's variation.

    Parameters
    ----------
    table : Series
        See :meth:`ddml_fs.DDML.diagnostics`.
    clip : float, or None
        Of the interactive score; None with others.
    estimand : str
    """
    left = table["unexplained_share"]
    if left < 0.01:
        caution(
            f"X predicts the treatment almost perfectly ({left:.2%} of its variance is left), so "
            "the effect is hardly identified; drop columns that only encode the treatment."
        )
    if clip is not None and table["share_beyond_clip"] > WEAK_OVERLAP:
        found = f"propensities were clipped to [{clip:g}, {1 - clip:g}]"
        if estimand == "ATT":
            found = f"treated rows have a propensity above {1 - clip:g}"
        caution(
            f"{table['share_beyond_clip']:.1%} of the {found} (weak overlap); leave out rows that "
            "could only be in one arm, or read the effect with care."
        )


def warn_of_weights(weight):
    """Warn if the rows count like few, because some weights (N,) are much larger than others."""
    own = np.atleast_1d(weight)[np.atleast_1d(weight) > 0]
    counts_like = own.sum() ** 2 / (own**2).sum()  # Kish's effective sample size
    if counts_like < min(FEW_EFFECTIVE, len(own) / 2):
        caution(
            f"sample_weight lets {len(own)} rows count like {counts_like:.1f}, because a few are "
            "much heavier than the others; cap the weights, or expect intervals to be too short."
        )


def few_rows(n_samples, gap):
    """Why the interval may be too short, in one sentence; empty if there is no sign of it.

    Parameters
    ----------
    n_samples : int
    gap : LinearGap
        Difference to the estimate with linear nuisances.

    Notes
    -----
    With few rows the nuisance models miss a part of confounding that is not linear. The interval
    does not account for this bias. Linear confounding does no harm, however strong. In
    ``python -m benchmarks.coverage`` intervals hold in the linear worlds, and not always in the
    others. The rule is right about both in most draws, while a rule that asks how much the
    covariates shift the estimate warned of linear confounding, and was silent where the models
    had missed the most.
    """
    if n_samples >= FEW or gap.size < CURVED or gap.z < CERTAIN:
        return ""
    return (
        f"X has only {n_samples} rows, and its confounding is not linear (with linear nuisances "
        f"the estimate differs by {gap.size:.1f} standard errors); use at least {FEW} rows, as the "
        "interval may be too short."
    )


# --- CausalFeatureSelector and EffectClassifier ---


def warn_of_label_copies(features, target, names):
    """Warn of features that are the outcome itself.

    Parameters
    ----------
    features : Features
    target : Target
    names : list of str
        Of the features of the table.
    """
    copies = np.any([copies_of(y, features.Z, LABEL_COPY) for y in target.outcomes], 0)
    caution_of_label_copies([names[features.first[f]] for f in np.unique(features.own[copies])])


def caution_of_label_copies(found):
    """Warn of features, given by their names, that are the outcome itself."""
    if found:
        caution(
            f"{listed(found)} is the outcome itself, or nearly; leave it out unless it is known "
            "before the outcome."
        )


def warn_of_repeats(features, names):
    """Warn of features that repeat others, exactly or nearly; arguments as above."""
    first = features.first
    pairs = [(f, first[g]) for f, g in enumerate(features.group) if g >= 0 and first[g] != f]
    pairs += [(first[f], first[g]) for f, g in enumerate(features.near) if g != f]
    if pairs:
        found = [f"{str(names[f])!r} repeats {str(names[g])!r}" for f, g in pairs]
        caution(
            f"{joined(found)}, exactly or nearly; their effects cannot be separated, so keep one "
            "column of each pair."
        )


def warn_of_collinear(evidence, features, names):
    """Warn of features that the others explain, so that their effects are unknown.

    Parameters
    ----------
    evidence : list of Evidence
        One per outcome.
    features, names
        As above.
    """
    unknown = np.flatnonzero(np.sum([part.I.sum(0) for part in evidence], 0) == 0)
    if len(unknown):
        caution(
            f"The effect of {listed([names[features.first[f]] for f in unknown])} is unknown, "
            "because other columns or the domains determine it; drop redundant columns."
        )


def warn_of_rows(domain, names, target, weight=1.0):
    """Warn of small domains, of domains with one class, and of a few rows with all the weight.

    Parameters
    ----------
    domain : int array of shape (N,)
    names : array
        Of the domains.
    target : Target
    weight : float or array of shape (N,)
    """
    warn_of_weights(weight)
    rows = np.bincount(domain, minlength=len(names))
    single = np.zeros(len(names), bool)
    if target.classes is not None:
        single = np.array([np.ptp(target.y[domain == d]) == 0 for d in range(len(names))])
    caution_of_domains(rows, single, names)


def caution_of_domains(rows, single, names):
    """The same from each domain's number of rows, and from whether it has a single class."""
    if len(names) < 2:
        return
    small = np.flatnonzero(rows < SMALL_DOMAIN)
    if len(small):
        found = [f"{str(names[d])!r} ({rows[d]} rows)" for d in small]
        caution(
            f"sample_domain has domains with fewer than {SMALL_DOMAIN} rows, {joined(found)}, "
            "whose effects are mostly noise; merge small domains, or leave them out."
        )
    if single.any():
        caution(
            f"y has only one class in the domains {listed(names[single])}, which therefore have "
            "no information about effects; merge them with others, or leave them out."
        )
