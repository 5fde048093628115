"""Roles of fills: conversions, settlements, liquidations and their other side, forced closes.

Sources: docs/live_service.md, section 2 (liquidations) and section 7 (conversions).
"""

from typing import NamedTuple

import numpy as np

from toolkit.arrays import Flags
from toolkit.errors import MissingDirections, warn_caller
from toolkit.prepare.door import Names, Table
from toolkit.prepare.money import is_outcome, is_perp
from toolkit.prepare.provenance import account_names
from toolkit.rules import directions
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

    - ``account``: the account of the fills; by default the one of the provenance, or the column
      ``user``. Without them, the taker of a liquidation by market order counts as the liquidated
      account.
    """
    words = table.text("dir", blank=True)
    deleveraged = words.facts(directions.AUTO_DELEVERAGING.__eq__)
    named, method = (table.text(name, blank=True) for name in OBJECT[:2])
    is_named, backstop = named.facts(bool), method.facts("backstop".__eq__)
    has_object = is_named | method.facts(bool)
    if table.has("liquidation_mark_px"):
        has_object = has_object | ~np.isnan(table.number("liquidation_mark_px"))
    # ASSUMED: If the `liquidation` object of a fill does not name the liquidated account, or if the
    # account of the fills is not known, the taker of a liquidation by market order counts as the
    # liquidated account.
    taken = has_object & table.flag("crossed")[0] & ~backstop
    # The backstop's own fill has the same words on the other side: a long is closed by a sell from
    # above 0, a short by a buy from below 0.
    by_words: Flags = words.facts(lambda word: word.startswith(directions.LIQUIDATED))
    if by_words.any():
        signs = {"Long": 1.0, "Short": -1.0}
        sign = words.facts(lambda word: signs.get(word.rpartition(" ")[2], 0.0))
        # Without a position, the word alone counts.
        is_other = sign * table.number("start_position", np.nan) <= 0
        if table.has("side"):
            side = table.text("side").facts(lambda side: 1.0 if side == "B" else -1.0)
            is_other = is_other | (side == sign)
        by_words = by_words & ~(is_other & (sign != 0))
    by_words = by_words | words.facts(directions.BORROW_LIQUIDATIONS.__contains__)
    passed_on, liquidated = np.zeros(len(table), dtype=bool), taken | by_words
    names = account_names(table.frame, account)
    if len(names) == 1 or table.has("user"):
        if len(names) == 1:
            users = Names(np.zeros(len(table), dtype=np.int64), names)
            own = named.facts(names[0].__eq__)
        else:
            users = table.text("user")
            own = is_named & (named.among(users) == users.codes)
        # An account that takes over positions as backstop passes them on. This second stage is no
        # liquidation of a trader.
        took_over = users.codes[is_named & ~own & backstop & ~deleveraged]
        passed_on = own & np.isin(users.codes, took_over)
        liquidated = np.where(is_named, own & ~passed_on, liquidated)
    # The exchange closes a delisted perp at its settlement price.
    is_listed = table.text("coin", blank=True).facts(lambda name: name != "" and is_perp(name))
    settled = words.facts(directions.SETTLEMENT.__eq__) & is_listed
    return Roles(
        trade=words.facts(lambda word: word not in directions.NOT_TRADED),
        conversion=words.facts(directions.CONVERSIONS.__contains__),
        swap=words.facts(SWAPS.__contains__),
        liquidated=liquidated,
        counterparty=has_object & ~liquidated & ~passed_on,
        deleveraged=deleveraged & ~liquidated,
        forced=liquidated | passed_on | deleveraged | settled,
    )


def is_off_book(table: Table) -> Flags:
    """Return which fills met no order on a book.

    The exchange sets the price of conversions, settlements, dust, vaults that are netted, backstop
    liquidations and auto-deleveraging. A liquidation by market order meets the book.
    """
    words, method = table.text("dir", blank=True), table.text("liquidation_method", blank=True)
    off: Flags = method.facts("backstop".__eq__) | words.facts(
        lambda word: (
            word == directions.AUTO_DELEVERAGING
            or word in directions.NOT_TRADED
            or word.startswith((directions.LIQUIDATED, "Backstop"))
        )
    )
    return off


def warn_missing_directions(table: Table, *, outcomes_alone: bool = False) -> None:
    """Warn if ``dir`` is missing in every row, so that other events look like trades.

    - ``outcomes_alone``: warn only if there are fills of outcome tokens, for helpers that exclude
      only conversions
    """
    if not table.has("dir") or not len(table):
        return
    if outcomes_alone and not table.text("coin", blank=True).facts(is_outcome).any():
        return
    words = table.text("dir")
    if not words.facts(bool).any() and table.is_blank("dir"):
        warn_caller(
            f"{table.what}: column dir is missing in every row, so conversions, settlements and "
            "backstop liquidations count as trades here. Fetch the rows again, or remove such rows",
            MissingDirections,
        )
    known = ("", *directions.KNOWN)
    odd = words.facts(lambda word: word not in known and not word.startswith(directions.LIQUIDATED))
    if odd.any():
        named = ", ".join(map(repr, sorted(words.take(odd).present())))
        warn_caller(
            f"{table.what}: column dir has unknown values: {named}. These rows count as trades of "
            "the account's own orders. Remove them if they are not",
            MissingDirections,
        )
