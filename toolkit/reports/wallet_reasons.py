"""Sentences on why an account won or lost: maker or taker, spread, builders, coins and days."""

import warnings
from collections.abc import Iterator
from typing import Final

import pandas as pd

from toolkit import pnl
from toolkit.errors import MissingAmounts
from toolkit.plots import formats
from toolkit.reports.report_frames import is_perp
from toolkit.reports.sentences import Sentence, paragraph, say
from toolkit.reports.wallet_report import WalletResults

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
    if share == 0:
        yield say("None of its volume rested in the book.")
    elif share < _MAKER:
        text = "Of its volume, {share:share} rested in the book before others traded against it."
        yield say(text, share=share)
    if share < _MAKER:
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
    sums = pd.DataFrame({"sz": sz, "usd": px * sz}).groupby(keys).sum()
    bought, sold = (sums[sums.index.get_level_values("side") == side] for side in ("B", "A"))
    names, ends = ["coin", "hour"], ("", "_sold")
    both = bought.droplevel("side").merge(sold.droplevel("side"), on=names, suffixes=ends)
    matched = both[["sz", "sz_sold"]].min(axis=1)
    paid, received = (matched * both[f"usd{end}"] / both[f"sz{end}"] for end in ends)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingAmounts)
        for builder, fills in paid.groupby(named, dropna=False, sort=True):
            row = pnl.attribution(fills, account=account.address).iloc[0]
            if row["builder_fee"]:  # fees in bought tokens have no USD
                rows.append((builder, len(fills), row["volume"], row["builder_fee"]))
    found = pd.DataFrame(rows, columns=["builder", "fills", "volume", "fee"])
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
        day, net = formats.utc_day(row["day"]), row["net"]
        if is_loss:
            text = "The worst day was {worst_day}, with {worst_day_net:signed} USD."
            yield say(text, worst_day=day, worst_day_net=net)
        else:
            text = "The best day was {best_day}, with {best_day_net:signed} USD."
            yield say(text, best_day=day, best_day_net=net)
