"""Answers about staking. Specification, "delegations", "validatorAprHistory"."""

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import ValidatorWeek
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store


def validator_apr_history(store: Store, request: CheckedRequest) -> bytes:
    """Return the weekly APRs of a validator, newest first; the time of a week is its Monday."""
    text = store.document("weeks", request["validator"]) or b"[]"
    # ASSUMED: `validatorAprHistory` compares `startTime` and `endTime` with the start of the week.
    start, end = request["start"] or 0, request.end
    weeks = [
        week
        for week in msgspec.json.decode(text, type=list[ValidatorWeek])
        if start <= week.week <= end
    ]
    return encode(weeks[: request["page_size"]])
