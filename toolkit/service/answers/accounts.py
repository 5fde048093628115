"""Answers about accounts: ledger, states, borrowing and lending."""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, dex_name_in
from toolkit.contract.records import ClearinghouseState, LendInterest, MarginSummary
from toolkit.errors import ServiceDown
from toolkit.service.answer_documents import state_key
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store

NO_BALANCES: Final = b'{"balances":[]}'


def user_non_funding_ledger_updates(store: Store, request: CheckedRequest) -> bytes:
    """Return all ledger updates in a time range, oldest first."""
    # ASSUMED: `userNonFundingLedgerUpdates` always returns all updates of the range. It has no page
    # size.
    return store.select_texts(
        "ledger",
        "SELECT row FROM ledger WHERE account = ? AND time BETWEEN ? AND ? ORDER BY time, row",
        store.account_number(request["user"]),
        request["start"],
        request.end,
    )


def user_borrow_lend_interest(store: Store, request: CheckedRequest) -> bytes:
    """Return the interest of an account in a time range, oldest first."""
    text = store.document("interest", request["user"]) or b"[]"
    rows = msgspec.json.decode(text, type=list[LendInterest])
    return encode([row for row in rows if request["start"] <= row.time <= request.end])


def batch_clearinghouse_states(store: Store, request: CheckedRequest) -> bytes:
    """Return the states of many accounts, and the accounts whose states are unavailable."""
    users, dex = request["users"], request["dex"]
    failed = {user for user in users if store.document("unavailable", user)}
    states = _StateReader(store, _dexes_of(store, dex), users, request.now_ms)
    pairs = [
        b'["%b",%b]' % (user.encode(), states.requested(user, dex))
        for user in users
        if user not in failed
    ]
    return b'{"successful_states":[%b],"failed_wallets":%b}' % (
        b",".join(pairs),
        encode([user for user in users if user in failed]),
    )


def clearinghouse_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of one account on a dex, as in batchClearinghouseStates."""
    user, dex = request["user"], canonical_dex(request["dex"])
    if store.document("unavailable", user):
        raise ServiceDown("An internal error occurred")
    return state_of(store, user, dex, request.now_ms)


def portfolio_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the perp states, the spot balances and the mode of an account."""
    user, dex = request["user"], request["dex"]
    if store.document("unavailable", user):
        raise ServiceDown("An internal error occurred")
    states = _StateReader(store, _dexes_of(store, dex), [user], request.now_ms)
    return b'{"clearinghouseState":%b,"spotClearinghouseState":%b,"userAbstraction":%b}' % (
        states.requested(user, dex),
        store.document("spot state", user) or NO_BALANCES,
        store.document("mode", user) or b'"default"',
    )


def _dexes_of(store: Store, dex: str) -> list[str]:
    """Return the dexes that a request means, the native one first."""
    if dex != ALL_DEXES:
        return [canonical_dex(dex)]
    dexes: list[str] = json.loads(store.document("dexes") or b'[""]')
    return dexes


def state_of(store: Store, user: str, dex: str, now_ms: int) -> bytes:
    """Return the text of an account's state on a dex; an empty state if it has none there."""
    return _StateReader(store, [dex], [user], now_ms).state_of(user)


class _StateReader:
    """The states of accounts on dexes; an account without a state has an empty one."""

    def __init__(
        self, store: Store, dexes: Sequence[str], users: Sequence[str], now_ms: int
    ) -> None:
        keys = [state_key(dex, user) for dex in dexes for user in users]
        sql = (
            "SELECT key, json FROM document WHERE kind = 'state' "
            "AND key IN (SELECT value FROM json_each(?))"
        )
        self._states: dict[str, bytes] = dict(store.select_rows(sql, json.dumps(keys)))
        self._dexes = dexes
        self._empty = encode(_empty_state(now_ms))

    def state_of(self, user: str, dex: str | None = None) -> bytes:
        """Return the state of an account on a dex, by default on the first one."""
        key = state_key(self._dexes[0] if dex is None else dex, user)
        return self._states.get(key, self._empty)

    def requested(self, user: str, dex: str) -> bytes:
        """Return the state of an account on a dex, or its states by dex for ALL_DEXES."""
        return self.by_dex(user) if dex == ALL_DEXES else self.state_of(user)

    def by_dex(self, user: str) -> bytes:
        """Return the states of an account as an object, keyed by dex."""
        parts = (
            b"%b:%b" % (encode(dex_name_in("states", dex)), self.state_of(user, dex))
            for dex in self._dexes
        )
        return b"{%b}" % b",".join(parts)


def _empty_state(now_ms: int) -> ClearinghouseState:
    # ASSUMED: If an account is unknown to a dex, the service returns an empty state, not an error.
    zero = MarginSummary(
        account_value="0.0",
        total_margin_used="0.0",
        total_ntl_pos="0.0",
        total_raw_usd="0.0",
        withdrawable="0.0",
    )
    return ClearinghouseState(
        margin_summary=zero, cross_margin_summary=zero, asset_positions=[], time=now_ms
    )
