"""What the columns are and how they may move."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from html import escape
from math import inf
from numbers import Real
from typing import Any

import pandas as pd

from elsewise._arrays import LARGEST, Array
from elsewise.errors import InvalidInput, from_mapping
from elsewise.features import _feature_rules, _json
from elsewise.features._describe import COLUMNS, describe
from elsewise.features._feature import Feature, Kind, Rule
from elsewise.features._infer import infer_features
from elsewise.features.embedding import Embedding, build_embedding
from elsewise.features.encoder import Encoder, build_encoder
from elsewise.features.legal import Legal, build_legal
from elsewise.text import visible

__all__ = ["Schema"]

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Schema:
    """The columns of a frame and what may happen to them; every method returns a new schema.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [31, 45], "income": [10.5, 20.5], "sex": ["m", "f"]})
    >>> Schema.infer(frame).freeze("sex").only_increase("age").range("income", upper=30)
    Schema of 3 columns, 2 free
    column  kind      moves           range       weight  notice
    age     integer   only increases  31 to 45    1
    income  number    freely          10.5 to 30  1
    sex     category  never           f, m        1
    """

    features: tuple[Feature, ...]
    """One per column, in the order of the columns."""
    rules: tuple[Rule, ...] = ()
    """Conditions every counterfactual row meets."""
    joint: bool = False
    """Whether distances also see the frozen numbers and categories."""
    lost: tuple[str, ...] = ()
    """Names of rules that a file could not hold: rules are functions."""

    @classmethod
    def infer(cls, frame: pd.DataFrame, background: pd.DataFrame | None = None) -> Schema:
        """Return the schema read off ``frame``; ``background`` gives scales and observed ranges.

        Examples
        --------
        >>> Schema.infer(pd.DataFrame({"age": [31, 45], "id": [7, 7]})).notices
        ('id: constant',)
        """
        return cls(features=infer_features(frame, background))

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Column names, in order."""
        return tuple(feature.name for feature in self.features)

    @property
    def notices(self) -> tuple[str, ...]:
        """What inference decided that one may want to know, one line per column."""
        lost = [f"rule {name!r} is not obeyed: files hold no functions" for name in self.lost]
        return (*(f"{f.name}: {f.notice}" for f in self.features if f.notice), *lost)

    def __getitem__(self, name: Hashable) -> Feature:
        if isinstance(name, Hashable):
            for feature in self.features:
                if feature.name == name:
                    return feature
        near = get_close_matches(str(name), [str(known) for known in self.names], 1, 0.0)
        fix = f"did you mean {near[0]!r}" if near else "infer the schema from a frame"
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
        return self._changed(names, lambda feature: replace(feature, free=False))

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
        return self._changed([name], lambda feature: _feature_rules.ranged(feature, low, high))

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

    def rule(self, function: Callable[[pd.DataFrame], Any], name: str | None = None) -> Schema:
        """Return the schema with one more condition: a frame in, one boolean per row out.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45], "years": [1, 2]}))
        >>> schema.rule(lambda frame: frame["years"] < frame["age"], "worked").rules[0].name
        'worked'
        """
        if not callable(function):
            expected, fix = "a function of a frame", "pass lambda frame: frame['a'] <= frame['b']"
            raise InvalidInput("function", expected=expected, received=repr(function), fix=fix)
        own = getattr(function, "__name__", "<lambda>")
        known = f"rule {len(self.rules) + 1}" if own == "<lambda>" else own
        rule = Rule(name=name or known, function=function)
        lost = tuple(other for other in self.lost if other != rule.name)
        return replace(self, rules=(*self.rules, rule), lost=lost)

    def encoder(self, frame: pd.DataFrame) -> Encoder:
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

    def to_json(self) -> str:
        """Return the schema as JSON; rules are functions and kept by name only.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 45]}))
        >>> Schema.from_json(schema.to_json()) == schema
        True
        """
        features = [_json.pack_feature(feature) for feature in self.features]
        rules = [*(rule.name for rule in self.rules), *self.lost]
        content = {"format": _FORMAT, "joint": self.joint, "rules": rules, "features": features}
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Return the schema that :meth:`to_json` wrote; rules are lost, which `notices` says.

        Examples
        --------
        >>> schema = Schema.infer(pd.DataFrame({"job": ["a", "b"]}))
        >>> Schema.from_json(schema.to_json())["job"].levels
        ('a', 'b')
        """
        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise ValueError(f"format {content['format']}")
            features = tuple(map(_json.unpack_feature, content["features"]))
            found = {"features": features, "joint": content["joint"], "lost": content["rules"]}
            schema = from_mapping(cls, found, "schema")
            if len(set(schema.names)) < len(features):
                raise ValueError("two features of one name")
            return schema
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                "text",
                expected=f"what Schema.to_json wrote (format {_FORMAT})",
                received=f"{type(error).__name__}: {error}",
                fix="save the schema again",
            ) from error

    def __repr__(self) -> str:
        rows = [tuple(map(visible, cells)) for cells in (COLUMNS, *map(describe, self.features))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in describe(feature)) + "</tr>"
            for feature in self.features
        )
        return f"<table><caption>{escape(self._title())}</caption><tr>{head}</tr>{body}</table>"

    def _title(self) -> str:
        title = f"Schema of {len(self.features)} columns, {sum(f.free for f in self.features)} free"
        return title + "".join(f", rule {rule.name!r}" for rule in self.rules)

    def _changed(self, names: Iterable[Hashable], change: Callable[[Feature], Feature]) -> Schema:
        """Return the schema with ``change`` applied to the named features."""
        changed = {name: change(self[name]) for name in names}
        return replace(self, features=tuple(changed.get(f.name, f) for f in self.features))
