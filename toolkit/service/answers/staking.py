"""Answers about staking. Specification, "delegations", "validatorAprHistory"."""

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import ValidatorWeek
from toolkit.service.handler_messages import CheckedRequest, Response, json_response
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


def delegations(store: Store, request: CheckedRequest) -> Response:
    """Return the delegations of a user."""
    return json_response(store.document("delegations", request["user"]) or b"[]")


def validator_apr_history(store: Store, request: CheckedRequest) -> Response:
    """Return the weekly APRs of a validator, newest first; the time of a week is its Monday."""
    text = store.document("weeks", request["validator"]) or b"[]"
    # ASSUMED: `validatorAprHistory` compares `startTime` and `endTime` with the start of the week.
    start, end = request["start"] or 0, request.end
    weeks = [
        week
        for week in msgspec.json.decode(text, type=list[ValidatorWeek])
        if start <= week.week <= end
    ]
    return json_response(encode(weeks[: request["page_size"]]))


def delegator_summary(store: Store, request: CheckedRequest) -> Response:
    """Return the stake of a user."""
    return json_response(store.document("stake", request["user"]) or _NO_STAKE)


def delegator_history(store: Store, request: CheckedRequest) -> Response:
    """Return the changes of the stake of a user, newest first."""
    return json_response(store.document("stake events", request["user"]) or b"[]")


def delegator_rewards(store: Store, request: CheckedRequest) -> Response:
    """Return the staking rewards of a user, newest first."""
    return json_response(store.document("stake rewards", request["user"]) or b"[]")
