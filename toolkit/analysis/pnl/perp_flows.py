"""Ledger flows of the perp account: cash into (+) and out of (-) it, over all its dexes.

`RULES` states the direction of each type; the functions below apply it. A row has no amount (null)
if its type is not in the table, if its direction depends on the account of the ledger, which is
not known, or if its type has a fee and the fee is null. Such rows are counted and never taken as
zero.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import narwhals as nw

from toolkit.analysis.common.frame_access import (
    Frame,
    NumberKind,
    column_or_zero,
    flag,
    missing_literal,
    number_type,
    zero_literal,
)
from toolkit.analysis.common.usd_values import CASH
from toolkit.contract.records import DELTA_FIELDS

PerpDirection = Literal["in", "out", "joins", "leaves", "class", "party", "send", "none"]


class FlowRule(NamedTuple):
    """How rows of one type count: their direction, and the column of their amount."""

    way: PerpDirection
    amount: str = "usdc"


RULES: Mapping[str, FlowRule] = {
    "deposit": FlowRule("in"),
    "withdraw": FlowRule("out"),
    "accountClassTransfer": FlowRule("class"),
    "internalTransfer": FlowRule("party"),
    "subAccountTransfer": FlowRule("party"),
    "spotTransfer": FlowRule("none"),
    "send": FlowRule("send", "amount"),
    "liquidation": FlowRule("none"),
    "vaultCreate": FlowRule("joins"),
    "vaultDeposit": FlowRule("joins"),
    "vaultDistribution": FlowRule("leaves"),
    "vaultWithdraw": FlowRule("leaves", "net_withdrawn_usd"),
    "vaultLeaderCommission": FlowRule("in"),
    "rewardsClaim": FlowRule("none"),
    "deployGasAuction": FlowRule("none"),
    "spotGenesis": FlowRule("none"),
    "cStakingTransfer": FlowRule("none"),
    "borrowLend": FlowRule("none"),
    "activateDexAbstraction": FlowRule("none"),
    "accountActivationGas": FlowRule("none"),
    "perpDexClassTransfer": FlowRule("class", "amount"),
}

AMOUNTS = ("usdc", "amount", "net_withdrawn_usd", "usdc_value", "fee", "commission")
_TEXTS = ("user", "destination", "vault", "source_dex", "destination_dex", "token", "fee_token")
SPOT = "spot"
_NOBODY = "?"


def add_perp_flows(ledger: Frame, kind: NumberKind, account: str | None) -> Frame:
    """Add `flow` (null if it is not known) and `unknown` (0 or 1) to each ledger row."""
    rows = _add_columns(ledger, kind, account)
    rows = rows.with_columns(_out=_cash_leaves(), _in=_cash_arrives(), _usd=_usd_amount(kind))
    rows = rows.with_columns(_net=nw.col("_in") - nw.col("_out"), _cost=_fee_paid(kind))
    rows = rows.with_columns(_moved=_movement(kind))
    rows = rows.with_columns(flow=nw.col("_moved") - nw.col("_cost"))
    return rows.with_columns(unknown=flag(nw.col("flow").is_null()))


def _add_columns(ledger: Frame, kind: NumberKind, account: str | None) -> Frame:
    """Return the ledger with all columns of the rules, texts and directions without nulls."""
    column_names = ledger.columns
    texts = {n: nw.col(n).fill_null("") if n in column_names else nw.lit("") for n in _TEXTS}
    amounts = {
        n: _nullable(n, kind) if n in column_names else missing_literal(kind) for n in AMOUNTS
    }
    amounts |= {name: _stated_fee(name, column_names, kind) for name in ("fee", "commission")}
    owner = nw.lit(_NOBODY)
    if account is not None:
        owner = nw.lit(account.lower())
    elif "account" in column_names:
        owner = nw.col("account").fill_null(_NOBODY).str.to_lowercase()
    return ledger.with_columns(**texts, **amounts, _to=_direction(column_names), _owner=owner)


def _direction(column_names: Sequence[str]) -> nw.Expr:
    """Return 1 into the perp account, -1 out of it, 0 if `to_perp` is missing."""
    if "to_perp" not in column_names:
        return nw.lit(0)
    into = (nw.col("to_perp") == nw.lit(True)).fill_null(False)
    out_of = (nw.col("to_perp") == nw.lit(False)).fill_null(False)
    return nw.when(into).then(nw.lit(1)).when(out_of).then(nw.lit(-1)).otherwise(nw.lit(0))


def _nullable(name: str, kind: NumberKind) -> nw.Expr:
    if kind == "exact":
        return nw.col(name)
    column = nw.col(name).cast(nw.Float64())
    return nw.when(~column.is_nan()).then(column)


def _stated_fee(name: str, column_names: Sequence[str], kind: NumberKind) -> nw.Expr:
    """Return a fee: 0 for types without it, and null if a type has it and the row does not."""
    if name not in column_names:
        return zero_literal(kind)
    types = [type for type, fields in DELTA_FIELDS.items() if name in fields]
    is_lost = _nullable(name, kind).is_null() & nw.col("type").is_in(types)
    zero = column_or_zero(name, column_names, kind)
    return nw.when(~is_lost).then(zero).otherwise(missing_literal(kind))


def _has_direction(*directions: PerpDirection) -> nw.Expr:
    return nw.col("type").is_in([name for name, rule in RULES.items() if rule.way in directions])


def is_owner(party: str) -> nw.Expr:
    """Return whether a column has the account of the ledger."""
    return nw.col(party).str.to_lowercase() == nw.col("_owner")


def _cash_leaves() -> nw.Expr:
    """Return 1 if cash leaves the perp account, else 0."""
    sent = is_owner("user") & (
        _has_direction("party") | (_has_direction("send") & (nw.col("source_dex") != SPOT))
    )
    vault = is_owner("vault")
    pooled = (_has_direction("joins") & ~vault) | (_has_direction("leaves") & vault)
    return flag(
        _has_direction("out") | pooled | (_has_direction("class") & (nw.col("_to") == -1)) | sent
    )


def _cash_arrives() -> nw.Expr:
    """Return 1 if cash comes into the perp account, else 0."""
    got = is_owner("destination") & (
        _has_direction("party") | (_has_direction("send") & (nw.col("destination_dex") != SPOT))
    )
    # A vault's own ledger has the rows of its followers, and the vault receives their deposits.
    vault = is_owner("vault")
    pooled = (_has_direction("joins") & vault) | (_has_direction("leaves") & ~vault)
    return flag(
        _has_direction("in") | pooled | (_has_direction("class") & (nw.col("_to") == 1)) | got
    )


def _is_known() -> nw.Expr:
    """Return whether the direction of a row is known."""
    named = is_owner("user") | is_owner("destination")
    return (
        _has_direction("in", "out", "joins", "leaves", "none")
        | (_has_direction("class") & (nw.col("_to") != 0))
        | (_has_direction("party", "send") & named)
    )


def _usd_amount(kind: NumberKind) -> nw.Expr:
    """Return the amount of a row in USD: USDC at par, other tokens by `usdc_value`."""
    withdrawn = nw.col("type").is_in(_types_by_amount("net_withdrawn_usd"))
    in_token = nw.col("type").is_in(_types_by_amount("amount"))
    return (
        nw.when(withdrawn)
        .then(nw.col("net_withdrawn_usd"))
        .when(in_token & nw.col("token").is_in(CASH))
        .then(nw.col("amount"))
        .when(in_token)
        .then(nw.col("usdc_value"))
        .otherwise(nw.col("usdc"))
        .cast(number_type(kind))
    )


def _types_by_amount(column: str) -> list[str]:
    return [name for name, rule in RULES.items() if rule.amount == column]


def _fee_paid(kind: NumberKind) -> nw.Expr:
    paid = (nw.col("_out") == 1) & ~is_owner("vault") & nw.col("fee_token").is_in(CASH)
    shared = _has_direction("leaves") & is_owner("vault")
    return (
        nw.when(shared)
        .then(nw.col("commission"))
        .when(paid)
        .then(nw.col("fee"))
        .otherwise(zero_literal(kind))
    )


def _movement(kind: NumberKind) -> nw.Expr:
    is_known = _is_known()
    return (
        nw.when(is_known & (nw.col("_net") == 1))
        .then(nw.col("_usd"))
        .when(is_known & (nw.col("_net") == -1))
        .then(-nw.col("_usd"))
        .when(is_known & (nw.col("_net") == 0))
        .then(zero_literal(kind))
        .otherwise(missing_literal(kind))
    )
