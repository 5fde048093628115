"""Frames that reports fetch: samples, optional frames, one account, the positions of many."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import pandas as pd

from toolkit import accounts
from toolkit.client import Session
from toolkit.contract.dexes import NOT_PERP, canonical_dex, coin_dex, join_coin
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import BadRequest, Incomplete, NotPermitted, NotReady
from toolkit.fetch import market
from toolkit.fetch.account import Account
from toolkit.fetch.accounts import AccountStates, batch_clearinghouse_states
from toolkit.fetch.concat import concat_frames
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import account_value_snapshots
from toolkit.liquidations._margin_buffers import FIRST_TABLE
from toolkit.plots.formats import short_usd
from toolkit.reports.blocks import Block, title
from toolkit.reports.sentences import Sentence, say
from toolkit.times import Time, to_iso, to_ms

F = TypeVar("F")

_MAX_ACCOUNTS: Final = 1_000  # of one request for states
_NO_NAMES: Final = (
    "the source names no accounts, because the key may not read the snapshots of account values. "
    "Name accounts with --user, or with accounts="
)


def fetch_optional(
    missing_reasons: dict[str, str],
    name: str,
    fetch: Callable[..., F],
    *arguments: Any,
    **options: Any,
) -> F | None:
    """Return the result of a fetch function, or None if a report has to do without it.

    - ``missing_reasons``: if the source does not have the data, the reason is added under `name`
    - ``name``: name of the data in the report
    - ``fetch``: the fetch function, called with the other arguments

    Returns: None if the key has no permission for it, or the source does not have it.
    """
    try:
        return fetch(*arguments, **options)
    except (NotPermitted, NotReady):
        return None
    except BadRequest as error:
        if error.status is not None:  # else the API does not have it, and nothing was sent
            raise
        return None
    except Incomplete as error:
        missing_reasons[name] = str(error.__cause__ or error)
        return None


def fetch_required(session: Session, fetches: Mapping[str, Callable[[], Any]]) -> list[Any]:
    """Return the results that a report needs; one error names all that an archive lacks.

    - ``session``: the source
    - ``fetches``: operation and options of ``toolkit archive refresh`` -> the call. Commands that
      differ only in their last option become one command, which repeats this option

    Raise Incomplete if the source is an archive that lacks some of them.
    """
    results: list[Any] = []
    reasons: dict[str, list[str]] = {}
    commands: dict[str, str] = {}
    for command, fetch in fetches.items():
        try:
            results.append(fetch())
        except Incomplete as error:
            if not archive_command(session, command):
                raise
            shared = command.rpartition(" --")[0] or command
            reasons.setdefault(shared, []).append(str(error.__cause__ or error))
            commands[shared] = commands.get(shared, shared) + command.removeprefix(shared)
    if not reasons:
        return results
    lines = ["the archive lacks data that this report needs:"]
    for first, *others in reasons.values():
        lines.append(f"- {first}{f'; and {len(others)} more like it' if others else ''}")
    lines += ["Run:", *(f"  {archive_command(session, each)}" for each in commands.values())]
    raise Incomplete("\n".join(lines))


def archive_command(session: Session, command: str) -> str:
    """Return the command that adds data to the archive; empty if the source is no archive.

    - ``command``: operation and options of ``toolkit archive refresh``
    """
    archive = session.recipe.arguments.get("archive") if session.recipe else None
    folder = str(archive).rpartition("@")[0] or archive
    return "" if archive is None else f"toolkit archive refresh {folder} {command}"


def fetch_markets(
    session: Session,
    dex: str,
    choose: Callable[[pd.DataFrame], pd.DataFrame],
    coins: Sequence[str] | None,
    start_ms: int,
    end_ms: int,
    amounts: Sequence[float] = tuple(AMOUNTS),
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Return the contexts of the chosen perps of a dex, and the slippage samples of each perp.

    - ``choose``: returns the rows of the chosen perps, or raises an error
    - ``coins``: the perps, if they are known before the contexts are

    Raise Incomplete if the source is an archive that lacks some of them.
    """
    command = operation_of(market.meta_and_asset_ctxs).type + (f" --dex {dex}" if dex else "")
    contexts = {command: lambda: choose(market.meta_and_asset_ctxs(dex=dex, session=session))}
    results = fetch_required(session, contexts) if coins is None else []
    names = dict.fromkeys(results[0]["name"] if coins is None else coins)
    history = operation_of(market.slippage_history).type
    calls = {
        f"{history} --amount {amount:.0f} --coin {coin}": partial(
            market.slippage_history, coin, amount, start_ms, end_ms, page_size=2000, session=session
        )
        for coin in names
        for amount in amounts
    }
    results += fetch_required(session, calls if coins is None else {**contexts, **calls})
    table, *frames = results
    each = iter(frames)
    samples = {coin: {short_usd(amount): next(each) for amount in amounts} for coin in names}
    return table, {coin: concat_frames(samples[coin], "amount") for coin in table["name"]}


def fetch_depth(
    session: Session, dex: str, coins: Iterable[str], missing_reasons: dict[str, str], name: str
) -> pd.DataFrame | None:
    """Return the books of perps now, or None, as `fetch_optional` does."""
    depth = fetch_optional(missing_reasons, name, market.current_depth, dex=dex, session=session)
    if depth is None:
        return None
    # Depth may or may not write the dex in front of a coin.
    names = depth["coin"].map(lambda coin: join_coin(dex, coin))
    return depth[names.isin(list(coins))].reset_index(drop=True)


def join_reasons(missing_reasons: Mapping[str, str]) -> str:
    """Return what a report does not show, each with its reason.

    >>> join_reasons({"depth": "it was not archived"})
    'depth (it was not archived)'
    """
    return "; ".join(f"{name} ({reason})" for name, reason in missing_reasons.items())


def tell_left_out(missing_reasons: Mapping[str, str]) -> Iterator[Sentence]:
    """Yield what the source does not have, if there is anything."""
    if missing_reasons:
        text = "The source does not have these data, and the report leaves them out: {what}."
        yield say(text, what=join_reasons(missing_reasons))


def read_period(session: Session, start: Time, end: Time | None) -> tuple[int, int]:
    """Return the first and the last millisecond of a period; without an end it ends now."""
    now = session.now_ms()
    return to_ms(start, now_ms=now), now if end is None else to_ms(end, now_ms=now)


def make_title(
    kind: str,
    subject: str,
    session: Session,
    period: tuple[int, int],
    times: Iterable[pd.Series] = (),
    about: str = "",
) -> Block:
    """Return the title of a report, with the first and the last minute of its period.

    A period that begins at 0 has no chosen start: it begins with the earliest of `times`.
    """
    first, last = (to_iso(time)[:16].replace("T", " ") for time in period)
    if period[0] == 0:
        earliest = min((column.min() for column in times if len(column)), default=None)
        first = "the beginning" if earliest is None else f"{earliest:%Y-%m-%d %H:%M}"
    line = f"{about}{first} to {last} UTC · {session.label}"
    return title(kind, subject, line, simulated=session.simulated)


def is_perp(coins: pd.Series) -> pd.Series:
    """Return whether coins are perps: not spot pairs (``@1``, ``A/B``) or outcomes (``#1``)."""
    return ~coins.str.contains(NOT_PERP, regex=True)


def fetch_account(
    session: Session, user: str, start: Time, end: Time | None, *, with_all: bool = True
) -> Account:
    """Return an account with the frames of a report; the report says itself what is missing.

    - ``with_all``: whether to fetch slippage samples and the latest fills, too

    Raise Incomplete if the source is an archive without its fills, ledger or markets.
    """
    account = Account(user, start, end, session, quiet=True)

    def require(name: str) -> None:
        if getattr(account, name) is None or (
            name in account.missing and archive_command(session, "")
        ):
            raise Incomplete(account.missing[name])

    account.fetch("states")  # first: then no row is later than the states
    fetch_required(
        session,
        {
            f"userFillsByTime --user {user}": partial(require, "fills"),
            f"userNonFundingLedgerUpdates --user {user}": partial(require, "ledger"),
            "meta": partial(require, "perps"),
        },
    )
    return account.fetch("funding", *(("samples", "latest") if with_all else ()))


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


def fetch_positions(
    session: Session, coin: str, users: Sequence[str] | None, missing_reasons: dict[str, str]
) -> PositionFrames:
    """Fetch the positions of accounts on the dex of a coin.

    - ``users``: addresses; None: the accounts with the largest positions of the latest snapshot of
      account values or, without a snapshot, the accounts that the source names
    - ``missing_reasons``: if the source does not have some of the data, the reason is added
    """
    dex, values = coin_dex(coin), None
    if users is None:
        users = (session.world or {}).get("users", ())
        snapshot = fetch_optional({}, "", account_value_snapshots, ["ALL"], session=session)
        if snapshot is not None:
            by_dex = accounts.values(snapshot, by="dex")
            by_dex = by_dex[by_dex["dex"].map(canonical_dex).isin([dex, "all"])]
            notional = (by_dex["long"] + by_dex["short"]).groupby(by_dex["user"]).sum()
            largest = notional[notional > 0].sort_values(ascending=False, kind="stable")
            users = list(largest.index[:_MAX_ACCOUNTS])
            values = accounts.values(snapshot)
            values = values[values["user"].isin(users)].reset_index(drop=True)
    if not users:
        return PositionFrames(None, reason=_NO_NAMES)
    states, reason = _fetch_states(session, list(users)[:_MAX_ACCOUNTS], dex)
    if states is None:
        return PositionFrames(None, values, reason=reason)
    if reason:
        missing_reasons["positions of all accounts"] = reason
    fetch = partial(fetch_optional, {}, "", dex=dex, session=session)
    markets, tiers = fetch(fetch=market.meta), fetch(fetch=market.margin_tables)
    # A dex without tables has one tier for each coin, unless its coins name tables.
    if markets is not None and tiers is not None and tiers.empty:
        names_tables = markets["margin_table_id"] >= FIRST_TABLE
        tiers = None if names_tables.any() else tiers
    return PositionFrames(states, values, markets, tiers)


def _fetch_states(session: Session, users: list[str], dex: str) -> tuple[AccountStates | None, str]:
    """Return the states that the source has, and why it lacks others."""
    try:
        return batch_clearinghouse_states(users, dex=dex, session=session), ""
    except (NotPermitted, NotReady) as error:
        return None, str(error)
    except Incomplete as error:
        name = operation_of(batch_clearinghouse_states).type + (f" --dex {dex}" if dex else "")
        command = archive_command(session, f"{name} --user {users[0]} --user ...")
        reason = ": ".join(filter(None, (str(error.__cause__ or error), command)))
        if not isinstance(error.rows, tuple):
            return None, reason
        states = AccountStates(*error.rows)
    # An archive returns an account that it does not have with a value of 0.
    has_value = states.accounts["account_value"].fillna(1.0) != 0
    known = states.accounts[has_value | states.accounts["user"].isin(states.positions["user"])]
    return (states._replace(accounts=known) if len(known) else None), reason
