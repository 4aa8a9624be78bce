"""Laws of the solver, with descent, plans, objectives and optima computed again in the test."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import elsewise as ew
from elsewise.certificate import Evidence, certify_inputs, certify_outputs
from elsewise.errors import InvalidInput
from elsewise.features import Schema
from elsewise.measure import input_comparison
from elsewise.models import bind
from elsewise.request import Bounds, Problem
from elsewise.search import Outcome, State, begin, finish, init, run, solve, step, trace
from elsewise.search._runs import SWEEP_ITERATIONS, at_logit, warm_start
from elsewise.settings import Fixed, Settings
from elsewise.transport import direction_blocks

# --- toys -----------------------------------------------------------------------------------------


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-z))


def cloud(n: int, d: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    return pd.DataFrame(mixed * 2.0 + 1.0, columns=[f"x{j}" for j in range(d)])


class Toy:
    """A model of standardized features: weights . phi, or a sigmoid of it, with its slope."""

    def __init__(self, rows: pd.DataFrame, weights: list[float], squash: bool) -> None:
        self.center, self.scale = rows.mean().to_numpy(), rows.std().to_numpy()
        self.weights, self.squash = np.asarray(weights), squash

    def phi(self, codes: np.ndarray) -> np.ndarray:
        return (codes - self.center) / self.scale

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        z = self.phi(frame.to_numpy()) @ self.weights
        return sigmoid(z) if self.squash else z

    def slope(self, frame: pd.DataFrame) -> np.ndarray:
        """d output / d phi (n, d)."""
        b = self(frame)
        factor = b * (1 - b) if self.squash else np.ones_like(b)
        return factor[:, None] * self.weights

    @property
    def model(self) -> object:
        return ew.models.function(
            self, gradient=lambda frame: self.slope(frame) / self.scale, probability=self.squash
        )

    def smoothness(self, d: int) -> float:
        """Lipschitz constant of the gradient of every row's cost, for any eta and plans.

        Hessian: (1 - eta) 2/d I + 2 eta (g g' + (b - s) H), with |g| <= |w| / 4 and
        |H| <= |w|^2 / (6 sqrt 3) for the sigmoid, |b - s| <= 1.
        """
        square = float(self.weights @ self.weights)
        curve = square * (1 / 16 + 1 / (6 * math.sqrt(3))) if self.squash else square
        return 2 * max(1 / d, curve)


def pose(
    model: object,
    rows: pd.DataFrame,
    target: object,
    limits: Bounds | None = None,
    schema: Schema | None = None,
    background: pd.DataFrame | None = None,
) -> Problem:
    """Put a question to the solver without `explain`."""
    schema = schema or Schema.infer(rows, background)
    encoder = schema.encoder(rows)
    codes = encoder.encode(rows)
    outputs = bind(model, encoder, probe=codes[:32])
    precise = outputs.precise(codes[:32])
    return Problem(
        factual=codes,
        factual_outputs=outputs.values(codes),
        precise_outputs=precise.values(codes),
        schema=schema,
        embedding=schema.embedding(),
        outputs=outputs,
        precise=precise,
        target=target,
        background=codes if background is None else encoder.extend(background).encode(background),
        obeys=encoder.obeys if schema.rules else None,
        bounds=limits or Bounds(),
    )


def unbounded(rows: pd.DataFrame) -> Schema:
    schema = Schema.infer(rows)
    for name in rows:
        schema = schema.range(name, -1e4, 1e4)
    return schema


# --- the objective, written out -------------------------------------------------------------------


def partners(current: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Where the optimal plan sends each entry of ``current`` (n,): the mean of its quantile cell.

    Equal entries share their partners' mean.
    """
    n = current.size
    repeated = np.repeat(np.sort(fixed), n)  # n * m values of equal weight
    cells = repeated.reshape(n, fixed.size).mean(axis=1)
    _, group = np.unique(current, return_inverse=True)
    order = np.argsort(current, kind="stable")
    sums = np.bincount(group[order], cells)
    return (sums / np.bincount(group))[group]


def squared_distance(current: np.ndarray, fixed: np.ndarray) -> float:
    """Squared 2-Wasserstein distance between samples of sizes n and m."""
    x, y = np.repeat(np.sort(current), fixed.size), np.repeat(np.sort(fixed), current.size)
    return float(np.mean((x - y) ** 2))


def plans(
    phi: np.ndarray, factual: np.ndarray, b: np.ndarray, wanted: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Input partners t (n, N) and output partners s (n,)."""
    t = [partners(phi @ column, factual @ column) for column in theta.T]
    return np.stack(t, axis=1), partners(b, wanted)


def costs(
    phi: np.ndarray, b: np.ndarray, theta: np.ndarray, t: np.ndarray, s: np.ndarray, eta: float
) -> np.ndarray:
    """q_i (n,) as architecture.md writes it."""
    return (1 - eta) * np.mean((phi @ theta - t) ** 2, axis=1) + eta * (b - s) ** 2


def run_steps(problem: Problem, settings: Settings, count: int) -> list[State]:
    states = [init(problem, settings)]
    for _ in range(count):
        states.append(step(problem, states[-1]))
    return states


# --- descent --------------------------------------------------------------------------------------

ROWS = cloud(60, 3)
SMOOTH = Toy(ROWS, [1.5, -1.0, 0.5], squash=True)
LABELS = (SMOOTH(ROWS) > 0.5).astype(int)
FOREST = RandomForestClassifier(15, max_depth=4, random_state=0).fit(ROWS, LABELS)
MODELS = {
    "smooth": SMOOTH.model,
    "linear": LogisticRegression().fit(ROWS, LABELS),
    "differences": ew.models.function(SMOOTH, smooth=True),
    "forest": FOREST,
    "steps": ew.models.function(lambda frame: np.floor(3 * frame["x0"]) / 3, smooth=False),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("eta", [0.1, 0.5, 0.9])
def test_no_rows_cost_ever_rises(name: str, eta: float) -> None:
    """At fixed eta and plans every q_i falls or stays, so Q does, for any model."""
    wanted = np.random.default_rng(1).beta(4, 2, 45)
    problem = pose(MODELS[name], ROWS, ew.targets.sample(wanted))
    # The paper's cost, all of it the population's.
    settings = Settings(smoothing=0, balance=Fixed(eta=eta), population_weight=1.0)
    states = run_steps(problem, settings, 6)
    factual = SMOOTH.phi(ROWS.to_numpy())
    moved = 0
    for before, after in itertools.pairwise(states):
        theta = before.look.directions
        now, then = (SMOOTH.phi(state.rows.codes) for state in (before, after))
        b = [problem.outputs.values(state.rows.codes)[:, 0] for state in (before, after)]
        t, s = plans(now, factual, b[0], wanted, theta)
        old, new = costs(now, b[0], theta, t, s, eta), costs(then, b[1], theta, t, s, eta)
        assert (new <= old + 1e-9).all()
        moved += int((new < old - 1e-9).sum())
        # Q itself, plans minimized again, falls at least as far.
        q = [
            (1 - eta) * np.mean([squared_distance(x @ k, factual @ k) for k in theta.T])
            + eta * squared_distance(y, wanted)
            for x, y in zip((now, then), b, strict=True)
        ]
        assert q[1] <= q[0] + 1e-9
        assert q[0] - q[1] >= np.mean(old) - np.mean(new) - 1e-9
    assert moved > len(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("squash", [False, True], ids=["linear", "sigmoid"])
@pytest.mark.parametrize(
    "balance",
    [
        ew.IntervalNarrowing(kappa=0.05),
        ew.SetShrinking(np.repeat([0.05, 0.3, 0.5, 0.7, 0.95], 8)),
        ew.SetShrinking([0.0] * 20 + [1.0] * 20),
    ],
    ids=["narrowing", "shrinking", "two values"],
)
def test_gradient_steps_converge_at_the_stated_rate(squash: bool, balance: object) -> None:
    """min_t |grad Q| <= C sqrt((Q_x(v0) + Q_y(v0) + Delta) / (T + 1)), Delta = B sum |eta' - eta|.

    Otto's norm is sqrt(mean_i |g_i|^2), g_i the gradient of n Q in row i. With tau = 1 / L the
    bound holds with C = sqrt(2 L), half the paper's constant, and for the sum of squares too. The
    test takes the same steps by itself, so Q, its gradient and the iterates are all its own.
    """
    n, d, count = 30, 2, 60
    rows = cloud(n, d, seed=4)
    toy = Toy(rows, [1.2, -0.8], squash)
    wanted = np.random.default_rng(5).beta(5, 2, 17) + (0.0 if squash else 1.0)
    limits = Bounds(inputs=0.6, outputs=0.3)
    problem = pose(toy.model, rows, ew.targets.sample(wanted), limits, unbounded(rows))
    bound = toy.smoothness(d)
    settings = Settings(
        step="gradient", tau=1 / bound, redraw=False, smoothing=0, noise=0, balance=balance
    )
    states = run_steps(problem, settings, count)
    factual = toy.phi(rows.to_numpy())
    mine, theta = factual, states[0].look.directions
    etas, norms, sides = [], [], []
    for state, following in itertools.pairwise(states):
        np.testing.assert_allclose(toy.phi(state.rows.codes), mine, atol=1e-8)
        frame = pd.DataFrame(mine * toy.scale + toy.center, columns=rows.columns)
        b, g = toy(frame), toy.slope(frame)
        eta = following.record.eta
        t, s = plans(mine, factual, b, wanted, theta)
        pull = 2 * (mine @ theta - t) @ theta.T / theta.shape[1]
        otto = (1 - eta) * pull + eta * 2 * (b - s)[:, None] * g
        sides.append(
            (
                np.mean([squared_distance(mine @ k, factual @ k) for k in theta.T]),
                squared_distance(b, wanted),
            )
        )
        etas.append(eta)
        norms.append(np.sqrt(np.mean(np.sum(otto**2, axis=1))))
        mine = mine - otto / bound
    travelled = np.concatenate([[0], np.cumsum(np.abs(np.diff(etas)))])
    assert travelled[-1] > 0
    start = sum(sides[0]) + np.max(sides) * travelled
    steps = np.arange(1, count + 1)
    assert (np.minimum.accumulate(norms) <= np.sqrt(2 * bound * start / steps) + 1e-9).all()
    assert (np.cumsum(np.square(norms)) <= 2 * bound * start + 1e-9).all()
    # The bound is not vacuous: the gradient really vanishes where eta settles.
    if isinstance(balance, ew.IntervalNarrowing):
        assert norms[-1] < 0.1 * norms[0]


def test_gradient_step_starts_from_noise_of_the_papers_size() -> None:
    problem = pose(SMOOTH.model, ROWS, ew.targets.constant(0.9), schema=unbounded(ROWS))
    noisy = init(problem, Settings(step="gradient"))
    shift = SMOOTH.phi(noisy.rows.codes) - SMOOTH.phi(ROWS.to_numpy())
    assert 0.005 < shift.std() < 0.02
    assert np.array_equal(init(problem, Settings()).rows.codes, ROWS.to_numpy())
    assert np.array_equal(init(problem, Settings(step="gradient", noise=0)).rows.codes, ROWS)


def test_gradient_step_explains() -> None:
    explanation = ew.explain(
        SMOOTH.model,
        ROWS,
        target=ew.targets.constant(0.8),
        bounds=Bounds(inputs=0.9, outputs=0.25),
        settings=Settings(step="gradient", tau=4.0),
    )
    assert explanation.ok
    assert explanation.certificate.met
    # No choice among proposals here: apply still replays the same steps.
    pd.testing.assert_frame_equal(
        explanation.apply(ROWS), explanation.counterfactual, rtol=0, atol=1e-9
    )


# --- legal rows -----------------------------------------------------------------------------------


def mixed_frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    n = 70
    frame = pd.DataFrame(
        {
            "free": rng.normal(size=n),
            "frozen": rng.normal(size=n),
            "ranged": rng.normal(size=n),
            "count": rng.poisson(5.0, n),
            "rising": rng.normal(size=n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "small": rng.normal(size=n).astype(np.float32),
        },
        index=pd.Index([f"row {i}" for i in range(n)], name="who"),
    )
    return frame.astype({"count": np.int32})


MIXED = mixed_frame()
MIXED_LABELS = (MIXED["free"] + MIXED["ranged"] + 0.3 * MIXED["count"] + MIXED["rising"]) > 2.0


def mixed_score(frame: pd.DataFrame) -> pd.Series:
    z = frame["free"] + frame["frozen"] + frame["ranged"] + 0.5 * frame["count"]
    return sigmoid(z + frame["rising"] + frame["gaps"].fillna(0.0) + frame["small"] - 3.0)


MIXED_MODELS = {
    "smooth": (ew.models.function(mixed_score, smooth=True), "proposals"),
    "gradient": (ew.models.function(mixed_score, smooth=True), "gradient"),
    "trees": (
        HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(MIXED, MIXED_LABELS),
        "proposals",
    ),
}


@pytest.mark.parametrize("name", MIXED_MODELS)
def test_rows_stay_legal_at_every_iterate(name: str) -> None:
    model, how = MIXED_MODELS[name]
    schema = (
        Schema.infer(MIXED).freeze("frozen").range("ranged", -3.0, 0.75).only_increase("rising")
    )
    problem = pose(model, MIXED, ew.targets.constant(0.9), schema=schema)
    settings = Settings(step=how, tau=2.0, balance=Fixed(eta=0.8))
    factual = MIXED.to_numpy(dtype=np.float64)
    at = {column: j for j, column in enumerate(MIXED.columns)}
    inside = (MIXED["ranged"] <= 0.75).to_numpy()
    assert 0 < inside.sum() < len(MIXED)
    for state in run_steps(problem, settings, 8)[1:]:
        codes = state.rows.codes
        assert codes[:, at["frozen"]].tobytes() == factual[:, at["frozen"]].tobytes()
        assert (codes[inside, at["ranged"]] <= 0.75).all()
        assert (codes[inside, at["ranged"]] >= -3.0).all()
        # A row that breaks its own range has no legal place: it stays, entirely.
        np.testing.assert_array_equal(codes[~inside], factual[~inside])
        assert (codes[:, at["count"]] == np.round(codes[:, at["count"]])).all()
        assert (codes[:, at["rising"]] >= factual[:, at["rising"]]).all()
        np.testing.assert_array_equal(np.isnan(codes), np.isnan(factual))
        # Without a declared range, no cell leaves what was observed.
        low, high = np.nanmin(factual, axis=0), np.nanmax(factual, axis=0)
        observed = np.isnan(codes) | ((codes >= low) & (codes <= high))
        assert np.delete(observed, at["ranged"], axis=1).all()
        np.testing.assert_array_equal(state.rows.outputs, problem.precise.values(codes))
    moved = np.nan_to_num(codes - factual)
    assert (np.abs(moved[:, at["free"]]) > 1e-3).mean() > 0.3
    assert (moved[:, at["count"]] != 0).any()


def test_same_seed_same_bytes() -> None:
    def bytes_of(seed: int, model: object) -> tuple[bytes, ...]:
        explanation = ew.explain(
            model,
            MIXED,
            target=ew.targets.sample(np.linspace(0.3, 0.9, 40)),
            bounds=Bounds(inputs=0.5, outputs=0.3),
            seed=seed,
            settings=Settings(iterations=6, draws=99),
        )
        history = explanation.history.to_numpy()
        limits = (explanation.certificate.inputs, explanation.certificate.outputs)
        return (
            explanation.rows.codes.tobytes(),
            explanation.outputs.tobytes(),
            history.tobytes(),
            np.array([side.upper_limit for side in limits]).tobytes(),
        )

    for name in ("smooth", "trees"):
        model, _ = MIXED_MODELS[name]
        assert bytes_of(0, model) == bytes_of(0, model)
        assert bytes_of(0, model)[0] != bytes_of(1, model)[0]


# --- what is returned -----------------------------------------------------------------------------


DRAWS = 199
"""Bootstrap draws: enough for a limit, few enough for a fine grid of them."""
SEARCH = Settings(draws=DRAWS)


def sides(problem: Problem, state: State) -> tuple[Evidence, Evidence]:
    """Certify both sides of a state, as the returned one is certified."""
    population, rows = state.setup.population, state.rows
    return (
        certify_inputs(problem, population, rows, DRAWS),
        certify_outputs(problem, population, rows, DRAWS),
    )


def test_line_meets_the_analytic_optimum() -> None:
    """One feature, b(x) = phi, constant target: the geodesic is straight, so the optimum is known.

    W(x, x') + W(x, c) >= W(x', c), with equality for x = (1 - e) x' + e c: whatever the output
    distance W_y returned, the least input distance is W(x', c) - W_y.
    """
    rows = cloud(50, 1, seed=3)
    toy = Toy(rows, [1.0], squash=False)
    problem = pose(
        toy.model,
        rows,
        ew.targets.constant(2.0),
        Bounds(outputs=0.8, trim=0.0),
        unbounded(rows),
    )
    solution, _ = solve(problem, SEARCH)
    assert solution.outcome is Outcome.MET
    inputs, outputs = sides(problem, solution.state)
    assert 0.95 * 0.8 <= outputs.upper_limit <= 0.8
    whole = math.sqrt(np.mean((toy.phi(rows.to_numpy()) - 2.0) ** 2))
    assert inputs.estimate + outputs.estimate == pytest.approx(whole, rel=0.01)


def brute_force(problem: Problem, toy: Toy, wanted: float, bound: float) -> float:
    """Least input distance over a fine grid of eta whose output limit meets the bound.

    At every eta, plans and exact row minimizers alternate: with b = w . phi and plans fixed, row i
    minimizes a quadratic, ((1 - eta)/d I + eta w w') phi = (1 - eta)/d anchor + eta s w. The 64
    directions are evenly spaced: integrals over the half circle, nearly exact.
    """
    angles = np.arange(64) * np.pi / 64
    theta = np.stack([np.cos(angles), np.sin(angles)])
    state = init(problem, SEARCH)
    population = state.setup.population
    factual, d = toy.phi(problem.factual), 2
    ordered = np.sort(factual @ theta, axis=0)
    best = math.inf
    for eta in sigmoid(np.arange(-2.0, 3.0, 0.05)):
        phi = factual
        matrix = (1 - eta) / d * np.eye(d) + eta * np.outer(toy.weights, toy.weights)
        for _ in range(25):
            t = np.empty((len(phi), theta.shape[1]))
            np.put_along_axis(t, np.argsort(phi @ theta, axis=0), ordered, axis=0)
            anchor = d / theta.shape[1] * t @ theta.T
            right = (1 - eta) / d * anchor + eta * wanted * toy.weights
            phi = np.linalg.solve(matrix, right.T).T
        codes = phi * toy.scale + toy.center
        rows = state.rows._replace(codes=codes, outputs=problem.outputs.values(codes))
        if certify_outputs(problem, population, rows, DRAWS).upper_limit <= bound:
            directions = direction_blocks(2, problem.generator("certificate directions"))
            best = min(best, input_comparison(problem, population, codes, directions).distance)
    return best


def test_solver_returns_the_constrained_optimum_of_a_convex_problem() -> None:
    rows = cloud(30, 2, seed=6)
    toy = Toy(rows, [0.9, -0.6], squash=False)
    problem = pose(toy.model, rows, ew.targets.constant(1.5), Bounds(outputs=0.7), unbounded(rows))
    best = brute_force(problem, toy, 1.5, 0.7)
    plain = Settings(draws=DRAWS, epsilon=0.002, population_weight=1.0, slack=0.0)
    solution, _ = solve(problem, plain)
    inputs, outputs = sides(problem, solution.state)
    assert outputs.met
    assert inputs.estimate == pytest.approx(best, rel=0.03)


WANTED = np.random.default_rng(1).beta(4, 2, 45)
CASES = {
    "smooth": ew.targets.sample(WANTED),
    "linear": ew.targets.at_least(0.7),
    "forest": ew.targets.at_least(0.7),
}
FINE = np.arange(6.0, -4.01, -0.5)
Points = list[tuple[Evidence, Evidence]]


def swept(problem: Problem) -> Points:
    """The certified sides where each fixed eta = logistic(logit) comes to rest, largest first."""
    search = begin(problem, SEARCH)
    state, _ = finish(warm_start(search))
    points = []
    for logit in FINE.tolist():
        state, _ = finish(run(search, at_logit(state, logit), SWEEP_ITERATIONS))
        points.append(sides(problem, state))
    return points


@pytest.fixture(scope="module", params=CASES)
def frontier(request: pytest.FixtureRequest) -> tuple[Problem, Points]:
    """A problem and the certified sides of a fine sweep of eta."""
    problem = pose(MODELS[request.param], ROWS, CASES[request.param])
    return problem, swept(problem)


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_outputs_limit_is_met_at_the_least_input_distance(
    frontier: tuple[Problem, Points], share: float
) -> None:
    """No point of the sweep meets the limit with an input distance more than 5 % smaller."""
    base, points = frontier
    bound = float(np.quantile([outputs.upper_limit for _, outputs in points], share))
    problem = replace(base, bounds=Bounds(outputs=bound))
    solution, _ = solve(problem, SEARCH)
    inputs, outputs = sides(problem, solution.state)
    assert solution.outcome is Outcome.MET
    assert outputs.met
    assert min(i.estimate for i, o in points if o.upper_limit <= bound) >= 0.95 * inputs.estimate


def test_inputs_limit_is_met_at_the_least_output_distance(
    frontier: tuple[Problem, Points],
) -> None:
    """The sweep's best point has an output limit at most 10 % smaller."""
    base, points = frontier
    bound = float(np.median([inputs.upper_limit for inputs, _ in points]))
    problem = replace(base, bounds=Bounds(inputs=bound))
    solution, _ = solve(problem, SEARCH)
    inputs, outputs = sides(problem, solution.state)
    assert solution.outcome is Outcome.MET
    assert inputs.met
    best = min(o.upper_limit for i, o in points if i.upper_limit <= bound)
    assert best >= 0.90 * outputs.upper_limit


def test_limits_that_exclude_each_other_name_what_is_reachable(
    frontier: tuple[Problem, Points],
) -> None:
    """Reachable is the least output limit of the frontier's points that meet the inputs limit.

    For a forest the sweep is one path among many, and the search may well find a better one.
    """
    base, points = frontier
    bound = float(np.median([inputs.upper_limit for inputs, _ in points]))
    best = min(o.upper_limit for i, o in points if i.upper_limit <= bound)
    problem = replace(base, bounds=Bounds(inputs=bound, outputs=0.1 * best))
    solution, _ = solve(problem, Settings(draws=DRAWS, iterations=25))
    assert solution.outcome is Outcome.NOT_FEASIBLE
    assert solution.binding == "outputs"
    assert solution.reachable <= 1.10 * best
    assert solution.reachable >= 0.90 * best or not problem.outputs.smooth


@pytest.mark.parametrize("name", ["smooth", "forest"])
def test_unreachable_outputs_name_what_is_reachable(name: str) -> None:
    """One weak feature within its observed range cannot lift every row to 0.9."""
    schema = Schema.infer(ROWS).only("x1")
    base = pose(MODELS[name], ROWS, ew.targets.constant(0.9), schema=schema)
    points = swept(base)
    best = min(outputs.upper_limit for _, outputs in points)
    problem = replace(base, bounds=Bounds(outputs=0.8 * best))
    solution, _ = solve(problem, SEARCH)
    assert best > 0.1
    assert solution.outcome is Outcome.NOT_FEASIBLE
    assert solution.binding == "outputs"
    assert solution.reachable == pytest.approx(best, rel=0.10)
    _, outputs = sides(problem, solution.state)
    assert outputs.upper_limit == pytest.approx(solution.reachable)


def test_what_meets_its_limit_is_called_certified() -> None:
    """Just above the least reachable limit the verdict and the evidence still agree."""
    base = pose(MODELS["smooth"], ROWS, CASES["smooth"])
    for bound in (0.105, 0.11, 0.115):
        problem = replace(base, bounds=Bounds(outputs=bound))
        solution, _ = solve(problem, SEARCH)
        _, outputs = sides(problem, solution.state)
        assert outputs.met == (solution.outcome is Outcome.MET)
        assert outputs.met == (solution.reachable is None)


@pytest.mark.parametrize("name", ["smooth", "forest"])
def test_both_limits_are_met_where_they_can_be(name: str) -> None:
    limits = Bounds(inputs=0.45, outputs=0.3, confidence=0.9)
    problem = pose(MODELS[name], ROWS, CASES["smooth"], limits)
    for settings in (SEARCH, replace(SEARCH, slack=0.0)):
        solution, states = solve(problem, settings)
        assert solution.outcome is Outcome.MET
        inputs, outputs = sides(problem, solution.state)
        assert inputs.met
        assert outputs.met
    assert any(state is solution.state for state in states)

    # Of the iterates of Algorithm 1 that look feasible, none has a larger probability.
    def probability(state: State) -> float:
        return min(
            state.look.inputs.limit.probability(limits.inputs),
            state.look.outputs.limit.probability(limits.outputs),
        )

    level = limits.side_level
    feasible = [
        state
        for state in states
        if state.look.inputs.limit.upper(level) <= limits.inputs
        and state.look.outputs.limit.upper(level) <= limits.outputs
    ]
    assert feasible
    assert probability(solution.state) >= max(map(probability, feasible)) - 1e-9


def test_without_limits_the_knee_is_chosen() -> None:
    problem = pose(SMOOTH.model, ROWS, ew.targets.constant(0.8))
    solution, states = solve(problem, Settings(slack=0.0))
    assert solution.outcome is Outcome.CHOSEN
    record = solution.state.record
    first = states[0].record
    assert record.inputs > 0
    assert record.outputs < 0.6 * first.outputs
    assert "possible fall in output distance" in solution.reason
    # No end of the sweeps is closer on both sides, and none that has nine tenths of the possible
    # fall in output distance costs less.
    ends, _ = finish(trace(begin(problem, Settings())))
    kept = direction_blocks(problem.embedding.size, problem.generator("selection"))
    population = states[0].setup.population
    x = np.array([input_comparison(problem, population, e.rows.codes, kept).distance for e in ends])
    y = np.array([e.record.outputs for e in ends])
    here = input_comparison(problem, population, solution.state.rows.codes, kept).distance
    assert not np.any((x < here) & (y < record.outputs))
    goal = y[0] - 0.9 * (y[0] - y.min())
    assert record.outputs <= goal
    assert here <= x[y <= goal].min()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smooth", "linear"])
def test_the_knee_is_nearly_the_same_for_all_seeds(name: str) -> None:
    """Of models with slopes; few rows of a small forest jump past the level, by up to 0.3 of it."""
    base = pose(MODELS[name], ROWS, ew.targets.sample(WANTED))
    outputs = []
    for seed in range(6):
        solution, _ = solve(replace(base, seed=seed), Settings())
        outputs.append(solution.state.record.outputs)
    middle = float(np.median(outputs))
    assert np.abs(np.array(outputs) - middle).max() <= 0.25 * middle


def test_nothing_to_do_where_the_limits_already_hold() -> None:
    problem = pose(
        SMOOTH.model, ROWS, ew.targets.sample(SMOOTH(ROWS)), Bounds(inputs=0.5, outputs=0.5)
    )
    solution, _ = solve(problem, Settings())
    assert solution.outcome is Outcome.NOTHING_TO_DO
    assert solution.state.record.iteration == 0
    np.testing.assert_array_equal(solution.state.rows.codes, ROWS)


def test_a_flat_model_moves_nothing() -> None:
    flat = ew.models.function(lambda frame: np.full(len(frame), 0.25), smooth=False)
    problem = pose(flat, ROWS, ew.targets.constant(0.75), Bounds(outputs=0.1))
    solution, _ = solve(problem, Settings(iterations=4))
    assert solution.outcome is Outcome.NOTHING_MOVES
    assert solution.binding == "outputs"
    assert solution.reachable == pytest.approx(0.5)
    np.testing.assert_array_equal(solution.state.rows.codes, ROWS)


@pytest.mark.parametrize(
    "limits",
    [Bounds(inputs=0.3, outputs=0.01), Bounds(outputs=0.01), Bounds(inputs=0.3), Bounds()],
    ids=["both", "outputs", "inputs", "none"],
)
def test_time_budget_is_kept(limits: Bounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that only the model moves, a second a call, the search ends soon after 15."""
    calls = 0

    def slow(frame: pd.DataFrame) -> np.ndarray:
        nonlocal calls
        calls += 1
        return SMOOTH(frame)

    model = ew.models.function(slow, gradient=lambda f: SMOOTH.slope(f) / SMOOTH.scale)
    problem = pose(model, ROWS, ew.targets.constant(0.8), limits)
    monkeypatch.setattr(time, "perf_counter", lambda: float(calls))
    before = calls
    solution, states = solve(problem, Settings(seconds=15.0))
    assert calls - before <= 20
    assert len(states) <= 12
    if limits != Bounds():
        assert solution.outcome is Outcome.OUT_OF_TIME
        assert "time" in solution.outcome
    codes = solution.state.rows.codes
    np.testing.assert_array_equal(solution.state.rows.outputs, problem.precise.values(codes))


def test_iterate_is_the_users_loop() -> None:
    problem = pose(SMOOTH.model, ROWS, ew.targets.constant(0.8), Bounds(inputs=0.5, outputs=0.2))
    seen = list(itertools.islice(ew.iterate(problem), 4))
    assert [state.record.iteration for state in seen] == [0, 1, 2, 3]
    assert all(0 <= state.record.eta <= 1 for state in seen)
    # States are complete: each holds the map that leads to it.
    assert [len(state.map().steps) for state in seen] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("step", "newton", "'proposals' or 'gradient'"),
        ("iterations", 0, "at least 1"),
        ("epsilon", -1.0, ">= 0"),
        ("seconds", 0.0, "> 0"),
        ("directions", 0, "at least 1"),
        ("draws", 0, "at least 1"),
        ("tau", 0.0, "> 0"),
        ("noise", -0.1, ">= 0"),
        ("population_weight", 1.5, "in \\[0, 1\\]"),
        ("smoothing", -1.0, "from 0 to"),
    ],
)
def test_settings_are_refused(setting: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidInput, match=f"settings.{setting}: expected .*{expected}"):
        Settings(**{setting: value})
