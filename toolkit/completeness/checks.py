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

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract import records
from toolkit.contract.dexes import NOT_PERP
from toolkit.contract.operations import Operation
from toolkit.display import count_text
from toolkit.times import HOUR, to_iso

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


_IDENTITIES: Final[Mapping[type[records.Record], tuple[tuple[str, ...], str]]] = {
    records.Fill: (("tid", "start_position", "coin", "user"), "fill"),
    records.FundingRow: (("time", "user", "coin"), "payment"),
    records.Candle: (("start_time",), "candle"),
    records.FundingRate: (("time", "coin"), "rate"),
    records.LendInterest: (("time", "token"), "interest"),
    records.OpenInterest: (("time",), "interval"),
    records.OrderStatus: (("status_timestamp", "oid", "status"), ""),
    records.LedgerUpdate: (("time", "hash"), ""),
    records.SlippageSample: (("timestamp", "coin", "amount_usd"), "sample"),
    records.ValidatorWeek: (("week",), "week"),
    records.DepthRow: (("dex", "coin", "bps"), ""),
    records.MetaRow: (("name",), ""),
    records.ContextRow: (("name",), ""),
    records.CoinCapRow: (("coin",), ""),
    records.AccountRow: (("user", "dex"), ""),
    records.PositionRow: (("user", "dex", "coin"), ""),
    records.FailedRow: (("user",), ""),
}
"""Record -> the columns that are equal if a row comes twice, and what a row is called."""

_MAY_REPEAT: Final = (records.Fill, records.OrderStatus, records.LedgerUpdate)
"""Records of which two rows can have the same identity, so all columns are compared. The hash of a
ledger row is that of its transaction, which may contain several rows; an order can have two equal
events."""


def row_proof(operation: Operation, parameters: Mapping[str, Any]) -> RowProof:
    """Return what the rows of a request prove, and what is only believed.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> row_proof(OPERATIONS["builderApprovedFundingByTime"], {}).proved
    'no payment came twice'
    """
    _, row = _IDENTITIES.get(operation.tables[0].record, ((), ""))
    if _has_position_chains(operation, parameters):
        return RowProof(
            "between two fills of a perp no fill is missing, and none came twice",
            "no fill before the first or after the last of each perp, or of another coin, is "
            "missing",
        )
    if operation.grid is not None:
        return RowProof(
            f"every {row} between the first and the last is there once",
            f"no {row} before the first or after the last is missing",
        )
    if row:
        return RowProof(f"no {row} came twice", f"no {row} is missing")
    return RowProof("rows are in order", "no row is missing or came twice")


def _has_position_chains(operation: Operation, parameters: Mapping[str, Any]) -> bool:
    """Return whether the fills of a request are all single fills of each coin of one account.

    A builder's history has only the fills between approval and revocation, and the filter
    `builder` leaves out fills, so that a gap there is no proof. With `aggregate_by_time`, a row is
    the sum of several fills, and another order may have fills between them. The filters `dex` and
    `venue` leave out no fill of a coin that has one.
    """
    if operation.tables[0].record is not records.Fill or "user" not in operation.subject:
        return False
    return not (parameters.get("builder") or parameters.get("aggregate_by_time"))


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
        self._texts: dict[str, list[str]] = defaultdict(list)
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
            if len(self._texts[found.group]) < _MOST_SHOWN:
                self._texts[found.group].append(str(found))

    def facts(self) -> dict[str, list[str]]:
        """Return a dict: group of breaks (`RowBreak.group`) -> their texts."""
        return {
            group: texts + ([f"{more} more"] if (more := self._counts[group] - len(texts)) else [])
            for group, texts in sorted(self._texts.items())
        }

    @property
    def reason(self) -> str:
        """Why rows are certainly missing, repeated or misplaced; empty if they are not."""
        if not (more := self._counts["breaks"]):
            return ""
        places = count_text(more - 1, "more place is", "more places are")
        others = f"; {places} in tk.provenance" if more > 1 else ""
        return (
            f"the rows contradict each other: {self._texts['breaks'][0]}{others}. Fetch them "
            "again. If the warning stays, the service itself has these rows"
        )


class _Rows:
    """The rows of a page as an Arrow table, with their times and their places in the page."""

    def __init__(self, table: pa.Table, time: str, at: Ints) -> None:
        self.table, self._time, self.at = table, time, at
        self.names = set(table.column_names)
        self._codes: dict[str, tuple[Ints, list[str]]] = {}
        self.time = self.whole(time)  # Unix milliseconds; 0 if the rows are no history

    def take(self, rows: Ints) -> "_Rows":
        """Return some of the rows."""
        return _Rows(self.table.take(rows), self._time, self.at[rows])

    def floats(self, name: str) -> Floats:
        """Return numbers; a missing value, and a text that is no number, is NaN."""
        if name not in self.names:
            return np.full(len(self.at), np.nan)
        values = self.table[name]
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = pc.if_else(pc.match_substring_regex(values, _NUMBER), values, None)
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())

    def whole(self, name: str) -> Ints:
        """Return whole numbers; a missing value is 0."""
        if name not in self.names:
            return np.zeros(len(self.at), dtype=np.int64)
        values = self.table[name]
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", "UTC"), safe=False)
        return np.asarray(values.fill_null(0).cast(pa.int64(), safe=False).to_numpy())

    def codes(self, name: str) -> tuple[Ints, list[str]]:
        """Return a small number for each text, and the texts; a missing text is empty."""
        if name not in self.names:
            return np.zeros(len(self.at), dtype=np.int64), [""]
        if name not in self._codes:
            encoded = self.table[name].combine_chunks().dictionary_encode("encode")
            numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            names = ["" if text is None else str(text) for text in encoded.dictionary.to_pylist()]
            self._codes[name] = numbers, names
        return self._codes[name]

    def is_one_of(self, name: str, texts: Sequence[str]) -> Flags:
        """Return in which rows a column has one of some texts."""
        codes, names = self.codes(name)
        return np.array([name in texts for name in names], dtype=np.bool_)[codes]

    def find_repeats(self, identity: Sequence[str], compared: Sequence[str] | None) -> list[int]:
        """Return the rows that repeat an earlier row in `compared`; None stands for all columns."""
        mixed = np.zeros(len(self.at), dtype=np.int64)
        for name in identity:
            kind = self.table.schema.field(name).type if name in self.names else pa.int64()
            if pa.types.is_floating(kind):
                codes = self.floats(name).view(np.int64)
            else:
                codes = self.whole(name) if pa.types.is_integer(kind) else self.codes(name)[0]
            mixed = mixed * _MIX + codes
        ascending = np.sort(mixed)
        several = ascending[1:][ascending[1:] == ascending[:-1]]
        if not identity or not len(several):
            return []
        candidates = np.flatnonzero(np.isin(mixed, several))
        rows = self.table.take(candidates)
        rows = rows if compared is None else rows.select([n for n in compared if n in self.names])
        first: dict[str, int] = {}
        pairs = zip(map(repr, rows.to_pylist()), candidates.tolist(), strict=True)
        return [row for content, row in pairs if first.setdefault(content, row) != row]

    def make_break(self, kind: BreakKind, row: int, fault: str, **more: Any) -> RowBreak:
        """Return the break of a row, with its place."""
        (cells,) = self.table.slice(row, 1).to_pylist()
        user, coin, *ids = (cells.get(name) for name in ("user", "coin", "tid", "oid"))
        identity = next((int(number) for number in ids if number), 0)
        place = (int(self.at[row]), int(self.time[row]), user or "", coin or "", identity)
        return RowBreak(kind, more.pop("is_certain", True), *place, fault, **more)


def _read_rows(columns: PageColumns, time: str = "") -> _Rows:
    table = pa.table(dict(columns))
    return _Rows(table, time, np.arange(table.num_rows))


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
        self._is_unique = self._record not in _MAY_REPEAT
        self._identity = identity or _IDENTITIES.get(self._record, ((), ""))[0]
        self._compared = self._identity if self._is_unique or identity else None
        self._is_one_account = _has_position_chains(operation, parameters)
        is_whole = "user" not in operation.subject and not operation.skips_fills
        self._has_all_fills = is_whole or self._is_one_account
        self._series: dict[tuple[str, str], int] = {}
        self._last: dict[str, dict[int, float]] = defaultdict(dict)  # measure -> series -> value

    def add_page(self, columns: PageColumns) -> list[RowBreak]:
        """Return what does not fit in the rows that follow; all rows of a time are on one page."""
        if not self._operation.key or not columns:
            return []
        rows = _read_rows(columns, self._operation.key[0])
        breaks: list[RowBreak] = []
        if self._operation.latest:
            for row in (np.flatnonzero(np.diff(rows.time) > 0)[:1] + 1).tolist():
                fault = "follows an earlier row, but the newest row must come first"
                breaks.append(rows.make_break("order", row, fault))
            rows = rows.take(np.argsort(rows.time, kind="stable"))  # ties keep their order
        repeats = rows.find_repeats(self._identity, self._compared)
        for row in repeats:
            is_certain = self._is_unique or bool(rows.whole("tid")[row])
            doubt = "" if is_certain else "; both rows may be real, because they have no identity"
            fault = f"came twice{doubt}"
            breaks.append(rows.make_break("repeat", row, fault, is_certain=is_certain))
        if repeats:
            rows = rows.take(np.delete(np.arange(len(rows.at)), repeats))
        is_fill = self._record is records.Fill
        if is_fill and self._operation.latest:  # the limit of the answer may cut the oldest tie
            rows = rows.take(np.flatnonzero(rows.time > rows.time[:1]))
        if not len(rows.at):
            return breaks
        if is_fill and self._has_all_fills:
            breaks += self._chain_breaks(rows)
        elif self._record is records.FundingRow:
            breaks += self._hour_breaks(rows)
        elif self._operation.grid is not None:
            breaks += self._grid_breaks(rows)
        return breaks

    def _series_of(self, rows: _Rows) -> Ints:
        """Return a number for the account and coin of each row, the same on every page."""
        (coins, coin_names), (users, user_names) = map(rows.codes, ("coin", "user"))
        encoded = pa.array(users * len(coin_names) + coins).dictionary_encode()
        each = (divmod(code, len(coin_names)) for code in encoded.dictionary.to_pylist())
        pairs = [(user_names[user], coin_names[coin]) for user, coin in each]
        numbers = [self._series.setdefault(pair, len(self._series)) for pair in pairs]
        places: Ints = encoded.indices.to_numpy()
        return np.array(numbers, dtype=np.int64)[places]

    def _shift(self, name: str, series: Ints, values: Floats) -> Floats:
        """Return the value before each row in its series, also of an earlier page; else NaN.

        The series ascend, and within a series the rows are in the order of time.
        """
        firsts = np.flatnonzero(np.diff(series, prepend=-1))
        lasts = np.append(firsts[1:], len(series)) - 1
        known, before = self._last[name], np.roll(values, 1)
        before[firsts] = [known.get(one, np.nan) for one in series[firsts].tolist()]
        known.update(zip(series[lasts].tolist(), values[lasts].tolist(), strict=True))
        return before

    def _chain_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        if not {"start_position", "sz"} <= rows.names:
            return
        coins, coin_names = rows.codes("coin")
        is_token = np.array([re.search(NOT_PERP, coin) is not None for coin in coin_names])[coins]
        is_buy = rows.is_one_of("side", "B")
        size, start = rows.floats("sz"), rows.floats("start_position")
        change = np.where(is_buy, size, -size)
        if is_token.any():  # a buy pays its fee in the token; without a fee token it is unknown
            fees = np.where(rows.is_one_of("fee_token", _DOLLAR_FEES), 0.0, rows.floats("fee"))
            fees[rows.is_one_of("fee_token", ("",))] = np.nan
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
        trades = rows.whole("tid")
        broken: list[tuple[int, float, int]] = []  # row, expected position, time of the fill before
        for one in np.unique(series[order][differs]).tolist():
            places = np.flatnonzero(series[order] == one)
            chain = order[places]
            if is_token[chain[0]]:
                found = _token_breaks(chain, start[chain], before[places], differs[places])
            else:
                fills = _Fills(chain, rows.time[chain], start[chain], change[chain], trades[chain])
                found, end = _follow_ties(fills, float(before[places[0]]), differs[places])
                self._last["end"][one] = end
            for row, expected in found:
                first = time_before[places[rows.time[chain] == rows.time[row]][0]]
                broken.append((row, expected, int(rows.time[row] if np.isnan(first) else first)))
        orders, users = rows.whole("oid"), rows.codes("user")[0]
        for row, expected, since in sorted(broken):
            is_certain, is_usual = self._is_one_account and not is_token[row], bool(is_token[row])
            before_row = np.flatnonzero(series[:row] == series[row])[-1:]
            is_same_order = (rows.time[before_row] == rows.time[row]) & (
                orders[before_row] == orders[row]
            )
            cause = "fills are missing in between"
            if orders[row] and is_same_order.any():
                # No tokens are transferred, and no approval is revoked, while an order is filled.
                is_usual = False
            elif is_token[row]:
                cause = "fills are missing, or tokens were transferred"
            elif not is_certain:
                # Without an approval, the builder has no fills of any coin of the account.
                between = slice(before_row[0] if len(before_row) else None, row + 1)
                times = rows.time[between][users[between] == users[row]]
                is_usual = not len(before_row) or bool(np.diff(times).max(initial=0) >= HOUR)
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
    """The fills of one coin as arrays; ``change`` is the signed size."""

    row: Ints
    time: Ints
    start: Floats
    change: Floats
    trade: Ints


def _token_breaks(
    rows: Ints, starts: Floats, expected: Floats, differs: Flags
) -> list[tuple[int, float]]:
    """Return the breaks of a spot or outcome coin; less than a unit of the balances is rounding."""
    scaled = (starts * 10.0**decimals for decimals in range(_FINEST_DECIMALS))
    is_whole = (bool(np.all(np.abs(values - np.rint(values)) < _ROUNDING)) for values in scaled)
    decimals = next((at for at, whole in enumerate(is_whole) if whole), _FINEST_DECIMALS)
    far = differs & (np.abs(starts - expected) > (1 + _ROUNDING) * 10.0**-decimals)
    return list(zip(rows[far].tolist(), expected[far].tolist(), strict=True))


def _follow_ties(
    fills: _Fills, before: float, differs: Flags
) -> tuple[list[tuple[int, float]], float]:
    """Return the breaks of one perp, tie by tie, and the position after it.

    `differs` states which fills do not start from the end of the fill before them.
    """
    end = fills.start + fills.change
    unit = _PERP_UNIT if np.nanmax(np.abs(fills.start)) < _PERP_UNIT / _NOISE else 1.0
    position = None if np.isnan(before) else round(before / unit)
    breaks: list[tuple[int, float]] = []
    bounds = np.flatnonzero(np.diff(fills.time)) + 1
    for tie in np.split(np.arange(len(end)), bounds):
        is_ordered = not differs[tie].any() and not np.isnan(end[tie]).any()
        if is_ordered and round(float(fills.start[tie[0]]) / unit) == position:
            position = round(float(end[tie[-1]]) / unit)
            continue
        edges: dict[tuple[float, ...], list[_Edge]] = defaultdict(list)
        for at in tie[~np.isnan(end[tie])].tolist():
            trade, start, change = (float(part[at]) for part in (fills.trade, *fills[2:4]))
            # The two fills of a trade of an account with itself cancel each other.
            if others := edges[trade, start, -change]:
                others.pop()
            else:
                edge = int(fills.row[at]), round(start / unit), round(float(end[at]) / unit)
                edges[trade, start, change].append(edge)
        found, position = _match_edges(sorted(itertools.chain(*edges.values())), position)
        breaks += ((row, expected * unit) for row, expected in found)
    return breaks, np.nan if position is None else position * unit


_Edge = tuple[int, int, int]
"""Row, and the position before and after the fill in units."""


def _match_edges(
    edges: Sequence[_Edge], before: int | None
) -> tuple[list[tuple[int, int]], int | None]:
    """Match the starts of the fills of a tie with their ends.

    Return two values: the fills that start where no other fill ends (and not at `before`), each
    with the expected position; and the position after the tie, None if it is not known.
    """
    if not edges:
        return [], before
    surplus = Counter(start for _, start, _ in edges)
    surplus.subtract(end for _, _, end in edges)
    starts, ends = list(surplus.elements()), list((-surplus).elements())
    if before is None:
        before = starts[0] if starts else edges[0][1]
    if before in starts:
        starts.remove(before)
    elif not starts and all(start != before for _, start, _ in edges):
        # The fills return to their first position, but `before` is not it.
        starts, ends = [edges[0][1]], [edges[0][1]]
    after = before if not ends else ends[0] if len(ends) == 1 else None
    breaks, waiting, expected = [], Counter(starts), before
    for row, start, end in edges:
        if waiting[start] > 0:
            waiting[start] -= 1
            breaks.append((row, expected))
        expected = end
    return breaks, after


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
        identity, _ = _IDENTITIES.get(table.record, ((), ""))
        if identity and table.record not in _MAY_REPEAT and columns:
            rows = _read_rows(columns)
            for row in rows.find_repeats(identity, identity):
                yield rows.make_break("repeat", row, "came twice")
    by_record = dict(zip((table.record for table in operation.tables), tables, strict=True))
    if by_record.get(records.AccountRow) and records.PositionRow in by_record:
        yield from _check_totals(by_record[records.AccountRow], by_record[records.PositionRow])
    if operation.scale is not None:
        entries = operation.by_wire[operation.scale.entries].python
        answered = {
            name.lower()
            for columns in tables
            if "user" in columns
            for name in _read_rows(columns).codes("user")[1]
        }
        for subject in parameters.get(entries) or ():
            if subject.lower() not in answered:
                fault = "was requested, but the answer has neither its rows nor a reason"
                yield RowBreak("subject", True, 0, 0, subject, "", 0, fault)


def _check_totals(accounts: PageColumns, positions: PageColumns) -> Iterator[RowBreak]:
    """Yield accounts whose positions do not add up to the value that the account states."""
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    if positions:
        rows = _read_rows(positions)
        for key, value in zip(_account_keys(rows), rows.floats("position_value"), strict=True):
            sums[key] += abs(value)
    rows = _read_rows(accounts)
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
