"""Every method of the tables, each a function from a question to an explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.paper.discount import discount
from benchmarks.paper.questions import Question
from benchmarks.rivals import (
    Ares,
    AresSettings,
    DiceSettings,
    GlobeSettings,
    ares,
    dice,
    globe_ce,
)

import elsewise as ew

__all__ = ["COSTS", "DICE_SECONDS", "RIVALS", "TARGETS", "ours", "published", "rules_in_order"]

TARGETS = {"ones": ew.targets.constant(1.0), "at least 0.6": ew.targets.at_least(0.6)}
PAPERS_COST = ew.Settings(population_weight=1.0, slack=0.0)
"""Only the population's distance counts, as in the paper and its measure OT; by default half of the
cost is each row's own move, and changes that do not matter are taken back."""
COSTS = {"ours": PAPERS_COST, "ours by default": ew.Settings()}
"""Ours in two ways, both with the output bound that is calibrated for the first."""
DICE_SECONDS = 600.0
"""Time cap of one run of dice-ml; rows it has not reached by then stay as they are."""
RULES, WIDTH, SUBGROUPS = 20, 7, 10
"""Bounds of a recourse set in the AReS paper (its epsilon 1, 2 and 3)."""


def ours(
    question: Question, target: str, bound: float, settings: ew.Settings = PAPERS_COST
) -> ew.Explanation:
    """Run this library with a bound on the outputs."""
    return ew.explain(
        question.model,
        question.rows,
        target=TARGETS[target],
        bounds=ew.Bounds(outputs=bound),
        schema=question.schema,
        background=question.experiment.train,
        certify="in-sample",
        seed=question.seed,
        progress=False,
        settings=settings,
    )


def published(question: Question, target: str) -> ew.Explanation:
    """Run the paper's step with its published settings."""
    return discount(question, TARGETS[target])


def _rival(run: Callable[..., Any], settings: Any) -> Callable[[Question], Any]:
    def answer(question: Question) -> Any:
        return run(
            question.model,
            question.rows,
            schema=question.schema,
            background=question.experiment.train,
            seed=question.seed,
            settings=settings,
        )

    return answer


RIVALS: dict[str, Callable[[Question], Any]] = {
    "DiCE genetic": _rival(dice, DiceSettings(method="genetic", seconds=DICE_SECONDS)),
    "DiCE random": _rival(dice, DiceSettings(method="random", seconds=DICE_SECONDS)),
    "AReS": _rival(ares, AresSettings()),
    "GLOBE-CE per row": _rival(globe_ce, GlobeSettings(scaling="rows")),
    "GLOBE-CE shared": _rival(globe_ce, GlobeSettings(scaling="shared")),
    "GLOBE-CE legal": _rival(globe_ce, GlobeSettings(scaling="rows", legal=True)),
}
"""Methods without a target distribution: they look for valid rows."""


def rules_in_order(found: Ares) -> bool:
    """Whether a recourse set is one.

    Every rule recommends other values for the attributes of its condition, fits the paper's limits
    and holds for some row, and only rows for which a rule holds have moved.
    """
    rules = found.rules
    sound = all(
        len(set(rule.fields)) == len(rule.condition) == len(rule.recommendation)
        and not set(rule.condition) & set(rule.recommendation)
        and 1 + len(rule.condition) <= WIDTH
        and 0 <= rule.correct <= rule.covered
        and rule.covered >= 1
        for rule in rules
    )
    few = len(rules) <= RULES and len({rule.subgroup for rule in rules}) <= SUBGROUPS
    moved = (found.factual != found.counterfactual).any(axis=1).to_numpy()
    return sound and few and bool((found.chosen[moved] >= 0).all())
