"""Answers about funding. Specification, "builderApprovedFundingByTime"."""

from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import ACCOUNT, Store, json_array


def builder_approved_funding_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the funding of users while they had approved a builder, by (time, user, coin)."""
    comparison, key = request.page_start
    texts = store.select_texts(
        "funding",
        "SELECT row FROM approved_funding "
        f"WHERE builder = ? AND (time, user, coin) {comparison} (?, lower(?), ?) AND time <= ? "
        "ORDER BY time, user, coin, row LIMIT ?",
        *(request["builder"], *key, request.end, request["page_size"]),
    )
    return json_array(texts)


def user_funding(store: Store, request: CheckedRequest) -> bytes:
    """Return the funding of one user in a time range, by time and coin; rows omit the user."""
    # ASSUMED: In the local service, `userFunding` returns all rows. The exchange's own API returns
    # at most 500.
    texts = store.select_texts(
        "funding",
        f"SELECT row FROM user_funding WHERE {ACCOUNT} AND time BETWEEN ? AND ? ORDER BY time, row",
        *(request["user"], request["start"], request.end),
    )
    user = b'"user":"%b",' % request["user"].encode()
    return json_array(text.replace(user, b"", 1) for text in texts)
