"""The findings of an audit in plain sentences."""

MANY = 6  # names that a sentence lists

SETS = {
    "all": "all columns",
    "selected": "the selected columns",
    "stable": "the columns whose effects do not move",
}


def listed(names):
    """Names in a sentence, the first few of many.

    Examples
    --------
    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a, b', 'a, b, c, d, e, f and 2 more')
    """
    shown = ", ".join(map(str, names[:MANY]))
    return shown + (f" and {len(names) - MANY} more" if len(names) > MANY else "")


def counted(n, what):
    """A number of things.

    Examples
    --------
    >>> counted(1, "column"), counted(3, "column")
    ('1 column', '3 columns')
    """
    return f"{n} {what}" + ("s" if n != 1 else "")


def verdicts(features, base_rates, forecast, *, by_domain, n_domains):
    """What an audit found, most urgent first.

    Parameters
    ----------
    features, base_rates, forecast : DataFrame
        As :class:`~ddml_fs.ShiftAudit` has them.
    by_domain : bool
        Whether the forecast is from left-out domains.
    n_domains : int

    Returns
    -------
    sentences : list of str
    """
    out = []
    leaks = features.index[features["verdict"] == "leak"]
    if len(leaks):
        out.append(
            f"{counted(len(leaks), 'column')} may know the label ({listed(leaks)}): find out when "
            "they are filled in, and drop them if that is after the label or because of it. All "
            "other findings are without them."
        )
    moving = features.index[features["effect_moves"]]
    if n_domains < 2:
        out.append("There is one domain, so nothing can be said about what moves between domains.")
    elif len(moving):
        differ = "differ" if len(moving) > 1 else "differs"
        out.append(
            f"The {'effects' if len(moving) > 1 else 'effect'} of {counted(len(moving), 'column')} "
            f"{differ} between domains ({listed(moving)}): do not ship a model that leans on "
            f"{'them' if len(moving) > 1 else 'it'}."
        )
        kept = features.index[features["effect_moves"] & features["selected"]]
        if len(kept):
            one = len(kept) == 1
            out.append(
                f"Selected all the same: {listed(kept)}. What {'it is' if one else 'they are'} "
                "expected to gain in a new domain exceeds the risk. To do without "
                f"{'it' if one else 'them'}, use the columns whose effects do not move."
            )
    else:
        out.append(
            f"No column has an effect that differs between the {n_domains} domains by more than "
            "chance explains."
        )
    only = features.index[features["verdict"] == "mean moves"]
    if len(only):
        out.append(
            f"{counted(len(only), 'column')} have another mean from domain to domain, but the same "
            f"effect ({listed(only)}): a model may use them."
            if len(only) > 1
            else f"1 column has another mean from domain to domain, but the same effect "
            f"({listed(only)}): a model may use it."
        )
    rate = base_rates.columns[1]
    low, high = base_rates[rate].min(), base_rates[rate].max()
    if n_domains > 1 and base_rates["low"].max() > base_rates["high"].min():
        what = "base rate" if rate == "base_rate" else "mean of the outcome"
        shown = f"{low:.1%} to {high:.1%}" if rate == "base_rate" else f"{low:.3g} to {high:.3g}"
        out.append(
            f"The {what} differs between domains, from {shown}: probabilities need a new "
            "intercept in a new domain."
        )
    unknown = features.index[features["verdict"] == "unknown"]
    if len(unknown):
        out.append(
            f"The effects of {counted(len(unknown), 'column')} cannot be told from those of the "
            f"others, which determine them or leave them constant ({listed(unknown)})."
        )
    copies = features.index[features["copy_of"] != ""]
    if len(copies):
        pairs = [f"{name} repeats {features.loc[name, 'copy_of']}" for name in copies]
        out.append(f"Columns that nearly repeat others: {listed(pairs)}.")
    return out + _of_forecast(forecast, by_domain)


def _of_forecast(forecast, by_domain):
    """One sentence per set of features."""
    metric = "auc" if "auc" in forecast else "r2" if "r2" in forecast else None
    if metric is None:
        return []
    name = {"auc": "AUC", "r2": "R²"}[metric]
    best = forecast[metric].idxmax()
    row = forecast.loc[best]
    source = "leaving domains out" if by_domain else "cross-validation within one domain"
    out = [
        f"In a new domain, a model on {SETS[best]} ({int(row['n_features'])}) is expected to reach "
        f"an {name} of {row[metric]:.3f} ({row[metric + '_low']:.3f} to "
        f"{row[metric + '_high']:.3f}), by {source}."
    ]
    if not by_domain:
        out.append(
            "The interval leans on how much the quality varied between domains in other data sets: "
            "collect a second domain to learn how much it varies here."
        )
    return out
