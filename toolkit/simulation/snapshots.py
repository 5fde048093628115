"""Snapshots of account values and TWAPs, taken while history runs."""

from dataclasses import dataclass

from toolkit.contract.records import AccountValueRow, BranchMargin, TwapRow
from toolkit.contract.sources import AccountSnapshot, TwapSnapshot
from toolkit.rules.closed_pnl import entry_price
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.exchange import DEX_OF, Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.ledger import FINER
from toolkit.simulation.markets import COLLATERAL, DEXES
from toolkit.simulation.twaps import twap_row
from toolkit.times import MINUTE, SECOND, to_iso

__all__ = ["SNAPSHOT_MS", "Snapping", "available_by_branch", "margin_ratio", "name_snapshot"]

SNAPSHOT_MS = 10 * MINUTE
"""Time between the snapshots at the end of history."""

_USD = 1e6
_PORTFOLIO_MARGIN = 3


def name_snapshot(time: int) -> str:
    """Give the id of the snapshots of a time.

    Examples
    --------
    >>> name_snapshot(1759276800000)
    '20251001_state_759276800'
    """
    day = to_iso(time)[:10].replace("-", "")
    return f"{day}_state_{700_000_000 + time // SECOND % 100_000_000}"


@dataclass(frozen=True, slots=True)
class Snapping:
    """The moment of a snapshot."""

    time: int

    def happen(self, floor: Floor) -> None:
        """Take both snapshots; they have the same time and id."""
        snapshot_id = name_snapshot(self.time)
        values = _account_values(floor.exchange, snapshot_id, self.time)
        floor.account_snapshots.append(AccountSnapshot(snapshot_id, self.time, values))
        floor.twap_snapshots.append(
            TwapSnapshot(snapshot_id, self.time, _twaps(floor, snapshot_id))
        )


def _twaps(floor: Floor, snapshot_id: str) -> dict[str, list[TwapRow]]:
    """Give the TWAPs that run or wait, by market."""
    markets: dict[str, list[TwapRow]] = {}
    for twap in floor.twaps:
        if not twap.ended:
            row = twap_row(twap, snapshot_id)
            markets.setdefault(row.market, []).append(row)
    return markets


def _account_values(
    exchange: Exchange, snapshot_id: str, time: int
) -> dict[tuple[str, str], list[AccountValueRow]]:
    sums = _sums(exchange, time)
    values: dict[tuple[str, str], list[AccountValueRow]] = {}
    for number, dex in enumerate(DEXES):
        token = COLLATERAL[dex]
        values[dex, token] = [
            _row(exchange, snapshot_id, account.number, number, sums)
            for account in exchange.accounts
            if exchange.balances[account.number][number] or not dex
        ]
    return values


def _sums(exchange: Exchange, time: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Give unrealised PnL, long and short notional by account and dex."""
    sums: dict[tuple[int, int], tuple[int, int, int]] = {}
    for coin, book in enumerate(exchange.positions):
        mark = mark_price(exchange, coin, time)
        for who, (size, entry) in book.items():
            gain, long, short = sums.get((who, DEX_OF[coin]), (0, 0, 0))
            gain += size * (mark - entry_price(size, entry))
            notional = size * mark
            sums[who, DEX_OF[coin]] = gain, long + max(notional, 0), short + max(-notional, 0)
    return sums


def _row(
    exchange: Exchange,
    snapshot_id: str,
    who: int,
    dex: int,
    sums: dict[tuple[int, int], tuple[int, int, int]],
) -> AccountValueRow:
    account = exchange.accounts[who]
    gain, long, short = sums.get((who, dex), (0, 0, 0))
    perps = exchange.balances[who][dex] + gain
    cash = exchange.wallets[who]["USDC"].balance if not DEXES[dex] else 0
    # ASSUMED: the account value of a unified or portfolio-margin account on the native dex
    # counts the USDC of its spot wallet, where such accounts keep their equity.
    wei = perps * FINER + (cash if account.mode > 1 else 0)
    value = wei // FINER
    portfolio = account.mode == _PORTFOLIO_MARGIN
    return AccountValueRow(
        snapshot_id=snapshot_id,
        collateral_token=COLLATERAL[DEXES[dex]],
        user=account.address,
        account_value=wei / (_USD * FINER),
        total_long_notional=long / _USD,
        total_short_notional=short / _USD,
        is_unified=account.mode == 2,
        account_mode=account.mode,
        pm_ratio=margin_ratio(long + short, value) if portfolio else None,
        pm_avail_by_branch=available_by_branch(value, long + short) if portfolio else None,
        pm_total_account_value=_total(exchange, who, sums) if portfolio else None,
    )


def margin_ratio(notional: int, value: int) -> float:
    """Give the share of an account's value that its margin takes, a tenth of the notional.

    Examples
    --------
    >>> margin_ratio(5_000_000, 2_000_000)
    0.25
    """
    return round(notional / (10 * value), 6) if value > 0 else 1.0


def available_by_branch(value: int, notional: int) -> list[BranchMargin]:
    """Give what an account's value leaves above its margin: all in USDC, half of it in USDH.

    Examples
    --------
    >>> [branch.available for branch in available_by_branch(2_000_000, 5_000_000)]
    [1.5, 0.75]
    """
    available = max(0, value - notional // 10)
    return [
        BranchMargin(token="USDC", available=available / _USD),
        BranchMargin(token="USDH", available=available // 2 / _USD),
    ]


def _total(
    exchange: Exchange, who: int, sums: dict[tuple[int, int], tuple[int, int, int]]
) -> float:
    perps = sum(
        exchange.balances[who][dex] + sums.get((who, dex), (0, 0, 0))[0]
        for dex in range(len(DEXES))
    )
    return (perps * FINER + exchange.wallets[who]["USDC"].balance) / (_USD * FINER)
