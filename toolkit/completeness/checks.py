"""Checks of the rows of an answer against each other.

Keys that must be unique, position chains of fills, hours of funding and the grid of samples show
rows that are missing or repeated, without a further request. `row_proof` says what the rows of an
operation prove, and what is only believed. An archive runs the same checks before it stores rows,
and again when it is verified.

Position chains: a fill starts from the position that the fill before it left, which is its start
plus its signed size. A spot buy ends lower by its fee, which is paid in the bought token. In perps,
a gap proves that fills are missing. Tokens of spot and outcome markets also move without a fill, so
a gap there may be a transfer (docs/live_service.md, section 3). The order of fills in one
millisecond (a tie) is not known. If the given order is no chain, the fills of a tie count as edges
of a graph from start to end. If no fill is missing, one path goes through all edges. A path begins
at a start at which no other fill ends. If an account trades with itself, both fills start from the
same position and cancel each other.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract.dexes import NOT_PERP
from toolkit.contract.operations import Operation
from toolkit.contract.records import (
    AccountRow,
    Candle,
    CoinCapRow,
    ContextRow,
    DepthRow,
    FailedRow,
    Fill,
    FundingRate,
    FundingRow,
    LedgerUpdate,
    LendInterest,
    MetaRow,
    OpenInterest,
    OrderStatus,
    PositionRow,
    Record,
    SlippageSample,
    ValidatorWeek,
)
from toolkit.display import count_text
from toolkit.times import HOUR, to_iso

__all__ = ["BreakLog", "HistoryChecks", "PageColumns", "RowBreak", "check_answer", "row_proof"]

PageColumns = Mapping[str, Any]
"""Column name -> its values in a page: a numpy or an Arrow array; times in milliseconds."""

BreakKind = Literal["chain", "repeat", "hours", "grid", "order", "subject", "total"]

_MIX: Final = 1_000_003
_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MOST_SHOWN: Final = 20
_DOLLAR_FEES: Final = ("USDC", "USDH")  # fees in these tokens do not change the balance of a coin
_PERP_UNIT: Final = 1e-6  # sizes of perps have at most six decimals
_FINEST_DECIMALS: Final = 8  # of sizes and balances of tokens
_ROUNDING: Final = 1e-6  # in units of the last decimal
_NOISE: Final = 4e-15  # relative error of a sum of two floats, with a margin
_TOTAL_ROUNDING: Final = 1e-4  # USD; totals and values have six decimals
_TOTAL_NOISE: Final = 1e-9  # relative error of a sum of floats, with a margin


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
    - ``proof``: what the rows of a history without a break prove
    """

    identity: tuple[str, ...] = ()
    is_unique: bool = True
    proof: RowProof = _NO_PROOF


_ROW_RULES: Final[Mapping[type[Record], _RowRule]] = {
    Fill: _RowRule(
        ("tid", "start_position", "coin", "user"),
        is_unique=False,
        proof=RowProof("no fill came twice", "no fill is missing"),
    ),
    FundingRow: _RowRule(
        ("time", "user", "coin"),
        proof=RowProof("no payment came twice", "no payment is missing"),
    ),
    Candle: _RowRule(
        ("start_time",), proof=RowProof("no candle came twice", "no candle is missing")
    ),
    FundingRate: _RowRule(
        ("time", "coin"), proof=RowProof("no rate came twice", "no rate is missing")
    ),
    LendInterest: _RowRule(
        ("time", "token"), proof=RowProof("no interest came twice", "no interest is missing")
    ),
    OpenInterest: _RowRule(
        ("time",), proof=RowProof("no interval came twice", "no interval is missing")
    ),
    OrderStatus: _RowRule(("status_timestamp", "oid", "status"), is_unique=False),
    LedgerUpdate: _RowRule(("time", "hash"), is_unique=False),
    SlippageSample: _RowRule(
        ("timestamp", "coin", "amount_usd"),
        proof=RowProof(
            "every sample between the first and the last is there once",
            "no sample before the first or after the last is missing",
        ),
    ),
    ValidatorWeek: _RowRule(
        ("week",),
        proof=RowProof(
            "every week between the first and the last is there once",
            "no week before the first or after the last is missing",
        ),
    ),
    DepthRow: _RowRule(("dex", "coin", "bps")),
    MetaRow: _RowRule(("name",)),
    ContextRow: _RowRule(("name",)),
    CoinCapRow: _RowRule(("coin",)),
    AccountRow: _RowRule(("user", "dex")),
    PositionRow: _RowRule(("user", "dex", "coin")),
    FailedRow: _RowRule(("user",)),
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


class _Rows:
    """The rows of a page: arrays by column name, and positions in the page."""

    def __init__(self, columns: PageColumns, time: str = "", at: Ints | None = None) -> None:
        self.columns, self._time, self._is_whole = columns, time, at is None
        self._codes: dict[str, tuple[Ints, list[str]]] = {}
        self.at = np.arange(len(next(iter(columns.values())))) if at is None else at
        self.time = self.whole(time)  # Unix milliseconds; 0 if the rows are no history

    def take(self, rows: Ints | Flags) -> "_Rows":
        """Return some of the rows."""
        return _Rows(self.columns, self._time, self.at[rows])

    def values(self, name: str) -> Any:
        """Return a numpy or an Arrow array; None if there is no such column."""
        values = self.columns.get(name)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if values is None or self._is_whole:
            return values
        return values[self.at] if isinstance(values, np.ndarray) else values.take(self.at)

    def floats(self, name: str) -> Floats:
        """Return numbers; a missing value, and a text that is no number, is NaN."""
        values = self.values(name)
        if values is None:
            return np.full(len(self.at), np.nan)
        if not isinstance(values, np.ndarray):
            try:
                values = pc.cast(values, pa.float64(), safe=False)
            except pa.ArrowInvalid:
                texts = values.cast(pa.string())
                is_number = pc.match_substring_regex(texts, _NUMBER)
                values = pc.cast(pc.if_else(is_number, texts, None), pa.float64())
            values = values.to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    def whole(self, name: str) -> Ints:
        """Return whole numbers; a missing value is 0."""
        values = self.values(name)
        if values is None:
            return np.zeros(len(self.at), dtype=np.int64)
        if not isinstance(values, np.ndarray):
            if pa.types.is_timestamp(values.type):
                values = pc.cast(values, pa.timestamp("ms", "UTC"), safe=False)
            values = pc.fill_null(values, 0) if values.null_count else values
            values = values.to_numpy(zero_copy_only=False)
        return np.asarray(values).astype(np.int64, copy=False)

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """Return a small number for each text, and the texts; a missing text is empty."""
        if name not in self._codes:
            values = self.values(name)
            texts = pa.repeat("", len(self.at)) if values is None else pa.array(values)
            texts = texts if texts.type == pa.string() else texts.cast(pa.string())
            encoded = (pc.fill_null(texts, "") if texts.null_count else texts).dictionary_encode()
            numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            self._codes[name] = numbers, encoded.dictionary.to_pylist()
        return self._codes[name]

    def make_break(self, kind: BreakKind, row: int, fault: str, **more: Any) -> RowBreak:
        """Return the break of a row, with its place."""
        one = self.take(np.array([row]))
        user, coin = (one.codes(name)[1][0] for name in ("user", "coin"))
        identity = int(one.whole("tid")[0] or one.whole("oid")[0])
        is_certain = more.pop("is_certain", True)
        at, time = int(one.at[0]), int(one.time[0])
        return RowBreak(kind, is_certain, at, time, user, coin, identity, fault, **more)


def _find_repeats(rows: _Rows, identity: Sequence[str], compared: Sequence[str] | None) -> Ints:
    """Return the rows that repeat an earlier row in some columns, or if None, in all of them."""
    mixed = np.zeros(len(rows.at), dtype=np.int64)
    for name in identity:
        values = rows.values(name)
        is_array = isinstance(values, np.ndarray)
        if is_array and values.dtype == np.float64:
            codes = values.view(np.int64)
        elif is_array or values is None or pa.types.is_integer(values.type):
            codes = rows.whole(name)
        else:
            codes = rows.codes(name)[0]
        mixed = mixed * _MIX + codes
    ascending = np.sort(mixed)
    if not identity or not np.any(ascending[1:] == ascending[:-1]):
        return np.empty(0, dtype=np.int64)
    order = np.argsort(mixed, kind="stable")
    is_same = mixed[order][1:] == mixed[order][:-1]
    candidates = np.unique(np.concatenate((order[1:][is_same], order[:-1][is_same])))
    names = rows.columns if compared is None else [n for n in compared if n in rows.columns]
    some, seen, repeats = rows.take(candidates), set[str](), []
    cells = (some.values(name) for name in names)
    lists = [cell.tolist() if isinstance(cell, np.ndarray) else cell.to_pylist() for cell in cells]
    for row, content in zip(candidates.tolist(), map(repr, zip(*lists, strict=True)), strict=True):
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
        is_whole = "user" not in operation.subject and not operation.skips_fills
        self._has_all_fills = is_whole or self._is_one_account
        self._series: dict[tuple[str, str], int] = {}
        self._last: dict[str, Floats] = {}  # of each series the last value of each measure

    def add_page(self, columns: PageColumns) -> list[RowBreak]:
        """Return what does not fit in the rows that follow; all rows of a time are on one page."""
        if self._operation.key == () or not columns:
            return []
        rows = _Rows(columns, self._operation.key[0])
        if not len(rows.at):
            return []
        breaks: list[RowBreak] = []
        if self._operation.latest:
            for row in (np.flatnonzero(np.diff(rows.time) > 0)[:1] + 1).tolist():
                fault = "follows an earlier row, but the newest row must come first"
                breaks.append(rows.make_break("order", row, fault))
            rows = rows.take(np.argsort(rows.time, kind="stable"))  # ties keep their order
        repeats = _find_repeats(rows, self._identity, self._compared)
        if len(repeats):
            trades = rows.whole("tid")
            for row in repeats.tolist():
                is_certain = self._rule.is_unique or bool(trades[row])
                doubt = (
                    "" if is_certain else "; both rows may be real, because they have no identity"
                )
                fault = f"came twice{doubt}"
                breaks.append(rows.make_break("repeat", row, fault, is_certain=is_certain))
            rows = rows.take(np.delete(np.arange(len(rows.at)), repeats))
        if self._record is Fill and self._has_all_fills:
            if self._operation.latest:  # the limit of the answer may cut the oldest tie
                rows = rows.take(rows.time > rows.time[:1])
            breaks += self._chain_breaks(rows)
        elif self._record is FundingRow:
            breaks += self._hour_breaks(rows)
        elif self._operation.grid is not None:
            breaks += self._grid_breaks(rows)
        return breaks

    def _series_of(self, rows: _Rows) -> Ints:
        """Return a number for the account and coin of each row, the same on every page."""
        (coins, coin_names), (users, user_names) = map(rows.codes, ("coin", "user"))
        pairs, places = [(user_names[0], coin) for coin in coin_names], coins
        if len(user_names) > 1:
            codes, places = np.unique(users * len(coin_names) + coins, return_inverse=True)
            each = (divmod(code, len(coin_names)) for code in codes.tolist())
            pairs = [(user_names[user], coin_names[coin]) for user, coin in each]
        numbers = [self._series.setdefault(pair, len(self._series)) for pair in pairs]
        return np.array(numbers, dtype=np.int64)[places]

    def _shift(self, name: str, series: Ints, values: Floats) -> Floats:
        """Return the value before each row in its series, also of an earlier page; else NaN.

        The series ascend, and within a series the rows are in the order of time.
        """
        last = self._last.get(name, np.empty(0))
        if len(series) and (lacking := int(series[-1]) + 1 - len(last)) > 0:
            last = np.concatenate((last, np.full(lacking + len(last), np.nan)))
        is_first = np.ones(len(series), dtype=np.bool_)
        is_first[1:] = series[1:] != series[:-1]
        before = np.concatenate((values[:0], [np.nan], values[:-1]))[: len(values)]
        before[is_first] = last[series[is_first]]
        is_last = np.append(is_first[1:], True)[: len(series)]
        last[series[is_last]] = values[is_last]
        self._last[name] = last
        return before

    def _chain_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        if "start_position" not in rows.columns or "sz" not in rows.columns or not len(rows.at):
            return
        coins, coin_names = rows.codes("coin")
        is_token = np.array([re.search(NOT_PERP, coin) is not None for coin in coin_names])[coins]
        sides, side_names = rows.codes("side")
        is_buy = np.array([name == "B" for name in side_names])[sides]
        size, start = rows.floats("sz"), rows.floats("start_position")
        change = np.where(is_buy, size, -size)
        if is_token.any():  # a buy pays its fee in the token; without a fee token it is unknown
            tokens, names = rows.codes("fee_token")
            is_cash, is_unknown = (
                np.array([name in group for name in names])[tokens]
                for group in (_DOLLAR_FEES, ("",))
            )
            fees = np.where(is_unknown, np.nan, np.where(is_cash, 0.0, rows.floats("fee")))
            change -= np.where(is_token & is_buy, fees, 0.0)
        series = self._series_of(rows)
        # numpy sorts short numbers several times as fast
        short = series.astype(np.uint16) if series.max() < 2**16 else series
        order = np.argsort(short, kind="stable")
        before = self._shift("end", series[order], (start + change)[order])
        time_before = self._shift("time", series[order], rows.time[order].astype(np.float64))
        distance = np.abs(start[order] - before)
        if not np.any(distance > _PERP_UNIT / 2):  # NaN, an unknown position, is none
            return
        noise = _NOISE * np.maximum(np.abs(start), np.abs(change))[order]
        differs = distance > _PERP_UNIT / 2 + noise
        fills = _Fills(rows.time, start, change, rows.floats("px"), rows.whole("tid"))
        broken: list[tuple[int, float, int]] = []  # row, expected position, time of the fill before
        for one in np.unique(series[order][differs]).tolist():
            places = np.flatnonzero(series[order] == one)
            chain = order[places]
            if is_token[chain[0]]:
                found = _token_breaks(start[chain], before[places], differs[places])
                found = [(int(chain[at]), expected) for at, expected in found]
            else:
                found, end = _follow_ties(fills, chain, float(before[places[0]]), differs[places])
                self._last["end"][one] = end
            for row, expected in found:
                first = time_before[places[rows.time[chain] == rows.time[row]][0]]
                broken.append((row, expected, int(rows.time[row] if np.isnan(first) else first)))
        orders = rows.whole("oid")
        for row, expected, since in sorted(broken):
            earlier = np.flatnonzero(series[:row] == series[row])
            before_row = earlier[-1:]
            is_same = (rows.time[before_row] == rows.time[row]) & (
                orders[before_row] == orders[row]
            )
            is_certain, is_usual = self._is_one_account, False
            cause = "fills are missing in between"
            if orders[row] and is_same.any():
                # No tokens are transferred, and no approval is revoked, while an order is filled.
                is_certain = is_certain and not is_token[row]
            elif is_token[row]:
                is_certain, is_usual = False, True
                cause = "fills are missing, or tokens were transferred"
            elif not is_certain:
                is_usual = _has_pause(rows, earlier, row)
                cause = "fills are missing, or the approval was revoked in between"
            fault = (
                f"starts from {start[row]:.10g}, but the fill before it left {expected:.10g}: "
                f"{cause}"
            )
            yield rows.make_break(
                "chain", row, fault, is_certain=is_certain, is_usual=is_usual, since=since
            )

    def _hour_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        """Yield hours with two payments, and hours without one while the position is the same.

        A row that sums up n payments covers n hours (docs/live_service.md, section 5).
        """
        series = self._series_of(rows)
        order = np.argsort(series, kind="stable")
        series, hour = series[order], (rows.time[order] // HOUR).astype(np.float64)
        size = rows.floats("szi")[order]
        samples = np.maximum(rows.whole("n_samples")[order], 1)
        hour_before = self._shift("hour", series, hour)
        size_before = self._shift("size", series, size)
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

    def _grid_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        grid = self._operation.grid
        if grid is None or np.any((rows.time - grid.offset) % grid.step):
            return  # the service has other sample times, so that a distance is no proof
        before = self._shift("sample", np.zeros_like(rows.time), rows.time.astype(np.float64))
        lacking = np.abs(rows.time - before) // grid.step - 1
        for row in np.flatnonzero(lacking > 0).tolist():
            fault = (
                f"is {int(lacking[row]) + 1} steps of the grid from the row before it: rows are "
                "missing, or the service has none of these times"
            )
            yield rows.make_break("grid", row, fault, is_certain=False)


class _Fills(NamedTuple):
    """Fills as arrays; ``change`` is the signed size without a fee in the bought token."""

    time: Ints
    start: Floats
    change: Floats
    px: Floats
    trade: Ints


def _has_pause(rows: _Rows, earlier: Ints, row: int) -> bool:
    """Return whether the account had no fill of any coin for an hour before a gap ended.

    Without an approval, the builder has no fills of the account.
    """
    if not len(earlier):  # the gap began on an earlier page
        return True
    users = rows.codes("user")[0][earlier[-1] : row + 1]
    times = rows.time[earlier[-1] : row + 1][users == users[-1]]
    return bool(np.max(np.diff(times), initial=0) >= HOUR)


def _token_breaks(starts: Floats, expected: Floats, differs: Flags) -> list[tuple[int, float]]:
    """Return the breaks of a spot or outcome coin; less than a unit of the balances is rounding."""
    scaled = (starts * 10.0**decimals for decimals in range(_FINEST_DECIMALS))
    is_whole = (bool(np.all(np.abs(values - np.rint(values)) < _ROUNDING)) for values in scaled)
    decimals = next((at for at, whole in enumerate(is_whole) if whole), _FINEST_DECIMALS)
    far = differs & (np.abs(starts - expected) > (1 + _ROUNDING) * 10.0**-decimals)
    return [(at, float(expected[at])) for at in np.flatnonzero(far).tolist()]


def _follow_ties(
    fills: _Fills, rows: Ints, before: float, differs: Flags
) -> tuple[list[tuple[int, float]], float]:
    """Return the breaks of one perp, tie by tie, and the position after it.

    `differs` states which fills do not start from the end of the fill before them.
    """
    largest = float(np.nanmax(np.abs(fills.start[rows])))
    unit = _PERP_UNIT if largest < _PERP_UNIT / _NOISE else 1.0
    position = None if np.isnan(before) else round(before / unit)
    breaks: list[tuple[int, float]] = []
    bounds = np.flatnonzero(np.diff(fills.time[rows])) + 1
    for tie, is_other in zip(np.split(rows, bounds), np.split(differs, bounds), strict=True):
        is_ordered = not is_other.any() and not np.isnan(fills.start[tie] + fills.change[tie]).any()
        if is_ordered and round(float(fills.start[tie[0]]) / unit) == position:
            last = tie[-1]
            position = round(float(fills.start[last] + fills.change[last]) / unit)
            continue
        edges = [_edge(fills, row, unit) for row in _without_own_trades(fills, tie.tolist())]
        starts, position = _match_edges(edges, position)
        breaks += ((row, expected * unit) for row, expected in starts)
    return breaks, np.nan if position is None else position * unit


_Edge = tuple[int, int, int]
"""Row, and the position before and after the fill in units."""


def _edge(fills: _Fills, row: int, unit: float) -> _Edge:
    start = float(fills.start[row])
    return row, round(start / unit), round((start + float(fills.change[row])) / unit)


def _without_own_trades(fills: _Fills, tie: Sequence[int]) -> list[int]:
    """Return the rows of a tie without pairs of fills that an account made with itself."""
    kept: list[int] = []
    open_pairs: dict[tuple[float, ...], list[int]] = defaultdict(list)
    for row in tie:
        start, change = float(fills.start[row]), float(fills.change[row])
        if np.isnan(start + change):
            continue
        place = (start, float(fills.px[row]), float(fills.trade[row]))
        if others := open_pairs[*place, -change]:
            kept.remove(others.pop())
        else:
            open_pairs[*place, change].append(row)
            kept.append(row)
    return kept


def _match_edges(
    edges: Sequence[_Edge], before: int | None
) -> tuple[list[tuple[int, int]], int | None]:
    """Match the starts of the fills of a tie with their ends.

    Return two values: the fills that start where no other fill ends (and not at `before`), each
    with the expected position; and the position after the tie, None if it is not known.

    Parameters
    ----------
    edges
        The fills of one tie.
    before
        The position before the tie, if it is known.
    """
    if not edges:
        return [], before
    surplus = Counter(start for _, start, _ in edges)
    surplus.subtract(end for _, _, end in edges)
    starts = list(surplus.elements())
    ends = list((-surplus).elements())
    if before is None:
        before = starts[0] if starts else edges[0][1]
    if before in starts:
        starts.remove(before)
    elif not starts and all(start != before for _, start, _ in edges):
        starts = [edges[0][1]]  # the fills return to their first position, but `before` is not it
        before_round, before = before, edges[0][1]
        return list(_explain_starts(edges, starts, before_round)), before
    after = before if not ends else ends[0] if len(ends) == 1 else None
    return list(_explain_starts(edges, starts, before)), after


def _explain_starts(
    edges: Sequence[_Edge], starts: Sequence[int], before: int
) -> Iterator[tuple[int, int]]:
    """Yield a row for each start without an end, with the position of the fill before it."""
    waiting = Counter(starts)
    expected = before
    for row, start, end in edges:
        if waiting[start] > 0:
            waiting[start] -= 1
            yield row, expected
        expected = end


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
        if (rule := _ROW_RULES.get(table.record)) and rule.is_unique and columns:
            rows = _Rows(columns)
            for row in _find_repeats(rows, rule.identity, rule.identity).tolist():
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
            for name in _Rows(columns).codes("user")[1]
        }
        for subject in parameters.get(entries) or ():
            if subject.lower() not in answered:
                fault = "was requested, but the answer has neither its rows nor a reason"
                yield RowBreak("subject", True, 0, 0, subject, "", 0, fault)


def _check_totals(accounts: PageColumns, positions: PageColumns) -> Iterator[RowBreak]:
    """Yield accounts whose positions do not add up to the value that the account states."""
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    if positions:
        rows = _Rows(positions)
        for key, value in zip(_account_keys(rows), rows.floats("position_value"), strict=True):
            sums[key] += abs(value)
    rows = _Rows(accounts)
    totals = zip(_account_keys(rows), rows.floats("total_ntl_pos").tolist(), strict=True)
    for row, (key, total) in enumerate(totals):
        if abs(total - sums[key]) > _TOTAL_ROUNDING + _TOTAL_NOISE * total:
            fault = (
                f"states positions worth {total:.10g}, but its positions are worth "
                f"{sums[key]:.10g}: positions are missing or repeated, or a value is wrong"
            )
            yield rows.make_break("total", row, fault, is_certain=False)


def _account_keys(rows: _Rows) -> Iterator[tuple[str, ...]]:
    """Yield the account and the dex of each row."""
    texts = ([names[code] for code in codes] for codes, names in map(rows.codes, ("user", "dex")))
    return zip(*texts, strict=True)
