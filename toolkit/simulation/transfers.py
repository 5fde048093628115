"""Money that comes, goes and moves: the ledger's updates and what they do to balances."""

from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta, LedgerUpdate
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.markets import DEXES
from toolkit.simulation.quantities import MICRO, text
from toolkit.times import DAY, MINUTE

__all__ = ["Move", "draw_moves", "make_move"]

_WITHDRAW_FEE = 1_000_000
_TRANSFER_FEE = 1_000_000
_DEX_SHARE = 4


@dataclass(frozen=True, slots=True)
class Move:
    """Money to be moved.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    kind : str
        Type of its ledger delta.
    account : int
        Whose money.
    usdc : int
        How much, micro-dollars; positive.
    other : int
        The receiver, where there is one; else the account itself.
    dex : str
        The dex that a `send` goes to.
    to_perp : bool
        Direction of an `accountClassTransfer`.
    """

    time: int
    kind: str
    account: int
    usdc: int
    other: int = -1
    dex: str = ""
    to_perp: bool = True


def draw_moves(seed: int, start_ms: int, days: int, accounts: list[Account]) -> list[Move]:
    """Draw all moves, by time: first deposits in the first hour, the others over the days."""
    moves: list[Move] = []
    for account in accounts:
        moves += _first_moves(start_ms, account, accounts)
    rng = stream(seed, "moves")
    count = len(accounts) * days // 5
    times = start_ms + DAY // 8 + rng.integers(0, days * DAY - DAY // 8, count)
    numbers = rng.integers(0, len(accounts), (count, 2))
    lucks = rng.random((count, 2))
    for time, (who, other), (kind, share) in zip(
        times.tolist(), numbers.tolist(), lucks.tolist(), strict=True
    ):
        moves.append(_later_move(time, accounts[who], other, kind, share))
    return sorted(moves, key=_time)


def make_move(exchange: Exchange, move: Move) -> None:
    """Move money, and write the update into the ledger of each account it concerns."""
    tx = exchange.transaction(move.time, int(exchange.luck.random() * 40))
    match move.kind:
        case "deposit":
            _credit(exchange, move.account, move.usdc)
            delta = LedgerDelta(type=move.kind, usdc=_money(move.usdc))
        case "withdraw":
            _credit(exchange, move.account, -move.usdc - _WITHDRAW_FEE)
            delta = LedgerDelta(
                type=move.kind,
                usdc=_money(move.usdc),
                nonce=move.time - 900,
                fee=_money(_WITHDRAW_FEE),
            )
        case "accountClassTransfer":
            signed = move.usdc if move.to_perp else -move.usdc
            _credit(exchange, move.account, signed)
            exchange.spot_usdc[move.account] -= signed
            delta = LedgerDelta(type=move.kind, usdc=_money(move.usdc), to_perp=move.to_perp)
        case "send":
            exchange.balances[move.account][0] -= move.usdc
            exchange.balances[move.account][DEXES.index(move.dex)] += move.usdc
            delta = _send(exchange, move)
        case _:
            delta = _between_accounts(exchange, move)
    _write(exchange, tx, move, delta)


def _first_moves(start_ms: int, account: Account, accounts: list[Account]) -> list[Move]:
    """Fund an account, through its main account if it has one, and the dexes it trades on."""
    time = start_ms + MINUTE + account.number * 1_009 % (20 * MINUTE)
    moves = [Move(time, "deposit", account.number, account.funds)]
    if account.sub_account_of is not None:
        main = accounts[account.sub_account_of]
        moves = [Move(time, "deposit", main.number, account.funds)]
        later = start_ms + 25 * MINUTE + account.number * 997
        moves.append(Move(later, "subAccountTransfer", main.number, account.funds, account.number))
    share = account.funds // _DEX_SHARE
    for dex in account.dexes:
        if dex:
            time = start_ms + 40 * MINUTE + account.number * 1_013 + DEXES.index(dex)
            moves.append(Move(time, "send", account.number, share, dex=dex))
    return moves


def _later_move(time: int, account: Account, other: int, kind: float, share: float) -> Move:
    """Move up to some hundredths of the funds, so that no account runs dry by it."""
    usdc = max(account.funds // 10_000 * (20 + int(share * 200.0)), 5_000_000)
    who = account.number
    if kind < 0.4:
        return Move(time, "deposit", who, usdc * 5)
    if kind < 0.7:
        return Move(time, "withdraw", who, usdc)
    if kind < 0.85 and other != who:
        return Move(time, "internalTransfer", who, usdc, other)
    return Move(time, "accountClassTransfer", who, usdc, to_perp=False)


def _between_accounts(exchange: Exchange, move: Move) -> LedgerDelta:
    fee = _TRANSFER_FEE if move.kind == "internalTransfer" else 0
    _credit(exchange, move.account, -move.usdc - fee)
    _credit(exchange, move.other, move.usdc)
    delta = LedgerDelta(
        type=move.kind,
        usdc=_money(move.usdc),
        user=exchange.accounts[move.account].address,
        destination=exchange.accounts[move.other].address,
    )
    if fee:
        delta.fee = _money(fee)
    return delta


def _send(exchange: Exchange, move: Move) -> LedgerDelta:
    address = exchange.accounts[move.account].address
    return LedgerDelta(
        type=move.kind,
        user=address,
        destination=address,
        source_dex="",
        destination_dex=move.dex,
        token="USDC",
        amount=_money(move.usdc),
        usdc_value=_money(move.usdc),
        fee="0.0",
        native_token_fee="0.0",
        nonce=move.time - 800,
        fee_token="",
    )


def _credit(exchange: Exchange, who: int, usdc: int) -> None:
    exchange.balances[who][0] += usdc
    exchange.totals[who].ledger += usdc


def _write(exchange: Exchange, tx: Transaction, move: Move, delta: LedgerDelta) -> None:
    update = LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
    for who in (move.account, move.other):
        if who >= 0:
            exchange.ledger.append((exchange.accounts[who].address, update))


def _money(usdc: int) -> str:
    return text(usdc, MICRO)


def _time(move: Move) -> int:
    return move.time
