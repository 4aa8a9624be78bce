"""What the columns are and how they may move."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from math import inf
from numbers import Real
from typing import Any

import pandas as pd

from elsewise._arrays import LARGEST, Array
from elsewise.errors import InvalidInput
from elsewise.features import _feature_rules, _toml
from elsewise.features._expressions import Expression
from elsewise.features._feature import COLUMNS, Feature, Formula, Kind, Rule, describe
from elsewise.features._infer import WHOLE, infer_features
from elsewise.features.embedding import Embedding, build_embedding
from elsewise.features.encoder import Encoder, build_encoder
from elsewise.features.legal import Legal, build_legal
from elsewise.text import nearest, several, visible

__all__ = ["Schema"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Schema:
    """The columns of a frame and what may happen to them; every method returns a new schema.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [31, 45], "income": [10.5, 20.5], "sex": ["m", "f"]})
    >>> Schema.infer(frame).freeze("sex").only_increase("age").range("income", upper=30)
    Schema of 3 columns, 2 free
    column  kind      moves           range                 weight  notice
    age     integer   only increases  31 to 45              1
    income  number    freely          10.5 to 30, step 0.1  1
    sex     category  never           f, m                  1
    """

    features: tuple[Feature, ...]
    """One per column, in the order of the columns."""
    rules: tuple[Rule, ...] = ()
    """Conditions every counterfactual row meets."""
    joint: bool = False
    """Whether distances also see the frozen numbers and categories."""
    lost: tuple[str, ...] = ()
    """Names of rules and derived columns that a file could not hold, because they are functions."""

    @classmethod
    def infer(
        cls, frame: Any, background: Any = None, *, names: Sequence[Hashable] | None = None
    ) -> Schema:
        """Return the schema read off ``frame``; ``background`` gives scales and observed ranges.

        Frames are of pandas, polars, Arrow or an array, whose columns ``names`` may name.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45], "id": [7, 7]})).notices
        ('id: constant',)
        """
        return cls(features=infer_features(frame, background, names))

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Column names, in order."""
        return tuple(feature.name for feature in self.features)

    @property
    def notices(self) -> tuple[str, ...]:
        """What inference decided that one may want to know, one line for columns alike.

        Nothing is said of columns that were frozen on purpose.
        """
        alike: dict[str, list[Hashable]] = {}
        for feature in self.features:
            if feature.notice and not feature.kept and (feature.free or feature.notice != WHOLE):
                alike.setdefault(feature.notice, []).append(feature.name)
        lost = [f"{name!r} is not obeyed: files hold no functions" for name in self.lost]
        return (*(f"{several(names)}: {notice}" for notice, names in alike.items()), *lost)

    def __getitem__(self, name: Hashable) -> Feature:
        if isinstance(name, Hashable):
            for feature in self.features:
                if feature.name == name:
                    return feature
        near = nearest(name, self.names)
        fix = "infer the schema from a frame" if near is None else f"did you mean {near!r}"
        if isinstance(name, list):
            fix = "give the names one by one, as in freeze('a', 'b') or freeze(*names)"
        raise InvalidInput("name", expected="a column of the schema", received=repr(name), fix=fix)

    def freeze(self, *names: Hashable) -> Schema:
        """Return the schema in which the named columns never move.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).freeze("age")["age"].free
        False
        """
        return self._changed(names, lambda feature: replace(feature, free=False, kept=True))

    def free(self, *names: Hashable) -> Schema:
        """Return the schema in which the named columns may move.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).freeze("age").free("age")["age"].free
        True
        """
        return self._changed(names, _feature_rules.freed)

    def only(self, *names: Hashable) -> Schema:
        """Return the schema in which the named columns may move, and no others.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45], "income": [1, 2]})).only("age")
        >>> [feature.free for feature in schema.features]
        [True, False]
        """
        return self.freeze(*self.names).free(*names)

    def range(
        self, name: Hashable, lower: float | None = None, upper: float | None = None
    ) -> Schema:
        """Return the schema in which a number stays in [lower, upper].

        An end that is None (or infinite) is left to the observed range. A row that lies outside
        stays as it is.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).range("age", 18, 99)["age"].declared
        (18.0, 99.0)
        """
        low = -inf if lower is None else lower
        high = inf if upper is None else upper
        return self._changed([name], lambda feature: _feature_rules.ranged(feature, (low, high)))

    def resolution(self, name: Hashable, value: float) -> Schema:
        """Return the schema in which a number moves to whole multiples of ``value`` only.

        By default numbers keep the decimals of the rows, where these are few; `continuous` lets
        them take any value. Rows that are between two steps stay so until they move.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"price": [1.25, 2.5]}))
        >>> schema["price"].resolution, schema.resolution("price", 0.05)["price"].resolution
        (0.01, 0.05)
        """
        return self._changed([name], lambda feature: _feature_rules.resolved(feature, value))

    def at_most_by(self, name: Hashable, value: float) -> Schema:
        """Return the schema in which no row moves a column by more than ``value``, up or down.

        Of an ordered category, ``value`` counts levels.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"lead_time": [3, 45]}))
        >>> schema.at_most_by("lead_time", 30)["lead_time"].at_most_by
        30.0
        """
        return self._changed([name], lambda feature: _feature_rules.moved_at_most(feature, value))

    def allowed(self, name: Hashable, values: Iterable[Any]) -> Schema:
        """Return the schema in which a category may only be moved to ``values``.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"job": ["a", "b", "c"]}))
        >>> schema.allowed("job", ["b", "a"])["job"].allowed
        ('a', 'b')
        """
        if not isinstance(values, Iterable) or isinstance(values, str):
            values = [values]
        wanted = list(values)
        return self._changed([name], lambda feature: _feature_rules.restricted(feature, wanted))

    def only_increase(self, *names: Hashable) -> Schema:
        """Return the schema in which the named numbers or ordered categories never fall.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).only_increase("age")["age"].direction
        1
        """
        return self._changed(names, lambda feature: _feature_rules.directed(feature, 1))

    def only_decrease(self, *names: Hashable) -> Schema:
        """Return the schema in which the named numbers or ordered categories never rise.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"debt": [31, 45]})).only_decrease("debt")["debt"].direction
        -1
        """
        return self._changed(names, lambda feature: _feature_rules.directed(feature, -1))

    def weight(self, name: Hashable, value: float) -> Schema:
        """Return the schema in which moving a column costs ``value`` times as much.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).weight("age", 2.0)["age"].weight
        2.0
        """
        if not (isinstance(value, Real) and 1.0 / LARGEST <= float(value) <= LARGEST):
            expected, fix = "a finite weight above 0", "freeze the column to keep it from moving"
            raise InvalidInput("value", expected=expected, received=repr(value), fix=fix)
        return self._changed([name], lambda feature: replace(feature, weight=float(value)))

    def cost(self, name: Hashable, per_unit: float) -> Schema:
        """Return the schema in which a policy pays for moving a column.

        Moves are measured in standard deviations all the same; see `Explanation.policy`.

        Parameters
        ----------
        name
            A column.
        per_unit
            Price of moving a number by 1, or of a change of a category, in any currency; >= 0.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).cost("age", per_unit=5)["age"].cost
        5.0
        """
        if not (isinstance(per_unit, Real) and 0 <= per_unit <= LARGEST):
            expected = "a finite price >= 0"
            fix = "0 is free of charge; freeze a column that must not change"
            raise InvalidInput("per_unit", expected=expected, received=repr(per_unit), fix=fix)
        return self._changed([name], lambda feature: replace(feature, cost=float(per_unit)))

    def continuous(self, *names: Hashable) -> Schema:
        """Return the schema in which whole numbers may take fractional values.

        Integer columns are then decoded as floats.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).continuous("age")["age"].kind.value
        'number'
        """
        return self._changed(names, lambda feature: _feature_rules.read_as(feature, Kind.NUMBER))

    def integer(self, *names: Hashable) -> Schema:
        """Return the schema in which the named numbers stay whole.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45]})).continuous("age")
        >>> schema.integer("age")["age"].kind.value
        'integer'
        """
        return self._changed(names, lambda feature: _feature_rules.read_as(feature, Kind.INTEGER))

    def one_hot_group(self, name: str, columns: Iterable[Hashable]) -> Schema:
        """Return the schema in which 0/1 ``columns`` are one category: exactly one is 1.

        Examples
        --------
        >>> frame = pd.DataFrame({"own": [1, 0, 0], "rent": [0, 1, 1]})
        >>> Schema.infer(frame).one_hot_group("home", ["own", "rent"])["own"].group
        'home'
        """
        members = list(columns)
        if len(set(members)) < 2:
            expected, fix = "at least two columns", "name every 0/1 column of the group"
            raise InvalidInput("columns", expected=expected, received=members, fix=fix)
        if any(feature.group == name for feature in self.features):
            expected, fix = "the name of a new group", "name all columns of the group in one call"
            raise InvalidInput("name", expected=expected, received=repr(name), fix=fix)
        return self._changed(members, lambda feature: _feature_rules.grouped(feature, name))

    def rule(self, condition: Formula, name: str | None = None) -> Schema:
        """Return the schema with one more condition, which every moved row keeps.

        Parameters
        ----------
        condition
            A text such as ``"years <= age - 16"``, which files keep; or a function, a frame in and
            one boolean per row out. In a text, names that are not one word stand in backticks,
            categories are compared with their levels in quotes, and a missing cell is no yes.
        name
            How messages call the rule; by default the text or the function's name.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45], "years": [1, 2]}))
        >>> schema.rule("years < age").rule(lambda frame: frame["years"] > 0, "works").rules[1].name
        'works'
        """
        if isinstance(condition, str):
            if not Expression.parse(condition, self.features, "rule").truth:
                fix = "write a comparison, such as a <= 2 * b"
                raise InvalidInput("rule", expected="a condition", received=condition, fix=fix)
            known = condition
        elif callable(condition):
            own = getattr(condition, "__name__", "<lambda>")
            known = f"rule {len(self.rules) + 1}" if own == "<lambda>" else own
        else:
            expected, fix = "a text or a function of a frame", "for example 'a <= 2 * b'"
            raise InvalidInput("condition", expected=expected, received=repr(condition), fix=fix)
        rule = Rule(name=name or known, condition=condition)
        if any(other.name == rule.name for other in self.rules):
            fix = "give each rule a name of its own: rule(condition, name)"
            raise InvalidInput("name", expected="a new name", received=repr(rule.name), fix=fix)
        lost = tuple(other for other in self.lost if other != rule.name)
        return replace(self, rules=(*self.rules, rule), lost=lost)

    def derived(self, name: Hashable, formula: Formula) -> Schema:
        """Return the schema in which a number is made of other columns, row by row.

        It never moves by itself: it is computed anew for every row that moves, before the model
        is asked. Its declared range is checked then. Rows whose cell is not what the formula gives
        stay as they are.

        Parameters
        ----------
        name
            A column of numbers.
        formula
            A text such as ``"amount / months"``, see `rule`; or a function, a frame in and one
            number per row out.

        Examples
        --------
        >>> frame = pd.DataFrame({"debt": [10.0, 8.0], "income": [20.0, 10.0], "ratio": [0.5, 0.8]})
        >>> schema = Schema.infer(frame).derived("ratio", "debt / income")
        >>> encoder = schema.encoder(frame)
        >>> encoder.decode([[5.0, 20.0, 0.5]])
           debt  income  ratio
        0   5.0    20.0   0.25
        """
        if not (isinstance(formula, str) or callable(formula)):
            expected, fix = "a text or a function of a frame", "for example 'a / b'"
            raise InvalidInput("formula", expected=expected, received=repr(formula), fix=fix)
        made = partial(_feature_rules.made_of_others, formula=formula)
        changed = self._changed([name], made)
        changed._check_formulas()
        return replace(changed, lost=tuple(lost for lost in self.lost if lost != str(name)))

    def _check_formulas(self) -> None:
        """Refuse texts of derived columns that are no numbers made of columns that are none."""
        for feature in self.features:
            if isinstance(feature.derived, str):
                argument = f"formula of {feature.name!r}"
                formula = Expression.parse(feature.derived, self.features, argument)
                read = [self.features[place] for place in formula.places]
                if formula.truth or not read or any(other.derived for other in read):
                    expected = "a number made of columns that are not derived themselves"
                    received, fix = repr(feature.derived), "write it out, such as 'a / b'"
                    raise InvalidInput(argument, expected=expected, received=received, fix=fix)

    def with_functions(self, functions: Mapping[str, Callable[[Any], Any]]) -> Schema:
        """Return the schema with the rules and derived columns that a file could not hold.

        Parameters
        ----------
        functions
            The functions by the names in `lost`; names that are columns are derived columns.

        Examples
        --------
        >>> frame = pd.DataFrame({"age": [31, 45], "years": [1, 2]})
        >>> schema = Schema.infer(frame).rule(lambda frame: frame["years"] > 0, "works")
        >>> again = Schema.from_toml(schema.to_toml())
        >>> again.lost, again.with_functions({"works": schema.rules[0].condition}) == schema
        (('works',), True)
        """
        schema, columns = self, {str(name): name for name in self.names}
        for name, function in functions.items():
            if name not in self.lost:
                near = nearest(name, self.lost)
                fix = "leave it out" if near is None else f"did you mean {near!r}"
                expected = "names of rules that are missing"
                raise InvalidInput("rules", expected=expected, received=repr(name), fix=fix)
            if name in columns:
                schema = schema.derived(columns[name], function)
            else:
                schema = schema.rule(function, name)
        return schema

    def encoder(self, frame: pd.DataFrame | Any) -> Encoder:
        """Return the encoder of ``frame``, after checking that it fits the schema.

        Examples
        --------
        >>> frame = pd.DataFrame({"age": [31, 45]})
        >>> Schema.infer(frame).encoder(frame).encode(frame).tolist()
        [[31.0], [45.0]]
        """
        return build_encoder(self, frame)

    def embedding(self) -> Embedding:
        """Return the map from codes to the space in which distances are measured.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45]})).embedding().size
        1
        """
        return build_embedding(self.features, self.joint)

    def legal(self, codes: Array, broken: Array | None = None) -> Legal:
        """Return the box of each cell of factual ``codes`` (n, p).

        Rows outside a declared range, and those marked ``broken`` (bool (n,), for example rows
        that break a rule), stay as they are.

        Examples
        --------
        >>> frame = pd.DataFrame({"age": [31, 45]})
        >>> schema = Schema.infer(frame).only_increase("age")
        >>> schema.legal(schema.encoder(frame).encode(frame)).lower.tolist()
        [[31.0], [45.0]]
        """
        return build_legal(self.features, codes, broken)

    def to_toml(self) -> str:
        """Return the schema as a file for people: one line a column, functions by name only.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45], "job": ["a", "b"]}))
        >>> print(schema.only_increase("age").freeze("job").rule("age < 99", "alive").to_toml())
        # What each column is and how it may move: see docs/your-model-your-rules.md
        format = 1
        <BLANKLINE>
        [rules]
        alive = "age < 99"
        <BLANKLINE>
        [columns]
        age = { kind = "integer", only = "increase", seen = [31, 45], mean = 38, deviation = 9... }
        job = { kind = "category", free = false, levels = ["a", "b"] }
        <BLANKLINE>
        """
        texts = {r.name: r.condition for r in self.rules if isinstance(r.condition, str)}
        made = [str(f.name) for f in self.features if callable(f.derived)]
        functions = [r.name for r in self.rules if r.name not in texts]
        return _toml.write(self.features, self.joint, texts, [*functions, *made, *self.lost])

    @classmethod
    def from_toml(cls, text: str, frame: Any = None, background: Any = None) -> Schema:
        r"""Return the schema that :meth:`to_toml` wrote, or that somebody wrote by hand.

        What a line leaves out about its cells (seen, mean, deviation, levels) is read off
        ``frame`` and ``background``, as :meth:`infer` does. Functions are lost, which `notices`
        says; see :meth:`with_functions`.

        Examples
        --------
        >>> text = 'format = 1\ncolumns.age = { kind = "integer", only = "increase" }'
        >>> Schema.from_toml(text, pd.DataFrame({"age": [31, 45]}))["age"].observed
        (31.0, 45.0)
        """
        inferred = None if frame is None else {f.name: f for f in infer_features(frame, background)}
        features, joint, rules, lost = _toml.read(text, inferred)
        schema = cls(features=features, joint=joint, lost=lost)
        schema._check_formulas()
        for name, condition in rules.items():
            schema = schema.rule(condition, name)
        return schema

    def __repr__(self) -> str:
        rows = [tuple(map(visible, cells)) for cells in (COLUMNS, *map(describe, self.features))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in COLUMNS)
        rows = [[f"<td>{escape(cell)}</td>" for cell in describe(f)] for f in self.features]
        body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
        return f"<table><caption>{escape(self._title())}</caption><tr>{head}</tr>{body}</table>"

    def _title(self) -> str:
        title = f"Schema of {len(self.features)} columns, {sum(f.free for f in self.features)} free"
        return title + "".join(f", rule {rule.name!r}" for rule in self.rules)

    def _changed(self, names: Iterable[Hashable], change: Callable[[Feature], Feature]) -> Schema:
        """Return the schema with ``change`` applied to the named features."""
        changed = {name: change(self[name]) for name in names}
        return replace(self, features=tuple(changed.get(f.name, f) for f in self.features))
