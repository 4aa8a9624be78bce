"""Columns and what may happen to them: frame, codes and embedding.

A :class:`Schema` says what each column is and how it may move. It makes three tools: an
:class:`Encoder` (frame to codes and back, exactly), an :class:`Embedding` (codes to the space
distances are measured in) and a :class:`Legal` (the box each cell may move in).
"""

from elsewise.features._expressions import Expression
from elsewise.features._feature import UNREAD, Attribute, Feature, Formula, Kind, Rule, attributes
from elsewise.features._formulas import hash_rows
from elsewise.features._json import pack_index, unpack_index
from elsewise.features._sources import Source, to_pandas
from elsewise.features.embedding import Embedding, largest_squared_move
from elsewise.features.encoder import Encoder
from elsewise.features.legal import Legal, outside_notices, rows_outside
from elsewise.features.schema import Schema

__all__ = [
    "UNREAD",
    "Attribute",
    "Embedding",
    "Encoder",
    "Expression",
    "Feature",
    "Formula",
    "Kind",
    "Legal",
    "Rule",
    "Schema",
    "Source",
    "attributes",
    "hash_rows",
    "largest_squared_move",
    "outside_notices",
    "pack_index",
    "rows_outside",
    "to_pandas",
    "unpack_index",
]
