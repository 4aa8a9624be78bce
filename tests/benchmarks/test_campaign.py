"""A fixed sample of the campaign: answered and checked, or refused in words; nothing else."""

from __future__ import annotations

import pytest
from benchmarks.campaign import mutations, problems
from benchmarks.campaign.__main__ import KINDS, listed, page, sampled
from benchmarks.campaign.verdicts import BAD, SLOW, Attempt, verdict

PARTS = 4
"""Tests per kind, so that they share the cores."""
QUICK = 4
"""One attempt in so many of the sample is among the quick tests."""


def failures(attempts: list[Attempt]) -> list[tuple[str, str, str]]:
    found = [(attempt.key, *verdict(attempt)) for attempt in attempts]
    return [one for one in found if one[1] in (*BAD, SLOW)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_quick_sample_holds(kind: str) -> None:
    step = QUICK if kind == "inputs" else 10 * QUICK
    assert not failures(sampled(kind)[::step])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_the_sample_holds(kind: str, part: int) -> None:
    assert not failures(sampled(kind)[part::PARTS])


# Faults that a campaign found, mended since: what was asked, and its seed.
MENDED = (
    *("policy 167", "policy 1270", "rule 1243", "difference 9809", "arrays 9127"),
    *("problem 350", "problem 1320", "problem 2953", "problem 4467", "problem 6512"),
    *("record 6295", "problem 6911", "problem 8995"),
)


@pytest.mark.parametrize("found", MENDED)
def test_what_a_campaign_found_stays_mended(found: str) -> None:
    kind, seed = found.split()

    def again() -> None:
        if kind == "problem":
            problems.solve(int(seed))
        else:
            mutations.in_folder(getattr(mutations, kind), int(seed))

    assert not failures([Attempt(found, again)])


def test_attempts_have_names_and_the_page_counts_them() -> None:
    everything = listed()
    assert sum(map(len, everything.values())) >= 600
    for attempts in everything.values():
        assert len({attempt.key for attempt in attempts}) == len(attempts)
    result = {"key": "problems: problem 0", "kind": "problems", "verdict": BAD[0], "said": "no"}
    older = result | {"key": "problems: one that is listed no more"}
    assert page(everything, [result, older]) == page(everything, [result])
    assert "| problems | 10,000 | 1 | 0 | 0 | 0 | 1 | 0 | 0 |" in page(everything, [result])


def faulty(verdict: str) -> None:
    if verdict == "wrong answer":
        raise AssertionError("wrong")
    if verdict == "code executed":
        import subprocess

        subprocess.run(["true"], check=True)
    if verdict == "raw exception":
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", BAD)
def test_faults_are_told(kind: str) -> None:
    assert verdict(Attempt("x", lambda: faulty(kind)))[0] == kind
