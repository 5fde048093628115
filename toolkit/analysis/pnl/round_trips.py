"""Round trips: from flat to flat, with gain, fees and funding."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import narwhals as nw
import pyarrow as pa
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fill_kinds, fixed_point, frame_access, memory_frames, usd_values
from toolkit.analysis.common.account_batches import run_by_account
from toolkit.analysis.common.frame_access import NumberKind
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import (
    FillOwners,
    account_names,
    keep_own_rows,
    lower_address,
)
from toolkit.analysis.common.usd_values import CASH, PricesByToken
from toolkit.analysis.pnl import execution_sequence
from toolkit.analysis.pnl.fill_coverage import (
    CoveredPeriod,
    covered_period,
    mark_inside,
    rows_inside,
)
from toolkit.analysis.pnl.funding_hours import common_end
from toolkit.analysis.pnl.positions import read_position_fills, sort_by_chain, take_rows
from toolkit.analysis.pnl.trip_assembly import (
    Conversions,
    FundingPayments,
    TokenPrices,
    Trip,
    TripCash,
    assign_funding,
    cut_trips,
    find_unpaid,
    mark_liquidations,
)
from toolkit.contract.dexes import is_perp_coin
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, MissingColumns, warn_caller
from toolkit.rules.directions import CONVERSIONS
from toolkit.rules.spot_cost import SWAPS
from toolkit.times import HOUR


def round_trips(
    fills: IntoFrameT,
    funding: IntoFrame | None = None,
    *,
    account: str | None = None,
    prices: PricesByToken | None = None,
    meta: IntoFrame | None = None,
) -> IntoFrameT:
    """Split fills into trips from flat to flat, each with its gain, fees and funding.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them
        (pandas, Polars, DuckDB, PySpark; numbers float or exact). Columns ``coin, px,
        sz, side, time, start_position, closed_pnl, fee``; ``user`` if there are several accounts;
        ``tx_index`` if there are ties; ``dir`` and ``liquidated_user`` for liquidations;
        ``fee_token`` for spot and for dexes with a collateral other than USDC.
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``), as
        `tk.builder_approved_funding_by_time` returns them. Rows of other accounts do not count.
    account : str, optional
        The account of the fills, if the frame does not state it.
    prices, meta : optional
        Prices of tokens other than USDC, see `tk.pnl.attribution`. Without a price they count at
        par. They convert amounts, and not the prices at which a trip opened and closed.

    Returns
    -------
    DataFrame
        In the engine of `fills`: one row per trip, by user and coin, in the order of time:

        - ``user``: the account, if the fills have this column
        - ``coin``: the coin
        - ``side`` text: ``"long"`` or ``"short"``
        - ``opened``: time of the first fill, UTC; missing if the trip began before the fills
        - ``closed``: time of the last fill, UTC; missing if the trip is open
        - ``duration_hours`` float64: hours from ``opened`` to ``closed``
        - ``status`` text: ``"closed"``; ``"liquidated"`` if a liquidation of the account closed it,
          by market order or by the backstop; ``"open"``; ``"late"`` if it was open before the first
          fill; ``"broken"`` if fills are missing, which `tk.pnl.audit` shows; ``"moved"`` if spot
          tokens came or left without a fill. Only closed and liquidated trips are complete
        - ``fills`` int64: number of fills, without conversions
        - ``size``: the largest position, in units of the coin, positive
        - ``entry_px`` float64: size-weighted average of the opening prices, in the collateral or
          quote token, also with `prices`; missing if one of them is not known
        - ``exit_px`` float64: size-weighted average of the closing prices, in the collateral or
          quote token, also with `prices`
        - ``gross``: closed PnL that the exchange states, in USD
        - ``fees``: fees in USD, negative
        - ``funding``: funding in USD, positive if received; missing if the account has no funding
          rows, or if the trip was open at a full hour and has none
        - ``net``: ``gross + fees + funding``, in USD; without funding if that is missing
        - ``return_`` float64: ``net`` as a share of the opened notional; missing if the trip began
          before the fills, or if fills, entry prices or proceeds are missing
        - ``forced`` bool: whether the exchange closed it, by liquidation or auto-deleveraging
        - ``at_par`` bool: whether its amounts are in a token other than USDC and count at par

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If funding is of several accounts and the account of the fills is not known.

    Warns
    -----
    HistoryWarning
        If funding rows are outside the time of the fills.

    Notes
    -----
    A fill that changes the side of a position closes one trip and opens the next one. Its fee is
    divided between both trips in proportion to their sizes. Funding counts for the trip that is
    open at the time of the payment, before any fill in the same millisecond. Funding outside the
    time of the fills does not count (`tk.pnl.attribution`); a warning and ``funding_outside`` in
    the provenance state the number of rows. Sums over the trips equal the sums over the fills. If
    the fee of a native perp is in a token other than USDC, `prices` must have the token. A lazy
    frame is read a few accounts at a time. Repeated rows count once.

    Liquidations, spot and collateral: docs/live_service.md, sections 2, 3 and 6. The entry price
    and ``gross`` of a spot trip contain its fees in the bought token.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0, 105.0], "sz": [2.0, 3.0, 1.0],
    ...     "side": ["B", "A", "B"], "start_position": [0.0, 2.0, -1.0],
    ...     "time": pd.to_datetime([0, 3_600_000, 7_200_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 20.0, 5.0], "fee": [0.1, 0.3, 0.1]})
    >>> round_trips(fills)[["side", "duration_hours", "gross", "fees", "net"]]
        side  duration_hours  gross  fees   net
    0   long             1.0   20.0  -0.3  19.7
    1  short             1.0    5.0  -0.2   4.8
    """
    time = None if funding is None else covered_period(fills)
    fills = drop_repeated_rows(fills, "fills")
    funding = drop_repeated_rows(funding, "funding")
    dexes = collateral = usd_values.dex_tokens(meta)
    if known := usd_values.parse_prices(prices):
        opened = frame_access.open_frame(fills, "fills")
        usd_values.warn_unused_prices(known, opened, dexes)
        if funding is not None:
            collateral = {**usd_values.dex_tokens_in_fills(opened), **dexes}
    run = partial(
        _find_trips, account=account, known=known, dexes=dexes, collateral=collateral, time=time
    )
    divided = run_by_account(run, {"fills": fills, "funding": funding})
    made: IntoFrameT = run(fills, funding) if divided is None else divided
    return made


def _find_trips(
    fills: IntoFrameT,
    funding: Any = None,
    *,
    account: str | None,
    known: Mapping[str, Decimal],
    dexes: Mapping[str, str],
    collateral: Mapping[str, str],
    time: CoveredPeriod | None,
) -> IntoFrameT:
    """Return the trips of fills without repeated rows; see `round_trips`.

    - ``known``: prices by token
    - ``dexes``: collateral by dex for the fills, as `meta` states it
    - ``collateral``: the same for funding, completed from the fills of all accounts
    - ``time``: the time of the fills of all accounts
    """
    frame, kind = read_position_fills(fills, (*execution_sequence.NEEDED, "fee"))
    usd_values.warn_missing_tokens(frame, "fills")
    fill_kinds.warn_missing_directions(frame, "fills")
    names = account_names(fills, account)
    owners = FillOwners(frame, names)
    worth = _token_prices(frame, known, dexes)
    facts: dict[str, Any] = {}
    if funding is not None:
        frame_access.require_columns(nw.from_native(funding), ("coin", "time", "usdc"), "funding")
        funding = mark_inside(funding, fills, time)
        facts = {"funding_outside": _count_outside(funding, owners)}
        funding = rows_inside(funding)
    payments = _read_payments(funding, kind, owners, frame)
    if payments and known:
        payments = _payments_in_usd(payments, known, collateral)
    integers = execution_sequence.integer_fills(frame, {})
    least = max(0, payments.decimals - worth.decimals) if payments else 0
    cash = TripCash(frame, integers, least, worth)
    order = sort_by_chain(fills, frame, integers, account)
    ms = memory_frames.series_ms(frame["time"])
    found = cut_trips(integers, order, cash, ms, _find_conversions(frame, integers))
    users = _lower_users(frame) if "user" in frame.columns else [""] * len(frame)
    covered = [False] * len(found)
    if payments:
        coins = frame["coin"].to_list()
        pairs = [(users[trip.row], coins[trip.row]) for trip in found]
        assign_funding(found, pairs, payments, ms, cash.decimals)
        last = _last_times(users, ms, payments, common_end(fills, funding))
        unpaid = find_unpaid(found, pairs, last, ms)
        paid = set(payments.users)
        covered = [user in paid and not no for (user, _), no in zip(pairs, unpaid, strict=True)]
    mark_liquidations(found, frame, names[0] if len(names) == 1 else None)
    made = _identity_columns(frame, found) | _amount_columns(found, integers, cash, kind, covered)
    inputs: dict[str, Any] = {"fills": fills, "funding": funding}
    table = pa.table(made)
    result: IntoFrameT = memory_frames.result_from_table(
        table, inputs, helper="pnl.round_trips", **facts
    )
    return result


def _last_times(
    users: Sequence[str], ms: Sequence[int], payments: FundingPayments, until: int
) -> dict[str, int]:
    """Return for each user the time of the last fill or payment, or `until` if it is later."""
    last: dict[str, int] = {}
    for user, time in (
        *zip(users, ms, strict=True),
        *zip(payments.users, payments.ms, strict=True),
    ):
        last[user] = max(last.get(user, until), time)
    return last


def _count_outside(marked: Any, owners: FillOwners) -> int:
    """Return the number of funding rows outside the time of the fills, and warn of them."""
    mine: Any = keep_own_rows(
        memory_frames.collect_frame(marked, "funding"), "user", owners, "funding"
    )
    rows = mine.filter(~nw.col("_inside"))
    if len(rows):
        lying = count_text(len(rows), "row lies", "rows lie")
        warn_caller(
            f"funding: {lying} outside the time of the fills. Such rows do not count. "
            "Fetch fills of the same time. tk.pnl.attribution returns the sum of such rows as "
            "funding_outside",
            HistoryWarning,
        )
    return len(rows)


def _token_prices(
    frame: nw.DataFrame[Any], prices: Mapping[str, Decimal], dexes: Mapping[str, str]
) -> TokenPrices:
    """Return the rows that are not in USDC, and the prices of their tokens."""
    if not dexes and ("fee_token" not in frame.columns or frame["fee_token"].is_in(CASH).all()):
        return TokenPrices({}, {}, 0, frozenset())
    tokens = frame["fee_token"].to_list() if "fee_token" in frame.columns else [None] * len(frame)
    coins, sides, paid = (frame[name].to_list() for name in ("coin", "side", "fee"))
    decimals = max((-int(p.as_tuple().exponent) for p in prices.values()), default=0)
    decimals = max(0, decimals)
    whole = {token: int(price.scaleb(decimals)) for token, price in prices.items()}
    of_closed, of_fee, at_par = dict[int, int](), dict[int, int](), set[int]()
    for row, (token, coin, side) in enumerate(zip(tokens, coins, sides, strict=True)):
        is_spot = coin.startswith("@") or "/" in coin
        name = token if isinstance(token, str) else dexes.get(coin.split(":")[0], "")
        if name in CASH or (is_spot and side == "B"):
            continue
        name = name.upper()
        if ":" in coin or not is_perp_coin(coin):
            if name in whole:
                of_closed[row] = of_fee[row] = whole[name]
            else:
                at_par.add(row)
        elif name in whole:
            of_closed[row], of_fee[row] = 10**decimals, whole[name]
        elif paid[row]:
            raise MissingColumns(
                f"fills: the fee of a perp fill of {coin} is in {name}, which has no price here. "
                f"Pass prices={{{name!r}: ...}}, or remove such fills"
            )
    return TokenPrices(of_closed, of_fee, decimals if of_closed else 0, frozenset(at_par))


def _find_conversions(
    frame: nw.DataFrame[Any], integers: execution_sequence.IntegerFills
) -> Conversions:
    """Return the rows that convert outcome tokens."""
    if "dir" not in frame.columns or not any(integers.spot):
        return Conversions(frozenset(), frozenset())
    words = frame["dir"].to_list()
    return Conversions(
        frozenset(row for row, word in enumerate(words) if word in CONVERSIONS),
        frozenset(row for row, word in enumerate(words) if word in SWAPS),
    )


def _payments_in_usd(
    payments: FundingPayments, prices: Mapping[str, Decimal], dexes: Mapping[str, str]
) -> FundingPayments:
    """Convert payments of dexes with another collateral to USD."""
    decimals = max(0, *(-int(price.as_tuple().exponent) for price in prices.values()))
    whole = {
        dex: int(prices[token.upper()].scaleb(decimals))
        for dex, token in dexes.items()
        if token.upper() in prices
    }
    one = 10**decimals
    usdc = [
        amount * whole.get(coin.split(":")[0], one) if ":" in coin else amount * one
        for coin, amount in zip(payments.coins, payments.usdc, strict=True)
    ]
    return payments._replace(usdc=usdc, decimals=payments.decimals + decimals)


def _read_payments(
    native: Any, kind: NumberKind, owners: FillOwners, frame: nw.DataFrame[Any]
) -> FundingPayments | None:
    if native is None:
        return None
    rows = memory_frames.collect_frame(native, "funding")
    users = "user" in frame.columns
    frame_access.require_columns(
        rows, ("coin", "time", "usdc", *(["user"] if users else [])), "funding"
    )
    frame_access.number_kind(rows, ["usdc"], "funding", kind)
    mine: Any = keep_own_rows(rows, "user", owners, "funding")
    mine = mine.filter(~nw.col("usdc").is_null())
    if not isinstance(mine["usdc"].dtype, nw.Decimal):
        mine = mine.filter(~nw.col("usdc").is_nan())
    usdc, decimals = fixed_point.to_integers(mine["usdc"], what="funding")
    return FundingPayments(
        _lower_users(mine) if users else [""] * len(mine),
        mine["coin"].to_list(),
        memory_frames.series_ms(mine["time"]),
        usdc,
        decimals,
    )


def _lower_users(frame: nw.DataFrame[Any]) -> list[str]:
    names: list[str] = frame.select(user=lower_address("user"))["user"].to_list()
    return names


def _identity_columns(frame: nw.DataFrame[Any], found: Sequence[Trip]) -> dict[str, Any]:
    rows = [trip.row for trip in found]
    kept = {
        name: memory_frames.text_column(take_rows(frame[name].to_list(), rows))
        for name in ("user", "coin")
        if name in frame.columns
    }
    hours = [
        None if trip.opened is None or trip.closed is None else trip.closed - trip.opened
        for trip in found
    ]
    return kept | {
        "side": memory_frames.text_column(["long" if trip.sign > 0 else "short" for trip in found]),
        "opened": memory_frames.utc_times([trip.opened for trip in found]),
        "closed": memory_frames.utc_times([trip.closed for trip in found]),
        "duration_hours": pa.array(
            [None if h is None else h / HOUR for h in hours], type=pa.float64()
        ),
        "status": memory_frames.text_column([trip.status for trip in found]),
        "fills": pa.array([trip.fills for trip in found], type=pa.int64()),
    }


def _amount_columns(
    found: Sequence[Trip],
    integers: execution_sequence.IntegerFills,
    cash: TripCash,
    kind: NumberKind,
    covered: Sequence[bool],
) -> dict[str, Any]:
    unit = 10**integers.px_decimals
    paid = [trip.funding if has else None for trip, has in zip(found, covered, strict=True)]
    net = [trip.gross + trip.fees + (f or 0) for trip, f in zip(found, paid, strict=True)]
    return {
        "size": memory_frames.number_column(
            [trip.peak for trip in found], integers.size_decimals, kind
        ),
        "entry_px": _float_column(
            [
                _ratio(t.opened_notional, t.opened_size * unit) if _has_full_entry(t) else None
                for t in found
            ]
        ),
        "exit_px": _float_column(
            [_ratio(t.closed_notional, t.closed_size * unit) if t.whole else None for t in found]
        ),
        "gross": memory_frames.number_column([trip.gross for trip in found], cash.decimals, kind),
        "fees": memory_frames.number_column([trip.fees for trip in found], cash.decimals, kind),
        "funding": memory_frames.number_column(paid, cash.decimals, kind),
        "net": memory_frames.number_column(net, cash.decimals, kind),
        "return_": _float_column(
            [
                _ratio(n, cash.notional(t)) if _has_full_entry(t) and t.whole else None
                for n, t in zip(net, found, strict=True)
            ]
        ),
        "forced": pa.array([trip.forced for trip in found], type=pa.bool_()),
        "at_par": pa.array([trip.at_par for trip in found], type=pa.bool_()),
    }


def _has_full_entry(trip: Trip) -> bool:
    """Return whether all fills that opened a trip are known."""
    return trip.basis and trip.status not in ("late", "broken")


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _float_column(values: Sequence[float | None]) -> pa.Array:
    return pa.array(values, type=pa.float64())
