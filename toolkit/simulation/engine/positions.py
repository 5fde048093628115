"""Hourly funding, liquidation of accounts without margin, deleveraging, and the end of a market."""

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.rules.closed_pnl import entry_price
from toolkit.rules.directions import AUTO_DELEVERAGING, SETTLEMENT
from toolkit.rules.funding import ZERO_HASH, round_payments
from toolkit.rules.margin import exact_maintenance
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Ticket
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange, Transaction
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.exact import MICRO, decimal_text, money_text, rounded_share
from toolkit.simulation.markets import PERPS
from toolkit.times import HOUR, SECOND

OUTAGE = range(34, 37)
"""Hours of history that one dex pays together, in one row, at the end of the last hour."""

OUTAGE_DEX = "pre"
"""The dex whose oracle fails in these hours."""

_NULL_DEX = ""
"""The dex whose rows have null for a single payment; rows of other dexes leave the field out."""

MARGIN_CHECK_MS = 90_000
"""Time of the margin check after each full hour."""

_LARGEST_SALE = 8.0
"""Positions larger than so many times the depth are deleveraged instead of sold."""

MARKET, BACKSTOP = "market", "backstop"
"""The methods of liquidation: orders on the book, or a takeover at once."""

_PARTIAL_FROM = 100_000 * 10**6
_FIRST_SHARE = 5
_COOLDOWN_MS = 30 * SECOND
"""A market liquidation of a position above `_PARTIAL_FROM` micro-dollars closes a fifth first. If
that is not enough, it closes the rest after the cooldown."""

_CROSS = -1
"""In the place of a perp: all cross positions together."""

_Key = tuple[int, int, int]
"""Account, dex, and perp or `_CROSS`."""


def pay_funding(exchange: Exchange, time: int) -> None:
    """Pay the funding of the hour that ends on every position; write the rows by user and coin."""
    hour = (time - exchange.start_ms) // HOUR
    rows: list[r.FundingRow] = []
    for coin, positions in enumerate(exchange.positions):
        perp, dex, margins = PERPS[coin], DEX_INDEX[coin], exchange.margins[coin]
        hours = [hour]
        if perp.dex == OUTAGE_DEX and hour in OUTAGE:
            hours = list(OUTAGE) if hour == OUTAGE[-1] else []
        # ASSUMED: If a funding row sums several payments, all of them use the last rate and the
        # last position. Each payment uses the oracle price of its own hour
        # (docs/live_service.md, section 5).
        oracles = int(exchange.prices.oracle[coin, hours].sum())
        rate = int(exchange.prices.rate[coin, hour])
        due = {account: -size * oracles * rate for account, (size, _) in positions.items()}
        payments = round_payments(due, MICRO + RATE_DECIMALS) if hours else {}
        samples = len(hours) if len(hours) > 1 else None if perp.dex == _NULL_DEX else UNSET
        rate_text = decimal_text(rate, RATE_DECIMALS)
        for account, usdc in payments.items():
            exchange.balances[account][dex] += usdc
            exchange.totals[account].funding += usdc
            funding = exchange.funding_totals[coin][account]
            funding.all_time += usdc
            funding.since_open += usdc
            funding.since_change += usdc
            if account in margins:
                margins[account] += usdc
            delta = r.FundingDelta(
                type="funding",
                coin=perp.coin,
                usdc=money_text(usdc),
                szi=decimal_text(positions[account][0], perp.sz_decimals),
                funding_rate=rate_text,
                n_samples=samples,
            )
            user = exchange.accounts[account].address
            rows.append(r.FundingRow(user=user, time=time, hash=ZERO_HASH, delta=delta))
    rows.sort(key=lambda row: (row.user, row.delta.coin))
    exchange.funding.extend(rows)


def check_margins(exchange: Exchange, time: int, only: _Key | None = None) -> None:
    """Liquidate isolated positions, and cross positions together, that lack margin.

    - ``only``: after the cooldown, check only these positions and liquidate them in full
    """
    # The equity behind some positions, and the maintenance margin that they require:
    buffers: dict[_Key, tuple[int, int]] = {}
    for number, coin, notional, pnl in exchange.mark_positions(time):
        dex, margin = DEX_INDEX[coin], exchange.margins[coin].get(number)
        key = number, dex, _CROSS
        equity, required = buffers.get(key, (exchange.balances[number][dex], 0))
        if margin is not None:
            buffers[key] = equity - margin, required
            key, equity, required = (number, dex, coin), margin, 0
        needed = exact_maintenance(abs(notional), PERPS[coin].tiers)
        buffers[key] = equity + pnl, required + needed
    for key in sorted(buffers, key=lambda key: key[2] == _CROSS):
        (number, dex, coin), (equity, required) = key, buffers[key]
        account = exchange.accounts[number]
        if only not in (None, key) or not 0 < required > equity:
            continue
        is_open = coin != _CROSS and number in exchange.margins[coin]  # no liquidation closed it
        if is_open and account.strategy in ("maker", "hedger"):  # these add margin in time
            # ASSUMED: If an account adds margin to an isolated position, the ledger has no row of
            # it.
            value = abs(exchange.position_size(coin, number)) * exchange.mark_price(coin, time)
            missing = account.initial_margin(coin, value) - equity
            added = max(0, min(missing, exchange.free_collateral(number, dex, time)))
            exchange.margins[coin][number] += added
            equity += added
        if equity < required and account.strategy != "maker":
            _liquidate_positions(exchange, time, key, equity, required, only is not None)


def delist_perp(exchange: Exchange, time: int, coin: int) -> None:
    """End a market: cancel its orders, and settle all positions at the mark price, without fees."""
    tx = exchange.next_transaction(time)
    exchange.delisted.add(coin)
    books.cancel_orders(exchange, tx, "delistedCanceled", None, PERPS[coin].coin)
    px = exchange.mark_price(coin, time)
    for number, (size, _) in list(exchange.positions[coin].items()):
        ticket = books.market_ticket(exchange, exchange.accounts[number], coin, -size, px, time)
        ticket.px, ticket.direction = px, SETTLEMENT
        exchange.fill_order(tx, coin, ticket, ticket, ticket.left, px, exchange.next_tid())


def _liquidate_positions(
    exchange: Exchange, time: int, key: _Key, equity: int, required: int, in_full: bool
) -> None:
    """Cancel an account's orders, write the ledger row, and close its positions in some perps.

    Market orders close them and look like any order that closes; or, if the equity is below two
    thirds of the requirement, the backstop does, whose fills have directions of their own. Both
    sides of each trade name the liquidation (docs/live_service.md, section 2). A position that is
    too large for its market, or whose equity is negative, is deleveraged, which is no liquidation
    of the account.
    """
    # ASSUMED: There is no insurance fund. If a loss is larger than the isolated margin, the
    # account's cash on the dex pays the rest.
    # ASSUMED: The ledger row of a liquidation has the full size of each position, even if only a
    # part is closed.
    number, dex, only = key
    account = exchange.accounts[number]
    marks = {
        coin: (size, exchange.mark_price(coin, time))
        for coin, size, _ in exchange.iterate_positions(number, dex)
        if coin == only or (only == _CROSS and not account.is_isolated(coin))
    }
    if not marks:  # an earlier liquidation has deleveraged them
        return
    tx = exchange.next_transaction(time)
    name, mode = ("", "Cross") if only == _CROSS else (PERPS[only].coin, "Isolated")
    books.cancel_orders(exchange, tx, "liquidatedCanceled", account, name)
    method = account.liquidated_by or (MARKET if 3 * equity >= 2 * required else BACKSTOP)
    delta = r.LedgerDelta(
        type="liquidation",
        liquidated_ntl_pos=money_text(sum(abs(size) * px for size, px in marks.values())),
        account_value=money_text(equity),
        leverage_type=mode,
        liquidated_positions=[
            r.LiquidatedPosition(
                coin=PERPS[coin].coin, szi=decimal_text(size, PERPS[coin].sz_decimals)
            )
            for coin, (size, _) in marks.items()
        ],
    )
    exchange.write_ledger(tx, delta, {number: 0})
    for coin, (size, px) in marks.items():
        perp, notional = PERPS[coin], abs(size) * px
        deleveraged = equity < 0 or notional > perp.depth_usd * 1e6 * _LARGEST_SALE
        is_large = notional > _PARTIAL_FROM and not deleveraged
        is_partial = method == MARKET and is_large and not in_full
        closed = rounded_share(size, 1, _FIRST_SHARE) if is_partial else size
        fields = {"tif": "LiquidationMarket", "reduce_only": True}
        ticket = books.market_ticket(exchange, account, coin, -closed, px, time, **fields)
        if deleveraged:
            _deleverage_position(exchange, tx, coin, ticket, px)
        if ticket.left:
            ticket.liquidation = r.Liquidation(
                liquidated_user=account.address,
                mark_px=decimal_text(px, perp.px_decimals),
                method=method,
            )
            direction = f"Liquidated {mode} {'Long' if size > 0 else 'Short'}"
            ticket.direction = "" if method == MARKET else direction
            books.execute_order(exchange, tx, coin, ticket)
        if is_partial:
            exchange.schedule(time + _COOLDOWN_MS, check_margins, key)


def _deleverage_position(
    exchange: Exchange, tx: Transaction, coin: int, ticket: Ticket, px: int
) -> None:
    """Close a position at the mark price against the largest gains on the other side."""
    others = [
        (-size * (px - entry_price(size, entry)), account, abs(size))
        for account, (size, entry) in exchange.positions[coin].items()
        if size * ticket.sign > 0 and account != ticket.account.number
    ]
    ticket.direction = AUTO_DELEVERAGING
    for _, number, size in sorted(others):
        part = min(size, ticket.left)
        if not part:
            break
        account = exchange.accounts[number]
        other = books.market_ticket(exchange, account, coin, -ticket.sign * part, px, tx.time)
        other.px, other.tif, other.reduce_only = px, "LiquidationMarket", True
        other.direction = AUTO_DELEVERAGING
        exchange.match_orders(tx, coin, ticket, other, part)
    if not ticket.left:
        exchange.record_status(ticket, "filled", tx.time, tx.index)
