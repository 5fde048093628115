"""Answers about accounts. Specification, "userNonFundingLedgerUpdates"."""

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = ["user_non_funding_ledger_updates"]


def user_non_funding_ledger_updates(store: Store, asked: Asked) -> Answer:
    """Give all ledger updates in a range of time, oldest first."""
    # ASSUMED: our userNonFundingLedgerUpdates is never cut, however many updates there are.
    return good(
        store.array(
            "SELECT json FROM ledger WHERE account = ? AND time BETWEEN ? AND ? ORDER BY time, row",
            store.account(asked["user"]),
            asked["start"],
            asked.end,
        )
    )
