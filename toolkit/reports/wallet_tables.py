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
    Column("closed_pnl", "closed PnL", formats.signed_cents),
    Column("trading_fee", "trading fees", formats.signed_cents),
    Column("builder_fee", "builder fees", formats.signed_cents),
    Column("other_fees", "deployer fees, rebates", formats.signed_cents),
    Column("funding", "funding", formats.signed_cents),
    Column("net", "net", formats.signed_cents),
)
_TRADED: Final = (
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume", formats.whole_dollars),
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
        named = paid["builder"].notna()
        paid["builder"] = paid["builder"].where(named, "not named by the latest fills")
    usd = account.fills["px"].astype("float64") * account.fills["sz"].astype("float64")
    fills = account.fills.assign(notional=usd)
    fills = fills.sort_values(["notional", "time"], ascending=[False, True], kind="stable")
    positions = pd.DataFrame() if account.states is None else account.states.positions
    if len(positions):
        positions = positions.sort_values("position_value", ascending=False, kind="stable")
    return {
        "parts": _parts_table(results),
        "builders": table("Fees to builders, which are a part of the fees.", paid, _BUILDERS),
        "coins": _coin_table(results),
        "days": _day_table(results),
        "fills": table("The ten largest fills by notional.", fills.head(10), _FILLS),
        "ledger": _ledger_table(account.ledger),
        "slippage": _slippage_table(results.slippage),
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


def _coin_table(results: WalletResults) -> Table:
    rows, whole = (_prepare_rows(results, by) for by in ("coin", None))
    rows = rows.sort_values("net", ascending=False, kind="stable")
    columns = (_COIN, *_TRADED, *_money_columns(rows))
    total = whole.assign(coin="all")
    return table("By coin, the best net first, in USD.", rows, columns, total=total)


def _day_table(results: WalletResults) -> Table:
    by = "day" if len(results.attribution(by="day")) <= _DAYS else "week"
    rows = _prepare_rows(results, by)
    first = Column(by, f"{by}, UTC", formats.utc_day, number=False)
    last = Column("ledger", "cash in, less out", formats.signed_cents)
    return table(f"By {by}, in USD.", rows, (first, *_TRADED, *_money_columns(rows), last))


def _prepare_rows(results: WalletResults, by: str | None) -> pd.DataFrame:
    """Return an attribution with the sum of two columns that are mostly 0."""
    rows = results.attribution(by=by)
    return results.mask_unknown(rows.assign(other_fees=rows["deployer_fee"] + rows["rebate"]))


def _money_columns(rows: pd.DataFrame) -> list[Column]:
    """Return the columns of money, without the column of other fees if it is all 0."""
    has_other_fees = any(rows["other_fees"].dropna())
    return [column for column in _MONEY if has_other_fees or column.name != "other_fees"]


def _ledger_table(ledger: pd.DataFrame) -> Table:
    latest = ledger.iloc[::-1].head(_LEDGER_ROWS)
    is_usd = latest["usdc"].notna()
    rows = latest.assign(
        value=latest["usdc"].where(is_usd, latest["amount"]),
        unit=latest["token"].mask(is_usd, "USDC"),
    )
    shown = f"the latest {len(rows)} of {len(ledger)}" if len(ledger) > len(rows) else "all"
    return table(f"Ledger updates, {shown}, newest first; amounts as recorded.", rows, _LEDGER)


def _slippage_table(curve: pd.DataFrame) -> Table:
    rows = curve
    if len(curve):
        sides = [curve[curve["side"] == side].reset_index(drop=True) for side in ("buy", "sell")]
        rows = sides[0][["coin", "amount_usd", "n", "missing_share"]].copy()
        for name, frame in zip(("buy", "sell"), sides, strict=True):
            rows[f"{name}_q50"], rows[f"{name}_q90"] = frame["q50"], frame["q90"]
    return table("Slippage against mid in basis points, by size.", rows, _SLIPPAGE)
