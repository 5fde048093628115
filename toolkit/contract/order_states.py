"""Order states and their groups.

Specification, "States and transitions". Readers keep states that are not listed here.
"""

from typing import Final

__all__ = ["GROUPS", "STATES", "UPSTREAM_STATES", "order_state_group"]

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "active": ("open", "triggered", "scheduledCancel"),
    "filled": ("filled",),
    "canceled": (
        "canceled",
        "marginCanceled",
        "liquidatedCanceled",
        "delistedCanceled",
        "reduceOnlyCanceled",
        "selfTradeCanceled",
        "siblingFilledCanceled",
        "vaultWithdrawalCanceled",
        "openInterestCapCanceled",
    ),
    "rejected": (
        "badAloPxRejected",
        "iocCancelRejected",
        "reduceOnlyRejected",
        "oracleRejected",
        "perpMarginRejected",
        "perpMaxPositionRejected",
        "openInterestIncreaseRejected",
        "positionFlipAtOpenInterestCapRejected",
        "positionIncreaseAtOpenInterestCapRejected",
        "tooAggressiveAtOpenInterestCapRejected",
        "minTradeNtlRejected",
        "insufficientSpotBalanceRejected",
    ),
}
"""The states that the specification lists, by group."""

UPSTREAM_STATES: Final[dict[str, str]] = {
    "rejected": "rejected",
    "internalCancel": "canceled",
    "tickRejected": "rejected",
    "badTriggerPxRejected": "rejected",
    "marketOrderNoLiquidityRejected": "rejected",
    "tooManyOpenOrdersRejected": "rejected",
    "outcomeSettledCanceled": "canceled",
}
"""States that the upstream exchange is known to write besides, with the group they belong to."""

STATES: Final[dict[str, str]] = {
    state: name for name, states in GROUPS.items() for state in states
} | UPSTREAM_STATES
"""Every known state and its group."""


def order_state_group(state: str) -> str:
    """Give the group of an order state, ``"unknown"`` for a state that is not known.

    Examples
    --------
    >>> order_state_group("iocCancelRejected")
    'rejected'
    >>> order_state_group("somethingNew")
    'unknown'
    """
    return STATES.get(state, "unknown")
