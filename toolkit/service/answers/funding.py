"""Answers about funding. Specification, "builderApprovedFundingByTime"."""

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = ["builder_approved_funding_by_time"]


def builder_approved_funding_by_time(store: Store, asked: Asked) -> Answer:
    """Give the funding of users while they had approved a builder, by (time, user, coin)."""
    return good(
        store.array(
            "funding",
            "SELECT row FROM approved_funding "
            "WHERE builder = ? AND row BETWEEN ? AND ? ORDER BY row LIMIT ?",
            asked["builder"],
            _first(store, asked),
            _last(store, asked.end),
            asked["page_size"],
        )
    )


# The rows of the table are numbered by (time, user, coin): a range of times is one of rows.


def _first(store: Store, asked: Asked) -> int | None:
    if (cursor := asked.cursor) is None:
        after, key = ">=", (asked["start"], "", "")
    else:
        after, key = asked.after, (cursor[0], cursor[1].lower(), cursor[2])
    found: int | None = store.value(
        f"SELECT row FROM funding WHERE (time, user, coin) {after} (?, ?, ?) "
        "ORDER BY time, user, coin, row LIMIT 1",
        *key,
    )
    return found


def _last(store: Store, end: int) -> int | None:
    found: int | None = store.value(
        "SELECT row FROM funding WHERE time <= ? "
        "ORDER BY time DESC, user DESC, coin DESC, row DESC LIMIT 1",
        end,
    )
    return found
