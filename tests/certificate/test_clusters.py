"""Rows that belong together: split as a whole, limited by cluster, and noticed where not named."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import elsewise as ew
from elsewise.certificate import share_limit
from elsewise.confidence import (
    Comparison,
    certificate_limit,
    clustered_limit,
    mean_interval,
    share_interval,
)
from elsewise.errors import InvalidInput
from elsewise.request import Request, halve, pose

LEVEL = 0.975


def drawn(rng: np.random.Generator, clusters: int, each: int) -> Comparison:
    """Outputs of customers that appear several times, wanted at 1 at most."""
    output = np.repeat(np.exp(0.8 * rng.standard_normal((1, clusters))), each, axis=1)
    wanted = np.minimum(output, 1.0)
    return Comparison.paired(wanted + 0.3 * (output - wanted), wanted, 0.05)


def test_limits_by_cluster_cover_where_limits_by_row_do_not():
    truth = drawn(np.random.default_rng(1), 300_000, 1).distance
    hits, repetitions, labels = np.zeros(2), 200, np.repeat(np.arange(60), 5)
    for repetition in range(repetitions):
        rng = np.random.default_rng([6, repetition])
        comparison = drawn(rng, 60, 5)
        alone = certificate_limit(comparison, 199, rng, level=LEVEL)
        together = clustered_limit(comparison, alone, labels)
        assert together.probability(together.upper(LEVEL)) >= LEVEL
        hits += [limit.upper(LEVEL) >= truth for limit in (alone, together)]
    by_row, by_cluster = hits / repetitions
    assert by_row < 0.92
    assert by_cluster >= LEVEL - 4 * math.sqrt(LEVEL * (1 - LEVEL) / repetitions)


def test_clusters_of_one_row_change_nothing():
    comparison = drawn(np.random.default_rng(0), 100, 1)
    alone = certificate_limit(comparison, 199, np.random.default_rng(0), level=LEVEL)
    single = clustered_limit(comparison, alone, np.arange(100))
    assert single.upper(LEVEL) == pytest.approx(alone.upper(LEVEL), rel=0.01)


def customers(count: int, each: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": np.repeat(rng.normal(size=count), each)})


def explain(rows: pd.DataFrame, **more: object) -> ew.Explanation:
    return ew.explain(
        ew.models.function(lambda frame: frame["x"], smooth=True, probability=False),
        rows,
        target=ew.targets.shift(0.3),
        bounds=ew.Bounds(outputs=0.2),
        certify="held-out",
        settings=ew.Settings(iterations=5, draws=199),
        progress=False,
        **more,
    )


def test_clusters_are_split_as_a_whole():
    rows = customers(30, 5)
    labels = np.repeat(np.arange(30), 5)
    problem, _ = pose(
        Request(model=lambda f: f["x"], rows=rows, target=ew.targets.shift(0.3), clusters=labels),
        ew.Bounds(outputs=0.2),
    )
    halves = halve(problem)
    assert not set(halves.fitted.clusters) & set(halves.tested.clusters)
    assert halves.fitted.clusters.size == halves.tested.clusters.size == 75


def test_copies_are_noticed_and_clusters_answer_them():
    rows = customers(60, 5)
    alone = explain(rows)
    together = explain(rows, clusters=np.repeat([f"c{k}" for k in range(60)], 5))
    assert "exact copies" in " ".join(alone.status.notices)
    assert "exact copies" not in " ".join(together.status.notices)
    assert "by cluster" in together.certificate.outputs.method
    assert "only 30 clusters" in together.certificate.outputs.notice
    widths = [
        each.certificate.readouts[0].before.upper - each.certificate.readouts[0].before.lower
        for each in (alone, together)
    ]
    assert widths[1] > 1.5 * widths[0]
    assert "exact copies" not in " ".join(explain(customers(300, 1)).status.notices)


def test_a_share_and_a_move_are_limited_by_cluster():
    """Copies of 60 rows, five each: what 60 rows say of the share that arrives, and of the move."""
    rows, labels = customers(60, 5), np.repeat(np.arange(60), 5)
    model = ew.models.function(lambda frame: frame["x"], smooth=True, probability=False)
    found = ew.explain(
        model,
        rows,
        target=ew.targets.share(at_least=0.6, above=0.0),
        certify="held-out",
        settings=ew.Settings(iterations=5, draws=199),
        progress=False,
        clusters=labels,
    ).certificate
    reached = found.reached
    alone = share_limit(reached.arrived, reached.rows, 0.95)
    by_cluster = share_limit(reached.arrived // 5, reached.rows // 5, 0.95)
    assert reached.limit == pytest.approx(by_cluster, abs=0.03)
    assert reached.limit < alone - 0.03
    assert "by cluster" in found.row_move.method


@pytest.mark.parametrize("labels", ["customer", [1, 2], np.full(300, 1)])
def test_clusters_that_make_no_sense_are_refused(labels):
    with pytest.raises(InvalidInput, match="clusters: expected"):
        explain(customers(300, 1), clusters=labels)


def test_few_clusters_are_noticed_beside_what_was_asked() -> None:
    values = np.random.default_rng(0).normal(size=90)
    for count, told in ((5, "only 5 clusters"), (30, "")):
        labels = np.arange(90) % count
        for found in (
            mean_interval(values, 0.9, np.random.default_rng(0), None, labels),
            share_interval(values, 0.5, 0.9, labels),
        ):
            assert (told in found.notice) if told else not found.notice
