"""What each source says of an account's money, row by row: fills, funding, ledger, positions.

Every source gives the same columns, so that they can be stacked: the keys to group by, and all of
`COUNTS`, the volume and `SUMMED`, 0 where this source has nothing to say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis import columns, fees, grouping, markets, owners
from toolkit.analysis.columns import Frame, Numbers
from toolkit.analysis.flows import AMOUNTS, with_flows
from toolkit.analysis.owners import Accounts
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
)
GAPS = ("missing_amounts", "unpriced_fees", "unknown_flows")
COUNTS = ("fills", *GAPS, "_payments", "_perps")
# Spot and outcome fills are paid from another balance than the one whose equity changes.
SUMMED = (*(name for name in MONEY if name != "equity_change"), "_perp_net")


# ASSUMED: closed PnL and funding of a dex with another collateral than USDC count as USD.
def of_fills(frame: Frame, keys: Sequence[str]) -> tuple[Frame, Numbers]:
    """Give each fill its keys and its share of every measure; tell the kind of numbers."""
    columns.need(frame, NEEDED, "fills")
    columns.need(
        frame,
        grouping.given(keys),
        "fills",
        f"by= takes columns of the fills, or what is made of them: {', '.join(grouping.MADE)}",
    )
    kind = columns.numbers(frame, FILL_NUMBERS, "fills")
    have = frame.collect_schema().names()
    frame = _with_keys(frame, keys).with_columns(
        **fees.in_usd(have, kind),
        _unpriced=fees.unpriced(have, kind),
        _closed=columns.filled("closed_pnl", have, kind),
        _lacking=nw.when(_lacks(kind)).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    trading = nw.col("_fee") - nw.col("_builder_fee") - nw.col("_deployer_fee")
    frame = frame.with_columns(_part=trading.cast(columns.number_type(kind)))
    return _measured(frame, keys, kind, _measures_of_fills(have, kind)), kind


def _measures_of_fills(have: Sequence[str], kind: Numbers) -> dict[str, nw.Expr]:
    nothing, part = columns.zero(kind), nw.col("_part")
    net = (nw.col("_closed") - nw.col("_fee")).cast(columns.number_type(kind))
    perp = markets.is_perp(nw.col("coin"))
    volume = nw.col("px").cast(nw.Float64()) * nw.col("sz").cast(nw.Float64())
    unknown = volume.is_null() | volume.is_nan()
    return {
        "fills": nw.lit(1),
        "volume": nw.when(unknown).then(nw.lit(0.0)).otherwise(volume),
        "closed_pnl": nw.col("_closed"),
        "trading_fee": nw.when(part > 0).then(-part).otherwise(nothing),
        "builder_fee": columns.negated(nw.col("_builder_fee"), kind),
        "deployer_fee": columns.negated(nw.col("_deployer_fee"), kind),
        "rebate": nw.when(part < 0).then(-part).otherwise(nothing),
        "net": net,
        "_perp_net": nw.when(perp).then(net).otherwise(nothing),
        "_perps": nw.when(perp).then(nw.lit(1)).otherwise(nw.lit(0)),
        "priority_gas": columns.negated(columns.filled("priority_gas", have, kind), kind),
        "missing_amounts": nw.col("_lacking"),
        "unpriced_fees": nw.col("_unpriced"),
    }


def _lacks(kind: Numbers) -> nw.Expr:
    """Tell where a fill says nothing of its price, its size, its closed PnL or its fee."""
    lacks = nw.lit(False)
    for name in ("px", "sz", "closed_pnl", "fee"):
        lacks = lacks | nw.col(name).is_null()
        if kind == "float":
            lacks = lacks | nw.col(name).is_nan()
    return lacks


def of_funding(native: Any, keys: Sequence[str], kind: Numbers, whose: Accounts) -> Frame:
    """Give each payment of the accounts its keys and measures."""
    frame = columns.opened(native, "funding", kind)
    columns.need(frame, ["coin", "time", "usdc", *grouping.given(keys)], "funding")
    _same(kind, columns.numbers(frame, ["usdc"], "funding", kind), "funding")
    if "user" not in keys:
        frame = owners.own(frame, "user", whose, "funding")
    usdc = nw.col("usdc")
    told = ~usdc.is_null() if kind == "exact" else ~(usdc.is_null() | usdc.is_nan())
    paid = columns.filled("usdc", frame.collect_schema().names(), kind)
    measures = {
        "funding": paid,
        "net": paid,
        "_perp_net": paid,
        "_payments": nw.when(told).then(nw.lit(1)).otherwise(nw.lit(0)),
        "missing_amounts": nw.when(told).then(nw.lit(0)).otherwise(nw.lit(1)),
    }
    return _measured(_with_keys(frame, keys), keys, kind, measures)


def of_ledger(
    native: Any, keys: Sequence[str], kind: Numbers, owner: str | None, whose: Accounts
) -> Frame:
    """Give each ledger row of the accounts its keys and measures."""
    frame = columns.opened(native, "ledger", kind)
    columns.need(frame, ["time", "type"], "ledger")
    _same(kind, columns.numbers(frame, AMOUNTS, "ledger", kind), "ledger")
    if "user" not in keys:
        frame = owners.own(frame, "account", whose, "ledger")
    elif owner is None:
        columns.need(frame, ["account"], "ledger", "or say whose ledger it is: account=")
    frame = with_flows(frame, kind, owner)
    if "user" in keys:
        user = nw.lit(owner) if owner is not None else nw.col("account")
        frame = frame.with_columns(user=user).with_columns(user=owners.address("user"))
    frame = grouping.with_calendar(frame, keys)
    measures = {"ledger": nw.col("flow"), "unknown_flows": nw.col("unknown")}
    return _measured(frame, keys, kind, measures)


def of_positions(
    positions: tuple[Any, Any], keys: Sequence[str], kind: Numbers, whose: Accounts
) -> list[Frame]:
    """Count what is open in the end for, what was open at first against the account."""
    made = []
    for native, ends in zip(positions, (False, True), strict=True):
        if native is None:
            continue
        frame = columns.opened(native, "positions", kind)
        wanted = ["user"] if "user" in keys else []
        columns.need(frame, ["coin", "unrealized_pnl", *wanted], "positions")
        _same(kind, columns.numbers(frame, ["unrealized_pnl"], "positions", kind), "positions")
        if "user" not in keys:
            frame = owners.own(frame, "user", whose, "positions")
        have = frame.collect_schema().names()
        gain = columns.filled("unrealized_pnl", have, kind)
        gain = gain if ends else columns.negated(gain, kind)
        measures = {"unrealised": gain.cast(columns.number_type(kind))}
        made.append(_measured(_with_keys(frame, keys), keys, kind, measures, "coin"))
    return made


def _same(fills: Numbers, other: Numbers, what: str) -> None:
    if fills != other:
        raise MissingColumns(
            f"{what}: its numbers are {other}, those of the fills {fills}; "
            "fetch both with the same numbers="
        )


def _with_keys(frame: Frame, keys: Sequence[str]) -> Frame:
    if "user" in keys:
        frame = frame.with_columns(user=owners.address("user"))
    return grouping.with_groups(frame, keys)


def _measured(
    frame: Frame,
    keys: Sequence[str],
    kind: Numbers,
    measures: Mapping[str, nw.Expr],
    anchor: str = "time",
) -> Frame:
    """Select the keys and every measure, 0 where this source has nothing to say."""
    number = columns.number_type(kind)
    whole = {n: measures.get(n, nw.lit(0)).cast(nw.Int64()) for n in COUNTS}
    money = {n: measures.get(n, columns.zero(kind)).cast(number) for n in SUMMED}
    volume = measures.get("volume", nw.lit(0.0)).cast(nw.Float64())
    # A constant alone would be one row, not one for each: the anchor carries the length.
    return frame.select(*keys, _anchor=nw.col(anchor), **whole, volume=volume, **money).select(
        *keys, *COUNTS, "volume", *SUMMED
    )


def summed(frame: Frame, keys: Sequence[str], kind: Numbers) -> Frame:
    """Sum every measure over its groups."""
    names = (*COUNTS, "volume", *SUMMED)
    sums = [nw.col(name).sum() for name in names]
    frame = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    number = columns.number_type(kind)
    return frame.select(
        *keys,
        *(nw.col(n).fill_null(0).cast(nw.Int64()) for n in COUNTS),
        nw.col("volume").fill_null(0.0).cast(nw.Float64()),
        *(nw.col(n).fill_null(0).cast(number) for n in SUMMED),
    )
