"""Builders, and the accounts that approve them."""

from dataclasses import dataclass
from operator import attrgetter

from toolkit.contract.source_tables import Approval
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.random_draws import party_address, random_stream
from toolkit.times import DAY, HOUR, MINUTE

FEES_BPS = (1, 2, 3, 5, 10)
"""The fees of the builders, in turn."""


@dataclass(frozen=True, slots=True)
class ApprovalChange:
    """The approval of a builder by an account, or its revocation if `approved` is false."""

    time: int
    account: int
    builder: int
    approved: bool

    def apply(self, state: SimulationState) -> None:
        """Record the change; it is valid from now on."""
        exchange = state.exchange
        builders = exchange.approved[self.account]
        (builders.add if self.approved else builders.discard)(self.builder)
        exchange.approvals.append(
            Approval(
                user=exchange.accounts[self.account].address,
                builder=state.builders[self.builder],
                time=self.time,
                tx_index=int(exchange.rng.random() * 40),
                approved=self.approved,
            )
        )


def builder_addresses(seed: int, builders: int) -> list[str]:
    """Return the addresses of the builders."""
    return [party_address(seed, "builder", str(number)) for number in range(builders)]


def draw_approvals(
    seed: int, start_ms: int, days: int, accounts: list[Account], builders: int
) -> list[ApprovalChange]:
    """Draw approvals in the first sixth of the time; some are revoked, and some of those repeated.

    Accounts that route orders through a builder approve it. A few approve a second one, which they
    never use. A few approve one without ever routing an order. Accounts with a story
    approve one before they trade and never revoke it, so that all their funding rows can be
    requested and their tables explain their value.
    """
    rng = random_stream(seed, "consents")
    approvals: list[ApprovalChange] = []
    span = days * DAY
    for account in accounts:
        preferred = account.builder
        draws = rng.random(6).tolist()
        if account.has_story:
            builder = account.number % builders
            time = start_ms + 50 * MINUTE
            approvals.append(ApprovalChange(time, account.number, builder, True))
            continue
        if preferred is None:
            preferred = int(draws[5] * builders) if draws[0] < 0.1 else None
        if preferred is None:
            continue
        time = start_ms + 50 * MINUTE + int(draws[1] * span / 6)
        approvals.append(ApprovalChange(time, account.number, preferred, True))
        if draws[2] < 0.35:
            revoked = time + int(span * (0.2 + 0.3 * draws[3]))
            approvals.append(ApprovalChange(revoked, account.number, preferred, False))
            if draws[4] < 0.5:
                repeated = revoked + int(span * 0.15)
                approvals.append(ApprovalChange(repeated, account.number, preferred, True))
        if draws[5] < 0.25 and builders > 1:
            second = (preferred + 1) % builders
            approvals.append(ApprovalChange(time + 7 * MINUTE, account.number, second, True))
    stories = {account.number for account in accounts if account.has_story}
    approvals.append(_last_revocation(approvals, stories, start_ms + span))
    return sorted(approvals, key=attrgetter("time"))


def _last_revocation(
    approvals: list[ApprovalChange], stories: set[int], end_ms: int
) -> ApprovalChange:
    """Return a revocation near the end, so that one account ends without a builder."""
    excluded = {approval.account for approval in approvals if not approval.approved} | stories
    last = next(approval for approval in approvals if approval.account not in excluded)
    return ApprovalChange(end_ms - 2 * HOUR, last.account, last.builder, False)
