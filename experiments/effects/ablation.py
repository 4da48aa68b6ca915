"""Which parts of the method earn their place: one thing changed at a time."""

from dataclasses import replace

from ddml_fs.nuisances import Forest, Network
from experiments.effects.methods import interactive, partially_linear, rival, rivals

SYNTHETIC = {
    "mlp": ("binary 100", "binary 200", "continuous 100", "continuous 200"),
    "rf": ("binary 100", "continuous 100"),  # forests take six times as long
}
REPLICATIONS = 20  # of IHDP
ALONE = "IHDP, networks alone"

# As the package comes, λ_dis = 0.1 and λ_ort = 0.
CHANGES = {
    "as it comes": {},
    "without HSIC": {"lambda_dis": 0.0},
    "HSIC 1": {"lambda_dis": 1.0},
    "without gates": {"gates": False},
    "without quadratic terms": {"quadratic": False},
    "probabilities not calibrated": {"calibrate": False},
    "orthogonality as printed, 0.1": {"lambda_ort": 0.1},
    "orthogonality as printed, 1": {"lambda_ort": 1.0},
    "θ from the other half, 0.1": {"lambda_ort": 0.1, "orthogonality": "split"},
    "θ from the other half, 1": {"lambda_ort": 1.0, "orthogonality": "split"},
    "zero moments, 0.1": {"lambda_ort": 0.1, "orthogonality": "moments"},
    "zero moments, 1": {"lambda_ort": 1.0, "orthogonality": "moments"},
    "outcome head as printed": {"outcome": "direct"},
}
OF_FORESTS = ("as it comes", "without HSIC", "without gates", "zero moments, 1")
WITHOUT_ENCODER = "without encoder"
PLAIN = {
    "mlp": (rivals.DMLPerceptron, rivals.AIPWPerceptron),
    "rf": (rivals.DMLForest, rivals.AIPWForest),
}


def changed(nuisance, change):
    """The networks, or forests on the latents of networks, with some settings changed."""
    network = Network(**change)
    return network if nuisance == "mlp" else Forest(network=network)


def columns(data_sets, nuisance):
    """The data: synthetic, and IHDP twice, as it comes and with networks alone.

    On IHDP closed forms have most of the weight, so that it takes the second column to see what
    the parts of the network do.

    Parameters
    ----------
    data_sets : dict
        From a name to a DataSet.
    nuisance : {"mlp", "rf"}
    """
    ihdp = replace(data_sets["IHDP"], seeds=data_sets["IHDP"].seeds[:REPLICATIONS])
    return [*(data_sets[name] for name in SYNTHETIC[nuisance]), ihdp, replace(ihdp, name=ALONE)]


def variants(nuisance, data):
    """From names to methods.

    Parameters
    ----------
    nuisance : {"mlp", "rf"}
    data : str
        Name of the data set: effects vary on IHDP alone.
    """
    linear, per_arm = PLAIN[nuisance]
    if data == "IHDP":
        return {
            "as it comes": interactive("stacked"),
            "networks alone": interactive(nuisance),
            "closed forms alone": interactive("smooth"),
            "boosting alone": interactive("boosting"),
            WITHOUT_ENCODER: rival(per_arm),
        }
    chosen = {name: CHANGES[name] for name in (CHANGES if nuisance == "mlp" else OF_FORESTS)}
    if data == ALONE:
        return {name: interactive(changed(nuisance, c)) for name, c in chosen.items()}
    return {
        name: partially_linear(changed(nuisance, change)) for name, change in chosen.items()
    } | {WITHOUT_ENCODER: rival(linear, continuous=True)}
