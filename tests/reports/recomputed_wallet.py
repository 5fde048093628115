"""The values of the wallet report, recomputed from its frames in exact decimals."""

import warnings
from decimal import Decimal
from typing import Any

import pandas as pd

import toolkit as tk
from tests.reports.compute_once import compute_once
from toolkit.errors import MissingAmounts

Values = dict[str, Any]
HOUR = 3_600_000


def _sum(column):
    return sum((Decimal(str(item)) for item in column.dropna()), Decimal(0))


@compute_once
def _row(results):
    """Attribute again, from the frames: the helper is held to the truth by its own tests."""
    return _attribute(results, results.frames.ledger).iloc[0]


@compute_once
def net_of(results, by):
    """Return net by coin or by day."""
    return _attribute(results, None if by == "coin" else results.frames.ledger, by=by).set_index(
        by
    )["net"]


def _attribute(results, ledger, by=None):
    result = results.frames
    funding = result.funding if result.funding is not None and len(result.funding) else None
    period = {"start_time": result.start_ms, "end_time": result.end_ms}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingAmounts)  # the report says it in words
        return tk.pnl.attribution(
            result.fills, funding, ledger, by=by, account=result.user, **period
        )


def _fees(results):
    """Return fees, negative where paid: those in USD of perps are what the fills say."""
    row = _row(results)
    names = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
    return sum((Decimal(row[name]) for name in names), Decimal(0))


def volume_of(results):
    return Decimal(_row(results)["volume"])


@compute_once
def _hours(results):
    """Walk the fills of each perp from hour to hour: (coin, hour) -> position, if there is one."""
    result = results.frames
    open_: dict[tuple[str, int], Decimal] = {}
    for coin, fills in result.fills.groupby("coin", sort=False):
        if coin[0] in "@#" or "/" in coin:
            continue
        times = [int(time.timestamp() * 1000) for time in fills["time"]]
        signs = [1 if side == "B" else -1 for side in fills["side"]]
        after = [
            start + sign * sz
            for start, sign, sz in zip(fills["start_position"], signs, fills["sz"], strict=True)
        ]
        place = 0
        for hour in range(times[0] // HOUR + 1, result.end_ms // HOUR + 1):
            while place < len(times) and times[place] < hour * HOUR:
                place += 1
            if after[place - 1]:
                open_[coin, hour] = after[place - 1]
    return open_


@compute_once
def _paid(results):
    rows = results.frames.funding
    hours = [int(time.timestamp() * 1000) // HOUR for time in rows["time"]]
    return dict(zip(zip(rows["coin"], hours, strict=True), rows["szi"], strict=True))


def _both(results):
    return _hours(results).keys() & _paid(results).keys()


def _forced(results):
    fills = results.frames.fills
    named = fills["liquidated_user"].astype("str").str.lower() == results.frames.user.lower()
    return fills[named | fills["dir"].str.startswith("Liquidated")]


@compute_once
def _reconciled(results):
    result = results.frames
    return tk.pnl.reconcile(
        None, result.states, result.fills, result.funding, result.ledger, account=result.user
    ).iloc[0]


def _nothing(results):
    return {}


def _net(results):
    return {"net": _row(results)["net"]}


def _funding(results):
    result = results.frames
    ends = pd.to_datetime([result.start_ms, result.end_ms], unit="ms", utc=True)
    within = result.funding[result.funding["time"].between(*ends)]
    return {"funding": _sum(within["usdc"]) if _paid(results) else None}


def _apart(results):
    result = results.frames
    return tk.pnl.audit(result.fills, result.perps)["difference"]


def sentence_no_fills(results):
    assert results.frames.fills.empty
    return {}


def sentence_closed(results):
    return {"closed": _row(results)["closed_pnl"], "volume": volume_of(results)}


def sentence_fees(results):
    return {"fees": _fees(results)}


def sentence_rebates(results):
    assert _fees(results) > 0
    return {"fees": _fees(results)}


def sentence_funding(results):
    return _funding(results)


def bought(results):
    """Return spot buys whose fee is in the bought token."""
    fills = results.frames.fills
    spot = fills["coin"].str.contains("^@|/") & (fills["side"] == "B")
    return fills[spot & (fills["fee_token"] != "USDC")]


def sentence_fees_in_cost(results):
    rows = bought(results)
    return {"value": -sum((px * fee for px, fee in zip(rows["px"], rows["fee"], strict=True)), 0)}


def sentence_at_par(results):
    fills = results.frames.fills.drop(bought(results).index)
    rows = fills[fills["fee_token"].notna() & (fills["fee_token"] != "USDC")]
    return {"fills": len(rows), "tokens": ", ".join(sorted(set(rows["fee_token"])))}


def _lacking(results, *columns):
    rows = results.frames.fills[list(columns)].to_dict("records")
    missing = sum(any(pd.isna(value) for value in row.values()) for row in rows)
    assert missing
    return {"missing": missing, "fills": len(rows)}


def _without_closed_pnl(results):
    return _lacking(results, "closed_pnl")


def _without_fee(results):
    return _lacking(results, "fee")


def sentence_traded(results):
    return {"volume": volume_of(results)}


sentence_closed_unknown = _without_closed_pnl
sentence_fees_unknown = _without_fee
headline_closed_unknown = _without_closed_pnl
headline_fees_unknown = _without_fee


def headline_net_unknown(results):
    return _lacking(results, "closed_pnl", "fee")


def sentence_positions_unknown(results):
    fills = results.frames.fills
    perps = fills[~fills["coin"].str.contains("^[@#]|/")]
    return {"missing": int(perps["start_position"].isna().sum()), "fills": len(fills)}


sentence_net = _net
sentence_net_without_funding = _net


def sentence_forced(results):
    rows = _forced(results)
    orders = len(set(rows["oid"]))
    return {"orders": orders, "coins": rows["coin"].nunique(), "closed": _sum(rows["closed_pnl"])}


def sentence_forced_most(results):
    orders: dict[int, list[Any]] = {}
    for fill in _largest(results).itertuples():
        orders.setdefault(fill.oid, []).append(fill)
    usd, fills = max(
        ((sum(float(fill.px) * float(fill.sz) for fill in fills), fills)
         for fills in orders.values()),
        key=lambda pair: (pair[0], -pair[1][0].time.value),
    )  # fmt: skip
    sign = {"A": 1, "B": -1}[fills[0].side]
    size = sum(float(fill.sz) for fill in fills)
    entry_px = (usd - sign * sum(float(fill.closed_pnl) for fill in fills)) / size
    return {
        "coin": fills[0].coin,
        "side": {1: "long", -1: "short"}[sign],
        "usd": usd,
        "time": fills[0].time.strftime("%Y-%m-%d %H:%M"),
        "distance": abs(usd / size - entry_px) / entry_px,
        "place": "below" if usd / size < entry_px else "above",
    }


def _largest(results):
    """Return the fills of the millisecond in which liquidations closed the most."""
    moments: dict[Any, float] = {}
    for fill in _forced(results).itertuples():
        moments[fill.time] = moments.get(fill.time, 0.0) + float(fill.px * fill.sz)
    rows = _forced(results)
    return rows[rows["time"] == max(moments, key=lambda time: moments[time])]


def _capital(results):
    """Sum cash, closed PnL and fees before the liquidation, row by row of a USDC account."""
    begin, frames = _largest(results)["time"].iloc[0], results.frames
    assert frames.start_ms == 0
    fills = frames.fills[frames.fills["time"] < begin]
    assert (fills["fee_token"] == "USDC").all()
    ledger = frames.ledger[frames.ledger["time"] < begin]
    assert set(ledger["type"]) <= {"deposit", "liquidation"}
    return _sum(ledger["usdc"]) + _sum(fills["closed_pnl"]) - _sum(fills["fee"])


def sentence_forced_largest(results):
    time = _largest(results)["time"].iloc[0]
    return {"moments": len(set(_forced(results)["time"])), "time": f"{time:%Y-%m-%d %H:%M}"}


def sentence_forced_leverage(results):
    entry, coins = Decimal(0), set()
    for fill in _largest(results).itertuples():
        if fill.coin not in coins:  # the first fill states the whole position
            coins.add(fill.coin)
            sign = {"A": 1, "B": -1}[fill.side]
            entry += abs(fill.start_position) * (fill.px - sign * fill.closed_pnl / fill.sz)
    capital = _capital(results)
    times = float(entry / capital)
    return {"positions": len(coins), "entry": entry, "capital": capital, "times": times}


def sentence_forced_margin(results):
    ledger = results.frames.ledger
    own = ledger[ledger["type"] == "liquidation"].set_index("time")
    row = own.loc[_largest(results)["time"].iloc[0]]
    value, usd = row["account_value"], row["liquidated_ntl_pos"]
    mode = {"Cross": "cross", "Isolated": "isolated"}[row["leverage_type"]]
    return {"mode": mode, "value": value, "usd": usd, "times": float(usd / value)}


def sentence_forced_loss(results):
    rows = _largest(results)
    loss = _sum(rows["fee"]) - _sum(rows["closed_pnl"])
    return {"loss": loss, "share": float(loss / _capital(results))}


def _of_vault(results):
    taken = whole = 0.0
    for fill in _forced(results).itertuples():
        usd = float(fill.px) * float(fill.sz)
        whole += usd
        taken += usd if fill.liquidation_method == "backstop" else 0.0
    return taken / whole


def sentence_forced_backstop(results):
    assert _of_vault(results) == 1
    return {}


def sentence_forced_market(results):
    assert _of_vault(results) == 0
    return {}


def sentence_forced_both(results):
    return {"share": _of_vault(results)}


def sentence_deleveraged(results):
    fills = results.frames.fills
    others = fills.drop(index=_forced(results).index)
    rows = others[others["dir"] == "Auto-Deleveraging"]
    coins = rows["coin"].nunique()
    closed = _sum(rows["closed_pnl"])
    return {"orders": len(set(rows["oid"])), "coins": coins, "closed": closed}


def sentence_left_out(results):
    missing_reasons = results.frames.missing_reasons
    return {"what": "; ".join(f"{what} ({why})" for what, why in missing_reasons.items())}


sentence_funding_unknown = _nothing
sentence_funding_without_builder = _nothing


def sentence_funding_without_positions(results):
    assert not _hours(results)
    assert not _paid(results)
    return {}


def sentence_held(results):
    return {"held": len(_hours(results))}


def sentence_carried(results):
    first = results.frames.fills.drop_duplicates("coin").set_index("coin")["start_position"]
    perps = [coin for coin in first.index if coin[0] not in "@#" and "/" not in coin]
    return {"carried": sum(first[coin] != 0 for coin in perps)}


def sentence_all_covered(results):
    assert _hours(results) == _paid(results)
    return {}


def sentence_covered(results):
    return {"covered": len(_both(results))}


def sentence_agreeing(results):
    held, paid = _hours(results), _paid(results)
    return {"agreeing": sum(held[key] == paid[key] for key in _both(results))}


def sentence_beyond(results):
    return {"beyond": len(_paid(results)) - len(_both(results))}


def sentence_uncovered(results):
    return {"missing": len(_hours(results)) - len(_both(results))}


sentence_worth_unknown = _nothing
sentence_worth_past = _nothing
sentence_worth_late = _nothing


def sentence_worth(results):
    states = results.frames.states
    unrealised = _sum(states.positions["unrealized_pnl"])
    return {"value": _sum(states.accounts["account_value"]), "unrealised": unrealised}


def sentence_worth_unexplained(results):
    row = _reconciled(results)
    assert pd.isna(row["residual"])
    return {"causes": row["causes"]}


def sentence_worth_exact(results):
    assert _reconciled(results)["residual"] == 0
    return {}


def sentence_worth_residual(results):
    row = _reconciled(results)
    causes = row["causes"] or "the cause is not known"
    return {"residual": row["residual"], "causes": causes}


headline_net = _net
headline_net_without_funding = _net


def headline_closed(results):
    return {"closed": _row(results)["closed_pnl"]}


def headline_fees(results):
    paid = _fees(results) + sentence_fees_in_cost(results)["value"]
    return {"fees": _fees(results), "rate": 1e4 * float(paid / volume_of(results))}


def headline_fees_received(results):
    values = headline_fees(results)
    assert values["rate"] > 0
    return values


def headline_fees_without_volume(results):
    assert not volume_of(results)
    return {"fees": _fees(results)}


headline_funding_without_builder = _nothing
headline_funding_without_positions = _nothing
headline_funding_beyond = _funding


def headline_funding_complete(results):
    assert _hours(results).keys() == _paid(results).keys()
    return _funding(results)


headline_funding_carried = _funding
headline_funding_uncounted = _funding


def headline_funding_in_part(results):
    share = len(_both(results)) / len(_hours(results))
    return {**_funding(results), "share": share}


def headline_funding_missing(results):
    assert _hours(results)
    assert not _both(results)
    return {}


def headline_volume(results):
    fills = results.frames.fills
    words = ("Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question")
    return {"volume": volume_of(results), "fills": int((~fills["dir"].isin(words)).sum())}


def headline_cash(results):
    return {"cash": _row(results)["ledger"], "updates": len(results.frames.ledger)}


def check_parts(results):
    row = _row(results)
    parts = row["closed_pnl"] + _fees(results)
    parts += 0 if pd.isna(row["funding"]) else row["funding"]
    return {"residual": row["net"] - parts}


def check_recomputed(results):
    assert _apart(results).notna().all()
    return {"apart": _sum(_apart(results).abs()), "fills": len(results.frames.fills)}


def check_recomputed_in_part(results):
    apart = _apart(results)
    known = int(apart.notna().sum())
    return {"apart": _sum(apart.abs()), "known": known, "fills": len(apart)}


def check_recomputed_unknown(results):
    fills = results.frames.fills
    names = {"unclosed": "closed_pnl", "unpaid": "fee", "unplaced": "start_position"}
    counts = {name: int(fills[column].isna().sum()) for name, column in names.items()}
    assert sum(counts.values())
    return {"fills": len(fills), **counts}


def check_breaks(results):
    result = results.frames
    return {"breaks": int(tk.pnl.audit(result.fills, result.perps)["chain_break"].sum())}


def check_left_out(results):
    row = _row(results)
    return {"amounts": row["unpriced_fees"] + row["unknown_flows"]}


def check_explained(results):
    return {"residual": _reconciled(results)["residual"]}


def check_explained_in_part(results):
    row = _reconciled(results)
    return {"residual": row["residual"], "causes": row["causes"]}
