"""Transfers of dollars: deposits, withdrawals, and moves between accounts, dexes and wallets."""

from dataclasses import dataclass
from operator import attrgetter

from toolkit.contract.records import LedgerDelta
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import COLLATERAL, DEXES
from toolkit.simulation.quantities import WEI_PER_MICRO, money_text
from toolkit.simulation.random_draws import party_address, random_stream
from toolkit.times import DAY, MINUTE

_WITHDRAWAL_FEE = 1_000_000
_TRANSFER_FEE = 1_000_000


@dataclass(frozen=True, slots=True)
class DollarTransfer:
    """A transfer of dollars.

    - ``time``: in milliseconds
    - ``kind``: type of its ledger delta; or ``issue``: the issuer of another dex's collateral sends
      it
    - ``account``: the owner
    - ``usdc``: micro-dollars; positive
    - ``other``: the receiver, or -1 if there is none
    - ``dex``: the dex that receives them
    - ``to_perp``: direction of an `accountClassTransfer` or `perpDexClassTransfer`
    """

    time: int
    kind: str
    account: int
    usdc: int
    other: int = -1
    dex: str = ""
    to_perp: bool = True

    def apply(self, state: SimulationState) -> None:
        """Move the dollars, and write the update into the ledger of each account it concerns."""
        exchange = state.exchange
        delta = _TRANSFERS[self.kind](exchange, self)
        tx = exchange.next_transaction(self.time)
        accounts = (self.account, self.other) if self.other >= 0 else (self.account,)
        exchange.write_ledger(tx, delta, *accounts)


def draw_dollar_transfers(
    seed: int, start_ms: int, days: int, accounts: list[Account]
) -> list[DollarTransfer]:
    """Draw all transfers, by time: first deposits in the first hour, the others later."""
    transfers: list[DollarTransfer] = []
    for account in accounts:
        if not account.is_vault:
            transfers += _first_transfers(start_ms, account, accounts)
    rng = random_stream(seed, "moves")
    count = len(accounts) * days // 5
    times = start_ms + DAY // 8 + rng.integers(0, days * DAY - DAY // 8, count)
    numbers = rng.integers(0, len(accounts), (count, 2))
    draws = rng.random((count, 2))
    for time, (first, second), (kind, share) in zip(
        times.tolist(), numbers.tolist(), draws.tolist(), strict=True
    ):
        account, other = accounts[first], accounts[second]
        if not (account.is_vault or other.is_vault or account.has_story):
            transfers.append(_later_transfer(time, account, other, kind, share))
    return sorted(transfers, key=attrgetter("time"))


def _first_transfers(
    start_ms: int, account: Account, accounts: list[Account]
) -> list[DollarTransfer]:
    """Return the transfers that fund an account, its dexes and its spot wallet.

    The main account funds a sub-account.
    """
    number = account.number
    time = start_ms + MINUTE + number * 1_009 % (20 * MINUTE)
    transfers = [DollarTransfer(time, "deposit", number, account.funds)]
    if account.sub_account_of is not None:
        main = accounts[account.sub_account_of].number
        later = start_ms + 25 * MINUTE + number * 997
        transfers = [
            DollarTransfer(time, "deposit", main, account.funds),
            DollarTransfer(later, "subAccountTransfer", main, account.funds, number),
        ]
    for dex in account.dexes:
        if not dex:
            continue
        time = start_ms + 40 * MINUTE + number * 1_013 + DEXES.index(dex)
        if COLLATERAL[dex] != "USDC":
            kind = "issue"
        else:
            kind = "activateDexAbstraction" if account.mode == 1 else "send"
        transfers.append(DollarTransfer(time, kind, number, account.funds // 4, dex=dex))
    if account.spot_share:
        usdc = account.funds // 100 * account.spot_share
        time = start_ms + 28 * MINUTE + number * 1_019
        kind = "accountClassTransfer"
        transfers.append(DollarTransfer(time, kind, number, usdc, to_perp=False))
        time += 9 * MINUTE
        kind = "perpDexClassTransfer"
        transfers.append(DollarTransfer(time, kind, number, usdc // 8, dex="eqx"))
    return transfers


def _later_transfer(
    time: int, account: Account, other: Account, kind: float, share: float
) -> DollarTransfer:
    """Return a transfer of at most some percent of the funds, so that no account runs dry.

    Accounts with a story receive nothing, because money could change how the story ends.
    """
    usdc = max(account.funds // 10_000 * (20 + int(share * 200.0)), 5_000_000)
    number = account.number
    if kind < 0.4:
        return DollarTransfer(time, "deposit", number, usdc * 5)
    if kind < 0.65:
        return DollarTransfer(time, "withdraw", number, usdc)
    if kind < 0.8 and other.number != number and not other.has_story:
        return DollarTransfer(time, "internalTransfer", number, usdc, other.number)
    if kind < 0.9 and account.spot_share:
        return DollarTransfer(time, "perpDexClassTransfer", number, usdc // 10, dex="eqx")
    return DollarTransfer(time, "accountClassTransfer", number, usdc, to_perp=False)


def _deposit(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    exchange.add_dollars(transfer.account, transfer.usdc)
    return LedgerDelta(type="deposit", usdc=money_text(transfer.usdc))


def _withdraw(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    # ASSUMED: The field `usdc` of a withdrawal is the amount that arrives. It does not include the
    # fee.
    exchange.add_dollars(transfer.account, -transfer.usdc - _WITHDRAWAL_FEE)
    return LedgerDelta(
        type="withdraw",
        usdc=money_text(transfer.usdc),
        nonce=transfer.time - 900,
        fee=money_text(_WITHDRAWAL_FEE),
    )


def _change_class(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    usdc = transfer.usdc if transfer.to_perp else -transfer.usdc
    exchange.add_dollars(transfer.account, usdc, DEXES.index(transfer.dex))
    exchange.add_tokens(transfer.account, "USDC", -usdc * WEI_PER_MICRO)
    if transfer.kind == "accountClassTransfer":
        return LedgerDelta(
            type=transfer.kind, usdc=money_text(transfer.usdc), to_perp=transfer.to_perp
        )
    return LedgerDelta(
        type=transfer.kind,
        token="USDC",
        amount=money_text(transfer.usdc),
        dex=transfer.dex,
        to_perp=transfer.to_perp,
    )


def _move_between_accounts(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    exchange.add_dollars(transfer.account, -transfer.usdc)
    exchange.add_dollars(transfer.other, transfer.usdc)
    delta = LedgerDelta(
        type=transfer.kind,
        usdc=money_text(transfer.usdc),
        user=exchange.accounts[transfer.account].address,
        destination=exchange.accounts[transfer.other].address,
    )
    if transfer.kind == "internalTransfer":
        exchange.add_dollars(transfer.account, -_TRANSFER_FEE)
        delta.fee = money_text(_TRANSFER_FEE)
    return delta


def _move_to_dex(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    balances = exchange.balances[transfer.account]
    balances[0] -= transfer.usdc
    balances[DEXES.index(transfer.dex)] += transfer.usdc
    if transfer.kind == "activateDexAbstraction":
        amount = money_text(transfer.usdc)
        return LedgerDelta(type=transfer.kind, dex=transfer.dex, token="USDC", amount=amount)
    owner = exchange.accounts[transfer.account].address
    return _send_delta(transfer, owner, owner, "", "USDC")


def _issue(exchange: Exchange, transfer: DollarTransfer) -> LedgerDelta:
    """Receive the collateral of another dex from its issuer, who is outside the world."""
    exchange.add_dollars(transfer.account, transfer.usdc, DEXES.index(transfer.dex))
    issuer = party_address(exchange.seed, "issuer")
    owner = exchange.accounts[transfer.account].address
    return _send_delta(transfer, issuer, owner, "spot", COLLATERAL[transfer.dex])


def _send_delta(
    transfer: DollarTransfer, sender: str, receiver: str, source: str, token: str
) -> LedgerDelta:
    return LedgerDelta(
        type="send",
        user=sender,
        destination=receiver,
        source_dex=source,
        destination_dex=transfer.dex,
        token=token,
        amount=money_text(transfer.usdc),
        usdc_value=money_text(transfer.usdc),
        fee="0.0",
        native_token_fee="0.0",
        nonce=transfer.time - 800,
        fee_token="",
    )


_TRANSFERS = {
    "deposit": _deposit,
    "withdraw": _withdraw,
    "accountClassTransfer": _change_class,
    "perpDexClassTransfer": _change_class,
    "internalTransfer": _move_between_accounts,
    "subAccountTransfer": _move_between_accounts,
    "activateDexAbstraction": _move_to_dex,
    "send": _move_to_dex,
    "issue": _issue,
}
