"""Filters of Spark as terms, and what keeps Spark from reading with filters of another query.

With 4.3.0 a table holds what its last filters left of it: `where(a)` followed by a read without a filter, or
a union of `where(a)` and `where(b)`, reads the parts of one with the filters of the other. So the first
filters of a table are kept in a file; one that is asked with others is read whole from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from replispec.replay.engines.wanted import Relation, Term, Wanted

_RELATIONS: Final = {
    EqualTo: Relation.EQUAL,
    EqualNullSafe: Relation.EQUAL,
    GreaterThan: Relation.MORE,
    GreaterThanOrEqual: Relation.AT_LEAST,
    LessThan: Relation.LESS,
    LessThanOrEqual: Relation.AT_MOST,
    StringStartsWith: Relation.STARTS,
    StringEndsWith: Relation.ENDS,
    StringContains: Relation.CONTAINS,
}


def wanted_by(filters: Iterable[Filter], schema: pa.Schema) -> Wanted:
    """What of the filters can be asked here; the others are Spark's alone."""
    return Wanted(tuple(term for each in filters for term in _terms(each, schema)))


def _terms(each: Filter, schema: pa.Schema) -> Iterator[Term]:
    negated = isinstance(each, Not)
    inner = each.child if isinstance(each, Not) else each
    path: Sequence[str] = getattr(inner, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return
    column: str = path[0]
    if isinstance(inner, IsNull | IsNotNull):
        yield Term(column, Relation.MISSING, negated=negated != isinstance(inner, IsNotNull))
        return
    if isinstance(inner, In):
        relation, values = Relation.ONE_OF, tuple(inner.value)
    else:
        found = _RELATIONS.get(type(inner))
        if found is None or (negated and isinstance(inner, EqualNullSafe)):
            return
        relation, values = found, (getattr(inner, "value", None),)
    if all(_fits(value, schema.field(column).type) for value in values):
        yield Term(column, relation, values, negated)


def _fits(value: object, kind: pa.DataType) -> bool:
    """Whether a value can be compared with those of a column. Nulls are left to Spark."""
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool)
    return bool(pa.types.is_string(kind)) and isinstance(value, str)


def may_narrow(kept: Path, wanted: Wanted) -> bool:
    """Whether a table may be read narrowed: only if it never was asked with other filters.

    `kept`: the file of this table. Without its folder nothing is known of other filters.
    """
    text = repr(sorted(map(repr, wanted.terms)))
    whole = kept.with_name(f"{kept.name}.whole")
    if whole.exists() or not kept.parent.is_dir():
        return False
    written = kept.with_name(f"{kept.name}.{os.getpid()}")
    written.write_text(text, "utf-8")
    try:
        # A link is made once, whole: of two queries planned at once one is the first.
        os.link(written, kept)
    except FileExistsError:
        if kept.read_text("utf-8") != text:
            whole.touch()
            return False
    finally:
        written.unlink()
    return True
