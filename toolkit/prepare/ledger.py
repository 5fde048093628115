"""Ledger updates: what each one moves in the perp account and in the spot wallet.

`RULES` states the direction of each type for both. An amount is missing (NaN) if the type is not
in the table, if its direction depends on the account of the ledger, which is not known, or if its
type has a fee and the fee is missing. Such rows are counted and never taken as zero.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats
from toolkit.contract.dexes import COLLATERAL_TOKENS
from toolkit.contract.records import DELTA_FIELDS
from toolkit.prepare.door import Names, Table
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import Owners, account_names, is_owned

PerpDirection = Literal["in", "out", "joins", "leaves", "leads", "class", "party", "send", "none"]
WalletDirection = Literal["in", "out", "class", "party", "send", "stakes", "lends", "none"]
Meaning = Literal["outside", "inside", "income", "vault", "kept"]


class FlowRule(NamedTuple):
    """How rows of one type count: their directions, and the column of their amount in USD.

    - ``perp``: the direction for the perp account, over all its dexes
    - ``wallet``: the direction for the spot wallet; that of a class transfer is the opposite
    - ``means``: what the movement is for the owner: money from or to the outside, a move between
      parts of the account, income or a cost, money in a vault that still belongs to the account,
      or tokens that are staked, lent or borrowed (kept)
    """

    perp: PerpDirection
    wallet: WalletDirection = "none"
    amount: str = "usdc"
    means: Meaning = "outside"


# ASSUMED: The amount of a withdrawal, internal transfer, send or vault creation does not include
# its fee.
# ASSUMED: The amount that a follower withdraws from a vault does not include the commission of the
# leader. The vault pays both.
# ASSUMED: `activateDexAbstraction` moves cash only between perp dexes of the same account.
# ASSUMED: Rewards, gas auctions, genesis tokens, staking, lending and activation gas change the
# spot balance, not the perp account.
# ASSUMED: The sender of a spot transfer pays the fee in the fee token of the row. The amount does
# not include the fee.
# ASSUMED: For a lending withdrawal and for a repayment, the amount does not include the interest.
RULES: Final[Mapping[str, FlowRule]] = {
    "deposit": FlowRule("in"),
    "withdraw": FlowRule("out"),
    "accountClassTransfer": FlowRule("class", "class", means="inside"),
    "perpDexClassTransfer": FlowRule("class", "class", "amount", "inside"),
    "internalTransfer": FlowRule("party"),
    "subAccountTransfer": FlowRule("party"),
    "spotTransfer": FlowRule("none", "party"),
    "send": FlowRule("send", "send", "amount"),
    "liquidation": FlowRule("none", means="inside"),
    "vaultCreate": FlowRule("joins", means="vault"),
    "vaultDeposit": FlowRule("joins", means="vault"),
    "vaultDistribution": FlowRule("leaves", means="vault"),
    "vaultWithdraw": FlowRule("leaves", amount="net_withdrawn_usd", means="vault"),
    "vaultLeaderCommission": FlowRule("leads", means="income"),
    "rewardsClaim": FlowRule("none", "in", means="income"),
    "spotGenesis": FlowRule("none", "in", means="income"),
    "deployGasAuction": FlowRule("none", "out", means="income"),
    "accountActivationGas": FlowRule("none", "out", means="income"),
    "cStakingTransfer": FlowRule("none", "stakes", means="kept"),
    "borrowLend": FlowRule("none", "lends", means="kept"),
    "activateDexAbstraction": FlowRule("none", means="inside"),
}

COLLATERAL: Final = frozenset(COLLATERAL_TOKENS.values())
"""Tokens that count as USD if the row states no value."""

_OPERATIONS: Final = {"withdraw": 1, "borrow": 1, "supply": -1, "repay": -1}
_WITH_INTEREST: Final = ("withdraw", "repay")
_NATIVE: Final = "HYPE"


class Movements:
    """What each ledger row moves; NaN if it is not known.

    - ``perp``: into (+) or out of (-) the perp account, in USD
    - ``spot``: into (+) or out of (-) the spot wallet, in units of `token`
    - ``token``: the token that the wallet moves; USDC if the row names none
    - ``usd``: into the entire account, in USD; missing if the row states no price of the token
    - ``cash_fee``: fee in USDC that the wallet pays for moving another token, part of `usd`
    - ``means``: what the movement means; "" if the type is not known
    - ``table``, ``account``: the rows, and the account of each one; "" if it is not known

    Raise `MissingColumns` if a column of amounts is text.
    """

    def __init__(self, table: Table, account: Names) -> None:
        self.table, self.types = table, table.text("type")
        self.account = account.renamed(str.lower)
        means = {name: rule.means for name, rule in RULES.items()}
        self.means = self.types.facts(lambda name: means.get(name, ""))
        self.usdc, self.amount = table.number("usdc", np.nan), table.number("amount", np.nan)
        self.user, self.receiver = self._is_owner("user"), self._is_owner("destination")
        self.from_spot, self.to_spot = (
            table.text(name, blank=True).facts("spot".__eq__)
            for name in ("source_dex", "destination_dex")
        )
        self.to_perp = self._flag_sign("to_perp")
        self.fee = self._stated_fee("fee")
        # The token of a row, and that of its fee.
        stated, self.fee_token = (table.text(n, blank=True) for n in ("token", "fee_token"))
        self.token = stated.renamed(lambda name: name or "USDC")
        self.is_cash, self.fee_in_cash = (
            each.facts(CASH.__contains__) for each in (stated, self.fee_token)
        )
        self.fee_in_token = self.fee_token.among(self.token) == self.token.codes
        # Collateral tokens count at par if the row states no value.
        worth = table.number("usdc_value", np.nan)
        at_par = self.is_cash | (stated.facts(COLLATERAL.__contains__) & np.isnan(worth))
        self.worth = np.where(at_par, self.amount, worth)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.price = np.where(at_par, 1.0, worth / self.amount)
        self.perp = self._read_perp()
        self.spot, usd, self.cash_fee = self._read_wallet()
        self.usd = self.perp + usd - self.cash_fee

    def _is_owner(self, party: str) -> Flags:
        """Return whether a column has the account of the row."""
        parties = self.table.text(party, blank=True)
        is_same = parties.among(self.account) == self.account.codes
        return np.asarray(is_same & parties.facts(bool))

    def _flag_sign(self, name: str) -> Floats:
        """Return 1 for a flag, -1 for its opposite, 0 if it is missing."""
        value, known = self.table.flag(name)
        return np.where(known, np.where(value, 1.0, -1.0), 0.0)

    def _stated_fee(self, name: str) -> Floats:
        """Return a fee: 0 for types without it, and NaN if a type has it and the row does not."""
        has_fee = self.types.facts(lambda type_: name in DELTA_FIELDS.get(type_, ()))
        fee = self.table.number(name, 0.0)
        return np.where(np.isnan(fee) & ~has_fee, 0.0, fee)

    def _moves(self, column: str, *ways: str) -> Flags:
        """Return which types have one of several values in a column of their rule."""
        chosen = {name for name, rule in RULES.items() if getattr(rule, column) in ways}
        made: Flags = self.types.facts(chosen.__contains__)
        return made

    def _read_perp(self) -> Floats:
        """Return the movement of the perp account, in USD."""
        moves, vault = partial(self._moves, "perp"), self._is_owner("vault")
        party, send, leaves = moves("party"), moves("send"), moves("leaves")
        sender = self.user & (party | (send & ~self.from_spot))
        receiver = self.receiver & (party | (send & ~self.to_spot))
        # A vault's own ledger has the rows of its followers, and the vault receives their deposits.
        pooled = np.where(vault, 1.0, -1.0) * (moves("joins") * 1.0 - leaves)
        # A vault's own ledger has the commission of its leader, which withdrawals have paid.
        paid_out = moves("leads") & ~self.user & self.table.text("user", blank=True).facts(bool)
        sign = pooled + (moves("in", "leads") & ~paid_out) - moves("out") - sender + receiver
        sign += np.where(moves("class"), self.to_perp, 0.0)
        usd = np.where(self._moves("amount", "amount"), self.worth, self.usdc)
        withdrawn = self.table.number("net_withdrawn_usd", np.nan)
        usd = np.where(self._moves("amount", "net_withdrawn_usd"), withdrawn, usd)
        pays = sender | moves("out") | ((pooled < 0) & ~vault) | (moves("class") & (sign < 0))
        cost = np.where(pays & self.fee_in_cash, self.fee, 0.0)
        in_token = sender & send & self.fee_in_token & ~self.is_cash
        cost = np.where(in_token, _product(self.fee, self.price), cost)
        cost = np.where(leaves & vault, self._stated_fee("commission"), cost)
        known = moves("in", "out", "joins", "leaves", "leads", "none")
        known |= moves("class") & (self.to_perp != 0)
        known |= moves("party", "send") & (self.user | self.receiver)
        return np.where(known, _product(sign, usd) - cost, np.nan)

    def _read_wallet(self) -> tuple[Floats, Floats, Floats]:
        """Return the movement of the spot wallet: tokens, their USD, and a fee in USDC beside."""
        moves, table = partial(self._moves, "wallet"), self.table
        party, send, lends = moves("party"), moves("send"), moves("lends")
        sender = self.user & (party | (send & self.from_spot))
        receiver = self.receiver & (party | (send & self.to_spot))
        operation, deposit = table.text("operation", blank=True), self._flag_sign("is_deposit")
        lent = operation.facts(lambda name: _OPERATIONS.get(name, 0.0))
        sign = moves("in") * 1.0 - moves("out") - sender + receiver
        sign -= np.where(moves("class"), self.to_perp, 0.0) + np.where(moves("stakes"), deposit, 0)
        sign += np.where(lends, lent, 0.0)
        by_class = self.types.facts("accountClassTransfer".__eq__)
        amount = np.where(by_class, self.usdc, self.amount)
        has_interest = lends & operation.facts(_WITH_INTEREST.__contains__)
        interest = np.nan_to_num(table.number("interest_amount", 0.0))
        moved = _product(sign, amount + np.where(has_interest, interest, 0.0))
        is_usdc, is_native = (self.token.facts(name.__eq__) for name in ("USDC", _NATIVE))
        in_token = self.fee_in_token | (self.fee_in_cash & is_usdc)
        fee = np.where(sender & in_token, self.fee, 0.0)
        native = np.nan_to_num(table.number("native_token_fee", 0.0))
        fee += np.where(sender & is_native, native, 0.0)
        other_fee = sender & ~self.is_cash & self.fee_token.facts("USDC".__eq__)
        known = self.types.facts(RULES.__contains__)
        known &= ~moves("class") | (self.to_perp != 0)
        known &= ~moves("party", "send") | self.user | self.receiver
        known &= ~moves("stakes") | (deposit != 0)
        known &= ~lends | (lent != 0)
        spot = np.where(known, moved - fee, np.nan)
        usd = _product(np.sign(moved), self.worth) - _product(fee, self.price)
        usd = np.where(sender & ~is_native & (native > 0), np.nan, usd)
        usd = np.where(known, np.where(is_usdc, spot, usd), np.nan)
        return spot, usd, np.where(other_fee, self.fee, 0.0)


def own_ledger(
    ledger: Table, account: str | None, owners: Owners | None = None, *, named: bool = False
) -> Movements:
    """Return the movements of the ledger rows of an account or of owners.

    - ``owners``: the accounts of fills; by default the rows of every account, or of `account`
    - ``named``: whether each row needs an account
    """
    ledger.require(("time", "type"))
    names, has_column = account_names(ledger.frame, account), ledger.has("account")
    is_one = len(names) == 1
    by_name = is_one and (account is not None or owners is not None or not has_column)
    kept = np.ones(len(ledger), dtype=bool)
    if owners is not None:
        kept = is_owned(ledger, "account", owners)
        if account is None and is_one and len(owners.names) == 1 and names != [*owners.names]:
            raise ValueError(
                f"the ledger was fetched for {names[0]}, but the fills for {owners.names[0]}. "
                "Fetch both for one account, or pass account="
            )
        if named and not is_one:
            ledger.require(["account"], "Add it, or pass account=")
    elif account is not None and has_column:
        kept = ledger.text("account").facts(names[0].__eq__)
    table = ledger if kept.all() else Table(ledger.frame[kept], "ledger", "none")
    accounts = Names(np.zeros(len(table), dtype=np.int64), names if by_name else [""])
    if has_column and not by_name:
        accounts = table.text("account")
    return Movements(table, accounts)


def read_kept(moves: Movements) -> tuple[Floats, Floats]:
    """Return what changes outside of both wallets and still belongs to the account, row by row.

    - ``kept``: the change of money in vaults, of tokens staked and lent, less tokens borrowed
    - ``outside``: the part of the movement that was put in before the rows begin (+), or repaid (-)

    Both are in USD for vaults, and else in units of the token. Money in a vault counts at what was
    put in, until it is withdrawn, then with its gain: ``moved + kept - outside``.
    """
    table, means = moves.table, moves.means
    kept, outside = np.zeros((2, len(table)))
    rows = np.flatnonzero((means == "vault") | (means == "kept"))
    rows = rows[np.argsort(table.ms()[rows], kind="stable")]
    names = (moves.account, *(table.text(n, blank=True) for n in ("type", "vault", "operation")))
    texts = ([n.values[code] for code in n.codes[rows].tolist()] for n in (*names, moves.token))
    basis, fee = table.number("basis", np.nan), np.nan_to_num(table.number("fee", 0.0))
    held: dict[tuple[str, ...], float] = {}
    for row, owner, type_, vault, operation, token in zip(rows.tolist(), *texts, strict=True):
        is_vault, is_loan = means[row] == "vault", operation in ("borrow", "repay")
        moved = moves.perp[row] if is_vault else moves.spot[row]
        if is_vault and (moved > 0) == (RULES[type_].perp == "joins"):
            outside[row] = moved  # the vault's own ledger: money of its followers
            continue
        sign = -1.0 if is_loan else 1.0
        key = (owner, "borrow" if is_loan else "" if is_vault else type_, vault or token)
        put = -sign * moved - fee[row] * (type_ == "vaultCreate")
        stake = held.get(key, 0.0)
        change = put
        if put < 0:
            back = basis[row] if is_vault and not np.isnan(basis[row]) else min(stake, -put)
            change = -min(back, stake)
            # Without a stake in the rows, a gain cannot be told from what was put in before.
            outside[row] = sign * (back - stake if back > stake else -put if not stake else 0.0)
        held[key] = stake + np.nan_to_num(change)
        kept[row] = sign * change
    return kept, outside


def read_income(moves: Movements) -> Floats:
    """Return the income in USD of each row: gains of vaults, commissions and rewards, less gas."""
    kept, outside = read_kept(moves)
    made = np.where(moves.means == "vault", moves.perp + kept - outside, 0.0)
    return np.nan_to_num(np.where(moves.means == "income", moves.usd, made))


def _product(left: Floats, right: Floats) -> Floats:
    """Return a product; 0 if the left factor is 0, even if the other one is missing."""
    return np.where(left == 0, 0.0, left * right)
