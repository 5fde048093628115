"""Checks of the rows of a history against each other, while the pages come.

Keys that must be unique, position chains of fills, hours of funding and the grid of samples show
rows that are missing or repeated, without a further request. `row_proof` says what the rows of an
operation prove, and what is only believed. An archive runs the same checks before it stores rows,
and again when it is verified.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.arrays import Flags, Floats, Ints
from toolkit.completeness.position_chains import LastValues, PositionChains, PositionColumns
from toolkit.contract.dexes import NOT_PERP
from toolkit.contract.operations import Operation
from toolkit.contract.records import (
    Fill,
    FundingRow,
    LedgerUpdate,
    OrderStatus,
    Record,
    SlippageSample,
    ValidatorWeek,
)
from toolkit.display import count_text
from toolkit.times import HOUR, to_iso

__all__ = [
    "BreakLog",
    "HistoryChecks",
    "PageColumns",
    "RowArrays",
    "RowBreak",
    "find_repeats",
    "row_proof",
]

PageColumns = Mapping[str, Any]
"""Column name -> its values in a page: a numpy or an Arrow array; times in milliseconds."""

_MIX: Final = 1_000_003
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
BreakKind = Literal["chain", "repeat", "hours", "grid", "order", "subject", "total"]
_MOST_SHOWN: Final = 20

_DOLLAR_FEES: Final = ("USDC", "USDH")  # fees in these tokens do not change the balance of a coin


class RowProof(NamedTuple):
    """What the rows of an answer prove if no check finds a break, and what is only believed."""

    proved: str
    believed: str


_CHAIN_PROOF: Final = RowProof(
    "between two fills of a perp no fill is missing, and none came twice",
    "no fill before the first or after the last of each perp, or of another coin, is missing",
)
_NO_PROOF: Final = RowProof("rows are in order", "no row is missing or came twice")


class _RowRule(NamedTuple):
    """What is known of the rows of a record.

    - ``identity``: the columns that are equal if a row comes twice
    - ``is_unique``: whether two rows cannot have the same identity. The hash of a ledger row is
      that of its transaction, which may contain several rows; an order can have two equal events.
    - ``proof``: what rows without a break prove
    """

    identity: tuple[str, ...] = ()
    is_unique: bool = False
    proof: RowProof = _NO_PROOF


_ROW_RULES: Final[Mapping[type[Record], _RowRule]] = {
    Fill: _RowRule(
        ("tid", "start_position", "coin", "user"),
        proof=RowProof("no fill came twice", "no fill is missing"),
    ),
    FundingRow: _RowRule(
        ("time", "user", "coin"),
        is_unique=True,
        proof=RowProof("no payment came twice", "no payment is missing"),
    ),
    OrderStatus: _RowRule(("status_timestamp", "oid", "status")),
    LedgerUpdate: _RowRule(("time", "hash")),
    SlippageSample: _RowRule(
        ("timestamp", "coin", "amount_usd"),
        is_unique=True,
        proof=RowProof(
            "every sample between the first and the last is there once",
            "no sample before the first or after the last is missing",
        ),
    ),
    ValidatorWeek: _RowRule(
        ("week",),
        is_unique=True,
        proof=RowProof(
            "every week between the first and the last is there once",
            "no week before the first or after the last is missing",
        ),
    ),
}


def row_proof(operation: Operation, parameters: Mapping[str, Any]) -> RowProof:
    """Return what the rows of a request prove, and what is only believed.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> row_proof(OPERATIONS["builderApprovedFundingByTime"], {}).proved
    'no payment came twice'
    """
    if _has_position_chains(operation, parameters):
        return _CHAIN_PROOF
    return _ROW_RULES.get(operation.tables[0].record, _RowRule()).proof


def _has_position_chains(operation: Operation, parameters: Mapping[str, Any] | None = None) -> bool:
    """Return whether the fills of a request are all single fills of each coin of one account.

    A builder's history has only the fills between approval and revocation, and the filter
    `builder` leaves out fills, so that a gap there is no proof. With `aggregate_by_time`, a row is
    the sum of several fills, and another order may have fills between them. The filters `dex` and
    `venue` leave out no fill of a coin that has one.
    """
    if operation.tables[0].record is not Fill or "user" not in operation.subject:
        return False
    chosen = parameters or {}
    return not (chosen.get("builder") or chosen.get("aggregate_by_time"))


@dataclass(frozen=True, slots=True)
class RowBreak:
    """A place where the rows of a history do not fit to each other.

    Attributes
    ----------
    kind
        Which check found it.
    is_certain
        Whether rows are certainly missing, repeated or misplaced. If not, there may be another
        cause, which `fault` names.
    row
        The position of the row in its page.
    time
        The time of the row, in Unix milliseconds.
    user, coin
        The account and the coin of the row; empty if the row has none.
    id
        The trade id or the order id of the row; 0 if the row has none.
    fault
        What is wrong.
    is_usual
        Whether the other cause is a usual one.
    since
        The time after which rows are missing, in Unix milliseconds; None: only this row is wrong.
    """

    kind: BreakKind
    is_certain: bool
    row: int
    time: int
    user: str
    coin: str
    id: int
    fault: str
    is_usual: bool = False
    since: int | None = None

    @property
    def group(self) -> Literal["breaks", "gaps", "unproved"]:
        """The key in provenance."""
        if self.is_certain:
            return "breaks"
        return "unproved" if self.is_usual else "gaps"

    def __str__(self) -> str:
        identity = f" (id {self.id})" if self.id else ""
        of = " of ".join(filter(None, (self.coin, self.user)))
        try:
            at = f" at {to_iso(self.time)}" if self.time else ""
        except OverflowError:  # a damaged time
            at = f" at {self.time} ms"
        return f"{of or 'the row'}{at}{identity} {self.fault}"


class BreakLog:
    """The breaks of a pull: the first of each kind, and the number of all."""

    def __init__(self) -> None:
        self._first: dict[str, list[RowBreak]] = {}
        self._counts: Counter[str] = Counter()
        self.spans: list[tuple[int, int]] = []
        """The time ranges of certain breaks, in Unix milliseconds, both ends inclusive."""

    def add(self, breaks: Sequence[RowBreak]) -> None:
        """Add the breaks of a page."""
        for found in breaks:
            self._counts[found.group] += 1
            if found.is_certain:
                since = found.time if found.since is None else found.since
                self.spans.append((since, found.time))
            first = self._first.setdefault(found.group, [])
            if len(first) < _MOST_SHOWN:
                first.append(found)

    def facts(self) -> dict[str, list[str]]:
        """Return a dict: group of breaks (`RowBreak.group`) -> their texts."""
        return {group: list(self._texts(group)) for group in sorted(self._counts)}

    @property
    def reason(self) -> str:
        """Why rows are certainly missing, repeated or misplaced; empty if they are not."""
        breaks = self._first.get("breaks")
        if not breaks:
            return ""
        more = self._counts["breaks"] - 1
        places = count_text(more, "more place is", "more places are")
        others = f"; {places} in tk.provenance" if more else ""
        return (
            f"the rows contradict each other: {breaks[0]}{others}. Fetch them again. If the "
            "warning stays, the service itself has these rows"
        )

    def _texts(self, group: str) -> Iterator[str]:
        yield from map(str, self._first[group])
        if more := self._counts[group] - len(self._first[group]):
            yield f"{more} more"


class RowArrays:
    """The columns of a page as numpy arrays."""

    def __init__(self, columns: PageColumns, time_column: str, rows: Ints | None = None) -> None:
        self._columns = columns
        self._time_column = time_column
        self._rows = rows
        self._codes: dict[str, tuple[Ints, list[str]]] = {}
        self._integers: dict[str, Ints] = {}

    def take(self, rows: Ints) -> "RowArrays":
        """Return some of the rows."""
        chosen = rows if self._rows is None else self._rows[rows]
        return RowArrays(self._columns, self._time_column, chosen)

    @cached_property
    def time(self) -> Ints:
        """Unix milliseconds; 0 if the rows are no history."""
        if self._time_column:
            return self.integers(self._time_column)
        return np.zeros(len(next(iter(self._columns.values()))), dtype=np.int64)

    def has_column(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name in self._columns

    def is_missing(self, name: str) -> Flags:
        """Return which values are missing."""
        values = self._arrow(name)
        if values is None:
            return np.ones(len(self.time), dtype=np.bool_)
        return np.asarray(values.is_null().to_numpy(zero_copy_only=False))

    def floats(self, name: str) -> Floats:
        """Return numbers; a missing value, and a text that is no number, is NaN."""
        values = self._values(name)
        if isinstance(values, np.ndarray):
            return np.asarray(values, dtype=np.float64)
        if values is None:
            return np.full(len(self.time), np.nan)
        try:
            numbers = pc.cast(values, pa.float64(), safe=False)
        except pa.ArrowInvalid:
            texts = values.cast(pa.string())
            is_number = pc.match_substring_regex(texts, _NUMBER)
            numbers = pc.cast(pc.if_else(is_number, texts, None), pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def integers(self, name: str) -> Ints:
        """Return whole numbers; a missing value is 0."""
        if name not in self._integers:
            self._integers[name] = self._read_integers(name)
        return self._integers[name]

    def _read_integers(self, name: str) -> Ints:
        values = self._values(name)
        if isinstance(values, np.ndarray):
            return np.asarray(values, dtype=np.int64)
        if values is None:
            return np.zeros(len(self.time), dtype=np.int64)
        if pa.types.is_timestamp(values.type):
            values = pc.cast(values, pa.timestamp("ms", "UTC"), safe=False)
        whole = pc.fill_null(values, 0) if values.null_count else values
        return np.asarray(whole.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)

    def value_codes(self, name: str) -> Ints:
        """Return a number for each value: equal values have equal numbers on this page."""
        values = self._values(name)
        if values is None:
            return np.zeros(len(self.time), dtype=np.int64)
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            return values.view(np.int64)
        is_text = not isinstance(values, np.ndarray) and not pa.types.is_integer(values.type)
        return self.codes(name)[0] if is_text else self.integers(name)

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """Return a small number for each text, and the texts; a missing text is empty."""
        if name not in self._codes:
            values = self._arrow(name)
            if values is None:
                self._codes[name] = np.zeros(len(self.time), dtype=np.int64), [""]
            else:
                texts = values.cast(pa.string()) if values.type != pa.string() else values
                texts = pc.fill_null(texts, "") if texts.null_count else texts
                encoded = texts.dictionary_encode()
                numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
                self._codes[name] = numbers, encoded.dictionary.to_pylist()
        return self._codes[name]

    def is_text_equal(self, name: str, text: str) -> Flags:
        """Return which values are a text."""
        numbers, texts = self.codes(name)
        return np.equal(numbers, texts.index(text) if text in texts else -1)

    def contents(self, rows: Ints, names: Sequence[str] | None) -> Iterator[str]:
        """Yield the values of some rows as a text: of all columns, or of those with a name."""
        columns = [
            values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
            for name in (self._columns if names is None else names)
            if (values := self.take(rows)._values(name)) is not None
        ]
        return map(repr, zip(*columns, strict=True))

    def make_break(
        self,
        kind: BreakKind,
        row: int,
        fault: str,
        *,
        is_certain: bool = True,
        is_usual: bool = False,
    ) -> RowBreak:
        """Return the break of a row, with its place."""
        (user, coin), identity = (
            (texts[numbers[row]] for numbers, texts in map(self.codes, ("user", "coin"))),
            int(self.integers("tid")[row] or self.integers("oid")[row]),
        )
        time, at = int(self.time[row]), row if self._rows is None else int(self._rows[row])
        return RowBreak(kind, is_certain, at, time, user, coin, identity, fault, is_usual)

    def _values(self, name: str) -> Any:
        values = self._columns.get(name)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if values is None or self._rows is None:
            return values
        return values[self._rows] if isinstance(values, np.ndarray) else values.take(self._rows)

    def _arrow(self, name: str) -> Any:
        values = self._values(name)
        return pa.array(values) if isinstance(values, np.ndarray) else values


def find_repeats(rows: RowArrays, identity: Sequence[str], compared: Sequence[str] | None) -> Ints:
    """Return the rows that repeat an earlier row in some columns, or if None, in all of them."""
    mixed = np.zeros(len(rows.time), dtype=np.int64)
    for name in identity:
        mixed = mixed * _MIX + rows.value_codes(name)
    ascending = np.sort(mixed)
    if not identity or not np.any(ascending[1:] == ascending[:-1]):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(mixed, kind="stable")
    is_same = mixed[order][1:] == mixed[order][:-1]
    candidates = np.unique(np.concatenate((order[1:][is_same], order[:-1][is_same])))
    seen: set[str] = set()
    repeats = []
    for row, content in zip(candidates.tolist(), rows.contents(candidates, compared), strict=True):
        if content in seen:
            repeats.append(row)
        seen.add(content)
    return np.array(repeats, dtype=np.int64)


class HistoryChecks:
    """The checks of one history, page by page.

    Parameters
    ----------
    operation
        The operation of the rows.
    parameters
        The parameters of the request, Python name -> value.
    identity
        The columns that are equal if a row comes twice; by default those of the record.
    """

    def __init__(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        identity: tuple[str, ...] | None = None,
    ) -> None:
        self._operation = operation
        self._record = operation.tables[0].record
        self._rule = _ROW_RULES.get(self._record, _RowRule())
        is_unique = identity is not None or self._rule.is_unique
        self._identity = self._rule.identity if identity is None else identity
        self._compared = self._identity if is_unique else None
        self._is_one_account = _has_position_chains(operation, parameters)
        self._has_all_fills = "user" not in operation.subject or self._is_one_account
        self._chains = PositionChains()
        self._series: dict[tuple[str, ...], int] = {}
        self._hours, self._sizes, self._samples = LastValues(), LastValues(), LastValues()

    def add_page(self, columns: PageColumns) -> list[RowBreak]:
        """Return what does not fit in the rows that follow; all rows of a time are on one page."""
        if self._operation.key == () or not columns:
            return []
        rows = RowArrays(columns, self._operation.key[0])
        breaks: list[RowBreak] = []
        if self._operation.latest:
            breaks += self._order_breaks(rows)
            rows = rows.take(np.argsort(rows.time, kind="stable"))  # ties keep their order
        repeats = find_repeats(rows, self._identity, self._compared)
        if len(repeats):
            breaks += self._repeat_breaks(rows, repeats)
            rows = rows.take(np.delete(np.arange(len(rows.time)), repeats))
        if self._record is Fill and self._has_all_fills:
            if self._operation.latest:  # the limit of the answer may cut the oldest tie
                rows = rows.take(np.flatnonzero(rows.time > rows.time[:1]))
            breaks += self._chain_breaks(rows)
        elif self._record is FundingRow:
            breaks += self._hour_breaks(rows)
        elif self._operation.grid is not None:
            breaks += self._grid_breaks(rows)
        return breaks

    def _order_breaks(self, rows: RowArrays) -> Iterator[RowBreak]:
        for row in (np.flatnonzero(np.diff(rows.time) > 0)[:1] + 1).tolist():
            fault = "follows an earlier row, but the newest row must come first"
            yield rows.make_break("order", row, fault)

    def _repeat_breaks(self, rows: RowArrays, repeats: Ints) -> Iterator[RowBreak]:
        trades = rows.integers("tid")
        for row in repeats.tolist():
            is_certain = self._rule.is_unique or bool(trades[row])
            doubt = "" if is_certain else "; both rows may be real, because they have no identity"
            yield rows.make_break("repeat", row, f"came twice{doubt}", is_certain=is_certain)

    def _series_of(self, rows: RowArrays) -> Ints:
        """Return a number for the account and coin of each row, the same on every page."""
        coins, coin_names = rows.codes("coin")
        if not rows.has_column("user"):
            numbers = [self._number_of("", coin) for coin in coin_names]
            return np.array(numbers, dtype=np.int64)[coins]
        users, user_names = rows.codes("user")
        pairs, places = np.unique(users * len(coin_names) + coins, return_inverse=True)
        numbers = [
            self._number_of(user_names[pair // len(coin_names)], coin_names[pair % len(coin_names)])
            for pair in pairs.tolist()
        ]
        return np.array(numbers, dtype=np.int64)[places]

    def _number_of(self, user: str, coin: str) -> int:
        return self._series.setdefault((user, coin), len(self._series))

    def _chain_breaks(self, rows: RowArrays) -> Iterator[RowBreak]:
        if not (rows.has_column("start_position") and rows.has_column("sz") and len(rows.time)):
            return
        coins, coin_names = rows.codes("coin")
        token_coins = np.array([re.search(NOT_PERP, coin) is not None for coin in coin_names])
        is_token = token_coins[coins]
        is_buy = rows.is_text_equal("side", "B")
        size = rows.floats("sz")
        change = np.where(is_buy, size, -size)
        if token_coins.any():
            change -= _token_fees(rows, is_token & is_buy)
        fills = PositionColumns(
            self._series_of(rows),
            rows.time,
            rows.floats("start_position"),
            change,
            rows.floats("px"),
            rows.integers("tid"),
            is_token,
        )
        for found in self._chains.add_fills(fills):
            is_certain, is_usual = self._is_one_account, False
            cause = "fills are missing in between"
            if _is_inside_order(rows, fills, found.row):
                # No tokens are transferred, and no approval is revoked, while an order is filled.
                is_certain = is_certain and not is_token[found.row]
            elif is_token[found.row]:
                is_certain, is_usual = False, True
                cause = "fills are missing, or tokens were transferred"
            elif not is_certain:
                is_usual = _has_pause(rows, fills, found.row)
                cause = "fills are missing, or the approval was revoked in between"
            fault = (
                f"starts from {found.start:.10g}, but the fill before it left "
                f"{found.expected:.10g}: {cause}"
            )
            made = rows.make_break(
                "chain", found.row, fault, is_certain=is_certain, is_usual=is_usual
            )
            yield replace(made, since=found.since)

    def _hour_breaks(self, rows: RowArrays) -> Iterator[RowBreak]:
        """Yield hours with two payments, and hours without one while the position is the same.

        A row that sums up n payments covers n hours (docs/live_service.md, section 5).
        """
        series = self._series_of(rows)
        order = np.argsort(series, kind="stable")
        series, hour = series[order], (rows.time[order] // HOUR).astype(np.float64)
        size = rows.floats("szi")[order]
        samples = np.maximum(rows.integers("n_samples")[order], 1)
        hour_before = self._hours.shift(series, hour)
        size_before = self._sizes.shift(series, size)
        lacking = hour - samples - hour_before
        is_gap = (lacking > 0) & (size == size_before)
        for at in np.flatnonzero((hour == hour_before) | is_gap).tolist():
            row = int(order[at])
            if hour[at] == hour_before[at]:
                yield rows.make_break("hours", row, "is the second payment of its hour")
                continue
            fault = (
                f"follows {count_text(int(lacking[at]), 'hour')} without a payment, although the "
                "position is the same: payments are missing, or the approval was revoked in between"
            )
            # An approval is revoked, or a position is closed and opened again, for some hours.
            is_usual = bool(lacking[at] > 1)
            yield rows.make_break("hours", row, fault, is_certain=False, is_usual=is_usual)

    def _grid_breaks(self, rows: RowArrays) -> Iterator[RowBreak]:
        grid = self._operation.grid
        if grid is None or np.any((rows.time - grid.offset) % grid.step):
            return  # the service has other sample times, so that a distance is no proof
        before = self._samples.shift(np.zeros_like(rows.time), rows.time.astype(np.float64))
        lacking = np.abs(rows.time - before) // grid.step - 1
        for row in np.flatnonzero(lacking > 0).tolist():
            fault = (
                f"is {int(lacking[row]) + 1} steps of the grid from the row before it: rows are "
                "missing, or the service has none of these times"
            )
            yield rows.make_break("grid", row, fault, is_certain=False)


def _is_inside_order(rows: RowArrays, fills: PositionColumns, row: int) -> bool:
    """Return whether a fill and the fill before it are of one order and one millisecond."""
    earlier = np.flatnonzero(fills.chain[:row] == fills.chain[row])[-1:]
    orders = rows.integers("oid")
    is_same = (fills.time[earlier] == fills.time[row]) & (orders[earlier] == orders[row])
    return bool(orders[row]) and bool(is_same.any())


def _has_pause(rows: RowArrays, fills: PositionColumns, row: int) -> bool:
    """Return whether the account had no fill of any coin for an hour before a gap ended.

    Without an approval, the builder has no fills of the account.
    """
    earlier = np.flatnonzero(fills.chain[:row] == fills.chain[row])
    if not len(earlier):  # the gap began on an earlier page
        return True
    users = rows.codes("user")[0][earlier[-1] : row + 1]
    times = fills.time[earlier[-1] : row + 1][users == users[-1]]
    return bool(np.max(np.diff(times), initial=0) >= HOUR)


def _token_fees(rows: RowArrays, is_token_buy: Flags) -> Floats:
    """Return the fees in the bought token; a buy without a fee token breaks the chain."""
    is_cash = rows.is_text_equal("fee_token", _DOLLAR_FEES[0]) | rows.is_text_equal(
        "fee_token", _DOLLAR_FEES[1]
    )
    fees = np.where(is_token_buy & ~is_cash, rows.floats("fee"), 0.0)
    return np.where(is_token_buy & rows.is_missing("fee_token"), np.nan, fees)
