"""Tokens that move without a trade: genesis, transfers, staking, rewards, lending, gas."""

from dataclasses import dataclass

from msgspec import UNSET

from toolkit.contract.records import LedgerDelta
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.floor import Floor
from toolkit.simulation.ledger import give, wei, write
from toolkit.simulation.markets import NATIVE_TOKEN, PAIRS, PERPS
from toolkit.simulation.quantities import WEI
from toolkit.simulation.roles import HEDGER, SPOT_MAKER
from toolkit.times import DAY, HOUR, MINUTE

__all__ = ["TokenGift", "TokenMove", "draw_token_gifts", "draw_token_moves"]

ONE = 10**WEI
_COINS = [perp.coin for perp in PERPS]
_FOLLOWS = {pair.base: pair.follows for pair in PAIRS if pair.follows}


@dataclass(frozen=True, slots=True)
class TokenMove:
    """Tokens to be moved.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    kind : str
        Type of its ledger delta.
    account : int
        Whose tokens.
    token : str
        Which.
    amount : int
        What the delta says, in units of 1e-8.
    change : int
        What it does to the account's wallet.
    other : int
        The receiver, where there is one.
    operation : str
        Of a `borrowLend`.
    interest : int
        Of a `borrowLend`.
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

    def happen(self, floor: Floor) -> None:
        """Move them, and write the update."""
        exchange = floor.exchange
        if self.change:
            give(exchange, self.account, self.token, self.change)
        tx = exchange.transaction(self.time)
        delta = LedgerDelta(type=self.kind)
        if self.token:  # ASSUMED: a backstop liquidation has no fields that anybody knows.
            delta.token, delta.amount = self.token, wei(self.amount)
        concerned = [self.account]
        if self.other >= 0:
            give(exchange, self.other, self.token, -self.change)
            concerned.append(self.other)
            _name_parties(floor, self, delta)
        if self.kind == "cStakingTransfer":
            delta.is_deposit = self.change < 0
            exchange.wallets[self.account][self.token].staked -= self.change
        if self.operation:
            delta.operation = self.operation
            delta.interest_amount = wei(self.interest)
        write(exchange, tx, delta, *concerned)


@dataclass(frozen=True, slots=True)
class TokenGift:
    """An account sends a share of a token to another one, as after moving to a new wallet.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    account, other : int
        The sender and the receiver.
    token : str
        Which.
    hundredths : int
        The share of the balance, in percent.
    """

    time: int
    account: int
    other: int
    token: str
    hundredths: int

    def happen(self, floor: Floor) -> None:
        """Send it; an empty balance sends nothing."""
        amount = floor.exchange.wallets[self.account][self.token].balance * self.hundredths // 100
        if amount:
            move = TokenMove(
                self.time, "spotTransfer", self.account, self.token, amount, -amount, self.other
            )
            move.happen(floor)


def _name_parties(floor: Floor, move: TokenMove, delta: LedgerDelta) -> None:
    accounts = floor.exchange.accounts
    delta.user = accounts[move.account].address
    delta.destination = accounts[move.other].address
    delta.usdc_value = wei(_usd_value(floor, move))
    delta.fee = "0.0"
    delta.native_token_fee = "0.0"
    delta.nonce = None if move.other % 2 else move.time - 700
    delta.fee_token = ""
    if move.kind == "send":
        delta.source_dex = delta.destination_dex = "spot"
    else:
        delta.source_dex = delta.destination_dex = UNSET


def _usd_value(floor: Floor, move: TokenMove) -> int:
    """Return the value of moved tokens at the mark price, in 1e-8 USD, rounded down."""
    coin = _COINS.index(_FOLLOWS[move.token])
    px = mark_price(floor.exchange, coin, move.time)
    return int(move.amount * px // 10 ** PERPS[coin].px_decimals)


def draw_token_gifts(start_ms: int, hours: int, accounts: list[Account]) -> list[TokenGift]:
    """Return gifts between spot traders, by time: each sends one token, twice."""
    people = [a.number for a in accounts if a.spot_share and a.manner not in (SPOT_MAKER, HEDGER)]
    tokens = list(_FOLLOWS)
    gifts = []
    for place, person in enumerate(people):
        other, token = people[(place + 1) % len(people)], tokens[place % len(tokens)]
        for part in (5, 8):  # tenths of the history
            time = start_ms + hours * HOUR * part // 10 + 7 * place * MINUTE
            gifts.append(TokenGift(time, person, other, token, 13 + 4 * part))
    return sorted(gifts, key=_gift_time)


def draw_token_moves(start_ms: int, days: int, accounts: list[Account]) -> list[TokenMove]:
    """Give all token moves, by time: the spot maker gets his at genesis, others from him."""
    end = start_ms + days * DAY
    banker = next(account for account in accounts if account.manner == SPOT_MAKER)
    moves = _genesis(start_ms, banker)
    bank = banker.number
    moves.append(TokenMove(start_ms + HOUR, "spotGenesis", bank, "PURR", -5 * ONE, -5 * ONE))
    moves.append(_paid(start_ms + 2 * HOUR, "deployGasAuction", bank, 512 * ONE))
    moves.append(TokenMove(end - HOUR, "borrowLendBackstopLiquidation", bank, "", 0, 0))
    gas = TokenMove(start_ms + 3 * HOUR, "accountActivationGas", bank, "USDC", ONE, -ONE)
    moves.append(gas)
    for account in accounts:
        if account.wants_native:
            moves += _native(start_ms, end, account, bank)
    return sorted(moves, key=_time)


def _genesis(start_ms: int, maker: Account) -> list[TokenMove]:
    bases = dict.fromkeys(pair.base for pair in PAIRS if not pair.is_outcome)
    return [
        TokenMove(start_ms + number, "spotGenesis", maker.number, token, amount, amount)
        for number, token in enumerate(bases)
        for amount in (20_000_000 * ONE if token not in {"UBTC"} else 5_000 * ONE,)
    ]


def _native(start_ms: int, end: int, account: Account, bank: int) -> list[TokenMove]:
    """Give an account native tokens to stake, to lend, and to pay gas with."""
    who = account.number
    amount = (100 + account.funds // 10**8) * ONE
    time = start_ms + 35 * MINUTE + who * 1_021
    kind = "spotTransfer" if who % 3 else "send"
    moves = [TokenMove(time, kind, bank, NATIVE_TOKEN, amount, -amount, who)]
    staked = amount // 2
    moves.append(_paid(time + 10 * MINUTE, "cStakingTransfer", who, staked))
    later = time + (end - time) * 3 // 5
    back = staked // 5
    moves.append(TokenMove(later, "cStakingTransfer", who, NATIVE_TOKEN, back, back))
    reward = staked // 4_000 + 1
    moves.append(TokenMove(later + HOUR, "rewardsClaim", who, NATIVE_TOKEN, reward, reward))
    return moves + _lending(time, later, who, amount // 8)


def _lending(time: int, later: int, who: int, amount: int) -> list[TokenMove]:
    """Let every second supply tokens and take some back; the others borrow and repay some."""
    first, last = ("supply", "withdraw") if who % 2 else ("borrow", "repay")
    sign = -1 if who % 2 else 1
    back, interest = amount // 3, amount // 3_000
    moved = -sign * (back + interest)
    return [
        TokenMove(
            time + 20 * MINUTE, "borrowLend", who, NATIVE_TOKEN, amount, sign * amount,
            operation=first,
        ),
        TokenMove(
            later, "borrowLend", who, NATIVE_TOKEN, back, moved, operation=last, interest=interest
        ),
    ]  # fmt: skip


def _paid(time: int, kind: str, who: int, amount: int) -> TokenMove:
    return TokenMove(time, kind, who, NATIVE_TOKEN, amount, -amount)


def _time(move: TokenMove) -> int:
    return move.time


def _gift_time(gift: TokenGift) -> int:
    return gift.time
