"""How the wallet explorer writes what it shows."""

from functools import partial
from typing import Any, Final

import pandas as pd

from toolkit import plots
from toolkit.plots import formats
from toolkit.widgets import markup
from toolkit.widgets.markup import Column, usd
from toolkit.widgets.pictures import picture
from toolkit.widgets.wallet_view import WalletView

__all__ = ["coin_options", "day_options", "page"]

_FILLS: Final = 20  # latest ones that are listed

_MONEY: Final = (
    Column("fills", "fills", formats.whole_number, "number of fills"),
    Column("volume", "volume", formats.whole_dollars, "traded notional, USD"),
    Column("closed_pnl", "closed PnL", usd, "USD, before fees"),
    Column("trading_fee", "trading fees", usd, "USD, negative when paid"),
    Column("builder_fee", "builder fees", usd, "USD, negative when paid"),
    Column("deployer_fee", "deployer fees", usd, "USD, negative when paid"),
    Column("rebate", "rebates", usd, "USD, positive"),
    Column("funding", "funding", usd, "USD, positive when received; a dash: not known"),
    Column("net", "net", usd, "USD: what stands before it, added up"),
)
_COINS: Final = (Column("coin", "coin", number=False), *_MONEY)
_DAYS: Final = (Column("day", "day", formats.utc_day, "UTC", number=False), *_MONEY)
_POSITIONS: Final = (
    Column("coin", "coin", number=False),
    Column("szi", "size", formats.exact_number, "positive: long, negative: short"),
    Column("entry_px", "entry", formats.exact_number, "average entry price"),
    Column("position_value", "value", formats.whole_dollars, "notional at the mark price, USD"),
    Column("unrealized_pnl", "unrealised", usd, "unrealised PnL, USD"),
    Column(
        "liquidation_px", "liquidation", formats.exact_number, "liquidation price; a dash: none"
    ),
    Column("leverage_value", "leverage", lambda value: f"{value}\N{MULTIPLICATION SIGN}"),
)
_LISTED: Final = (
    Column("time", "time", markup.moment, "UTC", number=False),
    Column("coin", "coin", number=False),
    Column("dir", "what", meaning="what the fill did to the position", number=False),
    Column("px", "price", formats.exact_number),
    Column("sz", "size", formats.exact_number),
    Column("closed_pnl", "closed PnL", usd, "USD, before fees"),
    Column("fee", "fee", formats.exact_number, "in the fee token, positive when paid"),
    Column("fee_token", "token", number=False),
)
_MARKED: Final = (
    "perp account; positions marked at its own last fill, at the end at the exchange's mark"
)
_EQUITY: Final = (
    "Equity ends at what the service states now, and is carried back through fills, fees, funding "
    "and ledger. What unified and portfolio-margin accounts keep in the spot wallet is not in it. "
    "Drawdown is of PnL: deposits and withdrawals are no gains."
)


def page(view: WalletView) -> str:
    """Write a view: headline, waterfall, PnL over time, tables."""
    parts = [markup.note(_headline(view), "tk-head")]
    if len(view.earned):
        parts.append(picture(plots.waterfall, view.earned))
        parts.append(markup.note(_covers(view)))
        parts.append(picture(plots.cumulative_pnl, view.hours))
    parts.append(_equity(view))
    tables = f'<div class="tk-side">{_by_coin(view)}{_by_day(view)}</div>'
    return "".join([*parts, tables, _positions(view), _fills(view)])


def coin_options(view: WalletView) -> list[tuple[str, str | None]]:
    """List the coins to choose from, with what each brought; the largest amounts first."""
    rows = view.coins.assign(size=view.coins["net"].astype("float64").abs())
    rows = rows.sort_values(["size", "coin"], ascending=[False, True], kind="stable")
    return [("all coins", None), *(_option(row.coin, row.net) for row in rows.itertuples())]


def day_options(view: WalletView) -> list[tuple[str, str | None]]:
    """List the days to choose from, with what each brought, the latest first."""
    rows = view.days.sort_values("day", ascending=False, kind="stable")
    days = [_option(formats.utc_day(row.day), row.net) for row in rows.itertuples()]
    return [("all days", None), *days]


def _option(name: Any, net: Any) -> tuple[str, str]:
    return f"{name}: {usd(net)}", str(name)


def _headline(view: WalletView) -> str:
    asked, where = view.request, _where(view)
    if not len(view.earned):
        return f"Nothing is known of {asked.user.strip()}{where}: no fills, no ledger, no funding."
    row: Any = view.earned.iloc[0]
    return (
        f"{formats.short_address(view.account.user)}{where}: net {usd(row['net'])} USD from "
        f"{row['fills']:,} fills, volume {formats.whole_dollars(row['volume'])} USD."
    )


def _where(view: WalletView) -> str:
    asked = view.request
    coin = f", {asked.coin}" if asked.coin else ""
    time = f", on {asked.day}" if asked.day else f", in {asked.period}"
    return coin + time


def _equity(view: WalletView) -> str:
    """Draw equity over time, and say what it rests on; nothing, where there is none to draw."""
    curve = view.equity
    if curve is None or not len(curve):
        return ""
    drawn = picture(partial(plots.equity_curve, of="equity", note=_MARKED), curve)
    less = "" if view.account.funding is not None else " Funding is not known, and not in it."
    return drawn + markup.note(f"{_EQUITY}{less}")


def _covers(view: WalletView) -> str:
    return f"Covered: {view.earned.iloc[0]['covers']}. What is not covered is not part of net."


def _by_coin(view: WalletView) -> str:
    day = f", {view.request.day}" if view.request.day else ""
    marked = view.coins["coin"] == view.request.coin
    return markup.table(f"By coin{day}", view.coins, _COINS, marked=marked)


def _by_day(view: WalletView) -> str:
    coin = f", {view.request.coin}" if view.request.coin else ""
    marked = view.days["day"].map(formats.utc_day) == view.request.day
    return markup.table(f"By day{coin}", view.days, _DAYS, marked=marked)


def _positions(view: WalletView) -> str:
    if view.positions is None:
        return markup.note(f"Positions cannot be had: {view.account.lacking}")
    held = view.positions
    at = f", {markup.moment(held['time'].iloc[0])} UTC" if len(held) else ""
    return markup.table(f"Positions now{at}", held, _POSITIONS, empty="no open position")


def _fills(view: WalletView) -> str:
    fills: pd.DataFrame = view.fills
    shown = fills.iloc[::-1].head(_FILLS)
    caption = f"Fills, the latest {len(shown)} of {len(fills):,}" if len(fills) else "Fills"
    return markup.table(caption, shown, _LISTED, empty="no fill")
