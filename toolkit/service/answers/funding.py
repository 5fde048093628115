"""Answers about funding. Specification, "builderApprovedFundingByTime"."""

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = ["builder_approved_funding_by_time"]


def builder_approved_funding_by_time(store: Store, asked: Asked) -> Answer:
    """Give the funding of users while they had approved a builder, by (time, user, coin)."""
    after, key = _from_here(asked)
    return good(
        store.array(
            "funding",
            "SELECT row FROM approved_funding "
            f"WHERE builder = ? AND (time, user, coin) {after} (?, ?, ?) AND time <= ? "
            "ORDER BY time, user, coin, row LIMIT ?",
            asked["builder"],
            *key,
            asked.end,
            asked["page_size"],
        )
    )


def _from_here(asked: Asked) -> tuple[str, tuple[int, str, str]]:
    """Give how rows compare with a key, and the key: that of the cursor, or the first moment."""
    if (cursor := asked.cursor) is None:
        return ">=", (asked["start"], "", "")
    return asked.after, (cursor[0], cursor[1].lower(), cursor[2])
