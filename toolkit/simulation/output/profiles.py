"""Profiles of accounts: role, fee rates, sub-accounts, and equity in vaults.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any

from msgspec import UNSET

from toolkit.contract.records import SubAccountRow, UserFees, UserRole, VaultEquity
from toolkit.simulation.engine.accounts import MAKER_MICRO, REBATES, TIERS
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.spot import SPOT_MAKER_MICRO, SPOT_TAKER_MICRO
from toolkit.simulation.exact import MICRO, decimal_text, money_text, parse_units
from toolkit.simulation.output.staking import validator_addresses
from toolkit.times import DAY

_MAKER_SHARES = ("0.03", "0.015", "0.005")


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the role of each known address, and each account's sub-accounts, fees and equities.

    The service adds the daily volume to the fees.
    """
    others = [*exchange.builders, *validator_addresses(exchange.seed)]
    roles = {address: UserRole(role="user") for address in others}
    owned: dict[str, list[SubAccountRow]] = defaultdict(list)
    schedule, fees = _fee_schedule(), {}
    for account in exchange.accounts:
        role = UserRole(role="vault" if account.is_vault else "user")
        if account.sub_account_of is not None:
            master = exchange.accounts[account.sub_account_of].address
            role = UserRole(role="subAccount", data={"master": master})
            name = f"sub {len(owned[master]) + 1}"
            row = SubAccountRow(name=name, sub_account_user=account.address, master=master)
            owned[master].append(row)
        roles[account.address] = role
        fees[account.address] = UserFees(
            daily_user_vlm=[],
            fee_schedule=schedule,
            user_cross_rate=money_text(account.taker_micro),
            user_add_rate=money_text(account.maker_micro),
            user_spot_cross_rate=schedule["spotCross"],
            user_spot_add_rate=schedule["spotAdd"],
            active_referral_discount="0.0",
            trial=None,
            fee_trial_escrow="0.0",
            next_trial_available_timestamp=None,
            staking_link=None,
            active_staking_discount={"bpsOfMaxSupply": "0.0", "discount": "0.0"},
        )
    return {
        "roles": roles,
        "sub_accounts": dict(owned),
        "fees": fees,
        "vault_equities": _vault_equities(exchange),
    }


def _vault_equities(exchange: Exchange) -> dict[str, list[VaultEquity]]:
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
            shares[vault][user] = share + parse_units(str(delta.usdc), MICRO)
            # ASSUMED: A deposit into a vault is locked for one day.
            locked[vault, user] = update.time + DAY
        elif delta.type == "vaultWithdraw" and delta.user == user:
            shares[vault][user] = share - parse_units(str(delta.basis), MICRO)
    rows: dict[str, list[VaultEquity]] = defaultdict(list)
    for number, pnl in enumerate(exchange.unrealised_pnl(exchange.end_ms)):
        vault = exchange.accounts[number].address
        equity = max(0, sum(exchange.balances[number]) + pnl)
        positive = {user: share for user, share in shares[vault].items() if share > 0}
        total, left = sum(positive.values()), equity
        for place, (user, share) in enumerate(positive.items(), 1):
            # The last follower gets the rounding, so that nothing is lost.
            part = left if place == len(positive) else equity * share // total
            left -= part
            row = VaultEquity(
                vault_address=vault,
                equity=money_text(part),
                locked_until_timestamp=locked[vault, user],
            )
            rows[user].append(row)
    return dict(rows)


def _fee_schedule() -> dict[str, Any]:
    """Return the rates of the exchange, from the lowest tier up."""
    same = {
        "add": money_text(MAKER_MICRO),
        "spotCross": money_text(SPOT_TAKER_MICRO),
        "spotAdd": money_text(SPOT_MAKER_MICRO),
    }
    lowest, *tiers = (
        {"ntlCutoff": decimal_text(cutoff, 0), "cross": money_text(taker), **same}
        for cutoff, taker in sorted(TIERS)
    )
    makers = [
        {"makerFractionCutoff": share, "add": money_text(rebate)}
        for share, rebate in zip(_MAKER_SHARES, REBATES, strict=True)
    ]
    return {
        "cross": lowest["cross"],
        **same,
        "tiers": {"vip": tiers, "mm": makers},
        "referralDiscount": "0.04",
        "stakingDiscountTiers": [{"bpsOfMaxSupply": "0.0", "discount": "0.0"}],
    }
