"""Answers about accounts: role, fees, limits, portfolio, sub-accounts, vaults.

Beyond the specification: docs/live_service.md, section 9.
"""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

from toolkit.contract import records
from toolkit.contract.answers import encode
from toolkit.contract.apis import SERVICE
from toolkit.contract.recorded_rows import read_record
from toolkit.service.answers.accounts import NO_BALANCES, read_states
from toolkit.service.decimals import format_decimal
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import ACCOUNT, Store
from toolkit.times import DAY, to_iso

_FEE_DAYS: Final = 15
_FIRST_REQUESTS: Final = 10_000
_REFERRER_VOLUME: Final = 10_000
_LEADER_COMMISSION: Final = 0.1
_MOST_FOLLOWERS: Final = 100
_PERIODS: Final = {"day": 1, "week": 7, "month": 30, "allTime": None}
"""The periods of a portfolio, in days."""


def sub_accounts(store: Store, request: CheckedRequest) -> bytes:
    """Return the sub-accounts of a user with their states on the native dex, or null."""
    # ASSUMED: The answer of `subAccounts` contains only states of the native dex.
    accounts = msgspec.json.decode(store.document("sub-accounts", request["user"]) or b"[]")
    users = [account["subAccountUser"] for account in accounts]
    states = read_states(store, users, [""], request.now_ms)
    for user, account in zip(users, accounts, strict=True):
        account["clearinghouseState"] = msgspec.Raw(states[user][""])
        account["spotState"] = msgspec.Raw(store.document("spot state", user) or NO_BALANCES)
    return encode(accounts or None)


def user_fees(store: Store, request: CheckedRequest) -> bytes:
    """Return the fee rates of a user, and the volumes of the last days."""
    # ASSUMED: A user without trades pays the fee rates of the lowest volume tier.
    text = store.document("fees", request["user"])
    some = text or store.select_value("SELECT json FROM document WHERE kind = 'fees' LIMIT 1")
    fees = msgspec.json.decode(some, type=records.UserFees)
    if text is None:
        lowest: Any = fees.fee_schedule
        fees.user_cross_rate, fees.user_add_rate = lowest["cross"], lowest["add"]
        fees.user_spot_cross_rate, fees.user_spot_add_rate = lowest["spotCross"], lowest["spotAdd"]
    today = request.now_ms // DAY
    days = range(today - _FEE_DAYS + 1, today + 1)
    own = {day: volume for day, *volume in _daily_volumes(store, request["user"])}
    exchange = defaultdict[int, Decimal](Decimal)  # each trade counts once, for its taker
    for day, taker in store.select_rows("SELECT day, taker FROM volume WHERE day >= ?", days[0]):
        exchange[day] += Decimal(taker)
    fees.daily_user_vlm = []
    for day in days:
        volumes = *own.get(day, (Decimal(0), Decimal(0))), exchange[day]
        texts = zip(("userCross", "userAdd", "exchange"), map(format_decimal, volumes), strict=True)
        fees.daily_user_vlm.append({"date": to_iso(day * DAY)[:10], **dict(texts)})
    return encode(fees)


def user_rate_limit(store: Store, request: CheckedRequest) -> bytes:
    """Return how many requests a user has sent to the exchange, and how many are allowed."""
    # ASSUMED: Placing an order is one request, and cancelling it is another. A user may send 10,000
    # requests, and one more for each dollar of volume.
    volume = _total_volume(store, request["user"])
    requests = store.document("requests", request["user"])
    return encode(
        records.UserRateLimit(
            cum_vlm=format_decimal(volume),
            n_requests_used=int(requests) if requests else 0,
            n_requests_cap=_FIRST_REQUESTS + int(volume),
            n_requests_surplus=0,
        )
    )


def portfolio(store: Store, request: CheckedRequest) -> bytes:
    """Return account value, PnL and volume of a user for four periods, in total and of perps."""
    return encode(_periods(store, request["user"], request.now_ms))


def vault_details(store: Store, request: CheckedRequest) -> bytes:
    """Return a vault with its history and its followers; null if the address is no vault."""
    # ASSUMED: `vaultDetails` of an address that is no vault returns null.
    # ASSUMED: `apr` of `vaultDetails` is the PnL of the last month over the mean account value.
    # ASSUMED: `maxDistributable` and `maxWithdrawable` are the withdrawable amount of the vault.
    vault, now = request["vault_address"], request.now_ms
    if store.document("role", vault) != encode(records.UserRole(role="vault")):
        return b"null"
    shares: dict[str, records.VaultFollower] = {}
    leader = ""
    for user in store.document_keys("vault equities"):
        text = store.document("vault equities", user) or b"[]"
        for equity in msgspec.json.decode(text, type=list[records.VaultEquity]):
            if equity.vault_address == vault:
                has_created, shares[user] = _vault_share(store, vault, user, equity, now)
                leader = user if has_created else leader
    total = sum(float(share.vault_equity) for share in shares.values())
    text = read_states(store, [vault], [""], now)[vault][""]
    state = msgspec.json.decode(text, type=records.ClearinghouseState)
    free = float(str(state.margin_summary.withdrawable))
    history = _periods(store, vault, now)
    month = dict(history)["month"]
    times, values = [*zip(*month.account_value_history, strict=True)] or ((), ())
    mean = sum(map(float, values)) / len(values) if len(values) > 1 else 0.0
    days = (times[-1] - times[0]) / DAY if times else 0.0
    largest = sorted(shares.values(), key=lambda share: -float(share.vault_equity))
    return encode(
        records.VaultDetails(
            name=f"vault {vault[:6]}",
            vault_address=vault,
            leader=leader,
            description="",
            portfolio=history,
            apr=0.0 if not mean else float(month.pnl_history[-1][1]) / mean / days * 365,
            follower_state=shares.get(request["user"]),
            leader_fraction=float(shares[leader].vault_equity) / total if leader and total else 0.0,
            leader_commission=_LEADER_COMMISSION,
            followers=largest[:_MOST_FOLLOWERS],
            max_distributable=free,
            max_withdrawable=free,
            is_closed=False,
            relationship={"type": "normal"},
            allow_deposits=True,
            always_close_on_withdraw=False,
        )
    )


def referral(store: Store, request: CheckedRequest) -> bytes:
    """Return the referral state of a user.

    The simulation has no referrers, so `referredBy` is null. `builderRewards` has the fees that the
    user earned as a builder.
    """
    volume = _total_volume(store, request["user"])
    fees = store.document("builder fees", request["user"])
    required = _REFERRER_VOLUME - volume
    state: dict[str, Any] = {"stage": "needToCreateCode"}
    if required > 0:
        state = {"stage": "needToTrade", "data": {"required": format_decimal(required)}}
    return encode(
        {
            "referredBy": None,
            "cumVlm": format_decimal(volume),
            "unclaimedRewards": "0.0",
            "claimedRewards": "0.0",
            "builderRewards": msgspec.json.decode(fees) if fees else "0.0",
            "referrerState": state,
            "rewardHistory": [],
            "tokenToState": [],
        }
    )


def user_dex_abstraction(store: Store, request: CheckedRequest) -> bytes:
    """Return whether dexes use the other balances of a user; null if it was never set."""
    is_on = store.document("mode", request["user"]) == b'"dexAbstraction"'
    return b"true" if is_on else b"null"


def _periods(store: Store, user: str, now_ms: int) -> list[tuple[str, records.Portfolio]]:
    # ASSUMED: The operation `portfolio` counts volume by days (UTC). Its account value excludes
    # stake and equity in vaults.
    text = store.compressed_document("valuations", user) or b"[]"
    rows = msgspec.json.decode(text, type=list[tuple[int, str, str, str, str]])
    volumes = list(_daily_volumes(store, user))
    periods = []
    for prefix, value_at, pnl_at in (("", 1, 2), ("perp", 3, 4)):
        for name, days in _PERIODS.items():
            since = 0 if days is None else now_ms - days * DAY
            period = [row for row in rows if row[0] >= since]
            before = Decimal(period[0][pnl_at]) if period and days is not None else Decimal(0)
            volume = sum((d + m for day, d, m in volumes if day * DAY >= since), Decimal(0))
            history = records.Portfolio(
                account_value_history=[(row[0], str(row[value_at])) for row in period],
                pnl_history=[
                    (row[0], format_decimal(Decimal(row[pnl_at]) - before)) for row in period
                ],
                vlm=format_decimal(volume),
            )
            periods.append((prefix + (name[0].upper() + name[1:] if prefix else name), history))
    return periods


def _vault_share(
    store: Store, vault: str, user: str, equity: records.VaultEquity, now_ms: int
) -> tuple[bool, records.VaultFollower]:
    """Return whether an account has created a vault, and its share in it."""
    # ASSUMED: In `vaultDetails`, `pnl` is the equity less the cost basis of the share. `allTimePnl`
    # is the equity and everything paid out, less all deposits.
    sql = f"SELECT row FROM ledger WHERE {ACCOUNT} ORDER BY time, row"
    basis = paid = Decimal(0)
    entry, has_created = now_ms, False
    for text in store.select_texts("ledger", sql, user):
        update = read_record(records.LedgerUpdate, text)
        delta = update.delta
        if delta.vault != vault:
            continue
        if delta.type in ("vaultCreate", "vaultDeposit"):
            basis += Decimal(str(delta.usdc))
            paid += Decimal(str(delta.usdc))
            entry = min(entry, update.time)
            has_created |= delta.type == "vaultCreate"
        elif delta.type == "vaultDistribution":
            paid -= Decimal(str(delta.usdc))
        elif delta.type == "vaultWithdraw":
            basis -= Decimal(str(delta.basis))
            paid -= Decimal(str(delta.net_withdrawn_usd))
    value = Decimal(equity.equity)
    return has_created, records.VaultFollower(
        user="Leader" if has_created else user,
        vault_equity=equity.equity,
        pnl=format_decimal(value - basis),
        all_time_pnl=format_decimal(value - paid),
        days_following=(now_ms - entry) // DAY,
        vault_entry_time=entry,
        lockup_until=equity.locked_until_timestamp or entry,
    )


def _daily_volumes(store: Store, user: str) -> Iterator[tuple[int, Decimal, Decimal]]:
    """Yield day, taker volume and maker volume of a user, in the order of days."""
    sql = "SELECT day, taker, maker FROM volume WHERE user = ? ORDER BY day"
    for day, taker, maker in store.select_rows(sql, user):
        yield day, Decimal(taker), Decimal(maker)


def _total_volume(store: Store, user: str) -> Decimal:
    return sum((taker + maker for _, taker, maker in _daily_volumes(store, user)), Decimal(0))


def api_usage(_: Store, request: CheckedRequest) -> bytes:
    """Return the requests of the key by day and type, and the tokens that they would cost."""
    found = request.requests_since(request.now_ms // DAY - request["days"] + 1)
    return encode(
        [
            records.ApiUsage(
                day=to_iso(day * DAY)[:10],
                request_type=type,
                total_requests=number,
                tokens_consumed=SERVICE.tokens(type, number) or 0.0,
            )
            for day, type, number in found
        ]
    )
