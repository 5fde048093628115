"""HTML of the wallet explorer, of one account and of several."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit import plots
from toolkit.display import count_text
from toolkit.plots import formats
from toolkit.plots.tables import Column
from toolkit.widgets import view_html
from toolkit.widgets.svg import draw_svg
from toolkit.widgets.view_html import signed_share, signed_usd
from toolkit.widgets.wallet_view import ComparisonView, WalletView

_FILLS: Final = 20  # the latest fills are listed

_MONEY: Final = (
    Column("fills", "fills", formats.whole_number, "number of fills"),
    Column("volume", "volume", formats.whole_dollars, "traded notional, USD"),
    Column("closed_pnl", "closed PnL", signed_usd, "USD, before fees"),
    Column("trading_fee", "trading fees", signed_usd, "USD, negative when paid"),
    Column("builder_fee", "builder fees", signed_usd, "USD, negative when paid"),
    Column("deployer_fee", "deployer fees", signed_usd, "USD, negative when paid"),
    Column("rebate", "rebates", signed_usd, "USD, positive"),
    Column("funding", "funding", signed_usd, "USD, positive when received; a dash: not known"),
    Column("net", "net", signed_usd, "USD, the sum of the columns before"),
)
_COINS: Final = (Column("coin", "coin", number=False), *_MONEY)
_DAYS: Final = (Column("day", "day", formats.utc_day, "UTC", number=False), *_MONEY)
_POSITIONS: Final = (
    Column("coin", "coin", number=False),
    Column("szi", "size", formats.exact_number, "positive: long, negative: short"),
    Column("entry_px", "entry", formats.exact_number, "average entry price"),
    Column("position_value", "value", formats.whole_dollars, "notional at the mark price, USD"),
    Column("unrealized_pnl", "unrealised", signed_usd, "unrealised PnL, USD"),
    Column(
        "liquidation_px", "liquidation", formats.exact_number, "liquidation price; a dash: none"
    ),
    Column("leverage_value", "leverage", lambda value: f"{value}\N{MULTIPLICATION SIGN}"),
)
_LISTED: Final = (
    Column("time", "time", view_html.time_text, "UTC", number=False),
    Column("coin", "coin", number=False),
    Column("dir", "what", meaning="effect of the fill on the position", number=False),
    Column("px", "price", formats.exact_number),
    Column("sz", "size", formats.exact_number),
    Column("closed_pnl", "closed PnL", signed_usd, "USD, before fees"),
    Column("fee", "fee", formats.exact_number, "in the fee token, positive when paid"),
    Column("fee_token", "token", number=False),
)
_ACCOUNTS: Final = (
    Column(
        "user",
        "account",
        formats.short_address,
        "the CSV and Excel files have the full address",
        False,
    ),
    *_MONEY,
    Column("gain", "gain of value", signed_usd, "USD, without deposits; a dash: not known"),
    Column("return_", "return", signed_share, "time-weighted; a dash: not known"),
    Column("account_value", "equity now", formats.whole_dollars, "perp account values, USD"),
    Column("positions", "positions", formats.whole_number, "open perp positions now"),
)
_MARK_NOTE: Final = (
    "perp account; positions at the price of its last fill, at the end at the mark price"
)
_SPOT_BACKED_NOTE: Final = (
    "Equity is not known: the account has unified or portfolio margin, and its collateral is in "
    "the spot wallet, which its state does not have."
)
_EQUITY_NOTE: Final = (
    "Equity ends at the value that the service states now. Earlier values are computed back from "
    "it through fills, fees, funding and ledger. Equity does not contain the spot wallet of "
    "unified and portfolio-margin accounts. Drawdown is of PnL, without deposits and withdrawals."
)


def wallet_html(view: WalletView) -> str:
    """Return a view as HTML: headline, waterfall, PnL over time, tables."""
    request, missing, earned = view.request, view.account.missing, view.earned
    where = f", {request.coin}" if request.coin else ""
    where += f", on {request.day}" if request.day else f", in {request.period}"
    text = f"There is no data of {request.user.strip()}{where}: no fills, no ledger, no funding."
    figures = []
    if len(earned):
        text = f"{formats.short_address(view.account.address)}{where}: {_net_text(earned)}"
        gain, share = view.figures.gain_and_return
        if request.coin is None and request.day is None and pd.notna(gain):
            text += f"; its value gained {signed_usd(gain)} USD, a return of {signed_share(share)}"
        text += "."
        coverage = view_html.note(_coverage_text(earned))
        figures = [
            f"{draw_svg(plots.waterfall, earned)}{coverage}",
            draw_svg(plots.cumulative_pnl, view.hours),
        ]
    problems = [
        view_html.problem(f"{name}, missing or incomplete: {missing[name]}")
        for name in ("fills", "funding", "ledger")
        if name in missing
    ]
    coin, day = (f", {chosen}" if chosen else "" for chosen in (request.coin, request.day))
    is_coin = view.coins["coin"] == request.coin
    is_day = view.days["day"].map(formats.utc_day) == request.day
    shown = view.fills.iloc[::-1].head(_FILLS)
    latest = f"Fills, the latest {len(shown)} of {len(view.fills):,}" if len(shown) else "Fills"
    return _view_html(
        text,
        problems,
        [*figures, _equity_html(view)],
        view_html.table(f"By coin{day}", view.coins, _COINS, marked=is_coin),
        _position_table(view),
        view_html.table(f"By day{coin}", view.days, _DAYS, marked=is_day),
        view_html.table(latest, shown, _LISTED, empty="no fill"),
    )


def _view_html(head: str, notes: Iterable[str], figures: Iterable[str], *tables: str) -> str:
    boxes = "".join(f"<div>{figure}</div>" for figure in figures if figure)
    return (
        view_html.note(head, "tk-head")
        + "".join(notes)
        + f'<div class="tk-figures">{boxes}</div><div class="tk-side">{"".join(tables)}</div>'
    )


def _net_text(earned: pd.DataFrame) -> str:
    row: Any = earned.iloc[0]
    return (
        f"net {signed_usd(row['net'])} USD from {count_text(row['fills'], 'fill')}, "
        f"volume {formats.whole_dollars(row['volume'])} USD"
    )


def _coverage_text(earned: pd.DataFrame) -> str:
    return f"Covered: {earned.iloc[0]['covers']}. Net contains only what is covered."


def coin_options(view: WalletView) -> list[tuple[str, str | None]]:
    """Return the coins to choose from with their net, the largest amounts first."""
    rows = view.coins.assign(size=view.coins["net"].astype("float64").abs())
    rows = rows.sort_values(["size", "coin"], ascending=[False, True], kind="stable")
    return [("all coins", None), *(_net_option(row.coin, row.net) for row in rows.itertuples())]


def day_options(view: WalletView) -> list[tuple[str, str | None]]:
    """Return the days to choose from with their net, the latest first."""
    rows = view.days.sort_values("day", ascending=False, kind="stable")
    days = [_net_option(formats.utc_day(row.day), row.net) for row in rows.itertuples()]
    return [("all days", None), *days]


def _net_option(name: Any, net: Any) -> tuple[str, str]:
    return f"{name}: {signed_usd(net)}", str(name)


def _equity_html(view: WalletView) -> str:
    """Return equity over time with a note; empty without equity."""
    curve = view.equity
    if view.figures.is_spot_backed and view.request.coin is None:
        return view_html.note(_SPOT_BACKED_NOTE)
    if curve is None or not len(curve):
        return ""
    drawn = draw_svg(partial(plots.equity_curve, of="equity", note=_MARK_NOTE), curve)
    is_paid = view.account.funding is not None
    note = "" if is_paid else " Equity does not contain funding, which is not known."
    return drawn + view_html.note(f"{_EQUITY_NOTE}{note}")


def _position_table(view: WalletView) -> str:
    rows = view.positions
    if rows is None:
        return view_html.note(f"Positions cannot be fetched: {view.account.missing['states']}")
    at = f", {view_html.time_text(rows['time'].iloc[0])} UTC" if len(rows) else ""
    return view_html.table(f"Positions now{at}", rows, _POSITIONS, empty="no open position")


def comparison_html(view: ComparisonView) -> str:
    """Return a view as HTML: headline, PnL over time, the sum of all, and the table."""
    earned, count, rows = view.earned, len(view.figures), _account_rows(view)
    missing = {user: each.account.missing for user, each in view.figures.items()}
    head = f"{count_text(count, 'account')} in {view.request.period}: "
    head += _net_text(view.total) if len(earned) else "no fills, no ledger, no funding"
    known = rows.dropna(subset="gain").sort_values("gain", ascending=False)
    if len(earned) and len(known) > 1:
        best, worst = (
            f"{formats.short_address(row['user'])} with {signed_usd(row['gain'])}"
            for _, row in known.iloc[[0, -1]].iterrows()
        )
        head += f"; gain of value, best: {best}; worst: {worst}"
    if len(earned) and (empty := count - len(earned)):
        head += f"; {count_text(empty, 'account has', 'accounts have')} no rows"
    notes = [
        view_html.problem(f"{formats.short_address(user)} is missing: {why}")
        for user, why in view.failed.items()
    ]
    notes += [
        view_html.problem(f"{name} of {formats.short_address(user)}, missing or incomplete: {why}")
        for user, reasons in missing.items()
        for name, why in reasons.items()
        if name != "states"
    ]
    figures = []
    if len(earned):
        drawn = view.largest["user"].nunique()
        text = f"The {drawn} of {len(earned)} accounts with the largest volume."
        note = "" if drawn == len(earned) else view_html.note(text)
        figures.append(f"{draw_svg(plots.cumulative_pnl, view.largest)}{note}")
        note = view_html.note(f"All accounts. {_coverage_text(view.total)}")
        figures.append(f"{draw_svg(plots.waterfall, view.total)}{note}")
    unstated = dict.fromkeys(reasons.get("states", "") for reasons in missing.values())
    notes += [
        view_html.note(f"Positions and equity cannot be fetched: {reason}")
        for reason in filter(None, unstated)
    ]
    table = view_html.table("By account", rows, _ACCOUNTS)
    return _view_html(f"{head}.", notes, figures, table)


def account_options(view: ComparisonView) -> list[tuple[str, str | None]]:
    """Return the accounts to choose from with their net, in the order of the request."""
    nets = dict(zip(view.earned["user"], view.earned["net"], strict=True))
    options: list[tuple[str, str | None]] = [("all accounts", None)]
    for user in view.request.users:
        text = "missing" if user in view.failed else "no rows"
        text = signed_usd(nets[user]) if user in nets else text
        options.append((f"{formats.short_address(user)}: {text}", user))
    return options


def _account_rows(view: ComparisonView) -> pd.DataFrame:
    """Return the PnL of each account with its state now; accounts without rows come last."""
    others = [user for user in view.figures if user not in set(view.earned["user"])]
    rows = pd.concat([view.earned, pd.DataFrame({"user": others})], ignore_index=True)
    figures = [view.figures[user] for user in rows["user"]]
    earned = [each.gain_and_return for each in figures]
    rows[["gain", "return_"]] = np.array(earned).reshape(-1, 2)
    rows["account_value"] = [each.value for each in figures]
    states = [each.account.states for each in figures]
    counts = [None if state is None else len(state.positions) for state in states]
    return rows.assign(positions=pd.array(counts, dtype="Int64"))
