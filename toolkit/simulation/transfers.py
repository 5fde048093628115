"""Dollars that come, go and move between accounts, dexes and wallets."""

from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import address, stream
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.ledger import FINER, credit, give, usd, write
from toolkit.simulation.markets import COLLATERAL, DEXES
from toolkit.times import DAY, MINUTE

__all__ = ["Move", "draw_moves"]

WITHDRAW_FEE = 1_000_000
TRANSFER_FEE = 1_000_000


@dataclass(frozen=True, slots=True)
class Move:
    """Dollars to be moved.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    kind : str
        Type of its ledger delta.
    account : int
        Whose dollars.
    usdc : int
        How much, micro-dollars; positive.
    other : int
        The receiver, where there is one.
    dex : str
        The dex that they go to.
    to_perp : bool
        Direction of an `accountClassTransfer` or `perpDexClassTransfer`.
    """

    time: int
    kind: str
    account: int
    usdc: int
    other: int = -1
    dex: str = ""
    to_perp: bool = True

    def happen(self, floor: Floor) -> None:
        """Move them, and write the update into the ledger of each account it concerns."""
        exchange = floor.exchange
        delta = _DOES[self.kind](exchange, self)
        tx = exchange.transaction(self.time)
        concerned = (self.account, self.other) if self.other >= 0 else (self.account,)
        write(exchange, tx, delta, *concerned)


def draw_moves(seed: int, start_ms: int, days: int, accounts: list[Account]) -> list[Move]:
    """Draw all moves, by time: first deposits in the first hour, the others over the days."""
    moves: list[Move] = []
    for account in accounts:
        if not account.is_vault:
            moves += _first_moves(start_ms, account, accounts)
    rng = stream(seed, "moves")
    count = len(accounts) * days // 5
    times = start_ms + DAY // 8 + rng.integers(0, days * DAY - DAY // 8, count)
    numbers = rng.integers(0, len(accounts), (count, 2))
    lucks = rng.random((count, 2))
    for time, (who, other), (kind, share) in zip(
        times.tolist(), numbers.tolist(), lucks.tolist(), strict=True
    ):
        one, two = accounts[who], accounts[other]
        if not (one.is_vault or two.is_vault or one.story):
            moves.append(_later_move(time, one, two, kind, share))
    return sorted(moves, key=_time)


def _first_moves(start_ms: int, account: Account, accounts: list[Account]) -> list[Move]:
    """Fund an account, through its main account if it has one, its dexes and its wallet."""
    who = account.number
    time = start_ms + MINUTE + who * 1_009 % (20 * MINUTE)
    moves = [Move(time, "deposit", who, account.funds)]
    if account.sub_account_of is not None:
        main = accounts[account.sub_account_of]
        moves = [Move(time, "deposit", main.number, account.funds)]
        later = start_ms + 25 * MINUTE + who * 997
        moves.append(Move(later, "subAccountTransfer", main.number, account.funds, who))
    for dex in account.dexes:
        time = start_ms + 40 * MINUTE + who * 1_013 + DEXES.index(dex)
        if dex and COLLATERAL[dex] != "USDC":
            moves.append(Move(time, "issue", who, account.funds // 4, dex=dex))
        elif dex:
            kind = "activateDexAbstraction" if account.mode == 1 else "send"
            moves.append(Move(time, kind, who, account.funds // 4, dex=dex))
    if account.spot_share:
        usdc = account.funds // 100 * account.spot_share
        time = start_ms + 28 * MINUTE + who * 1_019
        moves.append(Move(time, "accountClassTransfer", who, usdc, to_perp=False))
        time += 9 * MINUTE
        moves.append(Move(time, "perpDexClassTransfer", who, usdc // 8, dex="eqx"))
    return moves


def _later_move(time: int, account: Account, other: Account, kind: float, share: float) -> Move:
    """Move up to some hundredths of the funds, so that no account runs dry by it.

    Nobody gives to an account with a story, lest it end in another way.
    """
    usdc = max(account.funds // 10_000 * (20 + int(share * 200.0)), 5_000_000)
    who = account.number
    if kind < 0.4:
        return Move(time, "deposit", who, usdc * 5)
    if kind < 0.65:
        return Move(time, "withdraw", who, usdc)
    if kind < 0.8 and other.number != who and not other.story:
        return Move(time, "internalTransfer", who, usdc, other.number)
    if kind < 0.9 and account.spot_share:
        return Move(time, "perpDexClassTransfer", who, usdc // 10, dex="eqx")
    return Move(time, "accountClassTransfer", who, usdc, to_perp=False)


def _deposit(exchange: Exchange, move: Move) -> LedgerDelta:
    credit(exchange, move.account, move.usdc)
    return LedgerDelta(type="deposit", usdc=usd(move.usdc))


def _withdraw(exchange: Exchange, move: Move) -> LedgerDelta:
    """Take money out."""
    # ASSUMED: `usdc` of a withdrawal is what arrives; the fee is paid on top of it.
    credit(exchange, move.account, -move.usdc - WITHDRAW_FEE)
    nonce = move.time - 900
    return LedgerDelta(type="withdraw", usdc=usd(move.usdc), nonce=nonce, fee=usd(WITHDRAW_FEE))


def _change_class(exchange: Exchange, move: Move) -> LedgerDelta:
    signed = move.usdc if move.to_perp else -move.usdc
    credit(exchange, move.account, signed)
    give(exchange, move.account, "USDC", -signed * FINER)
    return LedgerDelta(type="accountClassTransfer", usdc=usd(move.usdc), to_perp=move.to_perp)


def _change_class_of_dex(exchange: Exchange, move: Move) -> LedgerDelta:
    signed = move.usdc if move.to_perp else -move.usdc
    credit(exchange, move.account, signed, DEXES.index(move.dex))
    give(exchange, move.account, "USDC", -signed * FINER)
    return LedgerDelta(
        type="perpDexClassTransfer",
        token="USDC",
        amount=usd(move.usdc),
        dex=move.dex,
        to_perp=move.to_perp,
    )


def _between_accounts(exchange: Exchange, move: Move) -> LedgerDelta:
    credit(exchange, move.account, -move.usdc)
    credit(exchange, move.other, move.usdc)
    return LedgerDelta(
        type=move.kind,
        usdc=usd(move.usdc),
        user=exchange.accounts[move.account].address,
        destination=exchange.accounts[move.other].address,
    )


def _internal(exchange: Exchange, move: Move) -> LedgerDelta:
    credit(exchange, move.account, -TRANSFER_FEE)
    delta = _between_accounts(exchange, move)
    delta.fee = usd(TRANSFER_FEE)
    return delta


def _to_dex(exchange: Exchange, move: Move) -> None:
    exchange.balances[move.account][0] -= move.usdc
    exchange.balances[move.account][DEXES.index(move.dex)] += move.usdc


def _activate(exchange: Exchange, move: Move) -> LedgerDelta:
    _to_dex(exchange, move)
    return LedgerDelta(
        type="activateDexAbstraction", dex=move.dex, token="USDC", amount=usd(move.usdc)
    )


def _send(exchange: Exchange, move: Move) -> LedgerDelta:
    _to_dex(exchange, move)
    own = exchange.accounts[move.account].address
    return _sent(move, own, own, "", "USDC")


def _issue(exchange: Exchange, move: Move) -> LedgerDelta:
    """Receive the collateral of another dex from its issuer, who stands outside the world."""
    credit(exchange, move.account, move.usdc, DEXES.index(move.dex))
    issuer = address(exchange.seed, "issuer")
    own = exchange.accounts[move.account].address
    return _sent(move, issuer, own, "spot", COLLATERAL[move.dex])


def _sent(move: Move, sender: str, receiver: str, source: str, token: str) -> LedgerDelta:
    return LedgerDelta(
        type="send",
        user=sender,
        destination=receiver,
        source_dex=source,
        destination_dex=move.dex,
        token=token,
        amount=usd(move.usdc),
        usdc_value=usd(move.usdc),
        fee="0.0",
        native_token_fee="0.0",
        nonce=move.time - 800,
        fee_token="",
    )


_DOES = {
    "deposit": _deposit,
    "withdraw": _withdraw,
    "accountClassTransfer": _change_class,
    "perpDexClassTransfer": _change_class_of_dex,
    "internalTransfer": _internal,
    "subAccountTransfer": _between_accounts,
    "activateDexAbstraction": _activate,
    "send": _send,
    "issue": _issue,
}


def _time(move: Move) -> int:
    return move.time
