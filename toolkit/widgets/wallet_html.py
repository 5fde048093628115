"""HTML of the wallet explorer."""

from functools import partial
from typing import Any, Final

import pandas as pd

from toolkit import plots
from toolkit.display import count_text
from toolkit.plots import formats
from toolkit.widgets import view_html
from toolkit.widgets.svg import draw_svg
from toolkit.widgets.view_html import HtmlColumn, signed_share, signed_usd
from toolkit.widgets.wallet_view import WalletView, gain_and_return

_FILLS: Final = 20  # the latest fills are listed

MONEY_COLUMNS: Final = (
    HtmlColumn("fills", "fills", formats.whole_number, "number of fills"),
    HtmlColumn("volume", "volume", formats.whole_dollars, "traded notional, USD"),
    HtmlColumn("closed_pnl", "closed PnL", signed_usd, "USD, before fees"),
    HtmlColumn("trading_fee", "trading fees", signed_usd, "USD, negative when paid"),
    HtmlColumn("builder_fee", "builder fees", signed_usd, "USD, negative when paid"),
    HtmlColumn("deployer_fee", "deployer fees", signed_usd, "USD, negative when paid"),
    HtmlColumn("rebate", "rebates", signed_usd, "USD, positive"),
    HtmlColumn("funding", "funding", signed_usd, "USD, positive when received; a dash: not known"),
    HtmlColumn("net", "net", signed_usd, "USD, the sum of the columns before"),
)
_COINS: Final = (HtmlColumn("coin", "coin", number=False), *MONEY_COLUMNS)
_DAYS: Final = (HtmlColumn("day", "day", formats.utc_day, "UTC", number=False), *MONEY_COLUMNS)
_POSITIONS: Final = (
    HtmlColumn("coin", "coin", number=False),
    HtmlColumn("szi", "size", formats.exact_number, "positive: long, negative: short"),
    HtmlColumn("entry_px", "entry", formats.exact_number, "average entry price"),
    HtmlColumn("position_value", "value", formats.whole_dollars, "notional at the mark price, USD"),
    HtmlColumn("unrealized_pnl", "unrealised", signed_usd, "unrealised PnL, USD"),
    HtmlColumn(
        "liquidation_px", "liquidation", formats.exact_number, "liquidation price; a dash: none"
    ),
    HtmlColumn("leverage_value", "leverage", lambda value: f"{value}\N{MULTIPLICATION SIGN}"),
)
_LISTED: Final = (
    HtmlColumn("time", "time", view_html.time_text, "UTC", number=False),
    HtmlColumn("coin", "coin", number=False),
    HtmlColumn("dir", "what", meaning="effect of the fill on the position", number=False),
    HtmlColumn("px", "price", formats.exact_number),
    HtmlColumn("sz", "size", formats.exact_number),
    HtmlColumn("closed_pnl", "closed PnL", signed_usd, "USD, before fees"),
    HtmlColumn("fee", "fee", formats.exact_number, "in the fee token, positive when paid"),
    HtmlColumn("fee_token", "token", number=False),
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
    head = view_html.note(_headline_text(view), "tk-head")
    notes = "".join(
        view_html.problem(f"{name}, missing or incomplete: {view.account.missing[name]}")
        for name in ("fills", "funding", "ledger")
        if name in view.account.missing
    )
    figures = []
    if len(view.earned):
        words = f"Covered: {view.earned.iloc[0]['covers']}. Net contains only what is covered."
        coverage = view_html.note(words)
        figures.append(f"<div>{draw_svg(plots.waterfall, view.earned)}{coverage}</div>")
        figures.append(f"<div>{draw_svg(plots.cumulative_pnl, view.hours)}</div>")
    if equity := _equity_html(view):
        figures.append(f"<div>{equity}</div>")
    tables = [_coin_table(view), _position_table(view), _day_table(view), _fill_table(view)]
    return (
        f'{head}{notes}<div class="tk-figures">{"".join(figures)}</div>'
        f'<div class="tk-side">{"".join(tables)}</div>'
    )


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


def _headline_text(view: WalletView) -> str:
    request, where = view.request, _choice_text(view)
    if not len(view.earned):
        return (
            f"There is no data of {request.user.strip()}{where}: no fills, no ledger, no funding."
        )
    row: Any = view.earned.iloc[0]
    fills, volume = count_text(row["fills"], "fill"), formats.whole_dollars(row["volume"])
    text = (
        f"{formats.short_address(view.account.address)}{where}: net {signed_usd(row['net'])} USD "
        f"from {fills}, volume {volume} USD"
    )
    if request.coin is None and request.day is None:
        gain, share = gain_and_return(view.figures.returns)
        if pd.notna(gain):
            text += f"; its value gained {signed_usd(gain)} USD, a return of {signed_share(share)}"
    return f"{text}."


def _choice_text(view: WalletView) -> str:
    request = view.request
    coin = f", {request.coin}" if request.coin else ""
    time = f", on {request.day}" if request.day else f", in {request.period}"
    return coin + time


def _equity_html(view: WalletView) -> str:
    """Return equity over time with a note; empty without equity."""
    curve = view.equity
    if view.figures.is_spot_backed and view.request.coin is None:
        return view_html.note(_SPOT_BACKED_NOTE)
    if curve is None or not len(curve):
        return ""
    drawn = draw_svg(partial(plots.equity_curve, of="equity", note=_MARK_NOTE), curve)
    note = (
        ""
        if view.account.funding is not None
        else " Equity does not contain funding, which is not known."
    )
    return drawn + view_html.note(f"{_EQUITY_NOTE}{note}")


def _coin_table(view: WalletView) -> str:
    day = f", {view.request.day}" if view.request.day else ""
    marked = view.coins["coin"] == view.request.coin
    return view_html.table(f"By coin{day}", view.coins, _COINS, marked=marked)


def _day_table(view: WalletView) -> str:
    coin = f", {view.request.coin}" if view.request.coin else ""
    marked = view.days["day"].map(formats.utc_day) == view.request.day
    return view_html.table(f"By day{coin}", view.days, _DAYS, marked=marked)


def _position_table(view: WalletView) -> str:
    if view.positions is None:
        return view_html.note(f"Positions cannot be fetched: {view.account.missing['states']}")
    positions = view.positions
    at = f", {view_html.time_text(positions['time'].iloc[0])} UTC" if len(positions) else ""
    return view_html.table(f"Positions now{at}", positions, _POSITIONS, empty="no open position")


def _fill_table(view: WalletView) -> str:
    fills: pd.DataFrame = view.fills
    shown = fills.iloc[::-1].head(_FILLS)
    caption = f"Fills, the latest {len(shown)} of {len(fills):,}" if len(fills) else "Fills"
    return view_html.table(caption, shown, _LISTED, empty="no fill")
