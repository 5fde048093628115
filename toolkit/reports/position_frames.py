"""The positions of many accounts for a market report: which accounts, and their states."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pandas as pd

from toolkit import accounts
from toolkit.client import Session
from toolkit.contract.dexes import canonical_dex, coin_dex
from toolkit.errors import Incomplete, NotPermitted, NotReady
from toolkit.fetch.accounts import AccountStates, batch_clearinghouse_states
from toolkit.fetch.market import margin_tables, meta
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import account_value_snapshots
from toolkit.liquidations._margin_buffers import FIRST_TABLE
from toolkit.reports.report_frames import archive_command, fetch_optional

_MAX_ACCOUNTS: Final = 1_000  # of one request for states
_NO_NAMES: Final = (
    "the source names no accounts, because the key may not read the snapshots of account values. "
    "Name accounts with --user, or with accounts="
)


@dataclass(frozen=True)
class PositionFrames:
    """The positions of many accounts on the dex of a market.

    - ``states``: accounts and positions of the dex; None if they are not known
    - ``values``: value and mode of each account, from a snapshot; None if it was not read
    - ``markets``: metadata of the dex; None if the source does not have it
    - ``tiers``: its margin tables; None if the source does not have them
    - ``reason``: why the states are not known
    """

    states: AccountStates | None
    values: pd.DataFrame | None = None
    markets: pd.DataFrame | None = None
    tiers: pd.DataFrame | None = None
    reason: str = ""

    def list_sources(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        return {
            "accounts": None if self.states is None else self.states.accounts,
            "positions": None if self.states is None else self.states.positions,
            "perps": self.markets,
            "margin tables": self.tiers,
        }


def fetch_positions(
    session: Session,
    coin: str,
    users: Sequence[str] | None,
    missing_reasons: dict[str, str],
) -> PositionFrames:
    """Fetch the positions of accounts on the dex of a coin.

    - ``users``: addresses; None: the accounts with the largest positions of the latest snapshot of
      account values or, without a snapshot, the accounts that the source names
    - ``missing_reasons``: if the source does not have some of the data, the reason is added
    """
    dex = coin_dex(coin)
    values = None
    if users is None:
        values, users = _choose_accounts(session, dex)
    if not len(users):
        return PositionFrames(None, reason=_NO_NAMES)
    states, reason = _fetch_states(session, list(users)[:_MAX_ACCOUNTS], dex)
    if reason and states is not None:
        missing_reasons["positions of all accounts"] = reason
    if states is None:
        return PositionFrames(None, values, reason=reason)
    fetch = partial(fetch_optional, {}, "", dex=dex, session=session)
    markets, tiers = fetch(fetch=meta), fetch(fetch=margin_tables)
    # A dex without tables has one tier for each coin, unless its coins name tables.
    if markets is not None and tiers is not None and tiers.empty:
        names_tables = markets["margin_table_id"] >= FIRST_TABLE
        tiers = None if names_tables.any() else tiers
    return PositionFrames(states, values, markets, tiers)


def _choose_accounts(session: Session, dex: str) -> tuple[pd.DataFrame | None, Sequence[str]]:
    """Return the values of accounts and the addresses with the largest positions on a dex."""
    snapshot = fetch_optional({}, "", account_value_snapshots, ["ALL"], session=session)
    if snapshot is None:
        return None, (session.world or {}).get("users", ())
    by_dex = accounts.values(snapshot, by="dex")
    by_dex = by_dex[by_dex["dex"].map(canonical_dex).isin([dex, "all"])]
    notional = (by_dex["long"] + by_dex["short"]).groupby(by_dex["user"]).sum()
    largest = notional[notional > 0].sort_values(ascending=False, kind="stable")
    users = list(largest.index[:_MAX_ACCOUNTS])
    values = accounts.values(snapshot)
    return values[values["user"].isin(users)].reset_index(drop=True), users


def _fetch_states(session: Session, users: list[str], dex: str) -> tuple[AccountStates | None, str]:
    """Return the states that the source has, and why it lacks others."""
    try:
        return batch_clearinghouse_states(users, dex=dex, session=session), ""
    except (NotPermitted, NotReady) as error:
        return None, str(error)
    except Incomplete as error:
        name = operation_of(batch_clearinghouse_states).type + (f" --dex {dex}" if dex else "")
        command = f"{name} --user {users[0]} --user ..."
        parts = (str(error.__cause__ or error), archive_command(session, command))
        reason = ": ".join(part for part in parts if part)
        if not isinstance(error.rows, tuple):
            return None, reason
        states = AccountStates(*error.rows)
    # An archive returns an account that it does not have with a value of 0.
    has_value = states.accounts["account_value"].fillna(1.0) != 0
    known = states.accounts[has_value | states.accounts["user"].isin(states.positions["user"])]
    return (states._replace(accounts=known) if len(known) else None), reason
