"""Frames that reports fetch: samples, optional frames, and the fills and funding of accounts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import pandas as pd

from toolkit.client import Session
from toolkit.completeness.merge import merge_provenance
from toolkit.contract.dexes import NOT_PERP
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import Incomplete, NotPermitted, NotReady
from toolkit.fetch.fills import user_fills
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.fetch.market import meta_and_asset_ctxs, slippage_history
from toolkit.fetch.registry import operation_of
from toolkit.plots.formats import short_usd

F = TypeVar("F")


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
    if reasons:
        lines = [
            f"- {first}{f'; and {len(others)} more like it' if others else ''}"
            for first, *others in reasons.values()
        ]
        lines += ["Run:", *(f"  {archive_command(session, c)}" for c in commands.values())]
        raise Incomplete("\n".join(["the archive lacks data that this report needs:", *lines]))
    return results


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
    command = operation_of(meta_and_asset_ctxs).type + (f" --dex {dex}" if dex else "")
    contexts = {command: lambda: choose(meta_and_asset_ctxs(dex=dex, session=session))}
    chosen: list[Any] = []
    if coins is None:
        chosen = fetch_required(session, contexts)
        coins, contexts = list(chosen[0]["name"]), {}
    calls = {
        f"{operation_of(slippage_history).type} --amount {amount:.0f} --coin {coin}": partial(
            slippage_history, coin, amount, start_ms, end_ms, page_size=2000, session=session
        )
        for coin in dict.fromkeys(coins)
        for amount in amounts
    }
    each = iter([*chosen, *fetch_required(session, {**contexts, **calls})])
    table = next(each)
    sizes = [short_usd(amount) for amount in amounts]
    samples = {coin: {size: next(each) for size in sizes} for coin in dict.fromkeys(coins)}
    return table, {coin: concat_frames(samples[coin], "amount") for coin in table["name"]}


def join_reasons(missing_reasons: Mapping[str, str]) -> str:
    """Return what a report does not show, each with its reason.

    >>> join_reasons({"depth": "it was not archived"})
    'depth (it was not archived)'
    """
    return "; ".join(f"{name} ({reason})" for name, reason in missing_reasons.items())


def concat_frames(frames: Mapping[str, pd.DataFrame], parameter: str) -> pd.DataFrame:
    """Concatenate answers to similar requests, and merge their provenance.

    - ``frames``: value of the parameter in which the requests differ -> its frame; at least one
    - ``parameter``: name of that parameter
    """
    parts = [frame.attrs.get("toolkit", {}) for frame in frames.values()]
    # pandas compares attrs at great length, and drops them if they differ.
    rows = pd.concat([_without_attrs(frame) for frame in frames.values()], ignore_index=True)
    merged = merge_provenance(
        parts,
        parameters={**parts[0].get("parameters", {}), parameter: ", ".join(frames)},
        states={
            value: str(part.get("complete", "")) for value, part in zip(frames, parts, strict=True)
        },
        failed={},
    )
    rows.attrs = {"toolkit": {**merged, "rows": len(rows)}}
    return rows


def _without_attrs(frame: pd.DataFrame) -> pd.DataFrame:
    bare = frame.copy(deep=False)
    bare.attrs = {}
    return bare


def is_perp(coins: pd.Series) -> pd.Series:
    """Return whether coins are perps: not spot pairs (``@1``, ``A/B``) or outcomes (``#1``)."""
    return ~coins.str.contains(NOT_PERP, regex=True)


def find_builders(session: Session, user: str) -> tuple[str, ...]:
    """Return the builders through which the latest fills of an account were routed.

    If there are none, or the source does not have these fills, all builders that the source names.
    """
    return list_builders(session, fetch_latest_fills(session, user))


def fetch_latest_fills(session: Session, user: str) -> pd.DataFrame | None:
    """Return the latest fills of an account, which name their builder; None without them."""
    return fetch_optional({}, "", user_fills, user, numbers="exact", session=session)


def list_builders(session: Session, latest: pd.DataFrame | None) -> tuple[str, ...]:
    """Return the builders of the latest fills, or all builders that the source names."""
    known = tuple((session.world or {}).get("builders", ()))
    routed = () if latest is None else tuple(sorted(latest["builder"].dropna().unique()))
    return routed or known


def fetch_funding(
    session: Session,
    user: str,
    builders: Sequence[str],
    start_ms: int,
    end_ms: int,
    missing_reasons: dict[str, str],
) -> pd.DataFrame | None:
    """Return the funding rows of an account, fetched by builder; None if no builder has any.

    Builders whose rows cannot be fetched are added to `missing_reasons`.
    """
    fetch = partial(
        builder_approved_funding_by_time,
        start=start_ms,
        end=end_ms,
        numbers="exact",
        session=session,
    )
    answers = {
        builder: fetch_optional(missing_reasons, f"funding by {builder}", fetch, builder)
        for builder in builders
    }
    frames = {builder: frame for builder, frame in answers.items() if frame is not None}
    if not frames:
        return None
    provenance = concat_frames(frames, "builder").attrs["toolkit"]
    rows = account_payments(user, frames)
    rows.attrs["toolkit"] = {**provenance, "rows": len(rows)}
    return rows


def account_payments(user: str, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of an account from funding rows by builder, each payment once."""
    own = {name: frame[frame["user"] == user.lower()] for name, frame in frames.items()}
    rows = concat_frames(own, "builder").drop_duplicates(["time", "coin"])
    return rows.sort_values(["time", "coin"], kind="stable").reset_index(drop=True)


def fetch_samples(
    session: Session,
    coin: str,
    start_ms: int,
    end_ms: int,
    amounts: Sequence[float] = tuple(AMOUNTS),
) -> pd.DataFrame:
    """Return the slippage samples of a coin, all sizes in one frame."""
    frames = {
        short_usd(amount): slippage_history(
            coin, amount, start_ms, end_ms, page_size=2000, session=session
        )
        for amount in amounts
    }
    return concat_frames(frames, "amount")
