"""Sentences about the fills of an account that liquidations and auto-deleveraging forced."""

import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd

from toolkit import pnl
from toolkit.errors import MissingAmounts
from toolkit.fetch.account import Account
from toolkit.prepare.door import Table
from toolkit.prepare.roles import read_roles
from toolkit.reports.sentences import Sentence, say
from toolkit.rules.directions import LIQUIDATED


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
    if (is_backstop | method.isin(["market"])).all():
        text = (
            "The backstop took {backstop:share} of what was liquidated, and orders in the book "
            "closed the rest."
        )
        if is_backstop.all():
            text = (
                "The backstop took over all that was liquidated; orders in the book closed nothing."
            )
        elif not is_backstop.any():
            text = "Orders in the book closed all that was liquidated; the backstop took nothing."
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
        words = {
            "closed_side": "long" if order["side"] == "A" else "short",
            "at": f"{order['time']:%Y-%m-%d %H:%M}",
            "place": "below" if move < 0 else "above",
        }
        yield say(
            "The largest order closed a {closed_side} of {usd:dollars} USD in {coin} on {at} UTC, "
            "{distance:share} {place} its entry price.",
            distance=abs(move),
            **order,
            **words,
        )


def _tell_margin(ledger: pd.DataFrame, begin: pd.Timestamp) -> Iterator[Sentence]:
    """Yield the margin that the ledger states, if exactly one row is of this liquidation."""
    own = ledger[(ledger["type"] == "liquidation") & (ledger["time"] == begin)]
    stated = own.dropna(subset=["account_value", "liquidated_ntl_pos", "leverage_type"])
    if not len(own) == len(stated) == 1:
        return
    row = stated.iloc[0]
    value, usd = float(row["account_value"]), float(row["liquidated_ntl_pos"])
    if value > 0 and usd > 0:
        text = (
            "At the liquidation, {value:dollars} USD of {mode} margin remained for positions of "
            "{usd:dollars} USD: a leverage of {times:times}."
        )
        mode = str(row["leverage_type"]).lower()
        yield say(text, value=value, mode=mode, usd=usd, times=usd / value)


def _sum_net(account: Account, fills: pd.DataFrame, ledger: pd.DataFrame) -> float:
    """Return closed PnL, fees and cash of rows; NaN if an amount is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingAmounts)  # then nothing is said
        row = pnl.attribution(fills, None, ledger, account=account.address).iloc[0]
    if any(row[name] for name in ("missing_amounts", "unpriced_fees", "unknown_flows")):
        return float("nan")
    return float(row["net"] + row["ledger"])
