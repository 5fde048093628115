"""Answers about funding. Specification, "builderApprovedFundingByTime"."""

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store, array

__all__ = ["builder_approved_funding_by_time", "user_funding"]


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


def user_funding(store: Store, asked: Asked) -> Answer:
    """Return the funding of one user in a range of time, by time and coin; rows name no user."""
    # ASSUMED: userFunding is never cut here; the exchange's own API returns 500 rows at most.
    found = store.rows(
        "SELECT row FROM user_funding WHERE account = ? AND time BETWEEN ? AND ? "
        "ORDER BY time, row",
        store.account(asked["user"]),
        asked["start"],
        asked.end,
    )
    user = b'"user":"%b",' % asked["user"].encode()
    texts = store.texts("funding", [row for (row,) in found])
    return good(array(text.replace(user, b"", 1) for text in texts))


def _from_here(asked: Asked) -> tuple[str, tuple[int, str, str]]:
    """Give how rows compare with a key, and the key: that of the cursor, or the first moment."""
    if (cursor := asked.cursor) is None:
        return ">=", (asked["start"], "", "")
    return asked.after, (cursor[0], cursor[1].lower(), cursor[2])
