"""Saves fitted estimators and what they said: ``python tests/make_fixtures.py``.

``test_persistence.py`` loads them with the present code. Run it again, and commit the files, only
if a change of the saved state is meant.
"""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ddml_fs import (
    DDML,
    CausalFeatureSelector,
    DDMLWarning,
    EffectClassifier,
    ShiftAudit,
    __version__,
)
from ddml_fs.nuisances import Network

FOLDER = Path(__file__).parent / "fixtures"


def table(n=60):
    """A table with a number, its gaps, a category, a treatment, a label and a domain."""
    i = np.arange(n)
    age = np.round(np.sin(i * 1.7) * 10 + 40, 3)
    shop = np.resize(["a", "b", "b", "c", "a"], n)
    treated = (np.cos(i * 2.3) + (shop == "a") > 0.2).astype(float)
    y = age / 10 + treated + (shop == "a") + np.sin(i * 5.1)
    X = pd.DataFrame({"age": age, "weight": np.round(np.cos(i * 0.9), 3), "shop": shop})
    X.loc[::7, "weight"] = np.nan
    return X, y, treated, (y > np.median(y)).astype(int), i % 2


def fitted():
    """One small estimator of each class, by name."""
    X, y, treated, label, domain = table()
    network = Network(epochs=2, hidden=4, latent=2)
    given = {"sample_domain": domain}
    return {
        "effect": DDML(network, n_folds=2, random_state=0).fit(X, y, treatment=treated),
        "selector": CausalFeatureSelector(2, random_state=0).fit(X, label, **given),
        "classifier": EffectClassifier().fit(X, label, **given),
        "audit": ShiftAudit(random_state=0).fit(X, label, **given),
    }


def said_by(name, model):
    """Numbers that an estimator gives, as lists."""
    X = table()[0].head(10)
    if name == "effect":
        found = [[model.effect_, model.stderr_, *model.conf_int()], model.represent(X).Zc]
    elif name == "selector":
        found = [model.effects_[["effect", "stderr", "score"]], model.get_support() * 1.0]
    elif name == "classifier":
        found = [model.coef_, model.predict_proba(X)]
    else:
        found = [model.features_[["alone", "effect", "tau"]].fillna(-1.0)]
    return [np.asarray(part, dtype=float).tolist() for part in found]


def main():
    """Write one pickle per estimator, and ``said.json``."""
    FOLDER.mkdir(exist_ok=True)
    said: dict = {"version": __version__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DDMLWarning)
        for name, model in fitted().items():
            (FOLDER / f"{name}.pkl").write_bytes(pickle.dumps(model, protocol=4))
            said[name] = said_by(name, model)
    (FOLDER / "said.json").write_text(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
