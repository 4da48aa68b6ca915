"""What a report says first, and what it assumes, in plain sentences."""

from dataclasses import dataclass
from typing import Any

from ddml_fs.audit.verdicts import counted, listed
from ddml_fs.domains import UNSTABLE
from ddml_fs.plotting.curve import measure_of
from ddml_fs.plotting.reading import effect_label, has_labels

FDR_LEVEL = 0.1
LITTLE_LEFT = 0.05  # share of the treatment's variance, below which an effect rests on little
BEYOND = 0.01  # share of propensities beyond the clip that is worth a warning


@dataclass(frozen=True)
class Verdict:
    """A sentence, and whether it is a warning.

    Attributes
    ----------
    text : str
    warning : bool
    """

    text: str
    warning: bool = False


def verdicts(selector: Any = None, audit: Any = None, effect: Any = None) -> list[Verdict]:
    """What was found, most urgent first.

    Parameters
    ----------
    selector : CausalFeatureSelector, optional
    audit : ShiftAudit, optional
    effect : DDML, optional
        All of them fitted.

    Returns
    -------
    verdicts : list of Verdict
        Those of the audit where there is one, and else those of the selector.
    """
    out = []
    if audit is not None:
        # An audit tells what is most urgent first: leaks, then effects that move.
        urgent = bool(len(audit.leaks_)) + bool(audit.features_["effect_moves"].any())
        out += [Verdict(text, i < urgent) for i, text in enumerate(audit.verdicts_)]
    elif selector is not None:
        out += sorted(of_selector(selector), key=lambda verdict: not verdict.warning)
    if effect is not None:
        out += of_effect(effect)
    return out


def differing(effects: Any) -> Any:
    """Rows of ``effects_`` whose effects differ between domains, by more than chance explains."""
    return (effects["instability"] >= UNSTABLE) & (effects["tau_low"] > 0)


def of_selector(selector: Any) -> list[Verdict]:
    """What a selector found."""
    effects = selector.effects_
    n, n_selected = len(effects), int(effects["selected"].sum())
    verb = "is" if n_selected == 1 else "are"
    out = [Verdict(f"{n_selected} of {counted(n, 'feature')} {verb} selected.")]
    if len(selector.domains_) < 2:
        out.append(
            Verdict("There is one domain, so nothing can be said about what differs elsewhere.")
        )
    else:
        out.append(of_domains(effects, len(selector.domains_)))
    clear = int((effects["qvalue"] <= FDR_LEVEL).sum())
    if clear:
        out.append(
            Verdict(
                f"{counted(clear, 'feature')} {'has' if clear == 1 else 'have'} an effect that "
                f"chance does not explain (q-value at most {FDR_LEVEL:g})."
            )
        )
    else:
        out.append(
            Verdict(
                "No feature has an effect that chance does not explain (q-value at most "
                f"{FDR_LEVEL:g}).",
                True,
            )
        )
    unknown = effects.index[effects["df"] == 0]
    if len(unknown):
        out.append(
            Verdict(
                f"The effects of {counted(len(unknown), 'feature')} are unknown, because other "
                f"columns determine them or they are constant ({listed(list(unknown))})."
            )
        )
    return out + of_curve(selector)


def of_domains(effects: Any, n_domains: int) -> Verdict:
    """Whether effects differ between domains."""
    differ = differing(effects)
    names = list(effects.index[differ])
    if not names:
        return Verdict(
            f"No feature's effect differs much between the {n_domains} domains, as far as the rows "
            "can tell."
        )
    many = len(names) > 1
    text = (
        f"{counted(len(names), 'feature')} {'differ' if many else 'differs'} in effect between "
        f"domains ({listed(names)}): do not ship a model that leans on "
        f"{'them' if many else 'it'}."
    )
    chosen = int((differ & effects["selected"]).sum())
    if chosen:
        what = f"{chosen} of them {'is' if chosen == 1 else 'are'}" if many else "It is"
        text += f" {what} selected."
    return Verdict(text, True)


def of_curve(selector: Any) -> list[Verdict]:
    """What the number of features gains, where "auto" chose it."""
    if not hasattr(selector, "curve_") or selector.curve_["loss"].isna().all():
        return []
    curve = selector.curve_.dropna()
    gain = 1 - curve["loss"].to_numpy()
    numbers = curve["n_features"].to_numpy()
    at = int(abs(numbers - selector.n_features_auto_).argmin())
    where = "domains" if len(selector.domains_) > 1 else "folds"
    return [
        Verdict(
            f"With {counted(int(numbers[at]), 'feature')} a model reaches a {measure_of(selector)} "
            f"of {gain[at]:.3f} in left-out {where}; with {int(numbers[-1])} it reaches "
            f"{gain[-1]:.3f}."
        )
    ]


def of_effect(effect: Any) -> list[Verdict]:
    """What a single effect is, and whether to believe it."""
    low, high = effect.conf_int()
    text = (
        f"The effect ({effect.estimand_}) is {effect.effect_:.4g}, with a 95 % interval from "
        f"{low:.4g} to {high:.4g}"
    )
    first = Verdict(text + (", which contains 0." if low <= 0 <= high else "."))
    return [first, Verdict(effect.verdict_, weak_overlap(effect))]


def weak_overlap(effect: Any) -> bool:
    """Whether an effect rests on few rows, or on little of the treatment."""
    table = effect.diagnostics()
    clipped = effect.score_ == "interactive" and table["share_beyond_clip"] > BEYOND
    return bool(clipped or table["unexplained_share"] < LITTLE_LEFT)


def assumptions(selector: Any = None, audit: Any = None, effect: Any = None) -> list[str]:
    """What must hold for the findings to mean what they say.

    Parameters
    ----------
    selector, audit, effect
        As in :func:`verdicts`.

    Returns
    -------
    sentences : list of str
    """
    out = []
    if selector is not None:
        teller = audit if audit is not None else selector
        several = len(selector.domains_) > 1
        out.append(
            "The effect of a feature is its effect given the other features. It is a causal effect "
            "only if these include everything that acts on both the feature and the outcome."
        )
        if "log-odds" in effect_label(teller):
            out.append("Effects are on the log-odds: an effect of 0.7 doubles the odds.")
        out.append("The effect of a number is the slope of a straight line, on average.")
        if several and selector.covariates != "all":
            out.append(
                "Features whose effects differ between domains may be consequences of the outcome. "
                "They get an effect of their own, but the effects of the others are not adjusted "
                "for them."
            )
        out.append(
            "A new domain differs from the given ones no more than these differ from each other."
            if several
            else "With one domain, a consequence of the outcome looks like a cause."
        )
        if has_labels(teller) is not False:
            out.append("The held-out AUC does not depend on the base rate; accuracy does.")
    if effect is not None:
        out += [
            "Everything that acts on both the treatment and the outcome is among the covariates.",
            "Rows of every kind could have had more or less of the treatment (overlap).",
            "The treatment of one row does not act on the outcome of another.",
        ]
    return out
