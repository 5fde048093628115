"""Checks of an answer that is no history: what must be unique, and what must be there."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from toolkit.completeness.row_checks import PageColumns, RowArrays, RowBreak, find_repeats
from toolkit.contract.operations import Operation
from toolkit.contract.records import (
    AccountRow,
    CoinCapRow,
    ContextRow,
    DepthRow,
    FailedRow,
    MetaRow,
    PositionRow,
    Record,
)

__all__ = ["check_answer"]

_ROUNDING: Final = 1e-4  # USD; totals and values have six decimals
_NOISE: Final = 1e-9  # relative error of a sum of floats, with a margin

# Record of an answer that is no history -> columns whose values together exist once.
_IDENTITY: Final[Mapping[type[Record], tuple[str, ...]]] = {
    DepthRow: ("dex", "coin", "bps"),
    MetaRow: ("name",),
    ContextRow: ("name",),
    CoinCapRow: ("coin",),
    AccountRow: ("user", "dex"),
    PositionRow: ("user", "dex", "coin"),
    FailedRow: ("user",),
}


def check_answer(
    operation: Operation, parameters: Mapping[str, Any], tables: Sequence[PageColumns]
) -> Iterator[RowBreak]:
    """Yield rows that come twice in an answer that is no history, and what is missing in it.

    Requested subjects must be there, and the positions of an account must add up to its total.

    Parameters
    ----------
    operation
        The operation.
    parameters
        The parameters of the request, Python name -> value.
    tables
        The columns of each table of the answer.
    """
    for table, columns in zip(operation.tables, tables, strict=True):
        if (identity := _IDENTITY.get(table.record)) and columns:
            rows = RowArrays(columns, "")
            for row in find_repeats(rows, identity, identity).tolist():
                yield rows.make_break("repeat", row, "came twice")
    by_record = dict(zip((table.record for table in operation.tables), tables, strict=True))
    if by_record.get(AccountRow) and PositionRow in by_record:
        yield from _check_totals(by_record[AccountRow], by_record[PositionRow])
    if operation.scale is not None:
        entries = operation.by_wire[operation.scale.entries].python
        answered = {
            name.lower()
            for columns in tables
            if "user" in columns
            for name in RowArrays(columns, "").codes("user")[1]
        }
        for subject in parameters.get(entries) or ():
            if subject.lower() not in answered:
                fault = "was requested, but the answer has neither its rows nor a reason"
                yield RowBreak("subject", True, 0, 0, subject, "", 0, fault)


def _check_totals(accounts: PageColumns, positions: PageColumns) -> Iterator[RowBreak]:
    """Yield accounts whose positions do not add up to the value that the account states."""
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    if positions:
        rows = RowArrays(positions, "")
        for key, value in zip(_account_keys(rows), rows.floats("position_value"), strict=True):
            sums[key] += abs(value)
    rows = RowArrays(accounts, "")
    totals = zip(_account_keys(rows), rows.floats("total_ntl_pos").tolist(), strict=True)
    for row, (key, total) in enumerate(totals):
        if abs(total - sums[key]) > _ROUNDING + _NOISE * total:
            fault = (
                f"states positions worth {total:.10g}, but its positions are worth "
                f"{sums[key]:.10g}: positions are missing or repeated, or a value is wrong"
            )
            yield rows.make_break("total", row, fault, is_certain=False)


def _account_keys(rows: RowArrays) -> Iterator[tuple[str, ...]]:
    """Yield the account and the dex of each row."""
    texts = ([names[code] for code in codes] for codes, names in map(rows.codes, ("user", "dex")))
    return zip(*texts, strict=True)
