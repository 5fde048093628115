"""Ledger flows of the spot wallet: tokens into (+) and out of (-) it.

`perp_flows` has the perp account's side of the same rows. Here class transfers have the opposite
direction, and tokens are sent, staked, lent and claimed. The type decides the direction.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import narwhals as nw

from toolkit.analysis.common.frame_access import (
    Frame,
    NumberKind,
    column_or_zero,
    missing_literal,
    number_type,
    zero_literal,
)
from toolkit.analysis.common.usd_values import CASH
from toolkit.analysis.pnl import perp_flows

WalletDirection = Literal["in", "out", "class", "party", "send", "stakes", "lends"]

# ASSUMED: The sender of a spot transfer pays the fee in the fee token of the row. The amount does
# not include the fee.
# ASSUMED: For a lending withdrawal and for a repayment, the amount does not include the interest.
RULES: Mapping[str, WalletDirection] = {
    "accountClassTransfer": "class",
    "perpDexClassTransfer": "class",
    "spotTransfer": "party",
    "send": "send",
    "rewardsClaim": "in",
    "spotGenesis": "in",
    "deployGasAuction": "out",
    "accountActivationGas": "out",
    "cStakingTransfer": "stakes",
    "borrowLend": "lends",
}
_INTO = {"withdraw": 1, "borrow": 1, "supply": -1, "repay": -1}


def add_wallet_flows(rows: Frame, kind: NumberKind) -> Frame:
    """Add `spot` (amount of `token`; null if it is not known) to rows of `add_perp_flows`."""
    column_names = rows.columns
    interest = column_or_zero("interest_amount", column_names, kind)
    rows = rows.with_columns(
        token=nw.when(nw.col("token") == "").then(nw.lit("USDC")).otherwise(nw.col("token")),
        _sign=_wallet_sign(column_names),
        _told=_is_known(column_names),
        _plain=_stated_amount(kind),
    )
    lent = nw.when(_has_direction("lends")).then(interest).otherwise(zero_literal(kind))
    rows = rows.with_columns(_whole=(nw.col("_plain") + lent).cast(number_type(kind)))
    moved = (
        nw.when(nw.col("_sign") == 1)
        .then(nw.col("_whole"))
        .when(nw.col("_sign") == -1)
        .then(-nw.col("_whole"))
        .otherwise(zero_literal(kind))
    )
    rows = rows.with_columns(_wallet=moved, _wallet_fee=_wallet_fee(kind))
    whole = (nw.col("_wallet") - nw.col("_wallet_fee")).cast(number_type(kind))
    return rows.with_columns(
        spot=nw.when(nw.col("_told")).then(whole).otherwise(missing_literal(kind))
    )


def _has_direction(*directions: WalletDirection) -> nw.Expr:
    return nw.col("type").is_in([name for name, way in RULES.items() if way in directions])


def _stated_amount(kind: NumberKind) -> nw.Expr:
    """Return the amount of tokens of a row; `usdc` of a class transfer."""
    return (
        nw.when(nw.col("type") == "accountClassTransfer")
        .then(nw.col("usdc"))
        .otherwise(nw.col("amount"))
        .cast(number_type(kind))
    )


def _is_sender() -> nw.Expr:
    own = perp_flows.is_owner("user")
    return own & (
        _has_direction("party")
        | (_has_direction("send") & (nw.col("source_dex") == perp_flows.SPOT))
    )


def _is_receiver() -> nw.Expr:
    own = perp_flows.is_owner("destination")
    return own & (
        _has_direction("party")
        | (_has_direction("send") & (nw.col("destination_dex") == perp_flows.SPOT))
    )


def _wallet_sign(column_names: Sequence[str]) -> nw.Expr:
    gets = (
        _has_direction("in")
        | (_has_direction("class") & (nw.col("_to") == -1))
        | (_is_receiver() & ~_is_sender())
    )
    gives = (
        _has_direction("out")
        | (_has_direction("class") & (nw.col("_to") == 1))
        | (_is_sender() & ~_is_receiver())
    )
    if "is_deposit" in column_names:
        staked = (nw.col("is_deposit") == nw.lit(True)).fill_null(False)
        freed = (nw.col("is_deposit") == nw.lit(False)).fill_null(False)
        gets, gives = (
            gets | (_has_direction("stakes") & freed),
            gives | (_has_direction("stakes") & staked),
        )
    if "operation" in column_names:
        gets = gets | (_has_direction("lends") & _is_operation(1))
        gives = gives | (_has_direction("lends") & _is_operation(-1))
    return nw.when(gets).then(nw.lit(1)).when(gives).then(nw.lit(-1)).otherwise(nw.lit(0))


def _is_operation(sign: int) -> nw.Expr:
    names = [name for name, way in _INTO.items() if way == sign]
    return nw.col("operation").fill_null("").is_in(names)


def _is_known(column_names: Sequence[str]) -> nw.Expr:
    """Return whether the direction of a row is known; types without a rule move no tokens."""
    named = perp_flows.is_owner("user") | perp_flows.is_owner("destination")
    known = ~_has_direction("class", "party", "send", "stakes", "lends")
    known = (
        known
        | (_has_direction("class") & (nw.col("_to") != 0))
        | (_has_direction("party", "send") & named)
    )
    if "is_deposit" in column_names:
        known = known | (_has_direction("stakes") & ~nw.col("is_deposit").is_null())
    if "operation" in column_names:
        known = known | (
            _has_direction("lends") & nw.col("operation").fill_null("").is_in(list(_INTO))
        )
    return known & nw.col("type").is_in(list(perp_flows.RULES))


def _wallet_fee(kind: NumberKind) -> nw.Expr:
    same = nw.col("fee_token") == nw.col("token")
    cash = nw.col("fee_token").is_in(CASH) & (nw.col("token") == "USDC")
    return nw.when(_is_sender() & (same | cash)).then(nw.col("fee")).otherwise(zero_literal(kind))
