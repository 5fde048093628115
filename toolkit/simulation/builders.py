"""Builders, and who approves them when."""

from dataclasses import dataclass

from toolkit.contract.sources import Approval
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import address, stream
from toolkit.simulation.floor import Floor
from toolkit.times import DAY, HOUR, MINUTE

__all__ = ["FEES_BPS", "Consent", "builder_addresses", "draw_consents"]

FEES_BPS = (1, 2, 3, 5, 10)
"""What the builders charge, in turn."""


@dataclass(frozen=True, slots=True)
class Consent:
    """An approval of a builder, or its revocation, to come."""

    time: int
    account: int
    builder: int
    approved: bool

    def happen(self, floor: Floor) -> None:
        """Let it apply from now on."""
        exchange = floor.exchange
        mine = exchange.approved[self.account]
        (mine.add if self.approved else mine.discard)(self.builder)
        exchange.approvals.append(
            Approval(
                user=exchange.accounts[self.account].address,
                builder=floor.builders[self.builder],
                time=self.time,
                tx_index=int(exchange.luck.random() * 40),
                approved=self.approved,
            )
        )


def builder_addresses(seed: int, builders: int) -> list[str]:
    """Give the addresses of the builders."""
    return [address(seed, "builder", str(number)) for number in range(builders)]


def draw_consents(
    seed: int, start_ms: int, days: int, accounts: list[Account], builders: int
) -> list[Consent]:
    """Draw approvals in the first hours, some revoked and some of those given again.

    Most who route orders through a builder approve it; a few approve a second one, which
    they never use, and a few approve one without ever routing an order. Accounts with a story
    approve one before they trade and never revoke it: their funding rows can all be asked for,
    so that their tables explain what they are worth.
    """
    rng = stream(seed, "consents")
    consents: list[Consent] = []
    span = days * DAY
    for account in accounts:
        liked = account.builder
        lucks = rng.random(6).tolist()
        if account.story:
            always = account.number % builders
            consents.append(Consent(start_ms + 50 * MINUTE, account.number, always, True))
            continue
        if liked is None:
            liked = int(lucks[5] * builders) if lucks[0] < 0.1 else None
        if liked is None:
            continue
        time = start_ms + 50 * MINUTE + int(lucks[1] * span / 6)
        consents.append(Consent(time, account.number, liked, True))
        if lucks[2] < 0.35:
            revoked = time + int(span * (0.2 + 0.3 * lucks[3]))
            consents.append(Consent(revoked, account.number, liked, False))
            if lucks[4] < 0.5:
                again = revoked + int(span * 0.15)
                consents.append(Consent(again, account.number, liked, True))
        if lucks[5] < 0.25 and builders > 1:
            other = (liked + 1) % builders
            consents.append(Consent(time + 7 * MINUTE, account.number, other, True))
    stories = {account.number for account in accounts if account.story}
    return sorted([*consents, _last_revocation(consents, stories, start_ms + span)], key=_time)


def _last_revocation(consents: list[Consent], stories: set[int], end_ms: int) -> Consent:
    """Let one who never revoked do so near the end, so that somebody stays without."""
    kept = {consent.account for consent in consents if not consent.approved} | stories
    faithful = next(consent for consent in consents if consent.account not in kept)
    return Consent(end_ms - 2 * HOUR, faithful.account, faithful.builder, False)


def _time(consent: Consent) -> int:
    return consent.time
