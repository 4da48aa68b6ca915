"""The order by relevance less redundancy."""

import numpy as np
import pandas as pd
import pytest

from ddml_fs import CausalFeatureSelector
from ddml_fs.blocks import read_blocks
from ddml_fs.redundancy import greedy_order, squared_correlations


def slow_order(relevance, X):
    """The same order by its definition, with correlations from numpy."""
    R, taken = np.corrcoef(X.T) ** 2, []
    while len(taken) < len(relevance):
        values = {
            j: relevance[j] ** 2 - (np.mean([R[j, k] for k in taken]) if taken else 0)
            for j in range(len(relevance))
            if j not in taken
        }
        taken.append(max(values, key=values.get))
    return taken


@pytest.fixture
def table():
    """Twelve columns, four of which repeat others with noise, and a label of six."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    X[:, 8:] = X[:, :4] + 0.3 * rng.standard_normal((400, 4))
    y = (X[:, :6].sum(1) + rng.standard_normal(400) > 0).astype(int)
    return X, y


def test_order_equals_its_definition(table):
    X, _ = table
    relevance = np.random.default_rng(1).uniform(0, 0.6, 12)
    C = X - X.mean(0)
    shared = squared_correlations(C.T @ C, np.arange(12))
    np.testing.assert_allclose(shared, np.corrcoef(X.T) ** 2, atol=1e-12)
    assert greedy_order(relevance, shared).tolist() == slow_order(relevance, X)


def test_selector_uses_the_z_values_and_the_columns(table):
    X, y = table
    selector = CausalFeatureSelector(6, ranking="redundancy", random_state=0).fit(X, y)
    relevance = selector.effects_["z"].abs().to_numpy() / np.sqrt(len(X))
    np.testing.assert_allclose(selector.scores_, relevance, rtol=1e-6)
    assert np.argsort(selector.ranking_).tolist() == slow_order(relevance, X)
    # A repeat brings nothing that its first has not brought, so it waits for other columns.
    by_z = CausalFeatureSelector(6, nuisance="ridge", ranking="tstat", random_state=0).fit(X, y)
    assert selector.get_support()[:6].sum() >= by_z.get_support()[:6].sum()


def test_blocks_of_rows(table):
    """Correlations from sums are those of the rows."""
    X, y = table
    selector = CausalFeatureSelector(6, ranking="redundancy", scale="mean", random_state=0)
    selector.fit(read_blocks(X, y, rows_per_block=100))
    relevance = selector.effects_["z"].abs().to_numpy() / np.sqrt(len(X))
    assert np.argsort(selector.ranking_).tolist() == slow_order(relevance, X)


def test_categories_and_a_number_by_left_out_folds(table):
    X, y = table
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    frame["colour"] = np.random.default_rng(2).choice(["red", "green", "blue"], len(X))
    selector = CausalFeatureSelector("auto", ranking="redundancy", random_state=0).fit(frame, y)
    assert selector.effects_.loc["colour", "rank"] > 6
    assert 4 <= selector.n_features_auto_ <= 12
