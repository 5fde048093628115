"""Revenue of builders, and the share of their users' trading that they carry.

A user's fill is *routed* if it carries the builder, *elsewhere* if it carries another builder, and
*direct* if it carries none. Slices of TWAPs, liquidations of the user, deleveraging, settlement and
dust conversions carry no builder (specification, "builderApprovedFillsByTime"): they are
*unroutable*. A fill against another account's liquidation is routable. Conversions of outcome
tokens are not trades and count nowhere (docs/live_service.md, sections 2 and 7).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.errors import MissingFees, warn_caller
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import group_rows, list_keys, ratio, sum_groups
from toolkit.prepare.money import CASH, is_in_base, is_perp, warn_missing_tokens
from toolkit.prepare.provenance import finish
from toolkit.prepare.roles import is_off_book, read_roles, warn_missing_directions
from toolkit.rules.directions import CONVERSIONS
from toolkit.statistics import check_level, student

NEEDED = ("coin", "px", "sz", "side", "time", "fee", "builder", "builder_fee")
ROUTES = ("routed", "elsewhere", "direct", "unroutable")
_NUMBERS = ("px", "sz", "fee", "builder_fee", "time", "fills", "volume", "revenue")


def revenue(
    fills: Frame, builder: str | None = None, by: str | Iterable[str] | None = None
) -> pd.DataFrame:
    """Sum the builder fees of fills, in groups such as builder, user or week.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time, fee, builder, builder_fee``, from
        `tk.builder_approved_fills_by_time` or `tk.user_fills`. Repeated rows count once.
    builder : str, optional
        Only fills of this builder. Without it, fills of every builder.
    by : str or list of str, optional
        One row for each group: ``builder``, ``user``, ``coin``, ``dex``, ``hour``, ``day``,
        ``week`` (Monday, UTC), or any other column.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``fills``: number of fills with a builder.
        - ``volume``: volume of the fills with a builder (px * sz), in USD.
        - ``revenue``: builder fees, in USD; positive is good for the builder.
        - ``fee_bps``: ``revenue / volume`` of the fills whose fee has a price, in basis points;
          missing without volume.
        - ``unpriced``: number of fills with a builder fee in a token without a known price.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Notes
    -----
    `fee` contains the builder fee: do not add the two (docs/accounting.md, "From closed PnL to
    net"). Conversions of outcome tokens are not trades, and are left out (docs/live_service.md,
    section 7). Fills with the ``dir`` ``Settlement``, ``Spot Dust Conversion`` or ``Net Child
    Vaults`` count, as in `tk.pnl.attribution`. If a spot buy pays the fee in the bought token, the
    price of the fill converts it to USD.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": 100.0, "sz": [10.0, 20.0, 5.0], "side": "B", "fee": 0.5,
    ...     "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "builder": ["0xb", "0xb", None], "builder_fee": [0.1, 0.2, None]})
    >>> revenue(fills)[["fills", "volume", "revenue", "fee_bps"]]
       fills  volume  revenue  fee_bps
    0      2  3000.0      0.3      1.0
    """
    keys = list_keys(by, _NUMBERS)
    table, rows, volume, earned, is_unpriced = read_builder_trades(fills, builder, NEEDED)
    group, groups = group_rows(rows, keys)
    number = len(groups)
    usd = sum_groups(group, earned, number)
    known = sum_groups(group, np.where(is_unpriced, 0.0, volume), number)
    columns = {
        **groups,
        "fills": np.bincount(group, minlength=number),
        "volume": sum_groups(group, volume, number),
        "revenue": usd,
        "fee_bps": ratio(usd, known) * 1e4,
        "unpriced": np.bincount(group[is_unpriced], minlength=number),
    }
    result = pd.DataFrame(columns, index=groups.index)
    return finish(result, {"fills": table.frame}, helper="builders.revenue", by=keys)


def read_builder_trades(
    fills: Frame, builder: str | None, needed: Sequence[str]
) -> tuple[Table, Table, Floats, Floats, Flags]:
    """Return all fills, and the trades among them that carry the builder, or any builder (None).

    The arrays are volume, builder fee, and whether the fee has no known price, of each trade. The
    fee is in USD; collateral and quote tokens count at par. A fee without a price counts as 0.
    """
    table = Table(fills, "fills")
    table.require(needed)
    if "user" in needed:
        table.require_some("user", "says whose each fill is")
    warn_missing_directions(table, outcomes_alone=True)
    carried = table.text("builder").facts(bool if builder is None else builder.lower().__eq__)
    if table.has("dir"):
        carried = carried & ~table.text("dir").facts(CONVERSIONS.__contains__)
    rows = Table(table.frame[carried], "fills")
    rows.require_values([name for name in ("user", "px", "sz") if name in needed])
    if rows.is_blank("builder_fee"):
        warn_caller(
            "fills: column builder_fee is missing on every fill that has a builder, and counts as "
            "0 here. Fetch the rows again, unless the builders charge no fee",
            MissingFees,
        )
    warn_missing_tokens(rows)
    px, fee = rows.number("px"), np.nan_to_num(rows.number("builder_fee"))
    tokens = rows.text("fee_token", blank=True)
    has_price = tokens.facts(CASH.__contains__)
    has_price |= rows.text("coin").facts(lambda coin: ":" in coin or not is_perp(coin))
    # The price of the fill converts a fee in the token that is bought.
    usd = np.where(has_price, np.where(is_in_base(rows, tokens), fee * px, fee), 0.0)
    return table, rows, px * rows.number("sz"), usd, ~has_price & (fee != 0)


def routing(fills: Frame, builder: str, by: str | Iterable[str] | None = None) -> pd.DataFrame:
    """Count the fills through a builder, through another builder, and without a builder.

    Parameters
    ----------
    fills : DataFrame
        Fills of users while they had approved the builder, from
        `tk.builder_approved_fills_by_time`: ``px, sz, builder``, and ``twap_id``, ``dir``,
        ``liquidated_user``, which mark unroutable fills (without these columns, such fills count as
        direct). Repeated rows count once.
    builder : str
        Address of the builder.
    by : str or list of str, optional
        Groups, as for `revenue`.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``fills``: number of fills; the sum of the next four columns.
        - ``routed``: number of fills that carry the builder.
        - ``elsewhere``: number of fills that carry another builder.
        - ``direct``: number of fills that carry no builder.
        - ``unroutable``: number of fills that cannot carry a builder.
        - ``volume``: volume of all fills, in USD.
        - ``routed_usd``: volume of the routed fills, in USD.
        - ``elsewhere_usd``: volume of the fills with another builder, in USD.
        - ``direct_usd``: volume of the fills without a builder, in USD.
        - ``unroutable_usd``: volume of the unroutable fills, in USD.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({"px": 100.0, "sz": [1.0, 2.0, 3.0, 4.0],
    ...                       "builder": ["0xb", "0xc", None, None],
    ...                       "twap_id": [None, None, None, 7]})
    >>> routing(fills, "0xb")[["fills", "routed_usd", "elsewhere_usd", "direct_usd"]]
       fills  routed_usd  elsewhere_usd  direct_usd
    0      4       100.0          200.0       300.0
    """
    keys = list_keys(by, (*_NUMBERS, *ROUTES))
    table, rows, route, volume = _read_routes(fills, builder)
    group, groups = group_rows(table, keys, rows)
    number = len(groups)
    place, places = group * len(ROUTES) + route, number * len(ROUTES)
    counts = np.bincount(place, minlength=places).reshape(number, len(ROUTES))
    usd = sum_groups(place, volume, places).reshape(number, len(ROUTES))
    columns = {
        **groups,
        "fills": counts.sum(axis=1),
        **dict(zip(ROUTES, counts.T, strict=True)),
        "volume": sum_groups(group, volume, number),
        **{f"{name}_usd": each for name, each in zip(ROUTES, usd.T, strict=True)},
    }
    result = pd.DataFrame(columns, index=groups.index)
    return finish(result, {"fills": table.frame}, helper="builders.routing", by=keys)


def attach_rate(
    fills: Frame,
    builder: str,
    by: str | Iterable[str] | None = None,
    *,
    weight: str = "usd",
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimate the share of eligible trading that a builder's users route through it.

    Parameters
    ----------
    fills : DataFrame
        As for `routing`, with ``user``. Repeated rows count once.
    builder : str
        Address of the builder.
    by : str or list of str, optional
        Groups, as for `revenue`.
    weight : {"usd", "fills"}
        What the share is of: volume in USD, or number of fills.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``users``: number of users with routable fills.
        - ``n``: number of routable fills.
        - ``rate``: routed share of the routable trading, 0 to 1; missing if there is none.
        - ``low``: lower end of the interval over users; missing for fewer than two users, and if
          the rate is 0 or 1.
        - ``high``: upper end of the interval over users; missing if ``low`` is missing.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.
    ValueError
        If `weight` is something else, or `level` is not between 0 and 1.

    Notes
    -----
    The interval treats the fills of a user as one cluster: Taylor linearisation of the ratio
    (Cochran, 1977), on the logit scale, with Student's quantile.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({"user": ["a", "b"], "px": 100.0, "sz": [1.0, 3.0],
    ...                       "builder": ["0xb", None]})
    >>> attach_rate(fills, "0xb")[["users", "n", "rate"]]
       users  n  rate
    0      2  2  0.25
    """
    if weight not in {"usd", "fills"}:
        raise ValueError(f'weight must be "usd" or "fills", not {weight!r}')
    check_level(level)
    taken = (*_NUMBERS, *ROUTES)
    keys = list_keys(by, taken if by == "user" else (*taken, "user"))
    table, rows, route, volume = _read_routes(fills, builder)
    table.require_some("user", "says whose each fill is")
    is_routable = route != ROUTES.index("unroutable")
    rows, route, volume = rows[is_routable], route[is_routable], volume[is_routable]
    group, groups = group_rows(table, keys, rows)
    # The fills of a user in a group are one cluster.
    users = table.text("user")
    pairs, pair = np.unique(group * len(users.values) + users.codes[rows], return_inverse=True)
    size = volume if weight == "usd" else np.ones(len(rows))
    above = sum_groups(pair, np.where(route == 0, size, 0.0), len(pairs))
    below = sum_groups(pair, size, len(pairs))
    group_of_pair, number = pairs // len(users.values), len(groups)
    top, base = (sum_groups(group_of_pair, each, number) for each in (above, below))
    count = np.bincount(group_of_pair, minlength=number)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = top / base
        off = sum_groups(group_of_pair, (above - rate[group_of_pair] * below) ** 2, number)
        # The interval is that of the logit, from the differences between users.
        inside = np.where((rate > 0) & (rate < 1), rate, np.nan)
        error = np.sqrt(off) / base * np.sqrt(count / np.where(count > 1, count - 1, np.nan))
        reach = error * student(level, np.maximum(count - 1, 1))
        wide, logit = reach / (inside * (1 - inside)), np.log(inside / (1 - inside))
        low, high = (1 / (1 + np.exp(side * wide - logit)) for side in (1, -1))
    n = np.bincount(group, minlength=number)
    columns = {**groups, "users": count, "n": n, "rate": rate, "low": low, "high": high}
    result = pd.DataFrame(columns, index=groups.index)
    inputs = {"fills": table.frame}
    return finish(result, inputs, helper="builders.attach_rate", by=keys, level=level)


def _read_routes(fills: Frame, builder: str) -> tuple[Table, Ints, Ints, Floats]:
    """Return the fills, which of them are trades, and the route and volume of each trade."""
    table = Table(fills, "fills")
    table.require(("px", "sz", "builder"))
    table.require_values(("px", "sz"))
    warn_missing_directions(table)
    roles = read_roles(table)
    carried = table.text("builder")
    is_forced = roles.forced | is_off_book(table) | table.ids("twap_id")[1]
    route = np.select(
        [carried.facts(builder.lower().__eq__), carried.facts(bool), ~is_forced], [0, 1, 2], 3
    )
    rows = np.flatnonzero(~roles.conversion)
    volume = table.number("px") * table.number("sz")
    return table, rows, route[rows], volume[rows]
