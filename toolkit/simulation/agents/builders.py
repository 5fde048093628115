"""Builders, and the accounts that approve them."""

from toolkit.contract.source_tables import Approval
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import random_stream
from toolkit.times import HOUR, MINUTE

FEES_BPS = (1, 2, 3, 5, 10)
"""The fees of the builders, in turn."""


def draw_approvals(exchange: Exchange) -> None:
    """Draw approvals in the first sixth of the time; some are revoked, and some of those repeated.

    Accounts that route orders through a builder approve it. A few approve a second one, which they
    never use. A few approve one without ever routing an order. Accounts with a story
    approve one before they trade and never revoke it, so that all their funding rows can be
    requested and their tables explain their value.
    """
    rng = random_stream(exchange.seed, "consents")
    span, builders = exchange.end_ms - exchange.start_ms, len(exchange.builders)
    kept: dict[int, int] = {}  # account -> its builder, if it revokes nothing

    for account in exchange.accounts:
        preferred, time = account.builder, exchange.start_ms + 50 * MINUTE
        draws = rng.random(6).tolist()
        if account.has_story:
            builder = account.number % builders
            exchange.schedule(time, change_approval, account.number, builder, True)
            continue
        if preferred is None:
            preferred = int(draws[5] * builders) if draws[0] < 0.1 else None
        if preferred is None:
            continue
        time += int(draws[1] * span / 6)
        exchange.schedule(time, change_approval, account.number, preferred, True)
        if draws[2] < 0.35:
            revoked = time + int(span * (0.2 + 0.3 * draws[3]))
            exchange.schedule(revoked, change_approval, account.number, preferred, False)
            if draws[4] < 0.5:
                repeated = revoked + int(span * 0.15)
                exchange.schedule(repeated, change_approval, account.number, preferred, True)
        else:
            kept[account.number] = preferred
        if draws[5] < 0.25 and builders > 1:
            second = (preferred + 1) % builders
            exchange.schedule(time + 7 * MINUTE, change_approval, account.number, second, True)
    # One account ends without a builder.
    last, builder = next(iter(kept.items()))
    exchange.schedule(exchange.end_ms - 2 * HOUR, change_approval, last, builder, False)


def change_approval(
    exchange: Exchange, time: int, account: int, builder: int, approved: bool
) -> None:
    """Record that an account approves a builder, or revokes this; it is valid from now on."""
    builders = exchange.approved[account]
    (builders.add if approved else builders.discard)(builder)
    exchange.approvals.append(
        Approval(
            user=exchange.accounts[account].address,
            builder=exchange.builders[builder],
            time=time,
            tx_index=int(exchange.rng.random() * 40),
            approved=approved,
        )
    )
