"""Profiles of accounts: role, fee rates, sub-accounts, equity in vaults, and staking.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.contract.source_tables import DailyReward
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import exact
from toolkit.simulation.engine.accounts import MAKER_MICRO, REBATES, TIERS
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.spot import SPOT_MAKER_MICRO, SPOT_TAKER_MICRO
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.times import DAY, HOUR, MINUTE, to_ms

COMMISSIONS = (0, 300, 400, 500, 1_000, 10_000)
"""Each validator's commission, in hundredths of a percent of the rewards."""

_FIRST_DAY = to_ms("2025-08-01")  # specification, "Data availability"
_ANNUAL_MILLIONTHS = 22_000

_Stakes = dict[str, dict[str, int]]
"""Account -> validator -> the amount that the account has delegated to it."""

_MAKER_SHARES = ("0.03", "0.015", "0.005")


def validator_addresses(seed: int) -> list[str]:
    """Return the addresses of the validators."""
    return [
        exact.party_address(seed, "validator", str(number)) for number in range(len(COMMISSIONS))
    ]


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the role of each known address, and what each account has: fees, equities, stakes, ...

    The service adds the daily volume to the fees.
    """
    others = [*exchange.builders, *validator_addresses(exchange.seed)]
    roles = {address: r.UserRole(role="user") for address in others}
    owned: dict[str, list[r.SubAccountRow]] = defaultdict(list)
    schedule, fees = _fee_schedule(), {}
    for account in exchange.accounts:
        role = r.UserRole(role="vault" if account.is_vault else "user")
        if account.sub_account_of is not None:
            master = exchange.accounts[account.sub_account_of].address
            role = r.UserRole(role="subAccount", data={"master": master})
            name = f"sub {len(owned[master]) + 1}"
            row = r.SubAccountRow(name=name, sub_account_user=account.address, master=master)
            owned[master].append(row)
        roles[account.address] = role
        fees[account.address] = r.UserFees(
            daily_user_vlm=[],
            fee_schedule=schedule,
            user_cross_rate=exact.money_text(account.taker_micro),
            user_add_rate=exact.money_text(account.maker_micro),
            user_spot_cross_rate=schedule["spotCross"],
            user_spot_add_rate=schedule["spotAdd"],
            active_referral_discount="0.0",
            trial=None,
            fee_trial_escrow="0.0",
            next_trial_available_timestamp=None,
            active_staking_discount={"bpsOfMaxSupply": "0.0", "discount": "0.0"},
        )
    return {
        "roles": roles,
        "sub_accounts": dict(owned),
        "fees": fees,
        "vault_equities": _vault_equities(exchange),
        **_stake_tables(exchange),
    }


def _vault_equities(exchange: Exchange) -> dict[str, list[r.VaultEquity]]:
    """Return each follower's equity in each vault; the sum is the vault's account value."""
    # ASSUMED: The share of a follower in a vault is its net deposits divided by the net deposits of
    # all followers. Net deposits are deposits minus the cost basis of withdrawals. Distributions do
    # not change them.
    shares: dict[str, dict[str, int]] = defaultdict(dict)
    locked: dict[tuple[str, str], int] = {}
    vaults = {account.address for account in exchange.accounts if account.is_vault}
    for user, update in exchange.ledger:
        delta = update.delta
        vault = delta.vault
        if user in vaults or vault is UNSET or vault is None:
            continue
        share = shares[vault].get(user, 0)
        if delta.type in ("vaultCreate", "vaultDeposit"):
            shares[vault][user] = share + exact.parse_units(str(delta.usdc), exact.MICRO)
            # ASSUMED: A deposit into a vault is locked for one day.
            locked[vault, user] = update.time + DAY
        elif delta.type == "vaultWithdraw" and delta.user == user:
            shares[vault][user] = share - exact.parse_units(str(delta.basis), exact.MICRO)
    rows: dict[str, list[r.VaultEquity]] = defaultdict(list)
    for number, pnl in enumerate(exchange.unrealised_pnl(exchange.end_ms)):
        vault = exchange.accounts[number].address
        equity = max(0, sum(exchange.balances[number]) + pnl)
        positive = {user: share for user, share in shares[vault].items() if share > 0}
        total, left = sum(positive.values()), equity
        for place, (user, share) in enumerate(positive.items(), 1):
            # The last follower gets the rounding, so that nothing is lost.
            part = left if place == len(positive) else equity * share // total
            left -= part
            row = r.VaultEquity(
                vault_address=vault,
                equity=exact.money_text(part),
                locked_until_timestamp=locked[vault, user],
            )
            rows[user].append(row)
    return dict(rows)


def _fee_schedule() -> dict[str, Any]:
    """Return the rates of the exchange, from the lowest tier up."""
    same = {
        "add": exact.money_text(MAKER_MICRO),
        "spotCross": exact.money_text(SPOT_TAKER_MICRO),
        "spotAdd": exact.money_text(SPOT_MAKER_MICRO),
    }
    lowest, *tiers = (
        {"ntlCutoff": exact.decimal_text(cutoff, 0), "cross": exact.money_text(taker), **same}
        for cutoff, taker in sorted(TIERS)
    )
    makers = [
        {"makerFractionCutoff": share, "add": exact.money_text(rebate)}
        for share, rebate in zip(_MAKER_SHARES, REBATES, strict=True)
    ]
    return {
        "cross": lowest["cross"],
        **same,
        "tiers": {"vip": tiers, "mm": makers},
        "referralDiscount": "0.04",
        "stakingDiscountTiers": [{"bpsOfMaxSupply": "0.0", "discount": "0.0"}],
    }


def _stake_tables(exchange: Exchange) -> dict[str, Any]:
    """Return the rewards of validators, and each account's delegations, stake and its changes.

    An account has delegated all of its stake, to one validator or two. Some of it is still locked,
    the rest has been free for a while. No withdrawal is pending.
    """
    validators = validator_addresses(exchange.seed)
    stakes: _Stakes = {}
    delegations: dict[str, list[r.Delegation]] = {}
    summaries = {}
    for number, account in enumerate(exchange.accounts):
        balance = exchange.wallets[number].get(NATIVE_TOKEN)
        if balance is None or (staked := balance.staked) <= 0:
            continue
        locked_until = exchange.end_ms + (20 * HOUR if number % 3 == 0 else -number % 29 * DAY)
        parts = (staked,) if number % 2 else (staked // 3, staked - staked // 3)
        stakes[account.address] = {
            validators[place % len(validators)]: part for place, part in enumerate(parts, number)
        }
        delegations[account.address] = [
            r.Delegation(
                validator=validator,
                amount=exact.decimal_text(part, WEI),
                locked_until_timestamp=locked_until,
            )
            for validator, part in stakes[account.address].items()
        ]
        summaries[account.address] = r.DelegatorSummary(
            delegated=exact.decimal_text(staked, WEI),
            undelegated="0.0",
            total_pending_withdrawal="0.0",
            n_pending_withdrawals=0,
        )
    return {
        "delegations": delegations,
        "stakes": summaries,
        "stake_events": _stake_events(exchange, stakes),
        **_rewards(exchange, stakes),
    }


def _rewards(exchange: Exchange, stakes: _Stakes) -> dict[str, Any]:
    """Return the rewards of every validator on every day since rewards are published.

    The total reward is rounded to the token's last digit, and so is the commission. The
    delegators get the rest, so that nothing is lost. The second table has what each staker, and
    each validator, earned, newest first: a staker's share is its share of the validator's stake.
    """
    # ASSUMED: Stakes earn rewards from the second day of the history. The stake of a validator is
    # its own stake plus these stakes.
    rng = exact.random_stream(exchange.seed, "rewards")
    own = (rng.integers(500_000, 5_000_000, len(COMMISSIONS)) * exact.ONE_TOKEN).tolist()
    validators = validator_addresses(exchange.seed)
    rewards = []
    earned: dict[tuple[int, str, str], int] = defaultdict(int)
    for time in range(_FIRST_DAY + DAY, exchange.end_ms + 1, DAY):
        factors = rng.integers(900, 1_100, len(COMMISSIONS)).tolist()
        earning = stakes if time > exchange.start_ms else {}
        for validator, share, kept, factor in zip(
            validators, COMMISSIONS, own, factors, strict=True
        ):
            users = {
                user: parts[validator] for user, parts in earning.items() if validator in parts
            }
            staked = kept + sum(users.values())
            total = exact.rounded_share(staked, _ANNUAL_MILLIONTHS * factor, 365 * 10**9)
            commission = exact.rounded_share(total, share, 10_000)
            reward = DailyReward(
                validator=validator,
                time=time,
                staked=exact.decimal_text(staked, WEI),
                delegator_rewards=exact.decimal_text(total - commission, WEI),
                commission=exact.decimal_text(commission, WEI),
            )
            rewards.append(reward)
            if commission:
                earned[time, validator, "commission"] += commission
            for user, amount in users.items() if time > exchange.start_ms + DAY else ():
                earned[time, user, "delegation"] += (total - commission) * amount // staked
    rows: dict[str, list[r.DelegatorReward]] = defaultdict(list)
    for (time, user, source), amount in sorted(earned.items(), reverse=True):
        row = r.DelegatorReward(
            time=time, source=source, total_amount=exact.decimal_text(amount, WEI)
        )
        rows[user].append(row)
    return {"rewards": rewards, "stake_rewards": dict(rows)}


def _stake_events(exchange: Exchange, stakes: _Stakes) -> dict[str, list[r.DelegatorEvent]]:
    """Return the changes of each staker's stake, newest first.

    The transfers are those of the ledger. Tokens are delegated one minute after they come in.
    They are undelegated from the first validator one minute before they leave.
    """
    transfers = [
        (user, update, exact.parse_units(str(update.delta.amount), WEI))
        for user, update in exchange.ledger
        if update.delta.type == "cStakingTransfer" and user in stakes
    ]
    withdrawn: dict[str, int] = defaultdict(int)
    for user, update, amount in transfers:
        withdrawn[user] += 0 if update.delta.is_deposit else amount
    events: dict[str, list[r.DelegatorEvent]] = defaultdict(list)

    def delegate(user: str, time: int, validator: str, amount: int, is_undelegate: bool) -> None:
        """Add an event whose transaction moves no money and is in no other table."""
        text = exact.decimal_text(amount, WEI)
        inner = {"validator": validator, "amount": text, "isUndelegate": is_undelegate}
        name = exact.transaction_hash(exchange.seed, int(user[2:10], 16) + time)
        events[user].append(r.DelegatorEvent(time=time, hash=name, delta={"delegate": inner}))

    for user, update, amount in transfers:
        time, is_deposit = update.time, update.delta.is_deposit
        moved: dict[str, Any] = {"amount": exact.decimal_text(amount, WEI)}
        delta = {"cDeposit": moved} if is_deposit else {"withdrawal": moved}
        if not is_deposit:
            moved["phase"] = "finalized"
            delegate(user, time - MINUTE, next(iter(stakes[user])), amount, True)
        events[user].append(r.DelegatorEvent(time=time, hash=update.hash, delta=delta))
        for place, (validator, part) in enumerate(stakes[user].items() if is_deposit else ()):
            # The first validator also had the tokens that were withdrawn later.
            total = part + (0 if place else withdrawn[user])
            delegate(user, time + MINUTE, validator, total, False)
    return {user: rows[::-1] for user, rows in events.items()}
