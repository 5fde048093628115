"""Prepared fills: columns, money, roles and steps, each computed on first use.

A helper that walks the history of one account would take the fills of two accounts for one chain of
positions. If fills have no column user, two observations tell them apart:

- A trade has two sides, and the exchange cancels an order that would meet one of the same account.
  So one trade id on both sides proves two accounts.
- A fill that does not start from the position after the fill before it means that fills are
  missing, or that they are of several accounts. The results show it as `chain_break` or ``broken``.
  A warning says so if neither the frame nor its provenance names the account.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import MissingColumns, UnnamedAccount, warn_caller
from toolkit.prepare import money, provenance
from toolkit.prepare.door import Frame, Names, Table, as_pandas, filled
from toolkit.prepare.money import Collateral, Money, Prices
from toolkit.prepare.provenance import Owners, account_names
from toolkit.prepare.roles import Roles, read_roles, warn_missing_directions
from toolkit.prepare.steps import POSITION_COLUMNS, Steps

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
        frame = as_pandas(frame, "fills")
        has_users = "user" in frame.columns and not frame["user"].array.isna().all()
        if len(frame) and not has_users and "account" in frame.columns:
            frame = frame.assign(user=frame["account"])
        elif len(frame) and not has_users and "user" in frame.columns:
            names = account_names(frame, account)
            frame = frame.assign(user=names[0]) if len(names) == 1 else frame
        self.table = Table(frame, "fills")
        self.account = None if account is None else account.lower()
        self.prices = money.parse_prices(prices) if prices else {}
        self.collateral = {} if meta is None else money.collateral_of_dexes(meta)
        # Size decimals -> what `average_prices` found for them.
        self.averages: dict[bytes, Any] = {}

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
        """The token of each fee; a missing one is the collateral of the dex, "" is USDC."""
        tokens, collateral = self.table.text("fee_token", blank=True), self.collateral
        if not collateral:
            return tokens
        of_coin = self.table.text("coin").renamed(
            lambda coin: collateral.get(money.dex_of(coin), "")
        )
        codes = np.where(tokens.facts("".__eq__), len(tokens.values) + of_coin.codes, tokens.codes)
        return Names(codes, [*tokens.values, *of_coin.values]).renamed(str)

    @cached_property
    def money(self) -> Money:
        """Amounts in USD.

        A native perp has USDC. If a spot fill has its fee in the base token, other fills of the
        market state the quote token, or the name of the market. Otherwise it counts as USDC.
        """
        table, tokens, prices = self.table, self.tokens, self.prices
        fee, px = table.number("fee"), table.number("px")
        paid, builder, deployer = (
            filled(table.number(name, 0.0)) for name in ("fee", "builder_fee", "deployer_fee")
        )
        if paid is not fee:  # a part of a fee that is missing does not count either
            builder, deployer = (np.where(np.isnan(fee), 0.0, part) for part in (builder, deployer))
        closed, volume = filled(table.number("closed_pnl", np.nan)), filled(px * table.number("sz"))
        nothing, never = np.zeros(len(table)), np.zeros(len(table), dtype=bool)
        if all(token in money.CASH for token in tokens.values):
            one = nothing + 1.0
            unknown = (never, never, tokens, never)
            return Money(closed, paid, builder, deployer, nothing, volume, one, *unknown)
        coins, in_base = table.text("coin"), money.is_in_base(table, tokens)
        is_native: Flags = coins.facts(lambda coin: money.is_perp(coin) and ":" not in coin)
        names = [*tokens.values, *(coin.partition("/")[2] for coin in coins.values), ""]
        of_coin = len(tokens.values) + np.arange(len(coins.values))
        of_coin[coins.codes[~in_base]] = tokens.codes[~in_base]
        codes = np.where(in_base, of_coin[coins.codes], tokens.codes)
        quotes = Names(np.where(is_native, len(names) - 1, codes), names)
        price, fee_price = (
            each.facts(lambda token: prices.get(token.upper(), 1.0)) for each in (quotes, tokens)
        )
        par, lacks_price = (
            each.facts(lambda token: token not in money.CASH and token.upper() not in prices)
            for each in (quotes, tokens)
        )
        unpriced = is_native & lacks_price
        counted = np.where(unpriced | in_base, 0.0, fee_price)
        is_bought = in_base & table.text("side").facts("B".__eq__)
        return Money(
            closed * price,
            paid * counted,
            builder * counted,
            deployer * counted,
            np.where(in_base, np.nan_to_num(fee * px) * price, 0.0),
            volume * price,
            price,
            par & ~is_bought,
            unpriced & (paid != 0),
            quotes,
            in_base,
        )

    @cached_property
    def known_collateral(self) -> dict[str, str]:
        """The collateral of dexes; with prices also what fee tokens state."""
        return {**(money.collateral_in_fills(self.table) if self.prices else {}), **self.collateral}

    def collateral_price(self, coin: str) -> float:
        """Return the price of the collateral of a coin in USD; 1 if there is none."""
        token = self.known_collateral.get(money.dex_of(coin), "")
        return self.prices.get(token.upper(), 1.0)

    def in_usd(self, amounts: Floats, coins: Names) -> Floats:
        """Return amounts in the collateral of their coins in USD, as of funding."""
        return np.asarray(amounts * coins.facts(self.collateral_price)) if self.prices else amounts

    def tokens_at_par(self) -> list[str]:
        """Return the tokens other than USDC that count at par."""
        tokens, codes = self.money.tokens, self.money.tokens.codes[self.money.is_at_par]
        return sorted({tokens.values[code] for code in np.unique(codes).tolist()})

    @cached_property
    def roles(self) -> Roles:
        """What each fill is, apart from an ordinary trade."""
        return read_roles(self.table, self.account)

    @cached_property
    def steps(self) -> Steps:
        """The fills in the order of execution."""
        in_base = money.is_in_base(self.table, self.tokens)
        return Steps(self.table, in_base * filled(self.table.number("fee", 0.0)))

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
                position=steps.end / steps.scale, gap=steps.gap / steps.scale
            )
        return made.reset_index(drop=True)


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
    for name, before, now in (
        ("account", frame.account, account and account.lower()),
        ("prices", frame.prices, None if prices is None else money.parse_prices(prices)),
        ("meta", frame.collateral, None if meta is None else money.collateral_of_dexes(meta)),
    ):
        if now is not None and now != before:
            raise ValueError(
                f"fills were prepared with {name}={before!r}, but the call has {name}={now!r}. "
                f"Prepare them again: prepare.fills(frame, {name}={now!r})"
            )
    return frame


def owner_columns(fills: Fills, places: Ints) -> dict[str, pd.Series]:
    """Return user (if known) and coin of steps."""
    steps = fills.steps
    coins = Names(steps.coin, steps.coins).texts(places)
    if not fills.table.has("user"):
        return {"coin": coins}
    return {"user": Names(steps.user, steps.users).texts(places), "coin": coins}


def check_chains(
    fills: Fills,
    needed: tuple[str, ...] = POSITION_COLUMNS,
    *,
    warns: bool = True,
    outcomes_alone: bool = True,
) -> None:
    """Raise or warn if fills do not state what the positions of one account need.

    - ``warns``: whether to warn of fees and directions that are missing
    - ``outcomes_alone``: as `warn_missing_directions` takes it

    Raise `MissingColumns` if a column of positions is missing, no number, or has gaps, and
    ValueError if fills without a column user prove that they are of several accounts.
    """
    table = fills.table
    table.require(needed)
    numbers = [name for name in ("px", "sz", "start_position", "closed_pnl") if name in needed]
    has_fee = "fee" in needed or (table.has("fee") and table.has("fee_token"))
    table.ms()  # an empty text is a missing time, too
    table.require_values([*numbers, *["fee"] * has_fee, "time"])
    sides = table.text("side")
    wrong = sides.facts(lambda side: side not in ("A", "B"))
    if wrong.any():
        example = sides.values[int(sides.codes[wrong][0])] or None
        raise MissingColumns(
            f"fills: column side is neither A nor B in {count_text(int(wrong.sum()), 'row')}, for "
            f"example {example!r}. Correct or remove these rows"
        )
    if warns:
        money.warn_missing_tokens(table)
        warn_missing_directions(table, outcomes_alone=outcomes_alone)
    provenance.refuse_several_accounts(table.frame, "fills")
    if fills.account is not None or (table.has("user") and not table.is_blank("user")):
        return
    tid = np.nan_to_num(table.number("tid", 0.0)).astype(np.int64)
    ordered = np.sort(tid)
    if ((ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)).any():
        coin, is_buy = table.text("coin").codes, table.text("side").facts("B".__eq__)
        order = np.lexsort((is_buy, coin, tid))
        tid, coin, is_buy = tid[order], coin[order], is_buy[order]
        same = (tid[1:] == tid[:-1]) & (coin[1:] == coin[:-1]) & (tid[1:] != 0)
        if trades := int((same & (is_buy[1:] != is_buy[:-1])).sum()):
            how = f"trade ids with a buy and a sell: {trades:,}"
            raise ValueError(provenance.SEVERAL_ACCOUNTS.format(what="fills", how=how))
    gap, spot = fills.steps.is_gap, fills.steps.spot
    count, moved = int((gap & ~spot).sum()), int((gap & spot).sum())
    # Tokens also come and leave in other ways, but not between most fills.
    count += moved * (3 * moved > int(spot.sum()))
    if count and len(fills.owners.names) != 1:
        warn_caller(
            f"fills: {count_text(count, 'fill does', 'fills do')} not start from the position that "
            "the previous fill left. Fills are missing, or the frame mixes several accounts. Name "
            "the account of each fill: fills.assign(user=address)",
            UnnamedAccount,
        )
