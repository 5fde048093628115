"""Answers about an account beside its trades: role, fees, limits, portfolio, sub-accounts.

Beyond the specification: docs/live_service.md, section 9.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import (
    Portfolio,
    SubAccountRow,
    UserFees,
    UserRateLimit,
    UserRole,
)
from toolkit.service.answers.accounts import state_of
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.merging import plain
from toolkit.service.store import Store
from toolkit.times import DAY, to_iso

__all__ = [
    "extra_agents",
    "portfolio",
    "referral",
    "spot_clearinghouse_state",
    "sub_accounts",
    "user_abstraction",
    "user_dex_abstraction",
    "user_fees",
    "user_rate_limit",
    "user_role",
    "user_to_multi_sig_signers",
    "user_vault_equities",
]

_NO_BALANCES: Final = b'{"balances":[]}'
_FEE_DAYS: Final = 15
_FIRST_REQUESTS: Final = 10_000
_REFERRER_VOLUME: Final = 10_000
_PERIODS: Final = {"day": 1, "week": 7, "month": 30, "allTime": None}
"""Periods of a portfolio, in days."""


def spot_clearinghouse_state(store: Store, asked: Asked) -> Answer:
    """Return the spot balances of a user."""
    return good(store.document("spot state", asked["user"]) or _NO_BALANCES)


def user_vault_equities(store: Store, asked: Asked) -> Answer:
    """Return what a user has in vaults."""
    return good(store.document("vault equities", asked["user"]) or b"[]")


def sub_accounts(store: Store, asked: Asked) -> Answer:
    """Return a user's sub-accounts with their states on the native dex; null without any."""
    # ASSUMED: subAccounts shows the native dex alone.
    text = store.document("sub-accounts", asked["user"])
    rows = msgspec.json.decode(text, type=list[SubAccountRow]) if text else []
    parts = [
        b'{"name":%b,"subAccountUser":"%b","master":"%b","clearinghouseState":%b,"spotState":%b}'
        % (
            encode(row.name),
            row.sub_account_user.encode(),
            row.master.encode(),
            state_of(store, row.sub_account_user, "", asked.now_ms),
            store.document("spot state", row.sub_account_user) or _NO_BALANCES,
        )
        for row in rows
    ]
    return good(b"[%b]" % b",".join(parts) if parts else b"null")


def user_role(store: Store, asked: Asked) -> Answer:
    """Return what an address is; ``missing`` where the exchange has never seen it."""
    return good(store.document("role", asked["user"]) or encode(UserRole(role="missing")))


def user_fees(store: Store, asked: Asked) -> Answer:
    """Return a user's fee rates, and the volumes of the last days."""
    # ASSUMED: who has never traded pays the rates of the lowest tier.
    text = store.document("fees", asked["user"]) or _lowest_fees(store)
    fees = msgspec.json.decode(text, type=UserFees)
    today = asked.now_ms // DAY
    mine = {day: volume for day, *volume in _volumes(store, asked["user"])}
    days = range(today - _FEE_DAYS + 1, today + 1)
    total = _exchange_volumes(store, days.start)
    nothing = [Decimal(0), Decimal(0)]
    fees.daily_user_vlm = [
        {
            "date": _date(day),
            "userCross": plain(mine.get(day, nothing)[0]),
            "userAdd": plain(mine.get(day, nothing)[1]),
            "exchange": plain(total.get(day, Decimal(0))),
        }
        for day in days
    ]
    return good(encode(fees))


def user_rate_limit(store: Store, asked: Asked) -> Answer:
    """Return how many requests a user has sent to the exchange, and may send."""
    # ASSUMED: placing an order is one request, canceling it another; a user may send 10,000, and
    # one more for each dollar traded.
    volume = _total_volume(store, asked["user"])
    used = store.document("requests", asked["user"])
    return good(
        encode(
            UserRateLimit(
                cum_vlm=plain(volume),
                n_requests_used=int(used) if used else 0,
                n_requests_cap=_FIRST_REQUESTS + int(volume),
                n_requests_surplus=0,
            )
        )
    )


def portfolio(store: Store, asked: Asked) -> Answer:
    """Return account value, PnL and volume of a user over four periods, and of perps alone."""
    # ASSUMED: portfolio counts volume by whole days (UTC), and neither stake nor equity in vaults.
    text = store.packed("valuations", asked["user"]) or b"[]"
    rows = msgspec.json.decode(text, type=list[tuple[int, str, str, str, str]])
    volumes = list(_volumes(store, asked["user"]))
    periods = []
    for prefix, value_at, pnl_at in (("", 1, 2), ("perp", 3, 4)):
        for name, days in _PERIODS.items():
            since = 0 if days is None else asked.now_ms - days * DAY
            kept = [row for row in rows if row[0] >= since]
            before = Decimal(kept[0][pnl_at]) if kept and days is not None else Decimal(0)
            volume = sum((d + m for day, d, m in volumes if day * DAY >= since), Decimal(0))
            history = Portfolio(
                account_value_history=[(row[0], str(row[value_at])) for row in kept],
                pnl_history=[(row[0], plain(Decimal(row[pnl_at]) - before)) for row in kept],
                vlm=plain(volume),
            )
            periods.append((prefix + (name[0].upper() + name[1:] if prefix else name), history))
    return good(encode(periods))


def referral(store: Store, asked: Asked) -> Answer:
    """Return a user's referrals: nobody here was referred, or refers; builders earn fees."""
    volume = _total_volume(store, asked["user"])
    earned = store.document("builder fees", asked["user"])
    left = _REFERRER_VOLUME - volume
    state: dict[str, Any] = {"stage": "needToCreateCode"}
    if left > 0:
        state = {"stage": "needToTrade", "data": {"required": plain(left)}}
    return good(
        encode(
            {
                "referredBy": None,
                "cumVlm": plain(volume),
                "unclaimedRewards": "0.0",
                "claimedRewards": "0.0",
                "builderRewards": msgspec.json.decode(earned) if earned else "0.0",
                "referrerState": state,
                "rewardHistory": [],
                "tokenToState": [],
            }
        )
    )


def user_abstraction(store: Store, asked: Asked) -> Answer:
    """Return how a user's balances belong together."""
    return good(store.document("mode", asked["user"]) or b'"default"')


def user_dex_abstraction(store: Store, asked: Asked) -> Answer:
    """Return whether dexes draw on a user's other balances; null where it was never set."""
    on = store.document("mode", asked["user"]) == b'"dexAbstraction"'
    return good(b"true" if on else b"null")


def extra_agents(store: Store, asked: Asked) -> Answer:
    """Return the named agents of a user: nobody here has one."""
    return good(b"[]")


def user_to_multi_sig_signers(store: Store, asked: Asked) -> Answer:
    """Return the signers of a multi-signature account: there is none here."""
    return good(b"null")


def _lowest_fees(store: Store) -> bytes:
    text: bytes = store.value("SELECT json FROM document WHERE kind = 'fees' LIMIT 1")
    fees = msgspec.json.decode(text, type=UserFees)
    schedule: Any = fees.fee_schedule
    fees.user_cross_rate, fees.user_add_rate = schedule["cross"], schedule["add"]
    fees.user_spot_cross_rate, fees.user_spot_add_rate = schedule["spotCross"], schedule["spotAdd"]
    return encode(fees)


def _volumes(store: Store, user: str) -> Iterator[tuple[int, Decimal, Decimal]]:
    """Yield day, taker volume and maker volume of a user, by day."""
    sql = "SELECT day, taker, maker FROM volume WHERE user = ? ORDER BY day"
    for day, taker, maker in store.rows(sql, user):
        yield day, Decimal(taker), Decimal(maker)


def _total_volume(store: Store, user: str) -> Decimal:
    return sum((taker + maker for _, taker, maker in _volumes(store, user)), Decimal(0))


def _exchange_volumes(store: Store, since: int) -> dict[int, Decimal]:
    """Return the volume of everybody by day; each trade counts once, by its taker."""
    totals: dict[int, Decimal] = {}
    for day, taker in store.rows("SELECT day, taker FROM volume WHERE day >= ?", since):
        totals[day] = totals.get(day, Decimal(0)) + Decimal(taker)
    return totals


def _date(day: int) -> str:
    return to_iso(day * DAY)[:10]
