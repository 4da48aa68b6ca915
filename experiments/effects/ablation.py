"""Which parts of the method earn their place: one thing changed at a time."""

from experiments.effects.methods import interactive, partially_linear, rival, rivals

BINARY = ("binary 100", "binary 200")
CONTINUOUS = ("continuous 100", "continuous 200")

# As the package comes, λ_dis = 0.1 and λ_ort = 0.
CHANGES = {
    "as it comes": {},
    "without HSIC": {"lambda_dis": 0.0},
    "HSIC 1": {"lambda_dis": 1.0},
    "without gates": {"gates": False},
    "orthogonality as printed, 0.1": {"lambda_ort": 0.1},
    "orthogonality as printed, 1": {"lambda_ort": 1.0},
    "θ from the other half, 0.1": {"lambda_ort": 0.1, "orthogonality": "split"},
    "θ from the other half, 1": {"lambda_ort": 1.0, "orthogonality": "split"},
    "zero moments, 0.1": {"lambda_ort": 0.1, "orthogonality": "moments"},
    "zero moments, 1": {"lambda_ort": 1.0, "orthogonality": "moments"},
    "outcome head as printed": {"outcome": "direct"},
}
# Forests take six times as long: the paper's three parts, and the gates.
OF_FORESTS = ("as it comes", "without HSIC", "without gates", "zero moments, 1")

WITHOUT_ENCODER = "without encoder"


def variants(nuisance):
    """Methods for synthetic data, where the effect is constant."""
    plain = {"mlp": rivals.DMLPerceptron, "rf": rivals.DMLForest}[nuisance]
    chosen = CHANGES if nuisance == "mlp" else OF_FORESTS
    return {name: partially_linear(nuisance, **CHANGES[name]) for name in chosen} | {
        WITHOUT_ENCODER: rival(plain, continuous=True)
    }


def variants_of_varying(nuisance):
    """Methods for IHDP, where effects vary. Without encoder: boosting per arm on the columns."""
    chosen = CHANGES if nuisance == "mlp" else OF_FORESTS
    return {name: interactive(nuisance, **CHANGES[name]) for name in chosen} | {
        WITHOUT_ENCODER: rival(rivals.AIPWBoosting)
    }
