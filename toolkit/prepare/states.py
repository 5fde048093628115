"""States of accounts at one moment: open positions, account values, and account modes.

The account mode decides where the collateral is. A clearinghouse state of a unified or
portfolio-margin account does not have its spot wallet, which backs its positions. An account value
of a snapshot does. A snapshot has one row per account and collateral (``<dex>:<token>``), and the
value of an account is the sum of its rows. A portfolio-margin account repeats the value of a token
on several dexes, and states the total on each row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract.dexes import coin_dex
from toolkit.display import count_text
from toolkit.errors import UnmeasuredAccounts, warn_caller
from toolkit.prepare.door import NATIVE_DEX, NO_TIME, Frame, Names, Table
from toolkit.prepare.groups import number_groups, number_rows, sum_groups
from toolkit.times import to_ms

UNIFIED: Final = 2
"""From this mode on the collateral is in the spot wallet: 2 unified, 3 portfolio margin."""

PORTFOLIO_MARGIN: Final = 3
"""The mode of portfolio margin."""

MODES: Final = {0: "standard", 1: "dex abstraction", 2: "unified", 3: "portfolio margin"}
"""Names of account modes (specification, "Account value snapshot")."""

STATED: Final = "cross_maintenance_margin_used"
"""The maintenance margin as the exchange states it."""

BACKSTOP_SHARE: Final = 2 / 3
"""Below this share of the maintenance margin, the exchange takes over the positions at once."""


def open_positions(
    native: Frame, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> pd.DataFrame:
    """Return open positions of one moment, each once.

    The result has ``user``, ``coin``, ``szi``, ``position_value``, ``side``, ``size`` and
    ``notional`` without sign, ``mark``, the `numbers` and `texts`, and ``dex``, ``max_leverage``
    and ``unrealized_pnl`` if the frame has them. Raise MissingColumns if a column or a size is
    missing, and ValueError if rows are of several moments or contradict each other.
    """
    table = Table(native, "positions")
    amounts = ("szi", "position_value", *numbers)
    table.require(("user", "coin", *amounts, *texts))
    table.require_values(["szi"])
    users, coins, szi = table.text("user"), table.text("coin"), table.number("szi")
    dexes = coins.renamed(lambda coin: coin_dex(coin) or NATIVE_DEX)
    rows = np.flatnonzero(szi != 0)
    stated = {name: table.number(name)[rows] for name in ("szi", "position_value")}
    names = (users.take(rows), coins.take(rows))
    rows = rows[distinct_states(table, (users, dexes), names, stated)]
    optional = [name for name in ("max_leverage", "unrealized_pnl") if table.has(name)]
    size, notional = np.abs(szi[rows]), np.abs(table.number("position_value")[rows])
    made: dict[str, Any] = {
        "user": users.texts(rows).fillna(""),
        "coin": coins.texts(rows),
        **{name: table.number(name)[rows] for name in (*amounts, *optional)},
        **{name: table.text(name).texts(rows) for name in texts},
        "side": pd.array(np.where(szi[rows] > 0, "long", "short"), dtype="str"),
        "size": size,
        "notional": notional,
        "mark": notional / size,
    }
    if table.has("dex"):
        made["dex"] = table.text("dex").texts(rows).fillna(dexes.texts(rows))
    return pd.DataFrame(made, index=range(len(rows)))


def account_states(native: Frame) -> pd.DataFrame:
    """Return accounts of one moment: ``user``, cross account value, and what else is known.

    The result has ``dex``, the stated maintenance margin and ``account_mode`` if the frame has
    them. Raise as `open_positions`.
    """
    table = Table(native, "accounts")
    numbers = ("cross_account_value", STATED, "account_mode")
    made = table.columns(("user", "cross_account_value"), ("dex", *numbers[1:]), numbers)
    owners = [table.text(name) for name in ("user", "dex") if table.has(name)]
    stated = {name: table.number(name) for name in numbers[:2] if table.has(name)}
    rows = distinct_states(table, owners, owners, stated)
    return made.assign(user=made["user"].fillna("")).iloc[rows].reset_index(drop=True)


def join_keys(owners: pd.DataFrame, positions: pd.DataFrame) -> list[str]:
    """Return the columns that join positions with their accounts: user, and dex if both have it.

    If accounts have several dexes and positions have no column dex, this adds it, from the names of
    the coins. Raise ValueError if accounts have no column dex and cross positions of one account
    are on several dexes, because each dex has an account of its own.
    """
    if "dex" in owners and "dex" not in positions and owners["user"].duplicated().any():
        positions["dex"] = dex_names(positions["coin"])
    if "dex" in owners:
        return ["user", "dex"] if "dex" in positions else ["user"]
    dex = positions["dex"] if "dex" in positions else dex_names(positions["coin"])
    cross = positions.assign(dex=dex)[positions["leverage_type"] != "isolated"]
    places = cross[["user", "dex"]].drop_duplicates()
    if (several := places["user"].duplicated(keep=False)).any():
        user = places.loc[several, "user"].iloc[0]
        dexes = ", ".join(sorted(places.loc[places["user"] == user, "dex"]))
        raise ValueError(
            f"accounts: column dex is missing, and {user} has cross positions on several dexes: "
            f"{dexes}. Each dex has an account of its own. Keep the column dex of the states"
        )
    return ["user"]


_COMPARED: Final = ("account_value", "szi", "unrealized_pnl", "account_mode")
"""What rows of one state must agree on."""

LEAST_MARGIN: Final = 0.01
"""The smallest maintenance margin as a share of the notional: that of 50 times leverage."""


def is_spot_backed(mode: Any, value: Any, gain: Any, least: Any) -> Flags:
    """Return whether the collateral of accounts is in the spot wallet, not in their states.

    - ``mode``: account mode; NaN if it is not known
    - ``value``, ``gain``: cross account value, and unrealised PnL of the cross positions
    - ``least``: value below which the positions of a standard account are taken over at once

    Without a mode, the state decides: such an account has no cash of its own, so its value is its
    unrealised PnL; or the value is too small for a standard account.
    """
    hidden = (value < least) | np.isclose(value, gain, rtol=1e-9, atol=1e-5)
    return np.where(np.isnan(mode), hidden & ~np.isnan(gain), np.asarray(mode) >= UNIFIED)


def spot_backed_users(table: Table, held: Table) -> set[str]:
    """Return the accounts of states whose collateral is in the spot wallet.

    - ``table``, ``held``: accounts and positions, with ``unrealized_pnl``, of one moment
    """
    value, gain, notional = "cross_account_value", "unrealized_pnl", "position_value"
    if not table.has(value):  # values of a snapshot include the spot wallet
        return set()
    owners = table.columns(("user", value), ("account_mode",), (value, "account_mode"))
    rows = held.columns(("user", gain), ("leverage_type", notional), (gain, notional))
    own, held_by, count = pair_accounts(owners, rows, ["user"])
    backed, _ = find_spot_backed(owners, rows, own, held_by, count)
    return set(owners["user"][backed[own]])


def pair_accounts(
    owners: pd.DataFrame, rows: pd.DataFrame, on: Sequence[str]
) -> tuple[Ints, Ints, int]:
    """Return the number of the account of each row of two frames, and the number of accounts."""
    joined = pd.concat([owners[[*on]], rows[[*on]]], ignore_index=True)
    codes, groups = number_groups(joined)
    return codes[: len(owners)], codes[len(owners) :], len(groups)


def find_spot_backed(
    owners: pd.DataFrame, rows: pd.DataFrame, own: Ints, held: Ints, count: int
) -> tuple[Flags, Floats]:
    """Return whether the collateral of each account is in the spot wallet, and its mode.

    - ``owners``: ``cross_account_value``, and ``account_mode`` if known
    - ``rows``: positions: ``unrealized_pnl``, and ``position_value``, ``leverage_type`` if known
    - ``own``, ``held``, ``count``: as `pair_accounts` returns them
    """
    cross = np.ones(len(rows), dtype=bool)
    if "leverage_type" in rows:
        cross = (rows["leverage_type"] != "isolated").to_numpy()
    gain = sum_groups(held[cross], rows["unrealized_pnl"].to_numpy()[cross], count)
    gain[np.bincount(held[cross], minlength=count) == 0] = np.nan
    least = np.zeros(count)
    if "position_value" in rows:
        usd = np.nan_to_num(rows["position_value"].to_numpy()[cross])
        least = BACKSTOP_SHARE * LEAST_MARGIN * sum_groups(held[cross], usd, count)
    mode = np.full(count, np.nan)
    if "account_mode" in owners:
        np.fmax.at(mode, own, owners["account_mode"].to_numpy(np.float64))
    value = sum_groups(own, owners["cross_account_value"].to_numpy(), count)
    return is_spot_backed(mode, value, gain, least), mode


def warn_spot_backed(users: pd.Series, modes: Floats) -> None:
    """Warn if there are accounts whose collateral is in the spot wallet."""
    if users.empty:
        return
    names = users.unique()
    guess = "" if not np.isnan(modes).any() else (
        ". account_mode is not known: their cash is 0, or their value is below the level at which "
        "a standard account is taken over"
    )  # fmt: skip
    warn_caller(
        f"accounts: {count_text(len(names), 'account')} with unified or portfolio margin "
        f"({name_some(names)}): the collateral is in the spot wallet, which states do not have, so "
        f"the value is unknown{guess}. Pass the account values of tk.account_value_snapshots as "
        "accounts, which include it",
        UnmeasuredAccounts,
    )


def own_values(
    users: Names, token: Ints, value: Floats, mode: Floats, total: Floats, split: Sequence[str] = ()
) -> Floats:
    """Return the part of each row of a snapshot in the value of its account.

    - ``users``, ``token``: account of each row, and the number of its collateral token
    - ``value``, ``mode``, ``total``: account value, account mode, and stated total; NaN is missing

    Of a portfolio-margin account the rows state the value of each token, so several dexes of one
    token repeat it. It counts once, and is missing by dex. Without `split` the stated total counts.
    """
    portfolio = mode == PORTFOLIO_MARGIN
    if not portfolio.any():
        return value
    pair, rows = number_rows(users.codes, token), np.arange(len(token))
    if "dex" in split:
        return np.where(portfolio & (np.bincount(pair)[pair] > 1), np.nan, value)
    is_first, is_head = (
        np.isin(rows, np.unique(codes, return_index=True)[1]) for codes in (pair, users.codes)
    )
    value = np.where(portfolio & ~is_first, 0.0, value)
    if split:
        return value
    stated = np.full(len(users.values), np.nan)
    stated[users.codes[portfolio][::-1]] = total[portfolio][::-1]
    stated = stated[users.codes]
    return np.where(np.isnan(stated), value, np.where(is_head, stated, 0.0))


def name_some(names: Iterable[str], most: int = 5) -> str:
    """Return the first names, in words."""
    names = [name or "no name" for name in names]
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")


def distinct_states(
    table: Table, owners: Sequence[Names], names: Sequence[Names], values: Mapping[str, Any]
) -> Ints:
    """Return the first row of each state.

    - ``owners``: the columns of the account, all of whose rows must have one time, that of the user
      first; a missing time is not compared
    - ``names``: the columns that name a state, such as the position of an account in a coin
    - ``values``: columns that must be equal in all rows of a state

    Raise ValueError if states are of several moments, because closed positions would still count,
    or if two rows of a state have different values.
    """
    what = table.what
    if table.has("time"):
        ms, codes = table.ms(), number_rows(*(column.codes for column in owners))
        known = np.flatnonzero(ms != NO_TIME)
        first = np.full(int(codes.max(initial=-1)) + 1, NO_TIME, dtype=np.int64)
        first[codes[known[::-1]]] = ms[known[::-1]]
        later = known[ms[known] != first[codes[known]]]
        if len(later):
            times = np.unique(ms[known[codes[known] == codes[later[0]]]])
            name = owners[0].values[owners[0].codes[later[0]]] or "one account"
            raise ValueError(
                f"{what}: rows of {name} have {len(times)} different times. Keep one batch of "
                f"states, for example {what}[{what}.time == {what}.time.max()]"
            )
    codes = number_rows(*(column.codes for column in names))
    first = np.unique(codes, return_index=True)[1]
    differs = np.zeros(len(codes), dtype=bool)
    for column in values.values():
        other = column[first[codes]]
        differs |= (column != other) & ~(pd.isna(column) & pd.isna(other))
    if differs.any():
        row = int(np.argmax(differs))
        name = " ".join(column.values[column.codes[row]] for column in names)
        raise ValueError(
            f"{what}: {name} has several rows with different {' or '.join(values)}, and no time "
            "says which one is newer. Pass the rows of one batch of states"
        )
    return np.sort(first)


def dex_names(coin: pd.Series) -> pd.Series:
    """Return the dex of each perp, from its name; the native dex for a missing name."""
    codes, names = pd.factorize(coin)
    known = np.array([*(coin_dex(str(name)) or NATIVE_DEX for name in names), NATIVE_DEX], object)
    return pd.Series(known[codes], coin.index, dtype="str", name=coin.name)


def read_values(given: Any, what: str, at: Any = None) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return account values and open positions of one time.

    - ``given``: a frame of values, or a tuple of values and positions

    The values have ``value``, ``mode`` (both NaN if not known) and ``ms`` (or `NO_TIME`) by user,
    the positions ``szi`` and ``unrealized_pnl`` by user and coin; None if they are not known.
    """
    values, positions = (given[0], given[1]) if isinstance(given, tuple) else (given, None)
    table = Table(values, what, "snapshot")
    numbers = ("account_value", "account_mode", "pm_total_account_value")
    frame = table.columns(
        ("user", "account_value"),
        ("collateral_token", "dex", *numbers[1:], "time", "snapshot_id"),
        numbers,
    )
    moment = None if at is None else aware_ms(at)
    held = None
    if positions is not None:
        stated = Table(positions, f"{what}[1]", "positions")
        amounts = ("szi", "unrealized_pnl")
        held = stated.columns(("user", "coin", amounts[1]), (amounts[0], "time", "dex"), amounts)
        stated.require_values(("user", "coin"))
        held = distinct_rows(held, ("user", "coin"), stated.what).set_index(["user", "coin"])
        held = held.reindex(columns=[*amounts])
        # The state of such an account does not have its collateral.
        hidden = frame["user"].isin(spot_backed_users(table, stated))
        frame["account_value"] = frame["account_value"].mask(hidden)
    frame = distinct_rows(frame, ("user", "collateral_token", "dex"), what)
    kept = Table(frame, what, "none")
    value, mode = kept.number("account_value"), kept.number("account_mode", np.nan)
    if kept.has("collateral_token"):
        token = kept.text("collateral_token").renamed(lambda name: name.rpartition(":")[2])
        total = kept.number("pm_total_account_value", np.nan)
        value = own_values(kept.text("user"), token.codes, value, mode, total)
    ms = kept.ms() if kept.has("time") else np.full(len(kept), NO_TIME)
    rows = pd.DataFrame({"value": value, "mode": mode, "ms": ms if moment is None else moment})
    accounts = rows.groupby(frame["user"])
    worth = accounts.agg({"mode": "first", "ms": "max"})
    worth.insert(0, "value", accounts["value"].sum(skipna=False))
    return worth, held


def aware_ms(at: Any) -> int:
    """Return a time that has a time zone, or a number, in milliseconds."""
    if not isinstance(at, int) and pd.Timestamp(str(at)).tzinfo is None:
        raise ValueError(f"at: {at!r} has no time zone. Use milliseconds, or a time in UTC")
    return to_ms(at)


def distinct_rows(frame: pd.DataFrame, keys: Sequence[str], what: str = "rows") -> pd.DataFrame:
    """Return the first row for each combination of the keys.

    Raise ValueError if rows with the same keys have different values, or if the rows of one account
    are from several times: only the first batch would count.
    """
    table = Table(frame, what, "none")
    names = [table.text(key) for key in keys if table.has(key)]
    owners = [table.text(name, blank=True) for name in ("user", "dex")]
    if "snapshot_id" in frame and (count := frame["snapshot_id"].nunique()) > 1:
        raise ValueError(
            f"{what}: the frame contains {count} snapshots. Keep those of one, for example "
            f"{what}[{what}.snapshot_id == {what}.snapshot_id.max()]"
        )
    stated = {name: frame[name].to_numpy() for name in _COMPARED if name in frame}
    return frame.iloc[distinct_states(table, owners, names, stated)].reset_index(drop=True)
