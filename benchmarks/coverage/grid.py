"""The settings in which coverage is measured, and how many replications each gets."""

from dataclasses import dataclass

from benchmarks.coverage.tuning_worlds import WORLDS

ROWS = (300, 500, 1000, 2000, 6000)
CHEAP = 500  # rows up to which a setting gets all replications; with more rows the share falls
LEAST = 20  # replications


@dataclass(frozen=True)
class Setting:
    """A world, a size and a score."""

    world: str
    treatment: str
    score: str
    effect: str
    n_features: int
    n_samples: int

    @property
    def name(self):
        """The setting in words, without its number of rows."""
        score = self.score.replace("_", " ")
        parts = self.world, self.treatment, score, self.effect, f"d = {self.n_features}"
        return ", ".join(parts)

    def n_replications(self, replications):
        """Number of replications of methods that take long, out of those of cheap settings."""
        return min(replications, max(LEAST, replications * CHEAP // max(self.n_samples, CHEAP)))


MODELS = (
    ("binary", "interactive", "constant"),
    ("binary", "interactive", "varying"),
    ("binary", "partially_linear", "constant"),
    ("continuous", "partially_linear", "constant"),
)
CONSTANT = tuple(model for model in MODELS if model[-1] == "constant")


def grid():
    """All settings."""
    own = [
        Setting(world, *model, d, n)
        for world in ("linear", "bent")
        for model in MODELS
        for d in (10, 50)
        for n in ROWS
    ]
    paper = [Setting("paper", *model, 20, n) for model in CONSTANT for n in ROWS[:4]]
    clustered = [Setting("clustered", *model, 10, 2000) for model in CONSTANT]
    return own + paper + clustered


def tuning_grid():
    """Worlds on which the intervals were tuned."""
    models = [model for model in CONSTANT if model[:2] != ("binary", "partially_linear")]
    return [
        Setting(world, *model, d, n)
        for world, d in WORLDS.items()
        for model in models
        for n in (500, 2000)
    ]


def quick_grid():
    """Four small settings."""
    varying = [model for model in MODELS if model[0] == "continuous" or model[-1] == "varying"]
    return [Setting(world, *model, 10, 300) for world in ("linear", "bent") for model in varying]
