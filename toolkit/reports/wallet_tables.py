"""The tables of a wallet report."""

from dataclasses import replace
from typing import Final

import pandas as pd

from toolkit.plots import formats
from toolkit.plots.pnl import STEP_NAMES
from toolkit.reports import tables
from toolkit.reports.tables import TextColumn, TextTable, table
from toolkit.reports.wallet_reasons import sum_builder_fees
from toolkit.reports.wallet_report import PARTS, WalletResults

_DAYS: Final = 62  # with more days, the table is by week
_LEDGER_ROWS: Final = 20

_MONEY: Final = (
    TextColumn("closed_pnl", "closed PnL", tables.signed_usd),
    TextColumn("trading_fee", "trading fees", tables.signed_usd),
    TextColumn("builder_fee", "builder fees", tables.signed_usd),
    TextColumn("other_fees", "deployer fees, rebates", tables.signed_usd),
    TextColumn("funding", "funding", tables.signed_usd),
    TextColumn("net", "net", tables.signed_usd),
)
_TRADED: Final = (
    TextColumn("fills", "fills", formats.whole_number),
    TextColumn("volume", "volume", formats.whole_dollars),
)
_FILLS: Final = (
    TextColumn("time", "time, UTC", tables.time_text, number=False),
    TextColumn("coin", "coin", tables.plain_text, number=False),
    TextColumn("dir", "direction", tables.plain_text, number=False),
    TextColumn("px", "price", formats.exact_number),
    TextColumn("sz", "size", formats.exact_number),
    TextColumn("notional", "notional, USD", formats.whole_dollars),
    TextColumn("closed_pnl", "closed PnL", tables.signed_usd),
    TextColumn("fee", "fee", formats.exact_number),
    TextColumn("fee_token", "fee token", tables.plain_text, number=False),
    TextColumn("crossed", "taker", tables.yes_no, number=False),
)
_BUILDERS: Final = (
    TextColumn("builder", "builder", tables.plain_text, number=False),
    TextColumn("fills", "fills", formats.whole_number),
    TextColumn("volume", "routed volume, USD", formats.whole_dollars),
    TextColumn("fee", "builder fees, USD", tables.signed_usd),
    TextColumn("rate", "bps of it", formats.basis_points),
)
_NOT_NAMED: Final = "not named by the latest fills"
_LEDGER: Final = (
    TextColumn("time", "time, UTC", tables.time_text, number=False),
    TextColumn("type", "type", tables.plain_text, number=False),
    TextColumn("value", "amount", formats.exact_number),
    TextColumn("unit", "token", tables.plain_text, number=False),
    TextColumn("user", "from", formats.short_address, number=False),
    TextColumn("destination", "to", formats.short_address, number=False),
)
_OPEN: Final = (
    TextColumn("coin", "coin", tables.plain_text, number=False),
    TextColumn("szi", "size", formats.exact_number),
    TextColumn("entry_px", "entry price", formats.exact_number),
    TextColumn("position_value", "value, USD", formats.whole_dollars),
    TextColumn("unrealized_pnl", "unrealised PnL", tables.signed_usd),
    TextColumn("margin_used", "margin, USD", formats.whole_dollars),
    TextColumn("liquidation_px", "liquidation price", formats.exact_number),
)
_SLIPPAGE: Final = (
    TextColumn("coin", "coin", tables.plain_text, number=False),
    TextColumn("amount_usd", "size, USD", formats.whole_number),
    TextColumn("buy_q50", "buy, median", formats.basis_points),
    TextColumn("buy_q90", "buy, 90 %", formats.basis_points),
    TextColumn("sell_q50", "sell, median", formats.basis_points),
    TextColumn("sell_q90", "sell, 90 %", formats.basis_points),
    TextColumn("missing_share", "book too thin", formats.percent_share),
    TextColumn("n", "samples", formats.whole_number),
)


def make_tables(results: WalletResults) -> dict[str, TextTable]:
    """Return every table of the report."""
    return {
        "parts": _parts_table(results),
        "builders": _builder_table(results),
        "coins": _coin_table(results),
        "days": _day_table(results),
        "fills": table("The ten largest fills by notional.", results.largest_fills(), _FILLS),
        "ledger": _ledger_table(results),
        "slippage": _slippage_table(results),
        "open": _position_table(results),
    }


def _parts_table(results: WalletResults) -> TextTable:
    """Return the parts of net with all digits."""
    whole = results.mask_unknown(results.attribution()).iloc[0]
    names = [name for name in (*PARTS, "net") if not pd.isna(whole[name])]
    rows = [[STEP_NAMES[name], tables.exact_usd(whole[name])] for name in names]
    columns = (
        TextColumn("part", "part", tables.plain_text, number=False),
        TextColumn("usd", "USD, exact", tables.exact_usd),
    )
    if "net" not in names:
        return TextTable("The parts of net that are known, every digit.", columns, rows)
    return TextTable("Net and its parts, every digit.", columns, rows[:-1], rows[-1])


def _builder_table(results: WalletResults) -> TextTable:
    rows = sum_builder_fees(results)
    if not rows.empty:
        rows = rows.assign(builder=rows["builder"].where(rows["builder"].notna(), _NOT_NAMED))
    return table("Fees to builders, which are a part of the fees.", rows, _BUILDERS)


def _coin_table(results: WalletResults) -> TextTable:
    rows = results.mask_unknown(_with_other_fees(results.attribution(by="coin")))
    rows = rows.sort_values("net", ascending=False, kind="stable")
    columns = (
        TextColumn("coin", "coin", tables.plain_text, number=False),
        *_TRADED,
        *_money_columns(rows),
    )
    coins = table("By coin, the best net first, in USD.", rows, columns)
    whole = results.mask_unknown(_with_other_fees(results.attribution()))
    total = table("", whole.assign(coin="all"), columns).rows
    return replace(coins, total=total[0] if coins.rows else ())


def _day_table(results: WalletResults) -> TextTable:
    by = "day"
    rows = results.attribution(by=by)
    if len(rows) > _DAYS:
        by = "week"
        rows = results.attribution(by=by)
    first = TextColumn(by, f"{by}, UTC", formats.utc_day, number=False)
    last = TextColumn("ledger", "cash in, less out", tables.signed_usd)
    rows = results.mask_unknown(_with_other_fees(rows))
    return table(f"By {by}, in USD.", rows, (first, *_TRADED, *_money_columns(rows), last))


def _money_columns(rows: pd.DataFrame) -> list[TextColumn]:
    """Return the columns of money, without the column of other fees if it is all 0."""
    has_other_fees = any(rows["other_fees"].dropna())
    return [column for column in _MONEY if has_other_fees or column.name != "other_fees"]


def _with_other_fees(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the sum of two columns that are mostly 0."""
    other = [d + r for d, r in zip(rows["deployer_fee"], rows["rebate"], strict=True)]
    return rows.assign(other_fees=pd.Series(other, dtype="object", index=rows.index))


def _ledger_table(results: WalletResults) -> TextTable:
    ledger = results.account.ledger
    latest = ledger.iloc[::-1].head(_LEDGER_ROWS)
    is_usd = latest["usdc"].notna()
    rows = latest.assign(
        value=latest["usdc"].where(is_usd, latest["amount"]),
        unit=latest["token"].mask(is_usd, "USDC"),
    )
    shown = f"the latest {len(rows)} of {len(ledger)}" if len(ledger) > len(rows) else "all"
    return table(f"Ledger updates, {shown}, newest first; amounts as recorded.", rows, _LEDGER)


def _position_table(results: WalletResults) -> TextTable:
    states = results.account.states
    rows = pd.DataFrame() if states is None else states.positions
    if len(rows):
        rows = rows.sort_values("position_value", ascending=False, kind="stable")
    return table("Open positions, now.", rows, _OPEN)


def _slippage_table(results: WalletResults) -> TextTable:
    curve = results.slippage
    caption = "Slippage against mid in basis points, by size."
    if curve.empty:
        return table(caption, curve, _SLIPPAGE)
    sides = {side: curve[curve["side"] == side].reset_index(drop=True) for side in ("buy", "sell")}
    rows = sides["buy"][["coin", "amount_usd", "n", "missing_share"]].copy()
    for name, frame in sides.items():
        rows[f"{name}_q50"], rows[f"{name}_q90"] = frame["q50"], frame["q90"]
    return table(caption, rows, _SLIPPAGE)
