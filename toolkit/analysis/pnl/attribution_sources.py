"""Sources of an attribution: the measures of each fill, funding row, ledger row and position.

Every source has the same columns, so that sources can be stacked: the keys, `COUNTS`, the volume
and `SUMMED`, with 0 for the measures that the source does not have.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals as nw

from toolkit.analysis.common import (
    fill_kinds,
    frame_access,
    grouping,
    markets,
    memory_frames,
    row_owners,
    usd_values,
)
from toolkit.analysis.common.account_values import refuse_batches
from toolkit.analysis.common.frame_access import Frame, NumberKind
from toolkit.analysis.common.row_owners import FillOwners
from toolkit.analysis.pnl.perp_flows import AMOUNTS, add_perp_flows
from toolkit.errors import MissingColumns

FILL_NUMBERS = ("px", "sz", "closed_pnl", "fee", "builder_fee", "deployer_fee", "priority_gas")
NEEDED = ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")
FEES = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
MONEY = (
    "closed_pnl",
    *FEES,
    "funding",
    "net",
    "ledger",
    "equity_change",
    "unrealised",
    "priority_gas",
    "fees_in_cost",
    "funding_outside",
)
GAPS = ("missing_amounts", "unpriced_fees", "unknown_flows", "conversions", "at_par")
_POSITION = ("user", "dex", "coin", "time", "szi", "unrealized_pnl")
UNKNOWN = ("_no_closed_pnl", "_no_fee", "_no_unrealised")
COUNTS = ("fills", *GAPS, "_payments", "_perps", "_outside", *UNKNOWN)
# Spot and outcome fills are paid from the spot balance, so the perp net is summed separately.
SUMMED = (*(name for name in MONEY if name != "equity_change"), "_perp_net")


class TokenRates(NamedTuple):
    """Prices of tokens other than USDC, and the collateral of dexes.

    - ``prices``: token -> USD. Other tokens count at par.
    - ``dexes``: builder-deployed dex -> its collateral, if it is known and not USDC
    """

    prices: Mapping[str, Decimal]
    dexes: Mapping[str, str]


def measure_fills(frame: Frame, keys: Sequence[str], rates: TokenRates) -> tuple[Frame, NumberKind]:
    """Return the keys and measures of each fill, and the kind of numbers.

    The trading fee is the fee without the parts of builder and deployer. Below 0 it is a rebate.
    """
    frame_access.require_columns(frame, NEEDED, "fills")
    frame_access.require_columns(
        frame,
        grouping.own_columns(keys),
        "fills",
        f"by= takes columns of the fills, or {', '.join(grouping.DERIVED_GROUPS)}",
    )
    kind = frame_access.number_kind(frame, FILL_NUMBERS, "fills")
    column_names = frame.columns
    frame = _add_keys(frame, keys).with_columns(_perp=markets.is_perp(nw.col("coin")))
    frame = _add_token_values(frame, column_names, rates)
    frame = frame.with_columns(
        **_fill_fees(column_names, kind),
        _closed=frame_access.column_or_zero("closed_pnl", column_names, kind),
        _lacking=nw.when(_misses_amount(kind)).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    if "fee_token" in column_names or rates.dexes:
        frame = _apply_token_prices(frame, rates.prices, kind)
    trading = nw.col("_fee") - nw.col("_builder_fee") - nw.col("_deployer_fee")
    frame = frame.with_columns(_trading_fee=trading.cast(frame_access.number_type(kind)))
    return _select_measures(frame, keys, kind, _fill_measures(column_names, rates, kind)), kind


def _fill_fees(column_names: Sequence[str], kind: NumberKind) -> dict[str, nw.Expr]:
    """Return the fee and its parts; 0 if they are missing.

    If the fee is missing, its parts count as 0, too. Otherwise fee minus parts would be negative
    and would look like a rebate.
    """
    found = {
        f"_{fee}": frame_access.column_or_zero(fee, column_names, kind) for fee in usd_values.FEES
    }
    unknown, zero = _is_missing("fee", kind), frame_access.zero_literal(kind)
    parts = ("_builder_fee", "_deployer_fee")
    return found | {part: nw.when(unknown).then(zero).otherwise(found[part]) for part in parts}


def _add_token_values(frame: Frame, column_names: Sequence[str], rates: TokenRates) -> Frame:
    """Add `_token`, the token of a fill's fee, and flags for what it is.

    - ``_cash``: it is USDC
    - ``_bought``: it is the bought token of a spot fill
    - ``_other``: it is another token, and the fill is not one of a native perp
    """
    if "fee_token" not in column_names and not rates.dexes:
        return frame
    token = nw.col("fee_token") if "fee_token" in column_names else nw.lit(None).cast(nw.String())
    for dex, collateral in rates.dexes.items():
        lacks = token.is_null() & nw.col("coin").str.starts_with(f"{dex}:")
        token = nw.when(lacks).then(nw.lit(collateral)).otherwise(token)
    frame = frame.with_columns(_token=token)
    frame = frame.with_columns(
        _cash=nw.col("_token").is_null() | nw.col("_token").is_in(usd_values.CASH)
    )
    spot = ~nw.col("_perp") & ~markets.is_outcome(nw.col("coin"))
    frame = frame.with_columns(_bought=~nw.col("_cash") & (nw.col("side") == "B") & spot)
    is_not_native_perp = ~nw.col("_perp") | nw.col("coin").str.contains(":", literal=True)
    return frame.with_columns(_other=~nw.col("_cash") & ~nw.col("_bought") & is_not_native_perp)


def _apply_token_prices(frame: Frame, prices: Mapping[str, Decimal], kind: NumberKind) -> Frame:
    """Convert closed PnL and fees to USD.

    Without a price, the fee of a native perp becomes 0, and other amounts count at par. The fills
    of both kinds are counted (`_unpriced`, `_at_par`).
    """
    frame = usd_values.add_bought_fee(frame, "_in_cost", nw.col("_fee"), nw.col("_bought"), kind)
    token, other = nw.col("_token"), nw.col("_other")
    lost = ~(nw.col("_cash") | nw.col("_bought") | other)
    at_par = other
    names = [f"_{fee}" for fee in usd_values.FEES]
    if prices:
        token = token.str.to_uppercase()
        named = token.is_in(list(prices)) & ~nw.col("_cash")
        lost, at_par = lost & ~named, other & ~named
        # Closed PnL of a native perp is in USDC, even if its fee is in another token.
        frame = usd_values.apply_prices(
            frame, ["_closed"], nw.when(other).then(token), prices, kind
        )
        frame = usd_values.apply_prices(frame, names, token, prices, kind)
    gone = lost | nw.col("_bought")
    zero = frame_access.zero_literal(kind)
    unpriced = nw.when(lost & (nw.col("_fee") != 0)).then(nw.lit(1)).otherwise(nw.lit(0))
    frame = frame.with_columns(
        _in_cost=nw.when(nw.col("_bought")).then(nw.col("_in_cost")).otherwise(zero),
        _unpriced=unpriced,
        _at_par=nw.when(at_par).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    return frame.with_columns(
        **{name: nw.when(gone).then(zero).otherwise(nw.col(name)) for name in names}
    )


def _fill_measures(
    column_names: Sequence[str], rates: TokenRates, kind: NumberKind
) -> dict[str, nw.Expr]:
    zero, trading = frame_access.zero_literal(kind), nw.col("_trading_fee")
    net = (nw.col("_closed") - nw.col("_fee")).cast(frame_access.number_type(kind))
    perp = nw.col("_perp")
    volume = nw.col("px").cast(nw.Float64()) * nw.col("sz").cast(nw.Float64())
    unknown = volume.is_null() | volume.is_nan()
    measures = {
        "fills": nw.lit(1),
        "volume": nw.when(unknown).then(nw.lit(0.0)).otherwise(volume),
        "closed_pnl": nw.col("_closed"),
        "trading_fee": nw.when(trading > 0).then(-trading).otherwise(zero),
        "builder_fee": frame_access.flip_sign(nw.col("_builder_fee"), kind),
        "deployer_fee": frame_access.flip_sign(nw.col("_deployer_fee"), kind),
        "rebate": nw.when(trading < 0).then(-trading).otherwise(zero),
        "net": net,
        "_perp_net": nw.when(perp).then(net).otherwise(zero),
        "_perps": nw.when(perp).then(nw.lit(1)).otherwise(nw.lit(0)),
        "priority_gas": frame_access.flip_sign(
            frame_access.column_or_zero("priority_gas", column_names, kind), kind
        ),
        "missing_amounts": nw.col("_lacking"),
        "_no_closed_pnl": frame_access.flag(_is_missing("closed_pnl", kind)),
        "_no_fee": frame_access.flag(_is_missing("fee", kind)),
    }
    if "fee_token" in column_names or rates.dexes:
        measures["unpriced_fees"] = nw.col("_unpriced")
        measures["at_par"] = nw.col("_at_par")
        measures["fees_in_cost"] = frame_access.flip_sign(nw.col("_in_cost"), kind)
    if "dir" in column_names:  # conversions are not trades (docs/live_service.md, section 7)
        # Only outcome tokens can be converted.
        converts = markets.is_outcome(nw.col("coin")) & fill_kinds.is_conversion(column_names)
        measures["conversions"] = nw.when(converts).then(nw.lit(1)).otherwise(nw.lit(0))
        measures["volume"] = nw.when(unknown | converts).then(nw.lit(0.0)).otherwise(volume)
    return measures


def _misses_amount(kind: NumberKind) -> nw.Expr:
    """Return whether price, size, closed PnL or fee of a fill is missing."""
    lacks = nw.lit(False)
    for name in ("px", "sz", "closed_pnl", "fee"):
        lacks = lacks | _is_missing(name, kind)
    return lacks


def _is_missing(name: str, kind: NumberKind) -> nw.Expr:
    null = nw.col(name).is_null()
    return null | nw.col(name).is_nan() if kind == "float" else null


def measure_funding(
    native: Any, keys: Sequence[str], kind: NumberKind, owners: FillOwners, rates: TokenRates
) -> Frame:
    """Return the keys and measures of each payment.

    Payments outside the time range of the fills (not `_inside`) count in separate columns.
    """
    frame = frame_access.open_table(native, "funding")
    frame_access.require_columns(
        frame, ["coin", "time", "usdc", *grouping.own_columns(keys)], "funding"
    )
    _check_same_kind(kind, frame_access.number_kind(frame, ["usdc"], "funding", kind), "funding")
    frame = row_owners.keep_own_rows(frame, "user", owners, "funding")
    usdc = nw.col("usdc")
    is_known = ~usdc.is_null() if kind == "exact" else ~(usdc.is_null() | usdc.is_nan())
    payment = frame_access.column_or_zero("usdc", frame.columns, kind)
    if rates.prices and rates.dexes:
        frame = frame.with_columns(_payment=payment, _token=_token_of_dex(rates.dexes))
        frame = usd_values.apply_prices(frame, ["_payment"], nw.col("_token"), rates.prices, kind)
    else:
        frame = frame.with_columns(_payment=payment)
    zero = frame_access.zero_literal(kind)
    inside = nw.col("_inside")
    counted = nw.when(inside).then(nw.col("_payment")).otherwise(zero)
    measures = {
        "funding": counted,
        "net": counted,
        "_perp_net": counted,
        "funding_outside": nw.when(inside).then(zero).otherwise(nw.col("_payment")),
        "_payments": nw.when(is_known & inside).then(nw.lit(1)).otherwise(nw.lit(0)),
        "_outside": nw.when(inside).then(nw.lit(0)).otherwise(nw.lit(1)),
        "missing_amounts": nw.when(is_known).then(nw.lit(0)).otherwise(nw.lit(1)),
    }
    return _select_measures(_add_keys(frame, keys), keys, kind, measures)


def _token_of_dex(dexes: Mapping[str, str]) -> nw.Expr:
    token = nw.lit("USDC")
    for dex, own in dexes.items():
        mine = nw.col("coin").str.starts_with(f"{dex}:")
        token = nw.when(mine).then(nw.lit(own.upper())).otherwise(token)
    return token


def measure_ledger(
    native: Any, keys: Sequence[str], kind: NumberKind, owner: str | None, owners: FillOwners
) -> Frame:
    """Return the keys and measures of each ledger row of the accounts."""
    frame = frame_access.open_table(native, "ledger")
    frame_access.require_columns(frame, ["time", "type"], "ledger")
    _check_same_kind(kind, frame_access.number_kind(frame, AMOUNTS, "ledger", kind), "ledger")
    if "user" in keys and owner is None:
        frame_access.require_columns(frame, ["account"], "ledger", "Add it, or pass account=")
    frame = row_owners.keep_own_rows(frame, "account", owners, "ledger")
    frame = add_perp_flows(frame, kind, owner)
    if "user" in keys:
        user = nw.lit(owner) if owner is not None else nw.col("account")
        frame = frame.with_columns(user=user).with_columns(user=row_owners.lower_address("user"))
    frame = grouping.add_calendar(frame, keys)
    measures = {"ledger": nw.col("flow"), "unknown_flows": nw.col("unknown")}
    return _select_measures(frame, keys, kind, measures)


def measure_positions(
    positions: tuple[Any, Any], keys: Sequence[str], kind: NumberKind, owners: FillOwners
) -> list[Frame]:
    """Return the unrealised PnL of the last positions, and that of the first positions times -1."""
    made = []
    for native, ends in zip(positions, (False, True), strict=True):
        if native is None:
            continue
        frame = frame_access.open_table(native, "positions")
        wanted = ["user"] if "user" in keys else []
        frame_access.require_columns(frame, ["coin", "unrealized_pnl", *wanted], "positions")
        _check_same_kind(
            kind,
            frame_access.number_kind(frame, ["unrealized_pnl"], "positions", kind),
            "positions",
        )
        frame = row_owners.keep_own_rows(frame, "user", owners, "positions")
        rows = memory_frames.to_pandas(nw.to_native(frame), _POSITION)
        refuse_batches(rows, ("user", "coin"), "positions")
        column_names = frame.columns
        gain = frame_access.column_or_zero("unrealized_pnl", column_names, kind)
        gain = gain if ends else frame_access.flip_sign(gain, kind)
        unknown = frame_access.flag(_is_missing("unrealized_pnl", kind))
        measures = {
            "unrealised": gain.cast(frame_access.number_type(kind)),
            "missing_amounts": unknown,
            "_no_unrealised": unknown,
        }
        made.append(_select_measures(_add_keys(frame, keys), keys, kind, measures, "coin"))
    return made


def _check_same_kind(fills: NumberKind, other: NumberKind, what: str) -> None:
    if fills != other:
        raise MissingColumns(
            f"{what}: its numbers are {other}, but those of the fills are {fills}. "
            "Fetch both with the same numbers="
        )


def _add_keys(frame: Frame, keys: Sequence[str]) -> Frame:
    if "user" in keys:  # Arrow joins texts only with texts of the same width
        frame = frame.with_columns(user=nw.col("user").cast(nw.String()))
    return grouping.add_groups(frame, keys)


def _select_measures(
    frame: Frame,
    keys: Sequence[str],
    kind: NumberKind,
    measures: Mapping[str, nw.Expr],
    anchor: str = "time",
) -> Frame:
    """Return the keys and the measures of a source."""
    number = frame_access.number_type(kind)
    whole = {n: measures[n].cast(nw.Int64()) for n in COUNTS if n in measures}
    money = {n: measures[n].cast(number) for n in SUMMED if n in measures}
    volume = {n: measures[n].cast(nw.Float64()) for n in measures if n == "volume"}
    # A selection of constants alone has one row. With a column of the frame, it has as many rows as
    # the frame.
    made = frame.select(*keys, _anchor=nw.col(anchor), **whole, **volume, **money)
    return made.select(*keys, *whole, *volume, *money)


def sum_groups(frame: Frame, keys: Sequence[str], kind: NumberKind) -> Frame:
    """Return the sums of all measures by group; 0 for measures that the source does not have.

    `fills` includes conversions here.
    """
    column_names = frame.columns
    names = [name for name in (*COUNTS, "volume", *SUMMED) if name in column_names]
    sums = [nw.col(name).sum() for name in names]
    frame = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    number = frame_access.number_type(kind)
    whole = {n: nw.col(n).fill_null(0) if n in column_names else nw.lit(0) for n in COUNTS}
    money = {
        n: nw.col(n).fill_null(0) if n in column_names else frame_access.zero_literal(kind)
        for n in SUMMED
    }
    volume = nw.col("volume").fill_null(0.0) if "volume" in column_names else nw.lit(0.0)
    return (
        frame.select(*keys, *names)
        .with_columns(
            **{n: count.cast(nw.Int64()) for n, count in whole.items()},
            volume=volume.cast(nw.Float64()),
            **{n: amount.cast(number) for n, amount in money.items()},
        )
        .select(*keys, *COUNTS, "volume", *SUMMED)
    )
