"""The tables of a wallet report."""

from typing import Final

import pandas as pd

from toolkit.plots import formats
from toolkit.plots.pnl import STEP_NAMES
from toolkit.reports import tables
from toolkit.reports.results import PARTS, Results
from toolkit.reports.tables import Column, Table, table

__all__ = ["tables_of"]

_DAYS: Final = 62  # of more than that, weeks are shown
_LEDGER_ROWS: Final = 20

_MONEY: Final = (
    Column("closed_pnl", "closed PnL", tables.signed_usd),
    Column("trading_fee", "trading fees", tables.signed_usd),
    Column("builder_fee", "builder fees", tables.signed_usd),
    Column("other_fees", "deployer fees, rebates", tables.signed_usd),
    Column("funding", "funding", tables.signed_usd),
    Column("net", "net", tables.signed_usd),
)
_TRADED: Final = (
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume", formats.whole_dollars),
)
_FILLS: Final = (
    Column("time", "time, UTC", tables.moment, number=False),
    Column("coin", "coin", tables.text, number=False),
    Column("dir", "direction", tables.text, number=False),
    Column("px", "price", formats.exact_number),
    Column("sz", "size", formats.exact_number),
    Column("notional", "notional, USD", formats.whole_dollars),
    Column("closed_pnl", "closed PnL", tables.signed_usd),
    Column("fee", "fee", formats.exact_number),
    Column("fee_token", "fee token", tables.text, number=False),
    Column("crossed", "taker", tables.yes_no, number=False),
)
_LEDGER: Final = (
    Column("time", "time, UTC", tables.moment, number=False),
    Column("type", "type", tables.text, number=False),
    Column("value", "amount", formats.exact_number),
    Column("unit", "token", tables.text, number=False),
    Column("user", "from", formats.short_address, number=False),
    Column("destination", "to", formats.short_address, number=False),
)
_OPEN: Final = (
    Column("coin", "coin", tables.text, number=False),
    Column("szi", "size", formats.exact_number),
    Column("entry_px", "entry price", formats.exact_number),
    Column("position_value", "value, USD", formats.whole_dollars),
    Column("unrealized_pnl", "unrealised PnL", tables.signed_usd),
    Column("margin_used", "margin, USD", formats.whole_dollars),
    Column("liquidation_px", "liquidation price", formats.exact_number),
)
_SLIPPAGE: Final = (
    Column("coin", "coin", tables.text, number=False),
    Column("amount_usd", "size, USD", formats.whole_number),
    Column("buy_q50", "buy, median", formats.basis_points),
    Column("buy_q90", "buy, 90 %", formats.basis_points),
    Column("sell_q50", "sell, median", formats.basis_points),
    Column("sell_q90", "sell, 90 %", formats.basis_points),
    Column("missing_share", "book too thin", formats.percent_share),
    Column("n", "samples", formats.whole_number),
)


def tables_of(results: Results) -> dict[str, Table]:
    """Make every table of the report."""
    return {
        "parts": _parts(results),
        "coins": _coins(results),
        "days": _days(results),
        "fills": table("The ten largest fills by notional.", results.largest_fills(), _FILLS),
        "ledger": _ledger(results),
        "slippage": _slippage(results),
        "open": _open(results),
    }


def _parts(results: Results) -> Table:
    """Write the parts of net, every digit."""
    whole = results.without_unknown(results.attribution()).iloc[0]
    names = [name for name in (*PARTS, "net") if not pd.isna(whole[name])]
    rows = [[STEP_NAMES[name], tables.exact_usd(whole[name])] for name in names]
    columns = (
        Column("part", "part", tables.text, number=False),
        Column("usd", "USD, exact", tables.exact_usd),
    )
    if "net" not in names:
        return Table("The parts of net that are known, every digit.", columns, rows)
    return Table("Net and its parts, every digit.", columns, rows[:-1], rows[-1])


def _coins(results: Results) -> Table:
    rows = results.without_unknown(_with_other_fees(results.attribution(by="coin")))
    rows = rows.sort_values("net", ascending=False, kind="stable")
    columns = (Column("coin", "coin", tables.text, number=False), *_TRADED, *_money(rows))
    made = table("By coin, the best net first, in USD.", rows, columns)
    whole = results.without_unknown(_with_other_fees(results.attribution()))
    total = table("", whole.assign(coin="all"), columns).rows
    return Table(made.caption, made.columns, made.rows, total[0] if made.rows else ())


def _days(results: Results) -> Table:
    by = "day"
    rows = results.attribution(by=by)
    if len(rows) > _DAYS:
        by = "week"
        rows = results.attribution(by=by)
    first = Column(by, f"{by}, UTC", formats.utc_day, number=False)
    last = Column("ledger", "cash in, less out", tables.signed_usd)
    rows = results.without_unknown(_with_other_fees(rows))
    return table(f"By {by}, in USD.", rows, (first, *_TRADED, *_money(rows), last))


def _money(rows: pd.DataFrame) -> list[Column]:
    """Give the columns of money, without the one that is mostly 0 where it is all 0."""
    none = not any(rows["other_fees"].dropna())
    return [one for one in _MONEY if not (none and one.name == "other_fees")]


def _with_other_fees(rows: pd.DataFrame) -> pd.DataFrame:
    """Join the two columns that are mostly 0."""
    other = [d + r for d, r in zip(rows["deployer_fee"], rows["rebate"], strict=True)]
    return rows.assign(other_fees=pd.Series(other, dtype="object", index=rows.index))


def _ledger(results: Results) -> Table:
    ledger = results.material.ledger
    latest = ledger.iloc[::-1].head(_LEDGER_ROWS)
    in_usd = latest["usdc"].notna()
    rows = latest.assign(
        value=latest["usdc"].where(in_usd, latest["amount"]),
        unit=latest["token"].mask(in_usd, "USDC"),
    )
    shown = f"the latest {len(rows)} of {len(ledger)}" if len(ledger) > len(rows) else "all"
    return table(f"Ledger updates, {shown}, newest first; amounts as recorded.", rows, _LEDGER)


def _open(results: Results) -> Table:
    states = results.material.states
    rows = pd.DataFrame() if states is None else states.positions
    if len(rows):
        rows = rows.sort_values("position_value", ascending=False, kind="stable")
    return table("Open positions, now.", rows, _OPEN)


def _slippage(results: Results) -> Table:
    curve = results.slippage
    caption = "Slippage against mid in basis points, by size."
    if curve.empty:
        return table(caption, curve, _SLIPPAGE)
    sides = {side: curve[curve["side"] == side].reset_index(drop=True) for side in ("buy", "sell")}
    rows = sides["buy"][["coin", "amount_usd", "n", "missing_share"]].copy()
    for name, frame in sides.items():
        rows[f"{name}_q50"], rows[f"{name}_q90"] = frame["q50"], frame["q90"]
    return table(caption, rows, _SLIPPAGE)
