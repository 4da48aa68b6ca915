"""Shadow columns: calibrated p-values pass, and those that ignore dependent rows fail."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from ddml_fs import CausalFeatureSelector
from ddml_fs.cautions import DDMLWarning
from ddml_fs.datasets import make_domain_data
from ddml_fs.nuisances import Additive
from ddml_fs.shadows import donors, verdict_of_shadows, with_shadows


def draw_clusters(seed, n_clusters=60, size=10):
    """Columns and noise have a part that the rows of a cluster share."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    X = rng.standard_normal((len(cluster), 5)) + rng.standard_normal((n_clusters, 5))[cluster]
    noise = 2 * rng.standard_normal(n_clusters)[cluster] + rng.standard_normal(len(cluster))
    return X, X[:, 0] + noise, cluster


def draw_table(seed):
    """Numbers, a category and a 0/1 column, confounded, with two domains and weights."""
    rng = np.random.default_rng(seed)
    n = 500
    base = rng.standard_normal(n)
    X = pd.DataFrame({f"x{j}": base + rng.standard_normal(n) for j in range(4)})
    X["shop"] = np.array(["a", "b", "c"])[np.digitize(base + rng.standard_normal(n), [-1, 1])]
    X["member"] = (base + rng.standard_normal(n) > 0).astype(int)
    y = X["x0"] + (X["shop"] == "a") + rng.standard_normal(n)
    return X, y, np.arange(n) % 2, rng.uniform(0.5, 2, n)


# --- Where there is no trouble, p-values are calibrated ---


@pytest.mark.parametrize("kind", ["domains", "labels", "weights"])
def test_called_as_often_as_the_level_says(kind):
    called = total = 0
    for seed in range(4):
        X, y, domain, weight = draw_table(seed)
        rows = {"sample_domain": domain} if kind != "weights" else {"sample_weight": weight}
        y = (y > y.mean()).astype(int) if kind == "labels" else y
        selector = CausalFeatureSelector(1, random_state=0).fit(X, y, **rows)
        result = selector.placebo(X, y, **rows, n=60)
        called += (result["shadows"]["pvalue"] <= 0.1).sum()
        total += len(result["shadows"])
    assert total > 220
    # Within three standard errors of 10 %.
    assert abs(called / total - 0.1) < 3 * np.sqrt(0.1 * 0.9 / total)


def test_consequences_of_the_label_do_not_reach_the_shadows():
    """They are no covariates, so shadows must not depend on them."""
    data = make_domain_data(n_samples=300, random_state=4)
    rows = {"sample_domain": data.sample_domain}
    selector = CausalFeatureSelector(5, random_state=0).fit(data.X, data.y, **rows)
    result = selector.placebo(data.X, data.y, **rows, n=100)
    assert result["passed"]
    assert result["low"] < 0.1 < result["high"]


# --- Where rows depend on one another ---


def test_dependent_rows_are_called_out():
    X, y, cluster = draw_clusters(0)
    plain = CausalFeatureSelector(1, random_state=0).fit(X, y)
    result = plain.placebo(X, y, cluster=cluster)
    assert not result["passed"]
    assert result["low"] > 0.2
    assert "more than chance explains: do not trust the p-values" in result["verdict"]
    known = CausalFeatureSelector(1, random_state=0).fit(X, y, cluster=cluster)
    result = known.placebo(X, y, cluster=cluster)
    assert result["passed"]
    assert result["verdict"].endswith("as chance explains.")


# --- What a shadow is ---


def test_donors_stay_in_their_domain_and_stratum():
    rng = np.random.RandomState(0)
    domain = np.repeat([0, 1], [200, 40])
    score = rng.standard_normal(240)
    source = donors(score, domain, None, rng)
    assert sorted(source) == list(range(240))  # every row is used once
    assert not (source == np.arange(240)).any()
    np.testing.assert_array_equal(domain[source], domain)
    ranks = np.concatenate([stats.rankdata(score[domain == d]) for d in (0, 1)])
    width = np.where(domain == 0, 20, 10)
    assert (np.abs(ranks[source] - ranks) < width).all()


def test_clusters_move_as_a_whole():
    rng = np.random.RandomState(0)
    cluster = rng.permutation(np.repeat(np.arange(30), np.arange(30) % 4 + 1))
    source = donors(np.zeros(len(cluster)), np.zeros(len(cluster), int), cluster, rng)
    for c in range(30):
        own = cluster[source[cluster == c]]
        assert len(set(own)) == 1
        assert own[0] != c
    for c in range(30):  # as many different rows as both clusters have
        own = source[cluster == c]
        most = (cluster == cluster[own[0]]).sum()
        assert len(set(own)) == min(len(own), most)


def test_shadows_depend_on_covariates_and_categories_stay_whole():
    X, y, domain, _ = draw_table(0)
    selector = CausalFeatureSelector(1, random_state=0).fit(X, y, sample_domain=domain)
    given = selector.fit_sweep(X, y, sample_domain=domain).result
    both, source = with_shadows(given, None, 12, check_random_state(0))
    real = given.features.n_features
    assert both.features.n_features == real + 12
    np.testing.assert_array_equal(both.features.Z[:, : given.features.Z.shape[1]], given.features.Z)
    for k, f in enumerate(source):
        columns = both.features.X[:, both.features.feature == len(X.columns) + k]
        original = given.features.X[:, given.features.feature == f]
        for d in (0, 1):  # the same rows, in another order
            rows, wanted = (a[domain == d] for a in (columns, original))
            np.testing.assert_array_equal(
                rows[np.lexsort(rows.T)], wanted[np.lexsort(wanted.T)], err_msg=X.columns[f]
            )
        if X.columns[f] in ("x1", "x2"):  # a common cause: a correlation of 0.5 in the table
            assert stats.pearsonr(columns[:, 0], X["x3"]).statistic > 0.3


def test_p_values_are_those_of_a_column_of_the_table():
    """Each shadow as a further column of the table, in a fit of its own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) @ rng.standard_normal((4, 4))
    y = X[:, 0] + rng.standard_normal(400)
    options = {"nuisance": Additive(strength=1e-4), "dose": "linear", "random_state": 0}
    selector = CausalFeatureSelector(1, **options)
    given = selector.fit_sweep(X, y).result
    found = selector.placebo(X, y, n=10, random_state=3)["shadows"]
    both, source = with_shadows(given, None, 10, check_random_state(3))
    assert found["feature"].tolist() == [f"x{f}" for f in source]
    for k in range(10):
        own = np.column_stack([X, both.features.X[:, 4 + k]])
        twin = CausalFeatureSelector(1, **options).fit(own, y).effects_.iloc[-1]
        assert found["tstat"][k] == pytest.approx(twin["tstat"], abs=0.02)
        assert found["pvalue"][k] == pytest.approx(twin["pvalue"], abs=0.02)


# --- Verdicts, and what is refused ---


def test_verdict():
    few = verdict_of_shadows(np.r_[np.zeros(2), np.ones(38)], 0.1)
    assert few["verdict"].startswith("2 of 40 shadow columns have a p-value of at most 0.1")
    assert (few["low"], few["high"]) == pytest.approx((0.00611, 0.16920), abs=1e-4)  # exact
    many = verdict_of_shadows(np.r_[np.zeros(12), np.ones(38)], 0.1)
    assert not many["passed"]
    assert many["pvalue"] == pytest.approx(stats.binom.sf(11, 50, 0.1))


def test_discoveries_and_silence():
    """Shadows below the threshold of the discoveries are counted; fit's warnings are not said."""
    X, y, _ = draw_clusters(1)
    X = np.column_stack([X, X[:, 0]])
    selector = CausalFeatureSelector(1, random_state=0)
    with pytest.warns(DDMLWarning, match="repeats"):
        selector.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DDMLWarning)
        result = selector.placebo(X, y)
    table = selector.effects_
    threshold = table["pvalue"][table["qvalue"] <= 0.1].max()
    assert result["discoveries"] == (result["shadows"]["pvalue"] <= threshold).sum()
    again = selector.placebo(X, y)["shadows"]
    pd.testing.assert_frame_equal(result["shadows"], again)


def test_refused():
    X, y, cluster = draw_clusters(0)
    known = CausalFeatureSelector(1, random_state=0).fit(X, y, cluster=cluster)
    with pytest.raises(ValueError, match="cluster must be given to placebo, as to fit, got None"):
        known.placebo(X, y)
    with pytest.raises(ValueError, match="n must be an integer of at least 10, got 3"):
        known.placebo(X, y, cluster=cluster, n=3)
    with pytest.raises(ValueError, match="5 features as input"):
        known.placebo(X[:, :3], y, cluster=cluster)
    sparse = CausalFeatureSelector(1, nuisance="ridge", screen=3, random_state=0)
    sparse.fit(csr_matrix(X), y)
    for selector, table in ((sparse, X), (known, "table.parquet")):
        with pytest.raises(ValueError, match="placebo needs all rows in a dense table"):
            selector.placebo(table, y)
