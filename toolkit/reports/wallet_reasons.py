"""Sentences on why an account won or lost: maker or taker, spread, builders, coins and days."""

import warnings
from typing import Any, Final

import pandas as pd

from toolkit import pnl
from toolkit.errors import MissingAmounts
from toolkit.plots import formats
from toolkit.reports.report_frames import is_perp
from toolkit.reports.sentences import Paragraph, Sentence, sentence
from toolkit.reports.wallet_report import WalletResults

SENTENCES: Final = {
    "maker": "Of its volume, {share:share} rested in the book before others traded against it.",
    "maker_most": "The account made prices: {share:share} of its volume rested in the book before "
    "others traded against it.",
    "taker": "None of its volume rested in the book.",
    "matched": "It bought {usd:dollars} USD of perps and sold the same amounts within the same "
    "hour, which brought {gain:signed} USD, or {rate:bps} bps.",
    "held_longer": "The rest of its closed and unrealised PnL, {rest:signed} USD, is from spot and "
    "from positions that it held over the end of an hour.",
    "builder": "Fees of the builder {builder} are {paid:signed} USD, for {usd:dollars} USD that it "
    "routed ({share:share} of the volume): {rate:bps} bps. Trading fees are {own:bps} bps of the "
    "whole volume.",
    "builders": "Fees of builders are {paid:signed} USD, for {usd:dollars} USD that they routed "
    "({share:share} of the volume): {rate:bps} bps. Trading fees are {own:bps} bps of the whole "
    "volume.",
    "builder_most": "Most of them are of the builder {builder}: {paid:signed} USD for "
    "{usd:dollars} USD, {rate:bps} bps.",
    "without_builders": "Without the fees of builders, the net would be {net:signed} USD.",
    "coin_gain": "The largest gain is from {coin}: {net:signed} USD.",
    "coin_loss": "The largest loss is from {coin}: {net:signed} USD.",
    "best_day": "The best day was {day}, with {net:signed} USD.",
    "worst_day": "The worst day was {day}, with {net:signed} USD.",
}
_MAKER: Final = 0.5  # share of the volume from which an account is described as a maker
_MIN_DAYS: Final = 3


def explain_result(results: WalletResults) -> Paragraph:
    """Return why the account won or lost, in a few sentences; empty without fills."""
    return Paragraph(list_sentences(results))


def list_sentences(results: WalletResults) -> list[Sentence]:
    """Return the sentences of this part."""
    if not results.total["fills"]:
        return []
    return [*_maker_sentences(results), *_builder_sentences(results), *_net_sentences(results)]


def _maker_sentences(results: WalletResults) -> list[Sentence]:
    """Return the share of the maker, and for a market maker what the spread brought."""
    share = results.maker_share
    if share is None:
        return []
    if share == 0:
        return [sentence(SENTENCES, "taker")]
    if share < _MAKER:
        return [sentence(SENTENCES, "maker", share=share)]
    sentences = [sentence(SENTENCES, "maker_most", share=share)]
    usd, gain = match_within_hours(results.account.fills)
    if usd:
        values = {"usd": usd, "gain": gain, "rate": 1e4 * gain / usd}
        sentences.append(sentence(SENTENCES, "matched", **values))
    states = results.account.states
    is_whole = results.account.start_ms == 0  # unrealised PnL counts from the entry on
    if usd and is_whole and states is not None and not results.fills_without_amounts:
        unrealised = states.positions["unrealized_pnl"].sum(skipna=False)
        rest = float(results.total["closed_pnl"]) + float(unrealised) - gain
        sentences.append(sentence(SENTENCES, "held_longer", rest=rest))
    return sentences


def match_within_hours(fills: pd.DataFrame) -> tuple[float, float]:
    """Return what an account bought and sold in equal amounts within an hour, and its gain.

    In each hour (UTC) of each perp, the smaller of the bought and the sold size is matched, at the
    mean price of each side.

    - ``fills``: ``coin, px, sz, side, time``; px and sz are decimals

    Returns: USD bought, and USD sold less USD bought.
    """
    fills = fills[is_perp(fills["coin"])].dropna(subset=["px", "sz"])
    hours = fills["time"].dt.floor("h")
    px, sz = (fills[name].astype("object") for name in ("px", "sz"))  # decimals of any length
    sums = (
        pd.DataFrame({"sz": sz, "usd": px * sz})
        .groupby([fills["coin"], hours.rename("hour"), fills["side"]])
        .sum()
    )
    side = sums.index.get_level_values("side")
    sides = [sums[side == name].droplevel("side") for name in ("B", "A")]
    both = sides[0].index.intersection(sides[1].index)
    bought, sold = (rows.loc[both] for rows in sides)
    matched = bought["sz"].where(bought["sz"] < sold["sz"], sold["sz"])
    paid, received = (matched * rows["usd"] / rows["sz"] for rows in (bought, sold))
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
    if paid.empty or "fee" in results.missing_counts:
        return pd.DataFrame()
    named = pd.Series(pd.NA, paid.index, dtype="object")
    if account.latest is not None and "builder" in account.latest:  # an order has one builder
        routed = account.latest.dropna(subset=["builder"]).drop_duplicates("oid")
        named = paid["oid"].map(routed.set_index("oid")["builder"])
    rows = [
        {"builder": builder, **_sum_fees(results, fills)}
        for builder, fills in paid.groupby(named, dropna=False, sort=True)
    ]
    found = pd.DataFrame([row for row in rows if row["fee"]])  # fees in bought tokens have no USD
    if found.empty:
        return found
    found["rate"] = 1e4 * found["fee"].astype("float64") / found["volume"].astype("float64")
    return found.sort_values("fee", kind="stable", ignore_index=True)


def _sum_fees(results: WalletResults, fills: pd.DataFrame) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingAmounts)
        row = pnl.attribution(fills, account=results.account.address).iloc[0]
    return {"fills": len(fills), "volume": row["volume"], "fee": row["builder_fee"]}


def _builder_sentences(results: WalletResults) -> list[Sentence]:
    """Return what builders received, for which volume, and what net would be without them."""
    rows, total = sum_builder_fees(results), results.total
    if rows.empty or not float(total["volume"]):
        return []
    usd, volume, paid = (float(sum(rows["volume"])), float(total["volume"]), sum(rows["fee"]))
    values = {
        "paid": paid,
        "usd": usd,
        "share": usd / volume,
        "rate": 1e4 * float(paid) / usd,
        "own": 1e4 * float(total["trading_fee"]) / volume,
    }
    largest = rows.iloc[0]
    name = largest["builder"]
    builder = "" if pd.isna(name) else formats.short_address(name)
    if builder and len(rows) == 1:
        sentences = [sentence(SENTENCES, "builder", builder=builder, **values)]
    else:
        sentences = [sentence(SENTENCES, "builders", **values)]
    if builder and len(rows) > 1 and largest["fee"] < paid / 2:
        values = {"paid": largest["fee"], "usd": largest["volume"], "rate": largest["rate"]}
        sentences.append(sentence(SENTENCES, "builder_most", builder=builder, **values))
    if not results.fills_without_amounts:
        sentences.append(sentence(SENTENCES, "without_builders", net=total["net"] - paid))
    return sentences


def _net_sentences(results: WalletResults) -> list[Sentence]:
    """Return the coins with the largest gain and loss, and the best or the worst day."""
    if results.fills_without_amounts:
        return []
    sentences = []
    coins, days = results.attribution(by="coin"), results.attribution(by="day")
    # The two sides of an outcome market cancel each other.
    coins = coins[~coins["coin"].str.startswith("#")]
    by_coin, by_day = _floats(coins), _floats(days)
    if len(coins) > 1:
        best, worst = coins.loc[by_coin.idxmax()], coins.loc[by_coin.idxmin()]
        for name, row, is_such in (
            ("coin_gain", best, best["net"] > 0),
            ("coin_loss", worst, worst["net"] < 0),
        ):
            if is_such:
                sentences.append(sentence(SENTENCES, name, coin=row["coin"], net=row["net"]))
    is_loss = results.total["net"] < 0
    if is_loss:
        sentences.reverse()
    if len(days) >= _MIN_DAYS:
        day = days.loc[by_day.idxmin() if is_loss else by_day.idxmax()]
        values = {"day": formats.utc_day(day["day"]), "net": day["net"]}
        sentences.append(sentence(SENTENCES, "worst_day" if is_loss else "best_day", **values))
    return sentences


def _floats(rows: pd.DataFrame) -> Any:
    return rows["net"].astype("float64")
