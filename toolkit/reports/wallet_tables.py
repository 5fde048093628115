"""The tables of a wallet report."""

from typing import Final

import pandas as pd

from toolkit.plots import formats
from toolkit.plots.pnl import STEP_NAMES
from toolkit.plots.tables import Column, Table, table
from toolkit.reports.wallet_reasons import sum_builder_fees
from toolkit.reports.wallet_report import PARTS, WalletResults

_DAYS: Final = 62  # with more days, the table is by week
_LEDGER_ROWS: Final = 20

_MONEY: Final = (
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume", formats.whole_dollars),
    Column("closed_pnl", "closed PnL", formats.signed_cents),
    Column("trading_fee", "trading fees", formats.signed_cents),
    Column("builder_fee", "builder fees", formats.signed_cents),
    Column("other_fees", "deployer fees, rebates", formats.signed_cents),
    Column("funding", "funding", formats.signed_cents),
    Column("net", "net", formats.signed_cents),
)
_COIN: Final = Column("coin", "coin", number=False)
_TIME: Final = Column("time", "time, UTC", formats.clock_time, number=False)
_FILLS: Final = (
    _TIME,
    _COIN,
    Column("dir", "direction", number=False),
    Column("px", "price", formats.exact_number),
    Column("sz", "size", formats.exact_number),
    Column("notional", "notional, USD", formats.whole_dollars),
    Column("closed_pnl", "closed PnL", formats.signed_cents),
    Column("fee", "fee", formats.exact_number),
    Column("fee_token", "fee token", number=False),
    Column("crossed", "taker", lambda value: "yes" if value else "no", number=False),
)
_BUILDERS: Final = (
    Column("builder", "builder", number=False),
    Column("fills", "fills", formats.whole_number),
    Column("volume", "routed volume, USD", formats.whole_dollars),
    Column("fee", "builder fees, USD", formats.signed_cents),
    Column("rate", "bps of it", formats.basis_points),
)
_LEDGER: Final = (
    _TIME,
    Column("type", "type", number=False),
    Column("value", "amount", formats.exact_number),
    Column("unit", "token", number=False),
    Column("user", "from", formats.short_address, number=False),
    Column("destination", "to", formats.short_address, number=False),
)
_OPEN: Final = (
    _COIN,
    Column("szi", "size", formats.exact_number),
    Column("entry_px", "entry price", formats.exact_number),
    Column("position_value", "value, USD", formats.whole_dollars),
    Column("unrealized_pnl", "unrealised PnL", formats.signed_cents),
    Column("margin_used", "margin, USD", formats.whole_dollars),
    Column("liquidation_px", "liquidation price", formats.exact_number),
)
_SLIPPAGE: Final = (
    _COIN,
    Column("amount_usd", "size, USD", formats.whole_number),
    Column("buy_q50", "buy, median", formats.basis_points),
    Column("buy_q90", "buy, 90 %", formats.basis_points),
    Column("sell_q50", "sell, median", formats.basis_points),
    Column("sell_q90", "sell, 90 %", formats.basis_points),
    Column("missing_share", "book too thin", formats.percent_share),
    Column("n", "samples", formats.whole_number),
)


def make_tables(results: WalletResults) -> dict[str, Table]:
    """Return every table of the report."""
    account, paid = results.account, sum_builder_fees(results)
    if len(paid):
        paid["builder"] = paid["builder"].fillna("not named by the latest fills")
    usd = account.fills["px"].astype("float64") * account.fills["sz"].astype("float64")
    fills = account.fills.assign(notional=usd)
    fills = fills.sort_values(["notional", "time"], ascending=[False, True], kind="stable")
    positions = pd.DataFrame() if account.states is None else account.states.positions
    if len(positions):
        positions = positions.sort_values("position_value", ascending=False, kind="stable")
    curve = results.slippage
    if len(curve):
        buys, sells = (
            curve[curve["side"] == side].reset_index(drop=True) for side in ("buy", "sell")
        )
        buys = buys.rename(columns={"q50": "buy_q50", "q90": "buy_q90"})
        curve = buys.join(sells.add_prefix("sell_"))
    return {
        "parts": _parts_table(results),
        "builders": table("Fees to builders, which are a part of the fees.", paid, _BUILDERS),
        **_money_tables(results),
        "fills": table("The ten largest fills by notional.", fills.head(10), _FILLS),
        "ledger": _ledger_table(account.ledger),
        "slippage": table("Slippage against mid in basis points, by size.", curve, _SLIPPAGE),
        "open": table("Open positions, now.", positions, _OPEN),
    }


def _parts_table(results: WalletResults) -> Table:
    """Return the parts of net with all digits."""
    whole = results.mask_unknown(results.attribution()).iloc[0]
    names = [name for name in (*PARTS, "net") if not pd.isna(whole[name])]
    rows = [[STEP_NAMES[name], formats.exact_usd(whole[name])] for name in names]
    columns = (Column("part", "part", number=False), Column("usd", "USD, exact"))
    if "net" not in names:
        return Table("The parts of net that are known, every digit.", columns, rows)
    return Table("Net and its parts, every digit.", columns, rows[:-1], rows[-1])


def _money_tables(results: WalletResults) -> dict[str, Table]:
    """Return the attribution by coin, and by day or week.

    A column sums the fees that are mostly 0; it is left out if it is all 0.
    """
    by = "day" if len(results.attribution(by="day")) <= _DAYS else "week"
    frames, columns = {}, {}
    for key in ("coin", by, None):
        rows = results.attribution(by=key)
        rows = rows.assign(other_fees=rows["deployer_fee"] + rows["rebate"])
        frames[key] = rows = results.mask_unknown(rows)
        has_other_fees = any(rows["other_fees"].dropna())
        columns[key] = [each for each in _MONEY if has_other_fees or each.name != "other_fees"]
    coins = frames["coin"].sort_values("net", ascending=False, kind="stable")
    total, caption = frames[None].assign(coin="all"), "By coin, the best net first, in USD."
    first = Column(by, f"{by}, UTC", formats.utc_day, number=False)
    last = Column("ledger", "cash in, less out", formats.signed_cents)
    return {
        "coins": table(caption, coins, (_COIN, *columns["coin"]), total=total),
        "days": table(f"By {by}, in USD.", frames[by], (first, *columns[by], last)),
    }


def _ledger_table(ledger: pd.DataFrame) -> Table:
    latest = ledger.iloc[::-1].head(_LEDGER_ROWS)
    is_usd = latest["usdc"].notna()
    rows = latest.assign(
        value=latest["usdc"].where(is_usd, latest["amount"]),
        unit=latest["token"].mask(is_usd, "USDC"),
    )
    shown = f"the latest {len(rows)} of {len(ledger)}" if len(ledger) > len(rows) else "all"
    return table(f"Ledger updates, {shown}, newest first; amounts as recorded.", rows, _LEDGER)
