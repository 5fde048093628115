"""Answers about funding. Specification, "builderApprovedFundingByTime"."""

from toolkit.service.handler_messages import CheckedRequest, Response, json_response
from toolkit.service.store import Store, json_array

__all__ = ["builder_approved_funding_by_time", "user_funding"]


def builder_approved_funding_by_time(store: Store, request: CheckedRequest) -> Response:
    """Return the funding of users while they had approved a builder, by (time, user, coin)."""
    comparison, key = _page_start(request)
    return json_response(
        store.select_texts(
            "funding",
            "SELECT row FROM approved_funding "
            f"WHERE builder = ? AND (time, user, coin) {comparison} (?, ?, ?) AND time <= ? "
            "ORDER BY time, user, coin, row LIMIT ?",
            request["builder"],
            *key,
            request.end,
            request["page_size"],
        )
    )


def user_funding(store: Store, request: CheckedRequest) -> Response:
    """Return the funding of one user in a time range, by time and coin; rows omit the user."""
    # ASSUMED: In the local service, `userFunding` returns all rows. The exchange's own API returns
    # at most 500.
    rows = store.select_rows(
        "SELECT row FROM user_funding WHERE account = ? AND time BETWEEN ? AND ? "
        "ORDER BY time, row",
        store.account_number(request["user"]),
        request["start"],
        request.end,
    )
    user = b'"user":"%b",' % request["user"].encode()
    texts = store.row_texts("funding", [row for (row,) in rows])
    return json_response(json_array(text.replace(user, b"", 1) for text in texts))


def _page_start(request: CheckedRequest) -> tuple[str, tuple[int, str, str]]:
    """Return the SQL comparison and the (time, user, coin) key with which a page begins."""
    if (cursor := request.cursor) is None:
        return ">=", (request["start"], "", "")
    return request.comparison, (cursor[0], cursor[1].lower(), cursor[2])
