"""Snapshots of account values and TWAPs, and valuations of accounts, taken during history.

Source of the shape of valuations: docs/live_service.md, section 9, ``portfolio``.
"""

import numpy as np

from toolkit.contract.records import AccountValueRow, BranchMargin, TwapRow
from toolkit.contract.source_tables import AccountSnapshot, TwapSnapshot, Valuation
from toolkit.rules.margin import exact_maintenance
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import PORTFOLIO_MARGIN, UNIFIED
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.exact import MICRO, WEI_PER_MICRO, money_text
from toolkit.simulation.markets import COLLATERAL, DEXES, FOLLOWED_PERPS, PERPS
from toolkit.times import HOUR, MINUTE, SECOND, to_iso

SNAPSHOT_MS = 10 * MINUTE
"""Time between the snapshots at the end of history."""

VALUATION_MS = 3 * HOUR
"""Time between two valuations."""

_USD = 1e6


def take_account_snapshot(exchange: Exchange, time: int) -> None:
    """Take the snapshot of account values."""
    snapshot_id = snapshot_name(time)
    # Unrealised PnL, long and short notional, and maintenance margin by account and dex:
    sums = np.zeros((len(exchange.accounts), len(DEXES), 4), np.int64)
    for number, coin, notional, pnl in exchange.mark_positions(time):
        required = exact_maintenance(abs(notional), PERPS[coin].tiers)
        sums[number, DEX_INDEX[coin]] += (pnl, max(notional, 0), max(-notional, 0), required)
    values: dict[tuple[str, str], list[AccountValueRow]] = {}
    for place, dex in enumerate(DEXES):
        token = COLLATERAL[dex]
        same_token = [other for other, name in enumerate(DEXES) if COLLATERAL[name] == token]
        rows = values[dex, token] = []
        for account, balances, wallet, on_dexes in zip(
            exchange.accounts, exchange.balances, exchange.wallets, sums.tolist(), strict=True
        ):
            if dex and not balances[place]:
                continue
            perps = [cash + pnl for cash, (pnl, *_) in zip(balances, on_dexes, strict=True)]
            _, long, short, _ = on_dexes[place]
            cash = wallet["USDC"].balance
            # ASSUMED: On the native dex, the account value of a unified account includes the USDC
            # of its spot wallet. That of a portfolio-margin account is the value of the token over
            # all dexes.
            is_portfolio = account.mode == PORTFOLIO_MARGIN
            counted = same_token if is_portfolio else [place]
            has_wallet = account.mode >= UNIFIED and (token == "USDC" if is_portfolio else not dex)
            wei = sum(perps[other] for other in counted) * WEI_PER_MICRO + cash * has_wallet
            row = AccountValueRow(
                snapshot_id=snapshot_id,
                collateral_token=token,
                user=account.address,
                account_value=wei / (_USD * WEI_PER_MICRO),
                total_long_notional=long / _USD,
                total_short_notional=short / _USD,
                is_unified=account.mode == UNIFIED,
                account_mode=account.mode,
                pm_ratio=None,
                pm_avail_by_branch=None,
                pm_total_account_value=None,
            )
            if is_portfolio:
                # ASSUMED: The ratio of a portfolio-margin account is the maintenance margin of all
                # its positions divided by its total value.
                required = sum(margin for *_, margin in on_dexes)
                total = sum(perps) * WEI_PER_MICRO + cash
                row.pm_ratio = portfolio_margin_ratio(required, total // WEI_PER_MICRO)
                row.pm_avail_by_branch = branch_margins(wei // WEI_PER_MICRO, long + short)
                row.pm_total_account_value = total / (_USD * WEI_PER_MICRO)
            rows.append(row)
    exchange.account_snapshots.append(AccountSnapshot(snapshot_id, time, values))


def take_twap_snapshot(exchange: Exchange, time: int) -> None:
    """Take the snapshot of TWAPs; it has the time and the id of the account values."""
    snapshot_id = snapshot_name(time)
    twaps: dict[str, list[TwapRow]] = {}
    for twap in exchange.twaps:
        if twap.ended:
            continue
        perp = PERPS[twap.coin]
        lots, ticks = float(10**perp.sz_decimals), float(10**perp.px_decimals)
        row = TwapRow(
            snapshot_id=snapshot_id,
            market=perp.coin,
            address=twap.account.address,
            twap_id=twap.number,
            asset=perp.coin,
            is_buy=twap.is_buy,
            total_sz=twap.total / lots,
            executed_sz=twap.executed / lots,
            remaining_sz=(twap.total - twap.executed) / lots,
            executed_ntl=twap.executed_ntl / float(10**MICRO),
            progress_pct=100.0 * twap.executed / twap.total,
            duration_secs=twap.duration_secs,
            start_time_ms=twap.start,
            reduce_only=twap.reduce_only,
            randomize=twap.randomize,
            next_slice_time=to_iso(twap.next_slice),
            slice_number=twap.slice_number,
            market_name=None,
            market_readable=None,
            stop_px=twap.stop_px / ticks if twap.stop_px else None,
            trigger_px=twap.trigger_px / ticks if twap.waiting else None,
            trigger_above=twap.trigger_above if twap.waiting else None,
            waiting=twap.waiting,
        )
        twaps.setdefault(perp.coin, []).append(row)
    exchange.twap_snapshots.append(TwapSnapshot(snapshot_id, time, twaps))


def value_accounts(exchange: Exchange, time: int) -> None:
    """Value every account."""
    # ASSUMED: The operation `portfolio` values a token that came in without a trade at the price of
    # the next valuation. A stablecoin counts as one dollar. An outcome token counts as half a
    # dollar.
    unrealised = exchange.unrealised_pnl(time)
    prices = {
        token: exchange.mark_price(coin, time) * int(10 ** (MICRO - PERPS[coin].px_decimals))
        for token, coin in FOLLOWED_PERPS.items()
    }
    for number, totals in enumerate(exchange.totals):
        spot = 0
        for token, balance in exchange.wallets[number].items():
            px = 10**MICRO // 2 if token.startswith("+") else prices.get(token, 10**MICRO)
            spot += balance.balance * px // 10**WEI
            totals.spot_flow += (balance.ledger - balance.valued) * px // 10**WEI
            balance.valued = balance.ledger
        perps = sum(exchange.balances[number]) + unrealised[number]
        perp_pnl = totals.closed + totals.funding - totals.fees + unrealised[number]
        valuation = Valuation(
            time=time,
            account_value=money_text(perps + spot),
            pnl=money_text(perp_pnl + spot - totals.spot_flow),
            perp_value=money_text(perps),
            perp_pnl=money_text(perp_pnl),
        )
        exchange.valuations[number].append(valuation)


def snapshot_name(time: int) -> str:
    """Return the id of the snapshots of a time.

    >>> snapshot_name(1759276800000)
    '20251001_state_759276800'
    """
    day = to_iso(time)[:10].replace("-", "")
    return f"{day}_state_{700_000_000 + time // SECOND % 100_000_000}"


def portfolio_margin_ratio(required: float, value: int) -> float:
    """Return the maintenance margin as a share of an account's value.

    >>> portfolio_margin_ratio(500_000, 2_000_000)
    0.25
    """
    return round(required / value, 6) if value > 0 else 1.0


def branch_margins(value: int, notional: int) -> list[BranchMargin]:
    """Return the account value above the margin: all of it in USDC, half of it in USDH.

    >>> [branch.available for branch in branch_margins(2_000_000, 5_000_000)]
    [1.5, 0.75]
    """
    available = max(0, value - notional // 10)
    return [
        BranchMargin(token="USDC", available=available / _USD),
        BranchMargin(token="USDH", available=available // 2 / _USD),
    ]
