"""Answers about accounts: funding, ledger, states, borrowing and lending, staking."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, dex_name_in
from toolkit.contract.records import ClearinghouseState, LendInterest, MarginSummary, ValidatorWeek
from toolkit.errors import ServiceDown
from toolkit.service.answer_documents import state_key
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import ACCOUNT, Store, json_array

NO_BALANCES: Final = b'{"balances":[]}'


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


def user_non_funding_ledger_updates(store: Store, request: CheckedRequest) -> bytes:
    """Return all ledger updates in a time range, oldest first."""
    # ASSUMED: `userNonFundingLedgerUpdates` always returns all updates of the range. It has no page
    # size.
    sql = f"SELECT row FROM ledger WHERE {ACCOUNT} AND time BETWEEN ? AND ? ORDER BY time, row"
    values = request["user"], request["start"], request.end
    return json_array(store.select_texts("ledger", sql, *values))


def user_borrow_lend_interest(store: Store, request: CheckedRequest) -> bytes:
    """Return the interest of an account in a time range, oldest first."""
    text = store.document("interest", request["user"]) or b"[]"
    rows = msgspec.json.decode(text, type=list[LendInterest])
    return encode([row for row in rows if request["start"] <= row.time <= request.end])


def batch_clearinghouse_states(store: Store, request: CheckedRequest) -> bytes:
    """Return the states of many accounts, and the accounts whose states are unavailable."""
    users = request["users"]
    failed = [user for user in users if store.document("unavailable", user)]
    states = _requested_states(store, request, users)
    pairs = [b'["%b",%b]' % (user.encode(), states[user]) for user in users if user not in failed]
    return b'{"successful_states":[%b],"failed_wallets":%b}' % (b",".join(pairs), encode(failed))


def clearinghouse_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of one account on a dex, as in batchClearinghouseStates."""
    user, dex = request["user"], canonical_dex(request["dex"])
    if store.document("unavailable", user):
        raise ServiceDown("An internal error occurred")
    return read_states(store, [user], [dex], request.now_ms)[user][dex]


def portfolio_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the perp states, the spot balances and the mode of an account."""
    user = request["user"]
    if store.document("unavailable", user):
        raise ServiceDown("An internal error occurred")
    return b'{"clearinghouseState":%b,"spotClearinghouseState":%b,"userAbstraction":%b}' % (
        _requested_states(store, request, [user])[user],
        store.document("spot state", user) or NO_BALANCES,
        store.document("mode", user) or b'"default"',
    )


def _requested_states(
    store: Store, request: CheckedRequest, users: Sequence[str]
) -> dict[str, bytes]:
    """Return the state of each user on the requested dex; for ALL_DEXES an object by dex."""
    if request["dex"] != ALL_DEXES:
        dex = canonical_dex(request["dex"])
        by_user = read_states(store, users, [dex], request.now_ms)
        return {user: states[dex] for user, states in by_user.items()}
    dexes = json.loads(store.document("dexes") or b'[""]')  # the native one first
    names = {dex: encode(dex_name_in("states", dex)) for dex in dexes}
    return {
        user: b"{%b}" % b",".join(b"%b:%b" % (names[dex], text) for dex, text in states.items())
        for user, states in read_states(store, users, dexes, request.now_ms).items()
    }


def read_states(
    store: Store, users: Sequence[str], dexes: Sequence[str], now_ms: int
) -> dict[str, dict[str, bytes]]:
    """Return the states of accounts by user and dex; those that do not exist are empty."""
    # ASSUMED: If an account is unknown to a dex, the service returns an empty state, not an error.
    zero = MarginSummary(
        account_value="0.0",
        total_margin_used="0.0",
        total_ntl_pos="0.0",
        total_raw_usd="0.0",
        withdrawable="0.0",
    )
    empty = ClearinghouseState(
        margin_summary=zero, cross_margin_summary=zero, asset_positions=[], time=now_ms
    )
    keys = [state_key(dex, user) for dex in dexes for user in users]
    sql = (
        "SELECT key, json FROM document WHERE kind = 'state' "
        "AND key IN (SELECT value FROM json_each(?))"
    )
    found = dict.fromkeys(keys, encode(empty)) | dict(store.select_rows(sql, json.dumps(keys)))
    return {user: {dex: found[state_key(dex, user)] for dex in dexes} for user in users}


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
