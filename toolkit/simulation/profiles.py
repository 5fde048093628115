"""What the exchange knows of an account beside its trades: role, fees, sub-accounts, vaults.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any

from msgspec import UNSET

from toolkit.contract.records import SubAccountRow, UserFees, UserRole, VaultEquity
from toolkit.simulation.accounts import MAKER_MICRO, REBATES, TIERS
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.markets import DEXES
from toolkit.simulation.quantities import MICRO, money, text, units
from toolkit.simulation.spotting import MAKER_MICRO as SPOT_MAKER_MICRO
from toolkit.simulation.spotting import TAKER_MICRO as SPOT_TAKER_MICRO
from toolkit.simulation.staking import validator_addresses
from toolkit.times import DAY

__all__ = ["sub_accounts", "user_fees", "user_roles", "vault_equities"]

_REFERRAL_DISCOUNT = "0.04"
_MAKER_SHARES = ("0.03", "0.015", "0.005")


def user_roles(exchange: Exchange, builders: list[str]) -> dict[str, UserRole]:
    """Return what each known address is: user, vault or sub-account."""
    others = [*builders, *validator_addresses(exchange.seed)]
    roles = {address: UserRole(role="user") for address in others}
    for account in exchange.accounts:
        master = account.sub_account_of
        if account.is_vault:
            roles[account.address] = UserRole(role="vault")
        elif master is not None:
            data = {"master": exchange.accounts[master].address}
            roles[account.address] = UserRole(role="subAccount", data=data)
        else:
            roles[account.address] = UserRole(role="user")
    return roles


def sub_accounts(exchange: Exchange) -> dict[str, list[SubAccountRow]]:
    """Return the sub-accounts of each account that has some."""
    found: dict[str, list[SubAccountRow]] = defaultdict(list)
    for account in exchange.accounts:
        if account.sub_account_of is not None:
            master = exchange.accounts[account.sub_account_of].address
            name = f"sub {len(found[master]) + 1}"
            row = SubAccountRow(name=name, sub_account_user=account.address, master=master)
            found[master].append(row)
    return dict(found)


def user_fees(exchange: Exchange) -> dict[str, UserFees]:
    """Return each account's fee rates; the service adds its daily volume."""
    schedule = _fee_schedule()
    return {
        account.address: UserFees(
            daily_user_vlm=[],
            fee_schedule=schedule,
            user_cross_rate=text(account.taker_micro, MICRO),
            user_add_rate=text(account.maker_micro, MICRO),
            user_spot_cross_rate=text(SPOT_TAKER_MICRO, MICRO),
            user_spot_add_rate=text(SPOT_MAKER_MICRO, MICRO),
            active_referral_discount="0.0",
            trial=None,
            fee_trial_escrow="0.0",
            next_trial_available_timestamp=None,
            staking_link=None,
            active_staking_discount={"bpsOfMaxSupply": "0.0", "discount": "0.0"},
        )
        for account in exchange.accounts
    }


def vault_equities(exchange: Exchange) -> dict[str, list[VaultEquity]]:
    """Return what each follower has in each vault; together it is the vault's account value."""
    # ASSUMED: a follower's share of a vault is its share of what was put in, less the basis of
    # what was taken out; distributions change no shares.
    put_in: dict[str, dict[str, int]] = defaultdict(dict)
    locked: dict[tuple[str, str], int] = {}
    vaults = {account.address for account in exchange.accounts if account.is_vault}
    for user, update in exchange.ledger:
        delta = update.delta
        vault = delta.vault
        if user in vaults or vault is UNSET or vault is None:
            continue
        shares = put_in[vault]
        if delta.type in ("vaultCreate", "vaultDeposit"):
            shares[user] = shares.get(user, 0) + _micro(delta.usdc)
            # ASSUMED: what was put into a vault is locked for a day.
            locked[vault, user] = update.time + DAY
        elif delta.type == "vaultWithdraw" and delta.user == user:
            shares[user] = shares.get(user, 0) - _micro(delta.basis)
    found: dict[str, list[VaultEquity]] = defaultdict(list)
    for account in exchange.accounts:
        shares = {user: part for user, part in put_in[account.address].items() if part > 0}
        for user, equity in _split(max(0, _equity(exchange, account.number)), shares).items():
            row = VaultEquity(
                vault_address=account.address,
                equity=money(equity),
                locked_until_timestamp=locked[account.address, user],
            )
            found[user].append(row)
    return dict(found)


def _split(amount: int, shares: dict[str, int]) -> dict[str, int]:
    """Split an amount by shares; the last gets what rounding leaves, so that nothing is lost."""
    parts: dict[str, int] = {}
    whole = sum(shares.values())
    for user, share in shares.items():
        parts[user] = amount * share // whole
    if parts:
        parts[user] += amount - sum(parts.values())
    return parts


def _equity(exchange: Exchange, who: int) -> int:
    """Return the value of an account's perps over all dexes, in micro-dollars."""
    gains = sum(exchange.unrealised(who, dex) for dex in range(len(DEXES)))
    return sum(exchange.balances[who]) + gains


def _micro(usdc: Any) -> int:
    return units(str(usdc), MICRO)


def _fee_schedule() -> dict[str, Any]:
    """Return the rates of the exchange, from the lowest tier up."""
    spot = {"spotCross": text(SPOT_TAKER_MICRO, MICRO), "spotAdd": text(SPOT_MAKER_MICRO, MICRO)}
    add = text(MAKER_MICRO, MICRO)
    rising = sorted(TIERS)
    rates = {"cross": text(rising[0][1], MICRO), "add": add, **spot}
    tiers = [
        {"ntlCutoff": text(cutoff, 0), "cross": text(taker, MICRO), "add": add, **spot}
        for cutoff, taker in rising[1:]
    ]
    makers = [
        {"makerFractionCutoff": share, "add": text(rebate, MICRO)}
        for share, rebate in zip(_MAKER_SHARES, REBATES, strict=True)
    ]
    return {
        **rates,
        "tiers": {"vip": tiers, "mm": makers},
        "referralDiscount": _REFERRAL_DISCOUNT,
        "stakingDiscountTiers": [{"bpsOfMaxSupply": "0.0", "discount": "0.0"}],
    }
