"""Tokens that move without a trade: genesis, transfers, staking, rewards, lending, gas."""

from dataclasses import dataclass
from operator import attrgetter

from msgspec import UNSET

from toolkit.contract.records import LedgerDelta
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.agents.spot_traders import spot_trader_numbers
from toolkit.simulation.engine.accounts import SPOT_MAKER, Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import FOLLOWED_PERPS, NATIVE_TOKEN, PAIRS, PERPS
from toolkit.simulation.quantities import ONE_TOKEN, decimal_text
from toolkit.times import DAY, HOUR, MINUTE


@dataclass(frozen=True, slots=True)
class TokenTransfer:
    """A transfer of tokens.

    - ``time``: in milliseconds
    - ``kind``: type of its ledger delta
    - ``account``: the owner
    - ``token``: the token
    - ``amount``: the amount in the delta, in units of 1e-8
    - ``change``: the change of the account's balance
    - ``other``: the receiver, or -1 if there is none
    - ``operation``: operation of a `borrowLend`
    - ``interest``: interest of a `borrowLend`
    """

    time: int
    kind: str
    account: int
    token: str
    amount: int
    change: int
    other: int = -1
    operation: str = ""
    interest: int = 0

    def apply(self, state: SimulationState) -> None:
        """Move the tokens, and write the update."""
        exchange = state.exchange
        if self.change:
            exchange.add_tokens(self.account, self.token, self.change)
        tx = exchange.next_transaction(self.time)
        delta = LedgerDelta(type=self.kind)
        # ASSUMED: The ledger row of a backstop liquidation has only its type.
        if self.token:
            delta.token, delta.amount = self.token, decimal_text(self.amount, WEI)
        accounts = [self.account]
        if self.other >= 0:
            exchange.add_tokens(self.other, self.token, -self.change)
            accounts.append(self.other)
            self._add_parties(exchange, delta)
        if self.kind == "cStakingTransfer":
            delta.is_deposit = self.change < 0
            exchange.wallets[self.account][self.token].staked -= self.change
        if self.operation:
            delta.operation = self.operation
            delta.interest_amount = decimal_text(self.interest, WEI)
        exchange.write_ledger(tx, delta, *accounts)

    def _add_parties(self, exchange: Exchange, delta: LedgerDelta) -> None:
        delta.user = exchange.accounts[self.account].address
        delta.destination = exchange.accounts[self.other].address
        # The value in 1e-8 USD at the mark price, rounded down:
        coin = FOLLOWED_PERPS[self.token]
        px = exchange.mark_price(coin, self.time)
        delta.usdc_value = decimal_text(self.amount * px // 10 ** PERPS[coin].px_decimals, WEI)
        delta.fee = "0.0"
        delta.native_token_fee = "0.0"
        delta.nonce = None if self.other % 2 else self.time - 700
        delta.fee_token = ""
        delta.source_dex = delta.destination_dex = "spot" if self.kind == "send" else UNSET


@dataclass(frozen=True, slots=True)
class TokenGift:
    """An account sends a share of its balance of a token to another account.

    People do this when they move to a new wallet.

    - ``time``: in milliseconds
    - ``account``, ``other``: the sender and the receiver
    - ``token``: the token
    - ``percent``: the share of the balance, in percent
    """

    time: int
    account: int
    other: int
    token: str
    percent: int

    def apply(self, state: SimulationState) -> None:
        """Send the share; an empty balance sends nothing."""
        balance = state.exchange.wallets[self.account][self.token].balance
        if amount := balance * self.percent // 100:
            TokenTransfer(
                self.time, "spotTransfer", self.account, self.token, amount, -amount, self.other
            ).apply(state)


def draw_token_gifts(start_ms: int, hours: int, accounts: list[Account]) -> list[TokenGift]:
    """Return gifts between spot traders, by time: each sends one token, twice."""
    traders = spot_trader_numbers(accounts)
    tokens = list(FOLLOWED_PERPS)
    gifts = []
    for place, trader in enumerate(traders):
        other, token = traders[(place + 1) % len(traders)], tokens[place % len(tokens)]
        for part in (5, 8):  # tenths of the history
            time = start_ms + hours * HOUR * part // 10 + 7 * place * MINUTE
            gifts.append(TokenGift(time, trader, other, token, 13 + 4 * part))
    return sorted(gifts, key=attrgetter("time"))


def draw_token_transfers(start_ms: int, days: int, accounts: list[Account]) -> list[TokenTransfer]:
    """Return all token transfers, by time.

    The spot maker receives all tokens at genesis, and other accounts receive theirs from it.
    """
    end = start_ms + days * DAY
    bank = next(account.number for account in accounts if account.strategy == SPOT_MAKER)
    purr = 5 * ONE_TOKEN
    transfers = _genesis(start_ms, bank)
    transfers += [
        TokenTransfer(start_ms + HOUR, "spotGenesis", bank, "PURR", -purr, -purr),
        _native_payment(start_ms + 2 * HOUR, "deployGasAuction", bank, 512 * ONE_TOKEN),
        TokenTransfer(end - HOUR, "borrowLendBackstopLiquidation", bank, "", 0, 0),
        TokenTransfer(
            start_ms + 3 * HOUR, "accountActivationGas", bank, "USDC", ONE_TOKEN, -ONE_TOKEN
        ),
    ]
    for account in accounts:
        if account.uses_native:
            transfers += _native_transfers(start_ms, end, account, bank)
    return sorted(transfers, key=attrgetter("time"))


def _genesis(start_ms: int, account: int) -> list[TokenTransfer]:
    transfers = []
    for number, token in enumerate(dict.fromkeys(p.base for p in PAIRS if not p.is_outcome)):
        amount = 5_000 * ONE_TOKEN if token == "UBTC" else 20_000_000 * ONE_TOKEN
        transfers.append(
            TokenTransfer(start_ms + number, "spotGenesis", account, token, amount, amount)
        )
    return transfers


def _native_transfers(start_ms: int, end: int, account: Account, bank: int) -> list[TokenTransfer]:
    """Return the native tokens of an account: to stake, to lend, and to pay gas."""
    number = account.number
    amount = (100 + account.funds // 10**8) * ONE_TOKEN
    time = start_ms + 35 * MINUTE + number * 1_021
    later = time + (end - time) * 3 // 5
    kind = "spotTransfer" if number % 3 else "send"
    staked = amount // 2
    unstaked = staked // 5
    reward = staked // 4_000 + 1
    return [
        TokenTransfer(time, kind, bank, NATIVE_TOKEN, amount, -amount, number),
        _native_payment(time + 10 * MINUTE, "cStakingTransfer", number, staked),
        TokenTransfer(later, "cStakingTransfer", number, NATIVE_TOKEN, unstaked, unstaked),
        TokenTransfer(later + HOUR, "rewardsClaim", number, NATIVE_TOKEN, reward, reward),
        *_loan_transfers(time, later, number, amount // 8),
    ]


def _loan_transfers(time: int, later: int, account: int, amount: int) -> list[TokenTransfer]:
    """Return a loan and its partial return, with interest.

    Accounts with an odd number supply and withdraw; accounts with an even number borrow and repay.
    """
    first, last = ("supply", "withdraw") if account % 2 else ("borrow", "repay")
    sign = -1 if account % 2 else 1
    returned, interest = amount // 3, amount // 3_000
    change = -sign * (returned + interest)
    return [
        TokenTransfer(
            time + 20 * MINUTE, "borrowLend", account, NATIVE_TOKEN, amount, sign * amount,
            operation=first,
        ),
        TokenTransfer(
            later, "borrowLend", account, NATIVE_TOKEN, returned, change, operation=last,
            interest=interest,
        ),
    ]  # fmt: skip


def _native_payment(time: int, kind: str, account: int, amount: int) -> TokenTransfer:
    return TokenTransfer(time, kind, account, NATIVE_TOKEN, amount, -amount)
