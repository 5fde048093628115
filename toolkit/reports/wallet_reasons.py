"""Sentences on why an account won or lost: spread, builders, coins, days, forced closes."""

import warnings
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from toolkit import pnl
from toolkit.errors import MissingAmounts
from toolkit.fetch.account import Account
from toolkit.plots import formats
from toolkit.prepare.door import Table
from toolkit.prepare.roles import read_roles
from toolkit.reports.report_frames import is_perp
from toolkit.reports.sentences import Sentence, paragraph, say
from toolkit.reports.wallet_report import WalletResults
from toolkit.rules.directions import LIQUIDATED

_MAKER: Final = 0.5  # share of the volume from which an account is described as a maker
_MIN_DAYS: Final = 3


@paragraph
def explain_result(results: WalletResults) -> Iterator[Sentence]:
    """Return why the account won or lost, in a few sentences; empty without fills."""
    if results.total["fills"]:
        yield from _tell_maker(results)
        yield from _tell_builders(results)
        if not results.unvalued:
            yield from _tell_nets(results)


def _tell_maker(results: WalletResults) -> Iterator[Sentence]:
    """Yield the share of the maker, and for a market maker what the spread brought."""
    fills, states = results.account.fills, results.account.states
    notional = fills["px"].astype("float64") * fills["sz"].astype("float64")
    if fills["crossed"].isna().any() or not notional.sum():
        return
    share = float(notional[~fills["crossed"].astype("bool")].sum() / notional.sum())
    if share < _MAKER:
        text = "Of its volume, {share:share} rested in the book before others traded against it."
        yield say(text if share else "None of its volume rested in the book.", share=share)
        return
    text = (
        "The account made prices: {share:share} of its volume rested in the book before others "
        "traded against it."
    )
    yield say(text, share=share)
    usd, gain = match_within_hours(fills)
    if not usd:
        return
    text = (
        "It bought {usd:dollars} USD of perps and sold the same amounts within the same hour, "
        "which brought {gain:signed} USD, or {bps:bps} bps."
    )
    yield say(text, usd=usd, gain=gain, bps=1e4 * gain / usd)
    is_whole = results.account.start_ms == 0  # unrealised PnL counts from the entry on
    if is_whole and states is not None and not results.unvalued:
        unrealised = float(states.positions["unrealized_pnl"].sum(skipna=False))
        text = (
            "The rest of its closed and unrealised PnL, {rest:signed} USD, is from spot and from "
            "positions that it held over the end of an hour."
        )
        yield say(text, rest=float(results.total["closed_pnl"]) + unrealised - gain)


def match_within_hours(fills: pd.DataFrame) -> tuple[float, float]:
    """Return what an account bought and sold in equal amounts within an hour, and its gain.

    In each hour (UTC) of each perp, the smaller of the bought and the sold size is matched, at the
    mean price of each side.

    - ``fills``: ``coin, px, sz, side, time``

    Returns: USD bought, and USD sold less USD bought.
    """
    fills = fills[is_perp(fills["coin"])].dropna(subset=["px", "sz"])
    px, sz = (fills[name].astype("float64") for name in ("px", "sz"))
    keys = [fills["coin"], fills["time"].dt.floor("h").rename("hour"), fills["side"]]
    sums: Any = pd.DataFrame({"sz": sz, "usd": px * sz}).groupby(keys).sum().unstack()
    both = sums.reindex(columns=pd.MultiIndex.from_product([["sz", "usd"], ["B", "A"]])).dropna()
    sizes = both["sz"]
    paid, received = (sizes.min(axis=1) * both["usd"][side] / sizes[side] for side in ("B", "A"))
    return float(paid.sum()), float((received - paid).sum())


def sum_builder_fees(results: WalletResults) -> pd.DataFrame:
    """Return what each builder received, the largest first.

    Only the latest fills of an account name their builder. What was paid to builders before them
    has a row without a builder.

    Returns: ``builder, fills, volume, fee`` (USD, negative) and ``rate`` (bps of volume).
    """
    account = results.account
    fees = account.fills["builder_fee"]
    paid = account.fills[fees.notna() & (fees != 0)]
    if paid.empty or results.facts["unpaid"]:
        return pd.DataFrame()
    named = pd.Series(pd.NA, paid.index, dtype="object")
    if account.latest is not None and "builder" in account.latest:  # an order has one builder
        routed = account.latest.dropna(subset=["builder"]).drop_duplicates("oid")
        named = paid["oid"].map(routed.set_index("oid")["builder"])
    rows = []
    with warnings.catch_warnings(action="ignore", category=MissingAmounts):
        for builder, fills in paid.groupby(named, dropna=False, sort=True):
            row = pnl.attribution(fills, account=account.address).iloc[0]
            if row["builder_fee"]:  # fees in bought tokens have no USD
                rows.append((builder, len(fills), row["volume"], row["builder_fee"]))
    found = pd.DataFrame(rows, columns=["builder", "fills", "volume", "fee"])
    found["builder"] = found["builder"].astype("str")  # also if no fill names one
    found["rate"] = 1e4 * found["fee"] / found["volume"]
    return found.sort_values("fee", kind="stable", ignore_index=True)


def _tell_builders(results: WalletResults) -> Iterator[Sentence]:
    """Yield what builders received, for which volume, and what net would be without them."""
    rows, total = sum_builder_fees(results), results.total
    volume = float(total["volume"])
    if rows.empty or not volume:
        return
    usd, paid, largest = float(rows["volume"].sum()), rows["fee"].sum(), rows.iloc[0]
    builder = "" if pd.isna(largest["builder"]) else formats.short_address(largest["builder"])
    is_one = bool(builder) and len(rows) == 1
    yield say(
        "Fees of {of} are {paid:signed} USD, for {usd:dollars} USD that {who} routed "
        "({routed:share} of the volume): {bps:bps} bps. Trading fees are {own:bps} bps of the "
        "whole volume.",
        of=f"the builder {builder}" if is_one else "builders",
        who="it" if is_one else "they",
        paid=paid,
        usd=usd,
        routed=usd / volume,
        bps=1e4 * float(paid) / usd,
        own=1e4 * float(total["trading_fee"]) / volume,
    )
    if builder and not is_one and largest["fee"] < paid / 2:
        text = (
            "Most of them are of the builder {short}: {fee:signed} USD for {volume:dollars} USD, "
            "{rate:bps} bps."
        )
        yield say(text, short=builder, **largest)
    if not results.unvalued:
        text = "Without the fees of builders, the net would be {without:signed} USD."
        yield say(text, without=total["net"] - paid)


def _tell_nets(results: WalletResults) -> Iterator[Sentence]:
    """Yield the coins with the largest gain and loss, and the best or the worst day."""
    is_loss, said = bool(results.total["net"] < 0), []
    coins, days = results.attribution(by="coin"), results.attribution(by="day")
    # The two sides of an outcome market cancel each other.
    coins = coins[~coins["coin"].str.startswith("#")]
    if len(coins) > 1:
        best = coins.sort_values("net", ascending=False, kind="stable").iloc[0]
        worst = coins.sort_values("net", kind="stable").iloc[0]
        if best["net"] > 0:
            text = "The largest gain is from {best_coin}: {best_net:signed} USD."
            said.append(say(text, best_coin=best["coin"], best_net=best["net"]))
        if worst["net"] < 0:
            text = "The largest loss is from {worst_coin}: {worst_net:signed} USD."
            said.append(say(text, worst_coin=worst["coin"], worst_net=worst["net"]))
    yield from reversed(said) if is_loss else said
    if len(days) >= _MIN_DAYS:
        row = days.sort_values("net", ascending=is_loss, kind="stable").iloc[0]
        text = "The best day was {best_day}, with {best_day_net:signed} USD."
        if is_loss:
            text = "The worst day was {worst_day}, with {worst_day_net:signed} USD."
        name = "worst_day" if is_loss else "best_day"
        yield say(text, **{name: formats.utc_day(row["day"]), f"{name}_net": row["net"]})


def find_forced_closes(account: Account) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return fills by liquidations, and other fills by deleveraging."""
    frame = account.fills.reset_index(drop=True)
    roles = read_roles(Table(frame, "fills", "none"), account.address)
    return frame[roles.liquidated], frame[roles.deleveraged]


def tell_forced_closes(
    account: Account, liquidated: pd.DataFrame, deleveraged: pd.DataFrame
) -> Iterator[Sentence]:
    """Yield sentences about fills by liquidations, and about other fills by deleveraging."""
    if len(liquidated):
        yield say(
            "The account was liquidated: {forced_orders:count liquidation}, in "
            "{forced_coins:count coin}, brought {forced_closed:signed} USD of its closed PnL.",
            **_sum_closed("forced", liquidated),
        )
        # Without all amounts, only the sentence above is known.
        if liquidated[["oid", "px", "sz", "side", "closed_pnl"]].notna().to_numpy().all():
            yield from _tell_liquidations(account, liquidated)
    if len(deleveraged):
        yield say(
            "Auto-deleveraging closed positions of the account: {deleveraged_orders:count order}, "
            "in {deleveraged_coins:count coin}, brought {deleveraged_closed:signed} USD of its "
            "closed PnL.",
            **_sum_closed("deleveraged", deleveraged),
        )


def _sum_closed(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    counts = {f"{name}_orders": rows["oid"].nunique(), f"{name}_coins": rows["coin"].nunique()}
    return counts | {f"{name}_closed": rows["closed_pnl"].sum(skipna=False)}


def _tell_liquidations(account: Account, rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield who took the liquidated positions; then leverage and loss of the largest moment."""
    usd = rows["px"].astype("float64") * rows["sz"].astype("float64")
    sign = rows["side"].map({"A": 1.0, "B": -1.0}).astype("float64")  # a sell closes a long
    rows = rows.assign(usd=usd, entry_usd=usd - sign * rows["closed_pnl"].astype("float64"))
    yield from _tell_taker(rows)
    sums = rows.groupby("time")["usd"].sum()
    begin: Any = sums.idxmax()
    if len(sums) > 1:
        text = (
            "The liquidations happened at {moments:count time}. The following describes the "
            "largest, on {time} UTC."
        )
        yield say(text, moments=len(sums), time=f"{begin:%Y-%m-%d %H:%M}")
    rows = rows[rows["time"] == begin]
    yield from _tell_largest_order(rows)
    capital, net = float("nan"), _sum_net(account, rows, account.ledger.iloc[:0])
    if account.start_ms == 0 and rows["start_position"].notna().all():
        earlier = (frame[frame["time"] < begin] for frame in (account.fills, account.ledger))
        capital = _sum_net(account, *earlier)
    # A liquidation may close a part; the position before its first fill was the largest.
    size = rows["start_position"].astype("float64").abs().groupby(rows["coin"]).max()
    parts = rows.groupby("coin")[["entry_usd", "sz"]].agg("sum").astype("float64")
    entry = parts["entry_usd"] / parts["sz"] * size
    is_known = capital > 0 and bool((entry > 0).all())
    if is_known:
        yield say(
            "At entry prices, {positions:count liquidated position was|liquidated positions were} "
            "worth {entry:dollars} USD: {times:times} times the capital of {capital:dollars} USD "
            "before it. Capital is cash in, less cash out, with closed PnL and fees, without "
            "funding.",
            positions=len(entry), entry=entry.sum(), times=entry.sum() / capital, capital=capital,
        )  # fmt: skip
    yield from _tell_margin(account.ledger, begin)
    if is_known and net < 0:
        text = (
            "With its fees, the liquidation lost {loss:dollars} USD: {lost:share} of this capital."
        )
        yield say(text, loss=-net, lost=-net / capital)


def _tell_taker(rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield whether the backstop took the notional or orders in the book, if it is known."""
    method, words = rows["liquidation_method"], rows["dir"].astype("str")
    # These words mark liquidations by the backstop (docs/live_service.md, section 2).
    is_backstop = method.isin(["backstop"]) | (method.isna() & words.str.startswith(LIQUIDATED))
    if not (is_backstop | method.isin(["market"])).all():
        return
    text = "Orders in the book closed all that was liquidated; the backstop took nothing."
    if is_backstop.all():
        text = "The backstop took over all that was liquidated; orders in the book closed nothing."
    elif is_backstop.any():
        text = (
            "The backstop took {backstop:share} of what was liquidated, and orders in the book "
            "closed the rest."
        )
    yield say(text, backstop=rows["usd"][is_backstop].sum() / rows["usd"].sum())


def _tell_largest_order(rows: pd.DataFrame) -> Iterator[Sentence]:
    """Yield the order with the largest notional; its entry price follows from its closed PnL."""
    orders = rows.groupby("oid", sort=False).agg(
        coin=("coin", "first"), side=("side", "first"), usd=("usd", "sum"),
        entry_usd=("entry_usd", "sum"), time=("time", "min"),
    )  # fmt: skip
    order = orders.sort_values(["usd", "time"], ascending=[False, True], kind="stable").iloc[0]
    if order["entry_usd"] > 0:
        move = order["usd"] / order["entry_usd"] - 1
        yield say(
            "The largest order closed a {closed_side} of {usd:dollars} USD in {coin} on {at} UTC, "
            "{distance:share} {place} its entry price.",
            closed_side="long" if order["side"] == "A" else "short",
            at=f"{order['time']:%Y-%m-%d %H:%M}",
            place="below" if move < 0 else "above",
            distance=abs(move),
            **order,
        )


def _tell_margin(ledger: pd.DataFrame, begin: pd.Timestamp) -> Iterator[Sentence]:
    """Yield the margin that the ledger states, if exactly one row is of this liquidation."""
    own = ledger[(ledger["type"] == "liquidation") & (ledger["time"] == begin)]
    names = ["account_value", "liquidated_ntl_pos", "leverage_type"]
    if len(own) != 1 or own[names].isna().to_numpy().any():
        return
    value, usd, mode = own[names].iloc[0]
    if value > 0 and usd > 0:
        text = (
            "At the liquidation, {value:dollars} USD of {mode} margin remained for positions of "
            "{usd:dollars} USD: a leverage of {times:times}."
        )
        yield say(text, value=value, mode=mode.lower(), usd=usd, times=usd / value)


def _sum_net(account: Account, fills: pd.DataFrame, ledger: pd.DataFrame) -> float:
    """Return closed PnL, fees and cash of rows; NaN if an amount is missing."""
    with warnings.catch_warnings(action="ignore", category=MissingAmounts):  # then nothing is said
        row = pnl.attribution(fills, None, ledger, account=account.address).iloc[0]
    is_known = not row[["missing_amounts", "unpriced_fees", "unknown_flows"]].any()
    return float(row["net"] + row["ledger"]) if is_known else float("nan")
