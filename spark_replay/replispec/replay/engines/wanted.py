"""What is wanted of a table: terms that all have to hold of a row, and what follows before there are rows.

The same terms are asked of columns (which rows are kept), of values that are known early (can there be such
a row at all?) and for the borders of a number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

# Integers of a column have at most 64 bits: borders that nobody named.
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Relation(StrEnum):
    """How a value stands to those of a term."""

    EQUAL = "="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    ONE_OF = "in"
    STARTS = "starts with"
    ENDS = "ends with"
    CONTAINS = "contains"
    MISSING = "is null"


Compare = Callable[[Any, Any], Any]
_COMPARED: Final[Mapping[Relation, Compare]] = {
    Relation.EQUAL: pc.equal,
    Relation.LESS: pc.less,
    Relation.AT_MOST: pc.less_equal,
    Relation.MORE: pc.greater,
    Relation.AT_LEAST: pc.greater_equal,
    Relation.STARTS: pc.starts_with,
    Relation.ENDS: pc.ends_with,
    Relation.CONTAINS: pc.match_substring,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A column's values are, or with `negated` are not, so: `values` is one value, or several of ONE_OF.

    Values are integers, texts or truth values. As in SQL, a null fits only what asks for nulls.
    """

    column: str
    relation: Relation
    values: tuple[Any, ...] = ()
    negated: bool = False

    @property
    def asks_for_nulls(self) -> bool:
        """Whether a null fits."""
        return self.relation is Relation.MISSING and not self.negated

    def mask(self, column: Any) -> Any:
        """Which values of an Arrow array fit, as an array without nulls."""
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64())
        if self.relation is Relation.MISSING:
            return pc.is_valid(column) if self.negated else pc.is_null(column)
        if self.relation is Relation.ONE_OF:
            found = pc.and_(pc.is_in(column, pa.array(self.values, column.type)), pc.is_valid(column))
            found = pc.if_else(pc.is_valid(column), found, None)
        else:
            found = _COMPARED[self.relation](column, self.values[0])
        return (pc.invert(found) if self.negated else found).fill_null(False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of which all terms hold."""

    terms: tuple[Term, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """The columns that terms are about."""
        return frozenset(term.column for term in self.terms)

    def about(self, columns: Collection[str]) -> Wanted:
        """The terms about these columns alone."""
        return Wanted(tuple(term for term in self.terms if term.column in columns))

    def kept(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that fit; every column that a term is about is there."""
        for term in self.terms:
            rows = rows.filter(term.mask(rows.column(term.column)))
        return rows

    def may_be(self, known: Mapping[str, Any]) -> bool:
        """Whether a row with these values, whatever its other columns hold, can fit."""
        return all(
            term.mask(pa.array([known[term.column]]))[0].as_py()
            for term in self.terms
            if term.column in known
        )

    def needs(self, columns: Collection[str]) -> bool:
        """Whether no row fits in which these columns are null."""
        return any(term.column in columns and not term.asks_for_nulls for term in self.terms)

    def borders(self, column: str) -> tuple[int, int]:
        """The least and the greatest number of this column that can fit, both included."""
        low, high = LOWEST, HIGHEST
        for term in self.terms:
            if term.column != column or term.negated:
                continue
            match term.relation:
                case Relation.EQUAL | Relation.ONE_OF:
                    low = max(low, min(term.values, default=HIGHEST))
                    high = min(high, max(term.values, default=LOWEST))
                case Relation.LESS:
                    high = min(high, term.values[0] - 1)
                case Relation.AT_MOST:
                    high = min(high, term.values[0])
                case Relation.MORE:
                    low = max(low, term.values[0] + 1)
                case Relation.AT_LEAST:
                    low = max(low, term.values[0])
        return low, high


ALL: Final = Wanted()
