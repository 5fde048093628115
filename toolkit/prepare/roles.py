"""Roles of fills: conversions, settlements, liquidations and their other side, forced closes.

Sources: docs/live_service.md, section 2 (liquidations) and section 7 (conversions).
"""

from typing import NamedTuple

import numpy as np

from toolkit.arrays import Flags
from toolkit.errors import MissingDirections, warn_caller
from toolkit.prepare.door import Names, Table
from toolkit.prepare.markets import is_outcome, is_perp
from toolkit.rules.directions import (
    AUTO_DELEVERAGING,
    BORROW_LIQUIDATIONS,
    CONVERSIONS,
    KNOWN,
    LIQUIDATED,
    NOT_TRADED,
    SETTLEMENT,
)
from toolkit.rules.spot_cost import SWAPS

OBJECT = ("liquidated_user", "liquidation_method", "liquidation_mark_px")
"""The columns of a fill's liquidation object."""


class Roles(NamedTuple):
    """What each fill is, apart from an ordinary trade.

    - ``trade``: whether two orders met on a book. Conversions of outcome tokens, settlements,
      conversions of dust and the netting of vaults are no trades; liquidations and
      auto-deleveraging are
    - ``conversion``: whether it converts outcome tokens, so that its price is a convention
    - ``swap``: whether it is a conversion without cash
    - ``liquidated``: whether it liquidates its own account
    - ``counterparty``: whether it is the other side of the liquidation of another account
    - ``deleveraged``: whether the exchange closed the position against a bankrupt account
    - ``forced``: whether the exchange closed the position: a liquidation, auto-deleveraging, or the
      settlement of a delisted coin
    """

    trade: Flags
    conversion: Flags
    swap: Flags
    liquidated: Flags
    counterparty: Flags
    deleveraged: Flags
    forced: Flags


def read_roles(table: Table, account: str | None = None) -> Roles:
    """Return the roles of fills.

    - ``account``: the account of the fills; by default the column ``user``. Without both, the taker
      of a liquidation by market order counts as the liquidated account.
    """
    nothing = np.zeros(len(table), dtype=bool)
    words = table.text("dir", blank=True)
    deleveraged = words.facts(AUTO_DELEVERAGING.__eq__)
    named, method = (table.text(name, blank=True) for name in OBJECT[:2])
    is_named, backstop = named.facts(bool), method.facts("backstop".__eq__)
    has_object = is_named | method.facts(bool)
    if table.has("liquidation_mark_px"):
        has_object = has_object | ~np.isnan(table.number("liquidation_mark_px"))
    # ASSUMED: If the `liquidation` object of a fill does not name the liquidated account, or if the
    # account of the fills is not known, the taker of a liquidation by market order counts as the
    # liquidated account.
    taken = has_object & table.flag("crossed")[0] & ~backstop
    by_words = _closes_by_words(table, words)
    passed_on = nothing
    if account is None and not table.has("user"):
        liquidated = taken | by_words
    else:
        own = _is_own(table, named, account) & is_named
        passed_on = own & _took_over(table, account, is_named & ~own & backstop & ~deleveraged)
        liquidated = np.where(is_named, own & ~passed_on, taken | by_words)
    return Roles(
        trade=words.facts(lambda word: word not in NOT_TRADED),
        conversion=words.facts(CONVERSIONS.__contains__),
        swap=words.facts(SWAPS.__contains__),
        liquidated=liquidated,
        counterparty=has_object & ~liquidated & ~passed_on,
        deleveraged=deleveraged & ~liquidated,
        forced=liquidated | passed_on | deleveraged | _is_delisted(table, words),
    )


def is_off_book(table: Table) -> Flags:
    """Return which fills met no order on a book.

    The exchange sets the price of conversions, settlements, dust, vaults that are netted, backstop
    liquidations and auto-deleveraging. A liquidation by market order meets the book.
    """
    words, method = table.text("dir", blank=True), table.text("liquidation_method", blank=True)
    off: Flags = words.facts(_names_off_book) | method.facts("backstop".__eq__)
    return off


def _names_off_book(word: str) -> bool:
    is_forced = word == AUTO_DELEVERAGING or word.startswith((LIQUIDATED, "Backstop"))
    return is_forced or word in NOT_TRADED


def warn_missing_directions(table: Table, *, outcomes_alone: bool = False) -> None:
    """Warn if ``dir`` is missing in every row, so that other events look like trades.

    - ``outcomes_alone``: warn only if there are fills of outcome tokens, for helpers that exclude
      only conversions
    """
    if not table.has("dir") or not len(table):
        return
    rows = np.ones(len(table), dtype=bool)
    if outcomes_alone:
        rows = table.text("coin").facts(is_outcome)
        if not rows.any():
            return
    words = table.text("dir")
    if not words.present() and table.frame["dir"].isna().to_numpy()[rows].all():
        warn_caller(
            f"{table.what}: column dir is missing in every row, so conversions, settlements and "
            "backstop liquidations count as trades here. Fetch the rows again, or remove such rows",
            MissingDirections,
        )
    _warn_unknown_directions(table.what, words)


def _warn_unknown_directions(what: str, words: Names) -> None:
    """Warn of values of ``dir`` that this package does not know."""
    unknown = [word for word in words.present() if not _is_known(word)]
    if unknown:
        named = ", ".join(map(repr, sorted(unknown)))
        warn_caller(
            f"{what}: column dir has unknown values: {named}. These rows count as trades of the "
            "account's own orders. Remove them if they are not",
            MissingDirections,
        )


def _is_known(word: str) -> bool:
    return word in KNOWN or word.startswith(LIQUIDATED)


def _is_own(table: Table, named: Names, account: str | None) -> Flags:
    """Return whether a fill's liquidation object names the account of the fill."""
    if account is not None:
        mine: Flags = named.facts(account.lower().__eq__)
        return mine
    users = table.text("user")
    places = {name: code for code, name in enumerate(users.values)}
    own = np.array([places.get(name, -1) for name in named.values])[named.codes]
    made: Flags = own == users.codes
    return made


def _took_over(table: Table, account: str | None, takes: Flags) -> Flags:
    """Return the fills of accounts that take over positions as backstop.

    Such an account passes the position on. This second stage is no liquidation of a trader.
    """
    if account is not None:
        return np.full(len(table), takes.any())
    users = table.text("user").codes
    return np.isin(users, users[takes]) if takes.any() else takes


def _is_delisted(table: Table, words: Names) -> Flags:
    """Return whether the exchange closed a perp at its settlement price."""
    if not table.has("coin"):
        return np.zeros(len(table), dtype=bool)
    settled: Flags = words.facts(SETTLEMENT.__eq__)
    perp: Flags = table.text("coin").facts(is_perp)
    return settled & perp


def _closes_by_words(table: Table, words: Names) -> Flags:
    """Return whether ``dir`` says that the exchange closed the fill's own position.

    The backstop's own fill has the same words on the other side: a long is closed by a sell from
    above 0, a short by a buy from below 0.
    """
    marked: Flags = words.facts(lambda word: word.startswith(LIQUIDATED))
    if marked.any():
        long = words.facts(lambda word: word.endswith("Long"))
        short = words.facts(lambda word: word.endswith("Short"))
        if table.has("side"):
            is_buy = table.text("side").facts("B".__eq__)
            marked = marked & ~(long & is_buy) & ~(short & ~is_buy)
        if table.has("start_position"):
            start = table.number("start_position")
            marked = marked & ~(long & (start <= 0)) & ~(short & (start >= 0))
    borrowed: Flags = words.facts(BORROW_LIQUIDATIONS.__contains__)
    return marked | borrowed
