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
    records.Fill: (("time", "tid", "coin", "user"), "fill"),
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
    """Columns that are read as they are needed, and the times of their rows."""

    def __init__(self, columns: Columns, time: str = "") -> None:
        self.columns, self.count = columns, len(next(iter(columns.values())))
        self._values: dict[str, Any] = {}
        self._codes: dict[str, tuple[Ints, Any]] = {}
        self.time = self.whole(time)  # Unix milliseconds; 0 if the rows are no history

    def values(self, name: str) -> Any:
        """Return a column of Arrow, with times as whole milliseconds; nulls if it is not there."""
        if name not in self._values:
            values = self.columns.get(name, pa.nulls(self.count, pa.int8()))
            if not isinstance(values, pa.Array | pa.ChunkedArray):
                values = pa.array(values)
            if pa.types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            self._values[name] = values
        return self._values[name]

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

    def find_repeats(
        self, identity: Sequence[str], compared: Sequence[str] | None, at: Any = slice(None)
    ) -> list[int]:
        """Return the rows that repeat an earlier row in `compared`; None stands for all columns.

        `at` has the rows in their order.
        """
        mixed = np.zeros(self.count, dtype=np.int64)
        for name in (name for name in identity if name in self.columns):
            is_whole = pa.types.is_integer(self.values(name).type)
            mixed = mixed * _MIX + (self.whole(name) if is_whole else self.codes(name)[0])
        ascending = np.sort(mixed)
        several = ascending[1:][ascending[1:] == ascending[:-1]]
        if not identity or not len(several):
            return []
        order = np.arange(self.count)[at]
        candidates = order[np.isin(mixed[order], several)]
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
        time = int(self.time[row])
        coin, user, *ids = (
            self.values(name)[row].as_py() for name in ("coin", "user", "tid", "oid")
        )
        identity = next((f" (id {int(number)})" for number in ids if number), "")
        of = " of ".join(filter(None, (coin, user)))
        moment = f" at {time_text(time)}" if time else ""
        text = f"{of or 'the row'}{moment}{identity} {fault}"
        return RowBreak(kind, group, row, time, time if since is None else since, text)


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
        self._operation, self._identity = operation, identity
        self._is_one_account = _has_position_chains(operation, parameters)
        self._last: dict[tuple[str, str], Floats] = {}  # account and coin -> its last measures

    def add_page(self, columns: Columns) -> list[RowBreak]:
        """Return what does not fit in the rows that follow; all rows of a time come together."""
        operation, record = self._operation, self._operation.tables[0].record
        if not operation.key or not columns:
            return []
        rows = _Rows(columns, operation.key[0])
        at = np.arange(rows.count)
        breaks: list[RowBreak] = []
        if operation.latest:
            fault = "follows an earlier row, but the newest row must come first"
            wrong = np.flatnonzero(np.diff(rows.time) > 0)[:1] + 1
            breaks += (rows.make_break("order", row, fault) for row in wrong.tolist())
            at = np.argsort(rows.time, kind="stable")  # ties keep their order
        is_unique = record not in _MAY_REPEAT
        identity = self._identity or _IDENTITIES.get(record, ((), ""))[0]
        repeats = rows.find_repeats(identity, identity if is_unique or self._identity else None, at)
        trades = rows.whole("tid") if repeats else at
        for row in repeats:
            is_certain = is_unique or bool(trades[row])
            doubt = "" if is_certain else "; both rows may be real, because they have no identity"
            group: BreakGroup = "breaks" if is_certain else "gaps"
            breaks.append(rows.make_break("repeat", row, f"came twice{doubt}", group))
        if repeats:
            at = at[np.isin(at, repeats, invert=True)]
        is_fill = record is records.Fill
        if is_fill and operation.latest:  # the limit of the answer may cut the oldest tie
            at = at[rows.time[at] > rows.time[at[:1]]]
        if not len(at):
            return breaks
        is_whole = "user" not in operation.subject and not operation.skips_fills
        if is_fill and (is_whole or self._is_one_account):
            breaks += self._chain_breaks(rows, at)
        elif record is records.FundingRow:
            breaks += self._hour_breaks(rows, at)
        elif operation.grid is not None:
            breaks += self._grid_breaks(rows, at)
        return breaks

    def _follow(
        self, rows: _Rows, at: Ints, *measures: Floats
    ) -> tuple[Ints, dict[tuple[str, str], slice], Floats]:
        """Put the rows of each account and coin together, in the order in which they came.

        Return the rows in this order, the places of each account and coin in it, and the measures
        of the row before each, also of an earlier part; NaN if there is none.
        """
        (coins, coin_names), (users, user_names) = map(rows.codes, ("coin", "user"))
        series = (users * len(coin_names) + coins)[at]
        # numpy sorts short numbers several times as fast
        short = series.astype(np.uint16) if series.max() < 2**16 else series
        places = np.argsort(short, kind="stable")
        bounds = [*np.flatnonzero(np.diff(series[places], prepend=-1)).tolist(), len(at)]
        order = at[places]
        chains = {
            (user_names[users[order[first]]], coin_names[coins[order[first]]]): slice(first, end)
            for first, end in itertools.pairwise(bounds)
        }
        values = np.stack(measures)[:, order]
        before = np.roll(values, 1, axis=1)
        unknown = np.full(len(measures), np.nan)
        before[:, bounds[:-1]] = np.transpose([self._last.get(pair, unknown) for pair in chains])
        last = {pair: values[:, place.stop - 1].copy() for pair, place in chains.items()}
        self._last = self._last | last  # a copy of these checks keeps what it has
        return order, chains, before

    def _chain_breaks(self, rows: _Rows, at: Ints) -> list[RowBreak]:
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
        order, chains, (before, time_before) = self._follow(rows, at, start + change, times)
        distance = np.abs(start[order] - before)
        if not np.any(distance > _PERP_UNIT / 2):  # NaN, an unknown position, is none
            return []
        noise = _NOISE * np.maximum(np.abs(start), np.abs(change))[order]
        differs = distance > _PERP_UNIT / 2 + noise
        trades, orders, users = rows.whole("tid"), rows.whole("oid"), rows.codes("user")[0]
        breaks: dict[int, RowBreak] = {}
        for pair, place in chains.items():
            if not differs[place].any():
                continue
            chain = order[place]
            time, is_perp = rows.time[chain], not is_token[chain[0]]
            if is_perp:
                fills = (time, start[chain], change[chain], trades[chain])
                found, self._last[pair][0] = _follow_ties(*fills, before[place], differs[place])
            else:
                found = _token_breaks(start[chain], before[place], differs[place])
            for step, expected in found:
                row, earlier = int(chain[step]), chain[step - 1 : step]
                is_certain = self._is_one_account and is_perp
                group: BreakGroup = "breaks" if is_certain else "gaps"
                cause = "fills are missing in between"
                same = (rows.time[earlier] == time[step]) & (orders[earlier] == orders[row])
                if orders[row] and same.any():
                    pass  # no token is transferred and no approval revoked while an order is filled
                elif not is_perp:
                    cause, group = "fills are missing, or tokens were transferred", "unproved"
                elif not is_certain:
                    cause = "fills are missing, or the approval was revoked in between"
                    # Without an approval, the builder has no fills of any coin of the account.
                    between = slice(earlier[0] if step else None, row + 1)
                    of_user = rows.time[between][users[between] == users[row]]
                    if not step or np.diff(of_user).max(initial=0) >= HOUR:
                        group = "unproved"
                since = time_before[place][np.searchsorted(time, time[step])]
                fault = (
                    f"starts from {start[row]:.10g}, but the fill before it left {expected:.10g}: "
                    f"{cause}"
                )
                since = None if np.isnan(since) else int(since)
                breaks[row] = rows.make_break("chain", row, fault, group, since)
        return [breaks[row] for row in at.tolist() if row in breaks]

    def _hour_breaks(self, rows: _Rows, at: Ints) -> Iterator[RowBreak]:
        """Yield hours with two payments, and hours without one while the position is the same.

        A row that sums up n payments covers n hours (docs/live_service.md, section 5).
        """
        hour, size = (rows.time // HOUR).astype(np.float64), rows.floats("szi")
        order, _, (hour_before, size_before) = self._follow(rows, at, hour, size)
        samples = np.maximum(rows.whole("n_samples"), 1)
        is_second = hour[order] == hour_before
        lacking = (hour - samples)[order] - hour_before
        is_gap = (lacking > 0) & (size[order] == size_before)
        for place in np.flatnonzero(is_second | is_gap).tolist():
            row, hours = int(order[place]), int(lacking[place])
            if is_second[place]:
                yield rows.make_break("hours", row, "is the second payment of its hour")
                continue
            fault = (
                f"follows {count_text(hours, 'hour')} without a payment, although the "
                "position is the same: payments are missing, or the approval was revoked in between"
            )
            # An approval is revoked, or a position is closed and opened again, for some hours.
            yield rows.make_break("hours", row, fault, "unproved" if hours > 1 else "gaps")

    def _grid_breaks(self, rows: _Rows, at: Ints) -> Iterator[RowBreak]:
        grid = self._operation.grid
        if grid is None or np.any((rows.time - grid.offset) % grid.step):
            return  # the service has other sample times, so that a distance is no proof
        order, _, (before,) = self._follow(rows, at, rows.time.astype(np.float64))
        steps = np.abs(rows.time[order] - before) // grid.step
        for place in np.flatnonzero(steps > 1).tolist():
            fault = (
                f"is {int(steps[place])} steps of the grid from the row before it: rows are "
                "missing, or the service has none of these times"
            )
            yield rows.make_break("grid", int(order[place]), fault, "gaps")


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

    A break is the place of a fill and the position that was expected: the fill starts where no
    other fill of its tie ends, and not at the end of the tie before. `before` is the end of the
    fill before each, and `differs` states which fills do not start from it.
    """
    unit = _PERP_UNIT if np.nanmax(np.abs(start)) < _PERP_UNIT / _NOISE else 1.0
    units = np.rint(np.stack([start, start + change, before]) / unit) + 0.0  # no -0
    breaks: list[tuple[int, float]] = []
    bounds = [0, *(np.flatnonzero(np.diff(time)) + 1).tolist(), len(time)]
    is_odd = np.logical_or.reduceat(differs | np.isnan(units[1]), bounds[:-1]).tolist()
    position: float | None = None  # after the tie before; None if it ends where its last fill does
    for odd, (first, last) in zip(is_odd, itertools.pairwise(bounds), strict=True):
        if not odd and (position is None or units[0, first] == position):
            position = None
            continue
        begins, ends, (known, *_) = units[:, first:last].tolist()
        position = known if position is None else position
        edges: dict[tuple[float, ...], list[int]] = defaultdict(list)
        for at, end in enumerate(ends):
            number, begin, difference = (part[first + at] for part in (trade, start, change))
            # The two fills of a trade of an account with itself cancel each other.
            if others := edges[number, begin, -difference]:
                others.pop()
            elif end == end:
                edges[number, begin, difference].append(at)
        if not (fills := sorted(itertools.chain(*edges.values()))):
            continue
        surplus = Counter(begins[at] for at in fills)
        surplus.subtract(ends[at] for at in fills)
        waiting, left = list(surplus.elements()), list((-surplus).elements())
        if position != position:  # not known
            position = waiting[0] if waiting else begins[fills[0]]
        if position in waiting:
            waiting.remove(position)
        elif not waiting and all(begins[at] != position for at in fills):
            # The fills return to their first position, but the tie before did not end there.
            waiting, left = [begins[fills[0]]], [begins[fills[0]]]
        expected = position
        for at in fills:
            if begins[at] in waiting:
                waiting.remove(begins[at])
                breaks.append((first + at, expected * unit))
            expected = ends[at]
        position = position if not left else left[0] if len(left) == 1 else np.nan
    return breaks, float(start[-1] + change[-1]) if position is None else position * unit


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
