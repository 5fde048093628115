"""Prepared fills: columns, money, steps, legs and average prices, each computed on first use."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Flags
from toolkit.prepare.average import Average, average_prices
from toolkit.prepare.door import Frame, Names, Table, as_pandas, filled
from toolkit.prepare.legs import Legs, split_legs
from toolkit.prepare.markets import is_spot
from toolkit.prepare.money import (
    Collateral,
    Money,
    Prices,
    collateral_in_fills,
    collateral_of_dexes,
    is_in_base,
    parse_prices,
    read_money,
    read_tokens,
)
from toolkit.prepare.owners import Owners, account_names
from toolkit.prepare.roles import Roles, read_roles
from toolkit.prepare.steps import POSITION_COLUMNS, Steps, sort_steps

_AMOUNTS: Final = (
    "volume", "closed_pnl", "fee", "builder_fee", "deployer_fee", "fee_in_cost",
)  # fmt: skip


class Fills:
    """Fills of one or several accounts, prepared for helpers.

    Each layer is computed on first use and kept, so helpers that share an object compute it once:

    - ``table``: the columns, each fill once
    - ``money``: amounts in USD, row by row
    - ``roles``: conversions, liquidations and forced closes, row by row
    - ``steps``: the fills in the order of execution, with the positions around each one
    - ``legs``: the parts of fills that open or close, and the trips from flat to flat
    - ``average``: entry prices and expected closed PnL

    Raise ValueError if `prices` are not positive, and `MissingColumns` if `meta` names an unknown
    collateral.
    """

    def __init__(
        self,
        frame: Frame,
        account: str | None = None,
        prices: Prices | None = None,
        meta: Frame | Collateral | None = None,
    ) -> None:
        self.table = Table(_with_owner(as_pandas(frame, "fills"), account), "fills")
        self.account = None if account is None else account.lower()
        self.prices = parse_prices(prices)
        self.collateral = collateral_of_dexes(meta)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def owners(self) -> Owners:
        """The accounts of the fills."""
        has_users = self.table.has("user") and len(self.table) > 0
        users = self.table.text("user").present() if has_users else None
        return Owners(users, account_names(self.table.frame, self.account))

    @cached_property
    def tokens(self) -> Names:
        """The token of each fee."""
        return read_tokens(self.table, self.collateral)

    @cached_property
    def in_base(self) -> Flags:
        """Whether the fee of a spot fill is in the base token."""
        spot: Flags = self.table.text("coin").facts(is_spot)
        return is_in_base(self.table, self.tokens) if spot.any() else spot

    @cached_property
    def money(self) -> Money:
        """Amounts in USD."""
        return read_money(self.table, self.tokens, self.in_base, self.prices)

    def known_collateral(self) -> dict[str, str]:
        """Return the collateral of dexes; with prices also what fee tokens state."""
        return {**(collateral_in_fills(self.table) if self.prices else {}), **self.collateral}

    def tokens_at_par(self) -> list[str]:
        """Return the tokens other than USDC that count at par."""
        tokens, codes = self.money.tokens, self.money.tokens.codes[self.money.is_at_par]
        return sorted(tokens.values[code] for code in np.unique(codes).tolist())

    @cached_property
    def roles(self) -> Roles:
        """What each fill is, apart from an ordinary trade."""
        names = self.owners.names
        return read_roles(self.table, names[0] if len(names) == 1 else None)

    @cached_property
    def steps(self) -> Steps:
        """The fills in the order of execution."""
        fee = self.in_base * filled(self.table.number("fee", 0.0))
        return sort_steps(self.table, fee)

    @cached_property
    def legs(self) -> Legs:
        """The opening and closing parts of fills, by trip."""
        return split_legs(self.steps, self.roles.swap)

    def average(self, sz_decimals: Mapping[str, int]) -> Average:
        """Return entry prices and expected closed PnL, step by step."""
        key = tuple(sorted(sz_decimals.items()))
        if self._average is None or self._average[0] != key:
            made = average_prices(self.table, self.steps, self.roles.swap, sz_decimals)
            self._average = (key, made)
        return self._average[1]

    _average: tuple[Any, Average] | None = None

    def frame(self) -> pd.DataFrame:
        """Return the fills, each once, with the prepared columns after those of the frame.

        - ``volume_usd``, ``closed_pnl_usd``, ``fee_usd``, ``builder_fee_usd``,
          ``deployer_fee_usd``, ``fee_in_cost_usd``: USD; a missing amount counts as 0, and fees
          are positive if paid
        - ``trade``, ``conversion``, ``swap``, ``liquidated``, ``counterparty``, ``deleveraged``,
          ``forced``: what each fill is, see `Roles`
        - with positions, in the order of execution: ``position``, the one after the fill, and
          ``gap``, what came (+) or left (-) before the fill without a fill, in units of the coin
        """
        money = {f"{name}_usd": getattr(self.money, name) for name in _AMOUNTS}
        made = self.table.frame.assign(**money, **self.roles._asdict())
        if all(map(self.table.has, POSITION_COLUMNS)):
            steps = self.steps
            made = made.iloc[steps.rows].assign(
                position=steps.sizes(steps.end), gap=steps.sizes(steps.gap)
            )
        return made.reset_index(drop=True)


def _with_owner(frame: pd.DataFrame, account: str | None) -> pd.DataFrame:
    """Return fills whose column `user` is not empty if a column or a request names the account."""
    has_users = "user" in frame and not frame["user"].array.isna().all()
    if has_users or frame.empty:
        return frame
    if "account" in frame:
        return frame.assign(user=frame["account"])
    names = account_names(frame, account) if "user" in frame else []
    return frame.assign(user=names[0]) if len(names) == 1 else frame


def fills(
    frame: "Frame | Fills",
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | Collateral | None = None,
) -> Fills:
    """Return prepared fills; those that are prepared already are returned as they are.

    Parameters
    ----------
    frame : DataFrame or Fills
        Fills as `tk.user_fills_by_time` returns them, or the result of this function.
    account : str, optional
        The account of the fills, if the frame does not state it.
    prices, meta : optional
        Prices of tokens other than USDC, and the collateral of dexes, see `tk.pnl.attribution`.

    Returns
    -------
    Fills
        For the helpers of `tk.pnl` and for several helpers in turn: each layer (columns, amounts
        in USD, roles, positions, trips) is computed once. ``.frame()`` shows the columns.

    Raises
    ------
    ValueError
        If the fills were prepared with another account, other prices or another meta.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": ["BTC"], "fee": [0.1], "fee_token": ["USDC"]})
    >>> prepared = fills(rows, account="0xA")
    >>> fills(prepared) is prepared
    True
    >>> fills(prepared, account="0xb")
    Traceback (most recent call last):
    ValueError: fills were prepared with account='0xa', but the call has account='0xb'. Prepare \
them again: prepare.fills(frame, account='0xb')
    """
    if not isinstance(frame, Fills):
        return Fills(frame, account, prices, meta)
    given: dict[str, tuple[Any, Any]] = {
        "account": (frame.account, None if account is None else account.lower()),
        "prices": (frame.prices, None if prices is None else parse_prices(prices)),
        "meta": (frame.collateral, None if meta is None else collateral_of_dexes(meta)),
    }
    for name, (before, now) in given.items():
        if now is not None and now != before:
            raise ValueError(
                f"fills were prepared with {name}={before!r}, but the call has {name}={now!r}. "
                f"Prepare them again: prepare.fills(frame, {name}={now!r})"
            )
    return frame
