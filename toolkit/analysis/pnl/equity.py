"""Equity over time, from an empty account on."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fixed_point, frame_access, memory_frames
from toolkit.analysis.common.account_batches import run_by_account
from toolkit.analysis.common.account_values import (
    Amount,
    column_list,
    row_times,
    row_users,
    zero_amount,
)
from toolkit.analysis.common.frame_access import NumberKind
from toolkit.analysis.common.grouping import CALENDAR
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.pnl.attribution import compute_attribution
from toolkit.analysis.pnl.positions import positions
from toolkit.contract.dexes import NOT_PERP, coin_dex
from toolkit.errors import MissingColumns
from toolkit.prepare import Fills
from toolkit.prepare.average import SizeDecimals, size_decimals
from toolkit.prepare.door import Table, with_floats
from toolkit.prepare.funding import CoveredPeriod, covered_period, rows_inside
from toolkit.prepare.money import (
    Prices,
    collateral_in_fills,
    collateral_of_dexes,
    parse_prices,
    warn_missing_tokens,
)
from toolkit.prepare.owners import Owners, account_names, refuse_several_accounts
from toolkit.prepare.single_account import check_one_account
from toolkit.prepare.steps import POSITION_COLUMNS
from toolkit.prepare.words import CURVE_GAPS, curve_coverage

MONEY = ("realised", "unrealised", "pnl", "flows", "equity", "long", "short")


class _StepChange(NamedTuple):
    """The change of an account in one step; None for an amount that is not known."""

    net: Amount | None = None
    flow: Amount | None = None
    gaps: tuple[int, ...] = (0,) * len(CURVE_GAPS)
    """Number of rows without a known amount, as in `CURVE_GAPS`."""


class _CurvePoint(NamedTuple):
    """The end of a step."""

    ms: int
    realised: Amount
    flows: Amount
    gaps: tuple[int, ...]
    values: Sequence[Amount | None] = (None, None, None)
    """Unrealised PnL, long and short notional."""


def equity(
    fills: IntoFrameT,
    funding: IntoFrame | None = None,
    ledger: IntoFrame | None = None,
    by: str = "hour",
    *,
    marks: IntoFrame | None = None,
    sz_decimals: SizeDecimals | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: IntoFrame | None = None,
) -> IntoFrameT:
    """Return the perp account's equity over time: realised and unrealised PnL, and flows.

    Parameters
    ----------
    fills, funding, ledger, account
        See `tk.pnl.attribution`. Spot and outcome fills have their own column, because they are
        paid from the spot balance. Fills with a column ``user`` have one curve per account.
    by : {"hour", "day", "week"}
        The distance between points (UTC, weeks from Monday).
    marks : DataFrame, optional
        Mark prices over time: ``time, name, mark_px``, as collected from `tk.meta_and_asset_ctxs`,
        or the oracle prices of `tk.funding.implied_oracle`. Each point uses the last price of each
        coin, if this price is not older than one step.
    sz_decimals : mapping or DataFrame, optional
        See `tk.pnl.positions`; required with `marks`.
    prices, meta : optional
        Prices of tokens other than USDC, see `tk.pnl.attribution`. Without a price they count at
        par.

    Returns
    -------
    DataFrame
        In the engine of `fills`: one row per step between the first and the last event, sorted by
        user and time. Amounts are in USD at the end of the step, positive for a gain:

        - ``user``: the account, if the fills have this column
        - ``time``: the end of the step, UTC
        - ``realised``: closed PnL, fees and funding so far, in USD; without funding if `covers`
          says so
        - ``unrealised``: unrealised PnL of the open positions, in USD; missing if a mark price is
          missing
        - ``pnl``: ``realised + unrealised``, in USD; missing if one of the two is missing
        - ``flows``: ledger flows so far, in USD; missing without a ledger
        - ``equity``: ``flows + pnl``, in USD, since the account was empty
        - ``long``: notional of the long perp positions at the mark prices, in USD, at least 0;
          missing if a mark price is missing
        - ``short``: notional of the short perp positions at the mark prices, in USD, at least 0;
          missing if a mark price is missing
        - ``spot_realised``: closed PnL less fees of spot and outcome fills so far, in USD; not a
          part of ``pnl`` and ``equity``, which describe the perp account
        - ``unpriced_fees`` int64: fees so far in tokens without a known price; ``realised``,
          ``pnl`` and ``equity`` do not contain them
        - ``unknown_flows`` int64: ledger rows so far whose amount is not known; ``flows`` and
          ``equity`` do not contain them
        - ``missing_amounts`` int64: funding rows so far without an amount; ``realised``, ``pnl``
          and ``equity`` do not contain them
        - ``covers`` text: the sources that are covered, see `tk.pnl.attribution`. It also states
          the number of fees in other tokens, and of flows and funding rows of unknown amount, which
          the entire curve leaves out

    Raises
    ------
    MissingColumns
        If a column is missing or contains text instead of numbers.
    ValueError
        If `by` is not a step, if `marks` come without `sz_decimals`, or if the fills are of several
        accounts and no column names the account.

    Notes
    -----
    Funding outside the time range of the fills does not count; ``covers`` states how many rows. The
    last point equals `tk.pnl.attribution` of the entire time. Repeated rows count once. A lazy
    frame is read a few accounts at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0, 90.0], "sz": 1.0, "side": ["B", "A", "A"],
    ...     "time": pd.to_datetime([0, 3_600_000, 10_800_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 10.0, -2.0], "fee": 0.5})
    >>> equity(fills)["realised"].tolist()
    [-0.5, 9.0, 9.0, 6.5]
    """
    fills = with_floats(fills, "fills")
    funding = None if funding is None else with_floats(funding, "funding")
    ledger = None if ledger is None else with_floats(ledger, "ledger")
    time = None if funding is None else covered_period(Table(fills, "fills"))
    fills = drop_repeated_rows(fills, "fills")
    refuse_several_accounts(fills, "fills")
    funding = drop_repeated_rows(funding, "funding")
    ledger = drop_repeated_rows(ledger, "ledger")
    if by not in CALENDAR:
        raise ValueError(f"unknown by={by!r}; choose one of {', '.join(CALENDAR)}")
    if marks is not None and sz_decimals is None:
        raise ValueError("marks require the size decimals of the coins. Pass sz_decimals=")
    run = partial(
        _trace_equity,
        by=by,
        marks=None if marks is None else with_floats(marks, "marks"),
        sz_decimals=None if sz_decimals is None else size_decimals(sz_decimals),
        money={
            "account": account,
            "prices": prices,
            "meta": _collateral(fills, prices, meta),
        },
        time=time,
    )
    divided = run_by_account(run, {"fills": fills, "funding": funding, "ledger": ledger})
    made: IntoFrameT = run(fills, funding, ledger) if divided is None else divided
    return made


def _collateral(fills: Any, prices: Prices | None, meta: Any) -> dict[str, str]:
    """Return the collateral of dexes by `meta`, and with `prices` also by the fee tokens of fills.

    `fills` are those of all accounts.
    """
    dexes = collateral_of_dexes(meta)
    if not parse_prices(prices):
        return dexes
    return {**collateral_in_fills(Table(fills, "fills")), **dexes}


def _trace_equity(
    fills: IntoFrameT,
    funding: Any = None,
    ledger: Any = None,
    *,
    by: str,
    marks: pd.DataFrame | None,
    sz_decimals: Mapping[str, int] | None,
    money: dict[str, Any],
    time: CoveredPeriod | None,
) -> IntoFrameT:
    """Return the equity of accounts without repeated rows; see `equity`.

    - ``money``: further arguments of `compute_attribution`
    - ``time``: the time of the fills of all accounts
    """
    frame = memory_frames.to_pandas(fills)
    frame_access.require_columns(frame_access.open_frame(frame, "fills"), ("coin", "time"), "fills")
    kind = frame_access.number_kind(frame_access.open_frame(frame, "fills"), ("px", "fee"), "fills")
    row_times(frame, "fills")  # raises if a time is missing: it has no place on a curve
    if "user" in frame.columns:
        frame = frame.assign(user=frame["user"].astype("str"))
    every = frame
    is_other = frame["coin"].astype("str").str.contains(NOT_PERP).fillna(False).astype(bool)
    frame, other = (frame[rows].reset_index(drop=True) for rows in (~is_other, is_other))
    # A curve cannot state for each point which amounts are missing, so it requires all of them.
    amounts = [name for name in ("px", "sz", "closed_pnl", "fee") if name in frame.columns]
    frame_access.require_values(frame_access.open_frame(frame, "fills"), amounts, "fills")
    frame_access.require_values(frame_access.open_frame(other, "fills"), amounts, "fills")
    _check_if_positions_known(fills, every, money["account"])
    if "side" in other.columns:
        warn_missing_tokens(Table(other, "fills"))
    names = account_names(fills, money["account"])
    own = money["account"] or (names[0] if len(names) == 1 else None)
    keys = ["user"] if "user" in frame.columns else []
    paid = None if funding is None else memory_frames.to_pandas(funding)
    moved = None if ledger is None else memory_frames.to_pandas(ledger)
    owners = Owners(Fills(every).owners.users, names)
    money = money | {"account": own, "owners": owners}
    whole = compute_attribution(frame, paid, moved, keys or None, time, **money)
    if paid is not None:
        paid = rows_inside(paid, Fills(frame), time)
    made = compute_attribution(frame, paid, moved, [*keys, by], **money)
    spot = _spot_net(other, keys, by, kind, money)
    rows = _account_curves(made, spot, by, kind)
    worth = _collateral_prices(money)
    rows = _add_unrealised(rows, frame, marks, sz_decimals, worth, CALENDAR[by][0], kind)
    covered = (curve_coverage(row) for _, row in whole.iterrows())
    covers = dict(zip(row_users(whole), covered, strict=True))
    inputs: dict[str, Any] = {"fills": fills, "funding": funding, "ledger": ledger, "marks": marks}
    table = _result_table(rows, spot, covers, bool(keys), kind, ledger is not None)
    result: IntoFrameT = memory_frames.result_from_table(table, inputs, helper="pnl.equity", by=by)
    return result


def _check_if_positions_known(fills: Any, frame: pd.DataFrame, account: str | None) -> None:
    """Raise or warn if the start positions of the fills show several accounts.

    Fills with a column ``user``, or without start positions, are not checked.
    """
    needed = [name for name in POSITION_COLUMNS if name in frame.columns]
    has_positions = len(needed) == len(POSITION_COLUMNS) and frame[needed].notna().all(axis=None)
    if "user" in frame.columns or not has_positions:
        return
    check_one_account(Fills(fills, account))


def _spot_net(
    fills: pd.DataFrame, keys: list[str], by: str, kind: NumberKind, money: Mapping[str, Any]
) -> dict[str, tuple[list[int], list[Amount]]]:
    """Return for each account the times and the cumulated net of its spot and outcome fills."""
    if fills.empty:
        return {}
    made = compute_attribution(fills, None, None, [*keys, by], **money)
    found: dict[str, tuple[list[int], list[Amount]]] = {}
    starts = row_times(made.rename(columns={by: "time"}))
    for user, ms, net in zip(row_users(made), starts, column_list(made, "net"), strict=True):
        times, sums = found.setdefault(user, ([], []))
        times.append((ms or 0) + CALENDAR[by][0])
        sums.append((sums[-1] if sums else zero_amount(kind)) + net)
    return found


def _account_curves(
    made: pd.DataFrame,
    spot: Mapping[str, tuple[list[int], list[Amount]]],
    by: str,
    kind: NumberKind,
) -> dict[str, list[_CurvePoint]]:
    """Return each account's points.

    A curve reaches to the last fill of perps, spot and outcome markets.
    """
    step = CALENDAR[by][0]
    changes: dict[str, dict[int, _StepChange]] = {
        user: {end - step: _StepChange() for end in ends} for user, (ends, _) in spot.items()
    }
    times = row_times(made.rename(columns={by: "time"}))
    gaps = zip(*(column_list(made, name) for name in CURVE_GAPS), strict=True)
    amounts = (column_list(made, name) for name in ("net", "ledger"))
    for user, ms, *change in zip(row_users(made), times, *amounts, gaps, strict=True):
        changes.setdefault(user, {})[ms or 0] = _StepChange(*change)
    return {user: _curve_points(each, step, kind) for user, each in sorted(changes.items())}


def _curve_points(
    changes: Mapping[int, _StepChange], step: int, kind: NumberKind
) -> list[_CurvePoint]:
    realised = flows = zero_amount(kind)
    gaps = _StepChange().gaps
    points = []
    for ms in range(min(changes), max(changes) + 1, step):
        change = changes.get(ms, _StepChange())
        realised = realised if change.net is None else realised + change.net
        flows = flows if change.flow is None else flows + change.flow
        gaps = tuple(map(sum, zip(gaps, change.gaps, strict=True)))
        points.append(_CurvePoint(ms + step, realised, flows, gaps))
    return points


def _collateral_prices(money: Mapping[str, Any]) -> dict[str, Amount]:
    """Return dex -> price of its collateral in USD; a dex without a price counts at par."""
    prices = parse_prices(money["prices"])
    pairs = [(dex, prices.get(token.upper())) for dex, token in money["meta"].items()]
    known = {dex: price for dex, price in pairs if price is not None}
    return known


def _add_unrealised(
    rows: dict[str, list[_CurvePoint]],
    fills: pd.DataFrame,
    marks: Any,
    sz_decimals: Any,
    worth: Mapping[str, Amount],
    step: int,
    kind: NumberKind,
) -> dict[str, list[_CurvePoint]]:
    """Return the points with unrealised PnL and notionals at the end of each step, in USD."""
    if marks is None:
        return rows
    # `positions` does not know the account, and need not check it again.
    held = _position_runs(positions(Fills(fills, account=""), sz_decimals))
    prices = _price_series(marks, kind)
    with localcontext(fixed_point.PRODUCTS):
        return {
            user: [
                point._replace(
                    values=_value_before(held.get(user, {}), prices, worth, point.ms, step, kind)
                )
                for point in points
            ]
            for user, points in rows.items()
        }


def _value_before(
    held: Mapping[str, tuple[list[int], list[Amount], list[Amount]]],
    prices: Mapping[str, tuple[list[int], list[Amount]]],
    worth: Mapping[str, Amount],
    end: int,
    step: int,
    kind: NumberKind,
) -> Sequence[Amount | None]:
    """Return unrealised PnL, long and short notional before a time; None if a price is missing."""
    gain = long = short = zero_amount(kind)
    for coin, (times, sizes, entries) in held.items():
        place = bisect_right(times, end - 1) - 1
        if place < 0 or not sizes[place]:
            continue
        stamps, marks = prices.get(coin, ([], []))
        latest = bisect_right(stamps, end) - 1
        if latest < 0 or stamps[latest] <= end - step or entries[place] is None:
            return None, None, None
        size, mark, price = sizes[place], marks[latest], worth.get(coin_dex(coin))
        gain += _in_usd(size * (mark - entries[place]), price)
        long += _in_usd(max(size, 0) * mark, price)
        short -= _in_usd(min(size, 0) * mark, price)
    return _round_amounts((gain, long, short))


def _in_usd(amount: Amount, price: Amount | None) -> Amount:
    """Return an amount of collateral in USD."""
    return amount if price is None else amount * price


def _round_amounts(amounts: Sequence[Amount]) -> list[Amount]:
    """Return the amounts with at most 18 decimals."""
    return [
        fixed_point.round_exact(amount) if isinstance(amount, Decimal) else amount
        for amount in amounts
    ]


def _position_runs(
    made: pd.DataFrame,
) -> dict[str, dict[str, tuple[list[int], list[Amount], list[Amount]]]]:
    runs: dict[str, dict[str, tuple[list[int], list[Amount], list[Amount]]]] = {}
    for user, coin, ms, size, entry in zip(
        row_users(made),
        made["coin"],
        row_times(made),
        column_list(made, "position"),
        column_list(made, "entry_px"),
        strict=True,
    ):
        run = runs.setdefault(user, {}).setdefault(coin, ([], [], []))
        for column, value in zip(run, (ms or 0, size, entry), strict=True):
            column.append(value)
    return runs


def _price_series(marks: Any, kind: NumberKind) -> dict[str, tuple[list[int], list[Amount]]]:
    frame = memory_frames.to_pandas(marks)
    if "oracle_px" in frame.columns:  # as `tk.funding.implied_oracle` returns them
        names = {"coin": "name", "hour": "time", "oracle_px": "mark_px"}
        frame = frame[list(names)].rename(columns=names)
        if kind == "exact":  # implied prices are floats; eight decimals are below any tick size
            exact = [Decimal(f"{px:.8f}") for px in frame["mark_px"]]
            values = pa.array(exact, type=memory_frames.arrow_type(kind))
            frame["mark_px"] = pd.Series(pd.arrays.ArrowExtensionArray(values), index=frame.index)
    opened = frame_access.open_frame(frame, "marks")
    frame_access.require_columns(opened, ("time", "name", "mark_px"), "marks")
    if frame_access.number_kind(opened, ["mark_px"], "marks") != kind and kind == "exact":
        raise MissingColumns(
            "marks: the numbers are float, but the fills are exact. Fetch both with the same "
            "numbers="
        )
    frame = frame[frame["mark_px"].notna()].sort_values(["name", "time"], kind="stable")
    found: dict[str, tuple[list[int], list[Amount]]] = {}
    for name, ms, px in zip(
        frame["name"], row_times(frame, "marks"), frame["mark_px"], strict=True
    ):
        times, prices = found.setdefault(name, ([], []))
        times.append(ms or 0)
        prices.append(px if kind == "exact" else float(px))
    return found


def _result_table(
    rows: Mapping[str, Sequence[_CurvePoint]],
    spot: Mapping[str, tuple[list[int], list[Amount]]],
    covers: Mapping[str, str],
    split: bool,
    kind: NumberKind,
    flowing: bool,
) -> pa.Table:
    points = [(user, point) for user, each in rows.items() for point in each]
    number = memory_frames.arrow_type(kind)
    money: dict[str, list[Amount]] = {name: [] for name in MONEY}
    for _, point in points:
        unrealised, long, short = point.values
        pnl = None if unrealised is None else point.realised + unrealised
        flowed = point.flows if flowing else None
        money["realised"].append(point.realised)
        money["unrealised"].append(unrealised)
        money["pnl"].append(pnl)
        money["flows"].append(flowed)
        money["equity"].append(None if pnl is None or flowed is None else flowed + pnl)
        money["long"].append(long)
        money["short"].append(short)
    spot_realised: list[Amount] = []
    for user, point in points:
        times, sums = spot.get(user, ([], []))
        place = bisect_right(times, point.ms)
        spot_realised.append(sums[place - 1] if place else zero_amount(kind))
    users = {"user": memory_frames.text_column([user for user, _ in points])} if split else {}
    return pa.table(
        {
            **users,
            "time": memory_frames.utc_times([point.ms for _, point in points]),
            **{name: pa.array(values, type=number) for name, values in money.items()},
            "spot_realised": pa.array(spot_realised, type=number),
            **{
                name: pa.array([point.gaps[place] for _, point in points], type=pa.int64())
                for place, name in enumerate(CURVE_GAPS)
            },
            "covers": memory_frames.text_column([covers.get(user, "") for user, _ in points]),
        }
    )
