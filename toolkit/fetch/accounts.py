"""Accounts: ledger, margin and positions, borrowing and lending, vaults."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame, fetch_frames
from toolkit.fetch.registry import fetches, shows_frames
from toolkit.times import Time


@shows_frames
class AccountStates(NamedTuple):
    """The perp accounts of many users, their positions, and the users that failed."""

    accounts: pd.DataFrame
    positions: pd.DataFrame
    failed: pd.DataFrame


@shows_frames
class BorrowLendState(NamedTuple):
    """A user's borrow/lend health, and the position in each token."""

    account: pd.DataFrame
    tokens: pd.DataFrame


@shows_frames
class PortfolioState(NamedTuple):
    """The mode of an account, its perp accounts, positions and spot balances."""

    mode: pd.DataFrame
    accounts: pd.DataFrame
    positions: pd.DataFrame
    balances: pd.DataFrame


@shows_frames
class Vault(NamedTuple):
    """A vault, its history, and its followers."""

    vault: pd.DataFrame
    portfolio: pd.DataFrame
    followers: pd.DataFrame


@fetches("userNonFundingLedgerUpdates")
def user_non_funding_ledger_updates(
    user: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch deposits, withdrawals, transfers and all other changes of a user's cash.

    Trades and funding are not included. The service may cut a long answer without saying so.
    Reading therefore continues from the last time until no new row comes.

    Costs 10 points a request. Data since 2025-07-28.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time
        First time, inclusive; by default the beginning.
    end : Time, optional
        Last time, inclusive; by default now.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per update, oldest first. `type` decides which of the other columns have a
        value.

    Raises
    ------
    BadRequest
        If the address is malformed.
    Incomplete
        If not all rows come, for example because the updates of one millisecond fill an answer.

    Notes
    -----
    Amounts have the sign of the wire, mostly positive: `type`, `user` and `destination` tell
    whether cash came or went. Rows of type ``liquidation`` move no cash; their fills do. Rows of
    unknown types are kept.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> ledger = tk.user_non_funding_ledger_updates(exchange.world["users"][0])
    >>> ledger["time"].is_monotonic_increasing
    True
    >>> {"type", "usdc", "amount", "token"} <= set(ledger)
    True
    """
    return fetch_frame("userNonFundingLedgerUpdates", **locals())


@fetches("batchClearinghouseStates")
def batch_clearinghouse_states(
    users: str | Sequence[str],
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> AccountStates:
    """Fetch margin and positions of many accounts at once.

    This is one request, for at most 1,000 accounts, or 100 with ``dex="ALL_DEXES"``.

    Costs 2 points for each of the users, at most 100 points. With ALL_DEXES, this is multiplied by
    the number of dexes.

    Parameters
    ----------
    users : str or sequence of str
        Addresses of the accounts, or one address. An address that comes twice is sent once.
    dex : str
        The dex; by default the native one. ``ALL_DEXES`` for all of them.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    AccountStates
        Three frames: `accounts`, one row per user and dex; `positions`, one row per user,
        dex and coin; `failed`, one row per user whose state the service did not return.

    Raises
    ------
    BadRequest
        If there are too many users, or an address is malformed.

    Notes
    -----
    `szi` is positive for a long position. `account_value` is cash (`total_raw_usd`) plus the
    signed values of the positions. Unified and portfolio-margin accounts have their equity
    elsewhere and may have little or nothing here: `account_value_snapshots` has it.

    Examples
    --------
    >>> import toolkit as tk
    >>> answer = {"successful_states": [], "failed_wallets": ["0x" + "0" * 40]}
    >>> accounts, positions, failed = tk.frame("batchClearinghouseStates", answer)
    >>> len(accounts), len(positions), len(failed)
    (0, 0, 1)
    """
    return AccountStates(*fetch_frames("batchClearinghouseStates", **locals()))


@fetches("borrowLendUserState")
def borrow_lend_user_state(
    user: str, *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> BorrowLendState:
    """Fetch what a user has borrowed and supplied.

    Costs 2 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    BorrowLendState
        Two frames: `account`, one row with the health, and `tokens`, one row per token.

    Raises
    ------
    BadRequest
        If the address is malformed.

    Notes
    -----
    Amounts are in units of the token and never negative. ``borrow_value`` is ``borrow_basis`` with
    interest, and ``supply_value`` is ``supply_basis`` with interest. `health_factor` is missing for
    a user without a position.

    Examples
    --------
    >>> import toolkit as tk
    >>> answer = {"tokenToState": [], "health": "healthy", "healthFactor": None}
    >>> account, tokens = tk.frame("borrowLendUserState", answer)
    >>> account["health"].tolist(), len(tokens)
    (['healthy'], 0)
    """
    return BorrowLendState(*fetch_frames("borrowLendUserState", **locals()))


@fetches("userBorrowLendInterest")
def user_borrow_lend_interest(
    user: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the interest of what an account has borrowed and supplied.

    Portfolio-margin accounts borrow when they trade. This money is in no fill, no funding payment
    and no ledger row. All pages are read.

    Costs 2 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time
        First time, inclusive; by default the first interest.
    end : Time, optional
        Last time, inclusive; by default now.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per time and token, oldest first. Empty for an account without loans and deposits.

    Raises
    ------
    BadRequest
        If a value is malformed.
    Incomplete
        If not every page could be read.

    Notes
    -----
    Both amounts are in units of `token` and positive: `supply` is a gain of the account, and
    `borrow` a cost.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> interest = tk.user_borrow_lend_interest(exchange.world["examples"]["BORROWER"])
    >>> list(interest), interest["token"].unique().tolist()
    (['time', 'token', 'borrow', 'supply'], ['HYPE', 'USDC'])
    """
    return fetch_frame("userBorrowLendInterest", **locals())


@fetches("portfolioState")
def portfolio_state(
    user: str,
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> PortfolioState:
    """Fetch the capital of an account: perps, spot balances and mode in one request.

    Costs 5 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    dex : str
        The dex of the perp account; by default the native one. ``ALL_DEXES`` for all of them.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    PortfolioState
        Four frames: `mode`, one row; `accounts`, one row per dex; `positions`, one row per dex and
        coin; `balances`, one row per token of the spot wallet.

    Raises
    ------
    BadRequest
        If the address is malformed.
    ServiceDown
        If the service does not have the state of the account.

    Notes
    -----
    `user_abstraction` says where the collateral is. For ``unifiedAccount`` and
    ``portfolioMargin`` it lies in `balances` (`total`, in units of the token), and the
    `account_value` in `accounts` may be little or nothing. For the other modes the capital is
    both: the account values and the balances.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> user = exchange.world["examples"]["WHALE"]
    >>> mode, accounts, positions, balances = tk.portfolio_state(user, dex="ALL_DEXES")
    >>> len(mode), accounts["dex"].tolist()
    (1, ['native', 'eqx', 'pre'])
    """
    return PortfolioState(*fetch_frames("portfolioState", **locals()))


@fetches("vaultDetails")
def vault_details(
    vault_address: str,
    *,
    user: str | None = None,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> Vault:
    """Fetch a vault, its history, and its largest followers.

    Costs 2 points a request.

    Parameters
    ----------
    vault_address : str
        Address of the vault.
    user : str, optional
        An account: the columns ``follower_...`` of the vault's row are its share.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    Vault
        Three frames: `vault`, one row; `portfolio`, one row per period and moment; `followers`,
        one row per follower, at most 100. All are empty if the address is no vault.

    Raises
    ------
    BadRequest
        If an address is malformed.

    Notes
    -----
    The sum of `vault_equity` over all followers is the account value of the vault, with
    the share of the leader. In `portfolio`, `account_value` and `pnl` are of the whole vault;
    the periods overlap. `leader_fraction`, `leader_commission` and `apr` are fractions.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> vault, portfolio, followers = tk.vault_details(exchange.world["examples"]["VAULT"])
    >>> leader = followers[followers["user"] == "leader"]
    >>> bool((leader["vault_equity"] / followers["vault_equity"].sum()).iloc[0].round(9)
    ...      == vault["leader_fraction"][0].round(9))
    True
    """
    return Vault(*fetch_frames("vaultDetails", **locals()))
