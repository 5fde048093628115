"""Order states and their groups.

Specification, "States and transitions". Readers accept states that are not in this list.
"""

from typing import Final

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "active": ("open", "triggered", "scheduledCancel"),
    "filled": ("filled",),
    "canceled": (
        "canceled", "marginCanceled", "liquidatedCanceled", "delistedCanceled",
        "reduceOnlyCanceled", "selfTradeCanceled", "siblingFilledCanceled",
        "vaultWithdrawalCanceled", "openInterestCapCanceled",
    ),
    "rejected": (
        "badAloPxRejected", "iocCancelRejected", "reduceOnlyRejected", "oracleRejected",
        "perpMarginRejected", "perpMaxPositionRejected", "openInterestIncreaseRejected",
        "positionFlipAtOpenInterestCapRejected", "positionIncreaseAtOpenInterestCapRejected",
        "tooAggressiveAtOpenInterestCapRejected", "minTradeNtlRejected",
        "insufficientSpotBalanceRejected",
    ),
}  # fmt: skip
"""The states of the specification, by group."""

UPSTREAM_STATES: Final[dict[str, str]] = {
    "rejected": "rejected",
    "internalCancel": "canceled",
    "tickRejected": "rejected",
    "badTriggerPxRejected": "rejected",
    "marketOrderNoLiquidityRejected": "rejected",
    "tooManyOpenOrdersRejected": "rejected",
    "outcomeSettledCanceled": "canceled",
}
"""Further states that the upstream exchange is known to write, and their groups."""

STATES: Final[dict[str, str]] = {
    state: name for name, states in GROUPS.items() for state in states
} | UPSTREAM_STATES
"""Every known state and its group."""


def order_state_group(state: str) -> str:
    """Return the group of an order state, or ``"unknown"`` for an unknown state.

    >>> order_state_group("iocCancelRejected")
    'rejected'
    >>> order_state_group("somethingNew")
    'unknown'
    """
    return STATES.get(state, "unknown")
