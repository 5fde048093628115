"""Answers about staking. Specification, "delegations", "validatorAprHistory"."""

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import ValidatorWeek
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = [
    "delegations",
    "delegator_history",
    "delegator_rewards",
    "delegator_summary",
    "validator_apr_history",
]

_NO_STAKE = (
    b'{"delegated":"0.0","undelegated":"0.0","totalPendingWithdrawal":"0.0",'
    b'"nPendingWithdrawals":0}'
)


def delegations(store: Store, asked: Asked) -> Answer:
    """Give what a user has delegated."""
    return good(store.document("delegations", asked["user"]) or b"[]")


def validator_apr_history(store: Store, asked: Asked) -> Answer:
    """Give weekly APRs, newest first; a week counts by its Monday."""
    text = store.document("weeks", asked["validator"]) or b"[]"
    # ASSUMED: startTime and endTime of validatorAprHistory are compared with the week's start.
    start, end = asked["start"] or 0, asked.end
    weeks = [
        week
        for week in msgspec.json.decode(text, type=list[ValidatorWeek])
        if start <= week.week <= end
    ]
    return good(encode(weeks[: asked["page_size"]]))


def delegator_summary(store: Store, asked: Asked) -> Answer:
    """Return what a user has staked."""
    return good(store.document("stake", asked["user"]) or _NO_STAKE)


def delegator_history(store: Store, asked: Asked) -> Answer:
    """Return the changes of a user's stake, newest first."""
    return good(store.document("stake events", asked["user"]) or b"[]")


def delegator_rewards(store: Store, asked: Asked) -> Answer:
    """Return the staking rewards of a user, newest first."""
    return good(store.document("stake rewards", asked["user"]) or b"[]")
