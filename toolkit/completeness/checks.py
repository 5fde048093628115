"""Checks of the rows of an answer against each other.

Keys that must be unique, position chains of fills, hours of funding and the grid of samples show
rows that are missing or repeated, without a further request. `row_proof` says what the rows of an
operation prove, and what is only believed. A pull checks all its rows at once. An archive runs the
same checks part by part before it stores rows, and again when it is verified.

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
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract import records
from toolkit.contract.dexes import NOT_PERP
from toolkit.contract.operations import Operation
from toolkit.contract.paging import time_text
from toolkit.display import count_text
from toolkit.times import HOUR

Columns = Mapping[str, Any]
"""Column name -> its values: an array of numpy, Arrow or pandas; whole times are milliseconds."""

BreakKind = Literal["chain", "repeat", "hours", "grid", "order", "subject", "total"]

BreakGroup = Literal["breaks", "gaps", "unproved"]
"""A key in provenance. Of ``breaks``, rows are certainly missing, repeated or misplaced. The others
may have another cause: a usual one if they are ``unproved``."""

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


def row_proof(operation: Operation, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return what the rows of a request prove if no check finds a break, and what is only believed.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> row_proof(OPERATIONS["builderApprovedFundingByTime"], {})["proved"]
    'no payment came twice'
    """
    _, row = _IDENTITIES.get(operation.tables[0].record, ((), ""))
    proved, believed = f"no {row} came twice", f"no {row} is missing"
    if _has_position_chains(operation, parameters):
        proved = "between two fills of a perp no fill is missing, and none came twice"
        believed = (
            "no fill before the first or after the last of each perp, or of another coin, is "
            "missing"
        )
    elif operation.grid is not None:
        proved = f"every {row} between the first and the last is there once"
        believed = f"no {row} before the first or after the last is missing"
    elif not row:
        proved, believed = "rows are in order", "no row is missing or came twice"
    return {"proved": proved, "believed": believed}


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


class RowBreak(NamedTuple):
    """A place where the rows of a history do not fit to each other.

    - ``kind``: which check found it
    - ``group``: whether it is certain
    - ``row``: the position of the row among those that were checked together
    - ``time``: the time of the row, in Unix milliseconds
    - ``since``: the time after which rows are missing; that of the row if only this row is wrong
    - ``text``: which row it is, and what is wrong
    """

    kind: BreakKind
    group: BreakGroup
    row: int
    time: int
    since: int
    text: str


class BreakLog(list[RowBreak]):
    """The breaks of a pull."""

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The time ranges of certain breaks, in Unix milliseconds, both ends inclusive."""
        return [(found.since, found.time) for found in self if found.group == "breaks"]

    def facts(self) -> dict[str, list[str]]:
        """Return a dict: group of breaks -> the first texts."""
        groups: dict[str, list[str]] = defaultdict(list)
        for found in self:
            groups[found.group].append(found.text)
        return {
            group: texts[:_MOST_SHOWN]
            + ([f"{more} more"] if (more := len(texts) - _MOST_SHOWN) > 0 else [])
            for group, texts in sorted(groups.items())
        }

    @property
    def reason(self) -> str:
        """Why rows are certainly missing, repeated or misplaced; empty if they are not."""
        if not (texts := [found.text for found in self if found.group == "breaks"]):
            return ""
        places = count_text(len(texts) - 1, "more place is", "more places are")
        others = f"; {places} in tk.provenance" if len(texts) > 1 else ""
        return (
            f"the rows contradict each other: {texts[0]}{others}. Fetch them again. If the warning "
            "stays, the service itself has these rows"
        )


class _Rows:
    """Rows whose columns are read as they are needed, with their times.

    `at` has their places in the columns.
    """

    def __init__(self, columns: Columns, time: str = "", at: Ints | None = None) -> None:
        self.columns, self._time, self._is_whole = columns, time, at is None
        self.at = np.arange(len(next(iter(columns.values())))) if at is None else at
        self._codes: dict[str, tuple[Ints, Any]] = {}
        self.time = self.whole(time)  # Unix milliseconds; 0 if the rows are no history

    def take(self, rows: Ints) -> "_Rows":
        """Return some of the rows."""
        return _Rows(self.columns, self._time, self.at[rows])

    def values(self, name: str) -> Any:
        """Return a column of Arrow, with times as whole milliseconds; nulls if it is not there."""
        values = self.columns.get(name)
        if values is None:
            return pa.nulls(len(self.at), pa.int8())
        values = _read_column(values)
        return values if self._is_whole else values.take(self.at)

    def floats(self, name: str) -> Floats:
        """Return numbers; a missing value, and a text that is no number, is NaN."""
        values = self.values(name)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = pc.if_else(pc.match_substring_regex(values, _NUMBER), values, None)
        return np.asarray(values.cast(pa.float64(), safe=False))

    def whole(self, name: str) -> Ints:
        """Return whole numbers; a missing value is 0."""
        return np.asarray(self.values(name).fill_null(0).cast(pa.int64(), safe=False))

    def codes(self, name: str) -> tuple[Ints, Any]:
        """Return a small number for each text, and their array; a missing text is empty."""
        if name not in self._codes:
            values = self.values(name)
            if isinstance(values, pa.ChunkedArray):
                values = values.combine_chunks()
            encoded = values.dictionary_encode("encode")
            names = ["" if text is None else str(text) for text in encoded.dictionary.to_pylist()]
            self._codes[name] = np.asarray(encoded.indices).astype(np.int64), np.array(names, "O")
        return self._codes[name]

    def find_repeats(self, identity: Sequence[str], compared: Sequence[str] | None) -> list[int]:
        """Return the rows that repeat an earlier row in `compared`; None stands for all columns."""
        mixed = np.zeros(len(self.at), dtype=np.int64)
        for name in (name for name in identity if name in self.columns):
            kind = self.values(name).type
            if pa.types.is_integer(kind):
                codes = self.whole(name)
            elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
                codes = self.floats(name).view(np.int64)
            else:
                codes = self.codes(name)[0]
            mixed = mixed * _MIX + codes
        ascending = np.sort(mixed)
        several = ascending[1:][ascending[1:] == ascending[:-1]]
        if not identity or not len(several):
            return []
        candidates = np.flatnonzero(np.isin(mixed, several))
        names = self.columns if compared is None else [n for n in compared if n in self.columns]
        rows = pa.table({name: self.values(name) for name in names}).take(candidates)
        parts = (part.to_pylist() for part in rows.to_batches(max_chunksize=1_000))
        contents = map(repr, itertools.chain.from_iterable(parts))
        first: dict[str, int] = {}
        pairs = zip(contents, candidates.tolist(), strict=True)
        return [row for content, row in pairs if first.setdefault(content, row) != row]

    def make_break(
        self,
        kind: BreakKind,
        row: int,
        fault: str,
        group: BreakGroup = "breaks",
        since: int | None = None,
    ) -> RowBreak:
        """Return the break of a row, with its place."""
        at, time = int(self.at[row]), int(self.time[row])
        coin, user, *ids = (
            _read_column(self.columns[name][at : at + 1])[0].as_py()
            if name in self.columns
            else None
            for name in ("coin", "user", "tid", "oid")
        )
        identity = next((f" (id {int(number)})" for number in ids if number), "")
        of = " of ".join(filter(None, (coin, user)))
        moment = f" at {time_text(time)}" if time else ""
        text = f"{of or 'the row'}{moment}{identity} {fault}"
        return RowBreak(kind, group, at, time, time if since is None else since, text)


def _read_column(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column of Arrow, with times as whole milliseconds."""
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    return values


class HistoryChecks:
    """The checks of one history, all at once or part by part.

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
        self._last: dict[tuple[str, str], Floats] = {}  # account and coin -> its last measures

    def add_page(self, columns: Columns) -> list[RowBreak]:
        """Return what does not fit in the rows that follow; all rows of a time come together."""
        if not self._operation.key or not columns:
            return []
        rows = _Rows(columns, self._operation.key[0])
        breaks: list[RowBreak] = []
        if self._operation.latest:
            fault = "follows an earlier row, but the newest row must come first"
            wrong = np.flatnonzero(np.diff(rows.time) > 0)[:1] + 1
            breaks += (rows.make_break("order", row, fault) for row in wrong.tolist())
            rows = rows.take(np.argsort(rows.time, kind="stable"))  # ties keep their order
        repeats = rows.find_repeats(self._identity, self._compared)
        trades = rows.whole("tid")
        for row in repeats:
            is_certain = self._is_unique or bool(trades[row])
            doubt = "" if is_certain else "; both rows may be real, because they have no identity"
            group: BreakGroup = "breaks" if is_certain else "gaps"
            breaks.append(rows.make_break("repeat", row, f"came twice{doubt}", group))
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

    def _follow(
        self, rows: _Rows, *measures: Floats
    ) -> tuple[Ints, dict[tuple[str, str], slice], Floats]:
        """Put the rows of each account and coin together, in the order in which they came.

        Return the positions of the rows in this order, the places of each account and coin in it,
        and the measures of the row before each, also of an earlier part; NaN if there is none.
        """
        (coins, coin_names), (users, user_names) = map(rows.codes, ("coin", "user"))
        series = users * len(coin_names) + coins
        # numpy sorts short numbers several times as fast
        short = series.astype(np.uint16) if series.max() < 2**16 else series
        order = np.argsort(short, kind="stable")
        bounds = [*np.flatnonzero(np.diff(series[order], prepend=-1)).tolist(), len(order)]
        places = {
            (user_names[users[order[first]]], coin_names[coins[order[first]]]): slice(first, end)
            for first, end in itertools.pairwise(bounds)
        }
        values = np.stack(measures)[:, order]
        before = np.roll(values, 1, axis=1)
        unknown = np.full(len(measures), np.nan)
        before[:, bounds[:-1]] = np.transpose([self._last.get(pair, unknown) for pair in places])
        last = {pair: values[:, place.stop - 1].copy() for pair, place in places.items()}
        self._last = self._last | last  # a copy of these checks keeps what it has
        return order, places, before

    def _chain_breaks(self, rows: _Rows) -> list[RowBreak]:
        if not {"start_position", "sz"} <= rows.columns.keys():
            return []
        coins, coin_names = rows.codes("coin")
        is_token = np.array([re.search(NOT_PERP, coin) is not None for coin in coin_names])[coins]
        sides, side_names = rows.codes("side")
        is_buy = (side_names == "B")[sides]
        size, start = rows.floats("sz"), rows.floats("start_position")
        change = np.where(is_buy, size, -size)
        if is_token.any():  # a buy pays its fee in the token; without a fee token it is unknown
            tokens, names = rows.codes("fee_token")
            fees = np.where(np.isin(names, _DOLLAR_FEES)[tokens], 0.0, rows.floats("fee"))
            fees[(names == "")[tokens]] = np.nan
            change -= np.where(is_token & is_buy, fees, 0.0)
        times = rows.time.astype(np.float64)
        order, places, (before, time_before) = self._follow(rows, start + change, times)
        distance = np.abs(start[order] - before)
        if not np.any(distance > _PERP_UNIT / 2):  # NaN, an unknown position, is none
            return []
        noise = _NOISE * np.maximum(np.abs(start), np.abs(change))[order]
        differs = distance > _PERP_UNIT / 2 + noise
        trades, orders, users = rows.whole("tid"), rows.whole("oid"), rows.codes("user")[0]
        breaks: dict[int, RowBreak] = {}
        for pair, place in places.items():
            if not differs[place].any():
                continue
            chain = order[place]
            time = rows.time[chain]
            if is_token[chain[0]]:
                found = _token_breaks(start[chain], before[place], differs[place])
            else:
                fills = (time, start[chain], change[chain], trades[chain])
                found, self._last[pair][0] = _follow_ties(*fills, before[place], differs[place])
            is_certain = self._is_one_account and not is_token[chain[0]]
            for at, expected in found:
                row, row_before = int(chain[at]), chain[at - 1 : at]
                group: BreakGroup = "breaks" if is_certain else "gaps"
                cause = "fills are missing in between"
                same = (rows.time[row_before] == time[at]) & (orders[row_before] == orders[row])
                if orders[row] and same.any():
                    pass  # no token is transferred and no approval revoked while an order is filled
                elif is_token[row]:
                    cause, group = "fills are missing, or tokens were transferred", "unproved"
                elif not is_certain:
                    cause = "fills are missing, or the approval was revoked in between"
                    # Without an approval, the builder has no fills of any coin of the account.
                    between = slice(row_before[0] if at else None, row + 1)
                    of_user = rows.time[between][users[between] == users[row]]
                    if not at or np.diff(of_user).max(initial=0) >= HOUR:
                        group = "unproved"
                since = time_before[place][np.searchsorted(time, time[at])]
                fault = (
                    f"starts from {start[row]:.10g}, but the fill before it left {expected:.10g}: "
                    f"{cause}"
                )
                since = None if np.isnan(since) else int(since)
                breaks[row] = rows.make_break("chain", row, fault, group, since)
        return [breaks[row] for row in sorted(breaks)]

    def _hour_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        """Yield hours with two payments, and hours without one while the position is the same.

        A row that sums up n payments covers n hours (docs/live_service.md, section 5).
        """
        hour, size = (rows.time // HOUR).astype(np.float64), rows.floats("szi")
        order, _, (hour_before, size_before) = self._follow(rows, hour, size)
        samples = np.maximum(rows.whole("n_samples"), 1)
        is_second = hour[order] == hour_before
        lacking = (hour - samples)[order] - hour_before
        is_gap = (lacking > 0) & (size[order] == size_before)
        for at in np.flatnonzero(is_second | is_gap).tolist():
            row = int(order[at])
            if is_second[at]:
                yield rows.make_break("hours", row, "is the second payment of its hour")
                continue
            fault = (
                f"follows {count_text(int(lacking[at]), 'hour')} without a payment, although the "
                "position is the same: payments are missing, or the approval was revoked in between"
            )
            # An approval is revoked, or a position is closed and opened again, for some hours.
            yield rows.make_break("hours", row, fault, "unproved" if lacking[at] > 1 else "gaps")

    def _grid_breaks(self, rows: _Rows) -> Iterator[RowBreak]:
        grid = self._operation.grid
        if grid is None or np.any((rows.time - grid.offset) % grid.step):
            return  # the service has other sample times, so that a distance is no proof
        order, _, (before,) = self._follow(rows, rows.time.astype(np.float64))
        lacking = np.abs(rows.time[order] - before) // grid.step - 1
        for at in np.flatnonzero(lacking > 0).tolist():
            fault = (
                f"is {int(lacking[at]) + 1} steps of the grid from the row before it: rows are "
                "missing, or the service has none of these times"
            )
            yield rows.make_break("grid", int(order[at]), fault, "gaps")


def _token_breaks(starts: Floats, expected: Floats, differs: Flags) -> list[tuple[int, float]]:
    """Return the breaks of a spot or outcome coin; less than a unit of the balances is rounding."""
    scaled = (starts * 10.0**decimals for decimals in range(_FINEST_DECIMALS))
    is_whole = (bool(np.all(np.abs(values - np.rint(values)) < _ROUNDING)) for values in scaled)
    decimals = next((at for at, whole in enumerate(is_whole) if whole), _FINEST_DECIMALS)
    far = differs & (np.abs(starts - expected) > (1 + _ROUNDING) * 10.0**-decimals)
    return list(zip(np.flatnonzero(far).tolist(), expected[far].tolist(), strict=True))


def _follow_ties(
    time: Ints, start: Floats, change: Floats, trade: Ints, before: Floats, differs: Flags
) -> tuple[list[tuple[int, float]], float]:
    """Return the breaks of one perp, tie by tie, and the position after it.

    A break is the place of a fill and the position that was expected. `before` is the end of the
    fill before each, and `differs` states which fills do not start from it.
    """
    end = start + change
    unit = _PERP_UNIT if np.nanmax(np.abs(start)) < _PERP_UNIT / _NOISE else 1.0
    breaks: list[tuple[int, float]] = []
    bounds = [0, *(np.flatnonzero(np.diff(time)) + 1).tolist(), len(time)]
    is_odd = np.logical_or.reduceat(differs | np.isnan(end), bounds[:-1]).tolist()
    position, follows = None, True  # whether the tie before ends where its last fill does
    for odd, (first, last) in zip(is_odd, itertools.pairwise(bounds), strict=True):
        if not odd and (follows or round(float(start[first]) / unit) == position):
            follows = True
            continue
        if follows:
            position = None if np.isnan(before[first]) else round(float(before[first]) / unit)
        edges: dict[tuple[float, ...], list[_Edge]] = defaultdict(list)
        for at in range(first, last):
            if np.isnan(end[at]):
                continue
            number, begin, difference = (float(part[at]) for part in (trade, start, change))
            # The two fills of a trade of an account with itself cancel each other.
            if others := edges[number, begin, -difference]:
                others.pop()
            else:
                edge = at, round(begin / unit), round(float(end[at]) / unit)
                edges[number, begin, difference].append(edge)
        found, position = _match_edges(sorted(itertools.chain(*edges.values())), position)
        breaks += ((at, expected * unit) for at, expected in found)
        follows = False
    if follows:
        return breaks, float(end[-1])
    return breaks, np.nan if position is None else position * unit


_Edge = tuple[int, int, int]
"""The place of a fill, and the position before and after it in units."""


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
    operation: Operation, parameters: Mapping[str, Any], tables: Sequence[Columns]
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
    kinds = [table.record for table in operation.tables]
    by_record = dict(zip(kinds, map(_Rows, tables), strict=True))
    for record, rows in by_record.items():
        identity, _ = _IDENTITIES.get(record, ((), ""))
        if record not in _MAY_REPEAT:
            for row in rows.find_repeats(identity, identity):
                yield rows.make_break("repeat", row, "came twice")
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    accounts, positions = by_record.get(records.AccountRow), by_record.get(records.PositionRow)
    if accounts and positions:
        for *key, value in _by_account(positions, "position_value"):
            sums[tuple(key)] += abs(value)
        for row, (*key, total) in enumerate(_by_account(accounts, "total_ntl_pos")):
            found = sums[tuple(key)]
            if abs(total - found) > _TOTAL_ROUNDING + _TOTAL_NOISE * total:
                fault = (
                    f"states positions worth {total:.10g}, but its positions are worth "
                    f"{found:.10g}: positions are missing or repeated, or a value is wrong"
                )
                yield accounts.make_break("total", row, fault, "gaps")
    if operation.user_points:
        named = (rows.codes("user")[1] for rows in by_record.values())
        answered = {str(name).lower() for names in named for name in names}
        for subject in parameters.get("users") or ():
            if subject.lower() not in answered:
                fault = "was requested, but the answer has neither its rows nor a reason"
                yield RowBreak("subject", "breaks", 0, 0, 0, f"{subject} {fault}")


def _by_account(rows: _Rows, name: str) -> Iterator[tuple[Any, ...]]:
    """Yield the account, the dex and a number of each row."""
    texts = (names[codes].tolist() for codes, names in map(rows.codes, ("user", "dex")))
    return zip(*texts, rows.floats(name).tolist(), strict=True)
