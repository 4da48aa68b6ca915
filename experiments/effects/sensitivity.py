"""How much the error depends on the folds K and on the two weights of the loss."""

from experiments.effects.ablation import changed
from experiments.effects.methods import interactive, partially_linear

FOLDS = (2, 3, 5, 7, 10)
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
SETTINGS = {
    "K": [{"n_folds": k} for k in FOLDS],
    "λ_dis": [{"lambda_dis": value} for value in LAMBDAS],
    "λ_ort": [{"lambda_ort": value} for value in LAMBDAS],
}


def variants(nuisance, varying):
    """From "name = value" to a method.

    Parameters
    ----------
    nuisance : {"mlp", "rf"}
    varying : bool
        Whether effects vary, so that the interactive score is needed.
    """
    make = interactive if varying else partially_linear
    methods = {}
    for title, choices in SETTINGS.items():
        for choice in choices:
            ((name, value),) = choice.items()
            of_ddml = name == "n_folds"
            changes = changed(nuisance, {} if of_ddml else choice)
            methods[f"{title} = {value:g}"] = make(changes, **(choice if of_ddml else {}))
    return methods
