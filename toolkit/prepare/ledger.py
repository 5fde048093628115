"""Ledger updates: what each one moves in the perp account and in the spot wallet.

`RULES` states the direction of each type for both. An amount is missing (NaN) if the type is not
in the table, if its direction depends on the account of the ledger, which is not known, or if its
type has a fee and the fee is missing. Such rows are counted and never taken as zero.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats
from toolkit.contract.dexes import COLLATERAL_TOKENS
from toolkit.contract.records import DELTA_FIELDS
from toolkit.prepare.door import Names, Table
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import Owners, account_names, is_owned


class FlowRule(NamedTuple):
    """How rows of one type count: their directions, and the column of their amount.

    - ``perp``: the direction for the perp account, over all its dexes
    - ``wallet``: the direction for the spot wallet; that of a class transfer is the opposite
    - ``means``: what the movement is for the owner: money from or to the outside, a move between
      parts of the account, income or a cost, money in a vault that still belongs to the account,
      or tokens that are staked, lent or borrowed (kept)
    """

    perp: str
    wallet: str = "none"
    amount: str = "usdc"
    means: str = "outside"


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
    "spotTransfer": FlowRule("none", "party", "amount"),
    "send": FlowRule("send", "send", "amount"),
    "liquidation": FlowRule("none", means="inside"),
    "vaultCreate": FlowRule("joins", means="vault"),
    "vaultDeposit": FlowRule("joins", means="vault"),
    "vaultDistribution": FlowRule("leaves", means="vault"),
    "vaultWithdraw": FlowRule("leaves", amount="net_withdrawn_usd", means="vault"),
    "vaultLeaderCommission": FlowRule("leads", means="income"),
    "rewardsClaim": FlowRule("none", "in", "amount", "income"),
    "spotGenesis": FlowRule("none", "in", "amount", "income"),
    "deployGasAuction": FlowRule("none", "out", "amount", "income"),
    "accountActivationGas": FlowRule("none", "out", "amount", "income"),
    "cStakingTransfer": FlowRule("none", "stakes", "amount", "kept"),
    "borrowLend": FlowRule("none", "lends", "amount", "kept"),
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
        self.means = self.types.facts(lambda name: RULES[name].means if name in RULES else "")
        user, receiver, vault = map(self._is_owner, ("user", "destination", "vault"))
        from_spot, to_spot = (
            table.text(name, blank=True).facts("spot".__eq__)
            for name in ("source_dex", "destination_dex")
        )
        # Collateral tokens count at par if the row states no value.
        stated, fee_token = (table.text(name, blank=True) for name in ("token", "fee_token"))
        self.token = stated.renamed(lambda name: name or "USDC")
        is_cash, fee_in_cash = (each.facts(CASH.__contains__) for each in (stated, fee_token))
        fee_in_token = fee_token.among(self.token) == self.token.codes
        amount, worth = table.number("amount", np.nan), table.number("usdc_value", np.nan)
        at_par = is_cash | (stated.facts(COLLATERAL.__contains__) & np.isnan(worth))
        worth = np.where(at_par, amount, worth)
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.where(at_par, 1.0, worth / amount)
        amounts = {
            "usdc": table.number("usdc", np.nan),
            "amount": worth,
            "net_withdrawn_usd": table.number("net_withdrawn_usd", np.nan),
        }
        to_perp, fee = self._flag_sign("to_perp"), self._stated_fee("fee")
        # A vault's own ledger has the commission of its leader, which withdrawals have paid.
        is_paid_out = ~user & table.text("user", blank=True).facts(bool)
        sender, is_known = user & ~from_spot, user | receiver
        signs = {
            "in": 1.0,
            "out": -1.0,
            "none": 0.0,
            "class": to_perp,
            "party": np.where(is_known, 1.0 * receiver - user, np.nan),
            "send": np.where(is_known, 1.0 * (receiver & ~to_spot) - sender, np.nan),
            # A vault's own ledger has the rows of its followers.
            "joins": np.where(vault, 1.0, -1.0),
            "leaves": np.where(vault, -1.0, 1.0),
            "leads": np.where(is_paid_out, 0.0, 1.0),
        }
        sign = self._choose("perp", signs)
        # The sender pays the fee, and a vault the commission.
        pays = self._choose("perp", {"party": user, "send": sender}, 0.0) > 0
        cost = np.where((pays | (sign < 0)) & fee_in_cash, fee, 0.0)
        cost = np.where(pays & fee_in_token & ~is_cash, _product(fee, price), cost)
        is_left = self._choose("perp", {"leaves": vault}, 0.0) > 0
        cost = np.where(is_left, self._stated_fee("commission"), cost)
        self.perp = _product(sign, self._choose("amount", amounts)) - cost
        # The spot wallet.
        operation = table.text("operation", blank=True)
        has_interest = operation.facts(_WITH_INTEREST.__contains__)
        interest = np.where(has_interest, np.nan_to_num(table.number("interest_amount", 0.0)), 0.0)
        sender = user & from_spot
        signs |= {
            "class": -to_perp,
            "send": np.where(is_known, 1.0 * (receiver & to_spot) - sender, np.nan),
            "stakes": -self._flag_sign("is_deposit"),
            "lends": operation.facts(lambda name: _OPERATIONS.get(name, np.nan)),
        }
        amounts["amount"] = amount + interest
        moved = _product(self._choose("wallet", signs), self._choose("amount", amounts))
        pays = self._choose("wallet", {"party": user, "send": sender}, 0.0) > 0
        is_usdc, is_native = (self.token.facts(name.__eq__) for name in ("USDC", _NATIVE))
        native = np.nan_to_num(table.number("native_token_fee", 0.0)) * pays
        token_fee = np.where(pays & (fee_in_token | (fee_in_cash & is_usdc)), fee, 0.0)
        token_fee += np.where(is_native, native, 0.0)
        self.spot = moved - token_fee
        usd = _product(np.sign(moved), worth) - _product(token_fee, price)
        usd = np.where(~is_native & (native > 0), np.nan, usd)
        beside = pays & ~is_cash & fee_token.facts("USDC".__eq__)
        self.cash_fee = np.where(beside, fee, 0.0)
        self.usd = self.perp + np.where(is_usdc, self.spot, usd) - self.cash_fee

    def _is_owner(self, party: str) -> Flags:
        """Return whether a column has the account of the row."""
        parties = self.table.text(party, blank=True)
        is_same = parties.among(self.account) == self.account.codes
        return np.asarray(is_same & parties.facts(bool))

    def _flag_sign(self, name: str) -> Floats:
        """Return 1 for a flag, -1 for its opposite, NaN if it is missing."""
        value, known = self.table.flag(name)
        return np.where(known, np.where(value, 1.0, -1.0), np.nan)

    def _stated_fee(self, name: str) -> Floats:
        """Return a fee: 0 for types without it, and NaN if a type has it and the row does not."""
        has_fee = self.types.facts(lambda type_: name in DELTA_FIELDS.get(type_, ()))
        fee = self.table.number(name, 0.0)
        return np.where(np.isnan(fee) & ~has_fee, 0.0, fee)

    def _choose(self, column: str, values: Mapping[str, Any], other: float = np.nan) -> Floats:
        """Return the value for what each row's rule has in a column; `other` if there is none."""
        places = {name: place for place, name in enumerate(values)}
        rules = {
            name: places.get(getattr(rule, column), len(places)) for name, rule in RULES.items()
        }
        place = self.types.facts(lambda name: rules.get(name, len(places)))
        return np.choose(place, [*values.values(), np.full(len(place), other)])


def own_ledger(
    ledger: Table, account: str | None, owners: Owners | None = None, *, named: bool = False
) -> Movements:
    """Return the movements of the ledger rows of an account or of owners.

    - ``owners``: the accounts of fills; by default the rows of every account, or of `account`
    - ``named``: whether each row needs an account
    """
    ledger.require(("time", "type"))
    names, has_column = account_names(ledger.frame, account), ledger.has("account")
    is_one, kept = len(names) == 1, np.ones(len(ledger), dtype=bool)
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
    accounts = table.text("account", blank=True)
    if is_one and (account is not None or not accounts.present()):
        accounts = Names(np.zeros(len(table), dtype=np.int64), names)
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
