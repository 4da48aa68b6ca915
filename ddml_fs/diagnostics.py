"""What to look at before an effect is believed."""

import numpy as np
import pandas as pd


def roles_table(strength, names):
    """How much each covariate acts as confounder, on the treatment only, on the outcome only.

    An input reaches T through Zc and Zt, and Y through Zc and Zy. What reaches both is a
    confounder; what is left over acts on one of them only.

    Parameters
    ----------
    strength : array of shape (D, 3)
        Row norms of the roles' encoders.
    names : list of str
        The columns.

    Returns
    -------
    roles : DataFrame
        Columns "confounder", "treatment" and "outcome", the largest entry being 1, and "role":
        the first of the three that reaches a tenth, or "none".
    """
    to_T, to_Y = np.hypot(strength[:, 0], strength[:, 1]), np.hypot(strength[:, 0], strength[:, 2])
    both = np.minimum(to_T, to_Y)
    table = pd.DataFrame(
        {"confounder": both, "treatment": to_T - both, "outcome": to_Y - both}, index=list(names)
    )
    table = table / max(table.to_numpy().max(), 1e-12)
    acts = table >= 0.1
    table["role"] = acts.idxmax(axis=1).where(acts.any(axis=1), "none")
    return table


def nuisance_gain(target, predicted, binary):
    """Held-out loss of a nuisance and of a constant in its place.

    Returns
    -------
    loss, constant : float
        Cross-entropies for a binary target, else mean squared errors.
    """
    if binary:
        p = np.clip(predicted, 1e-6, 1 - 1e-6)
        share = target.mean()
        return (
            float(-np.mean(target * np.log(p) + (1 - target) * np.log(1 - p))),
            float(-share * np.log(share) - (1 - share) * np.log(1 - share)),
        )
    return float(np.mean((target - predicted) ** 2)), float(np.var(target))


def unexplained_share(v, treatment):
    """Share of the treatment's variance that X does not explain on held-out rows."""
    return float(np.mean(v**2) / np.var(treatment))
