"""Answers about accounts: ledger, states, borrowing and lending."""

import json
from collections.abc import Sequence

from toolkit.contract.answers import encode
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, dex_name_in
from toolkit.contract.records import ClearinghouseState, MarginSummary
from toolkit.errors import ServiceDown
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.documents import state_key
from toolkit.service.store import Store

__all__ = [
    "batch_clearinghouse_states",
    "borrow_lend_user_state",
    "clearinghouse_state",
    "state_of",
    "user_non_funding_ledger_updates",
]

_NO_LOAN = b'{"tokenToState":[],"health":"healthy","healthFactor":null}'


def user_non_funding_ledger_updates(store: Store, asked: Asked) -> Answer:
    """Give all ledger updates in a range of time, oldest first."""
    # ASSUMED: our userNonFundingLedgerUpdates is never cut, however many updates there are.
    return good(
        store.array(
            "ledger",
            "SELECT row FROM ledger WHERE account = ? AND time BETWEEN ? AND ? ORDER BY time, row",
            store.account(asked["user"]),
            asked["start"],
            asked.end,
        )
    )


def borrow_lend_user_state(store: Store, asked: Asked) -> Answer:
    """Give what a user has borrowed and lent."""
    return good(store.document("borrow lend", asked["user"]) or _NO_LOAN)


def batch_clearinghouse_states(store: Store, asked: Asked) -> Answer:
    """Give the states of many accounts, and those whose states cannot be had."""
    users, dex = asked["users"], asked["dex"]
    failed = {user for user in users if store.document("unavailable", user)}
    all_dexes = dex == ALL_DEXES
    dexes = json.loads(store.document("dexes") or b'[""]') if all_dexes else [canonical_dex(dex)]
    states = _States(store, dexes, users, asked.now_ms)
    pairs = [
        b'["%b",%b]' % (user.encode(), states.by_dex(user) if all_dexes else states.one(user))
        for user in users
        if user not in failed
    ]
    return good(
        b'{"successful_states":[%b],"failed_wallets":%b}'
        % (b",".join(pairs), encode([user for user in users if user in failed]))
    )


def clearinghouse_state(store: Store, asked: Asked) -> Answer:
    """Return the state of one account on a dex, as batchClearinghouseStates does."""
    user, dex = asked["user"], canonical_dex(asked["dex"])
    if store.document("unavailable", user):
        raise ServiceDown("An internal error occurred")
    return good(state_of(store, user, dex, asked.now_ms))


def state_of(store: Store, user: str, dex: str, now_ms: int) -> bytes:
    """Return the text of an account's state on a dex, empty where the dex does not know it."""
    return _States(store, [dex], [user], now_ms).one(user)


class _States:
    """The states of some accounts on some dexes; who has none there has an empty one."""

    def __init__(
        self, store: Store, dexes: Sequence[str], users: Sequence[str], now_ms: int
    ) -> None:
        keys = [state_key(dex, user) for dex in dexes for user in users]
        sql = (
            "SELECT key, json FROM document WHERE kind = 'state' "
            "AND key IN (SELECT value FROM json_each(?))"
        )
        self._found: dict[str, bytes] = dict(store.rows(sql, json.dumps(keys)))
        self._dexes = dexes
        self._empty = encode(_empty_state(now_ms))

    def one(self, user: str, dex: str | None = None) -> bytes:
        """Write the state of an account."""
        key = state_key(self._dexes[0] if dex is None else dex, user)
        return self._found.get(key, self._empty)

    def by_dex(self, user: str) -> bytes:
        """Write the states of an account, keyed by dex."""
        parts = (
            b"%b:%b" % (encode(dex_name_in("states", d)), self.one(user, d)) for d in self._dexes
        )
        return b"{%b}" % b",".join(parts)


def _empty_state(now_ms: int) -> ClearinghouseState:
    # ASSUMED: an account that a dex does not know has an empty state there, not an error.
    nothing = MarginSummary(
        account_value="0.0",
        total_margin_used="0.0",
        total_ntl_pos="0.0",
        total_raw_usd="0.0",
        withdrawable="0.0",
    )
    return ClearinghouseState(
        margin_summary=nothing, cross_margin_summary=nothing, asset_positions=[], time=now_ms
    )
