"""Remarks: sentences about data that the service cannot have, or that an answer may lack.

Specification, "Limits", data availability. Provenance has remarks under ``history``. A remark that
the caller may not expect is also a `HistoryWarning`, once per call.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, is_perp_coin
from toolkit.contract.market_names import suggest_names
from toolkit.contract.operations import DEX
from toolkit.contract.records import Fill
from toolkit.contract.requests import INTERVALS, parse_cursor
from toolkit.frames.answer_frames import cut_facts
from toolkit.times import DAY, HOUR, to_iso, to_ms

if TYPE_CHECKING:
    from toolkit.fetch.pull import Request

# ASSUMED: An account with 100,000 fills or more is one of the "very high-volume addresses" whose
# history may be incomplete. The specification states no number.
_VERY_ACTIVE: Final = 100_000

_OWN_ROWS: Final = {
    "builderApprovedFillsByTime": "tk.user_fills_by_time",
    "builderApprovedFundingByTime": "tk.user_funding",
}
"""Operation on the users of a builder -> the function for one account."""


Remarks = dict[str, bool]
"""Sentence about data that the service cannot have -> whether it is a warning, too."""


def request_remarks(request: "Request", *, has_start: bool = True) -> Remarks:
    """Return remarks about data that the service cannot have for the range of a request.

    Parameters
    ----------
    request : Request
        The request. Nothing is sent.
    has_start : bool, default True
        Whether the caller chose where the range begins. If not, gaps are noted without a warning.
    """
    operation, parameters, now_ms = request.operation, request.parameters, request.asked_ms
    remarks: Remarks = {}
    if "start" not in parameters:
        return remarks
    end = now_ms if parameters.get("end") is None else parameters["end"]
    start = parameters.get("start") or 0
    if parameters.get("cursor"):
        start, has_start = int(parse_cursor(operation, parameters["cursor"])[0]), False
    if has_start and operation.since and start < to_ms(operation.since):
        requested = f" ({to_iso(start)})" if start else ""
        first = f"the first available day ({operation.since})"
        remarks[f"the requested start{requested} precedes {first}"] = start != 0
    if start > now_ms:
        words = f"the requested range begins at {to_iso(start)}, after the present"
        remarks[f"{words} ({to_iso(now_ms)})"] = True
    elif has_start and start > end:
        words = f"the requested range ends at {to_iso(end)}, before it begins ({to_iso(start)})"
        remarks[words] = True
    if not request.session.source.simulated:
        for gap in operation.gaps:
            if start < to_ms(gap.last) + DAY and end >= to_ms(gap.first):
                # Of known gaps, only a caller who chose a start is warned.
                remarks[gap.words] = has_start and start > 0
    return remarks


def answer_remarks(request: "Request", frames: Sequence[pd.DataFrame]) -> Remarks:
    """Return remarks about data that is, or may be, missing from an answer."""
    session, parameters, operation = request.session, request.parameters, request.operation
    facts = frames[0].attrs.get("toolkit", {})
    # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
    history = session.source.history
    remarks = gap_remarks(facts) if facts.get("gaps") and not history else {}
    if operation.paging == "windows" and facts.get("first"):
        start, first, last = parameters["start"], int(facts["first"]), int(facts["last"])
        if first - start > INTERVALS[parameters["interval"]]:
            words = (
                f"the rows begin at {to_iso(first)}, after the requested start: nothing was traded "
                "before, or the service does not keep older rows of this interval"
            )
            remarks[words] = start != 0 and first - start > (last - start) / 10
    if operation.paging == "none" and (cut := cut_facts(operation, len(frames[0]))):
        remarks[cut["why"]] = True
    if operation.tables[0].record is Fill and not session.source.simulated:
        has_user = "user" in frames[0].columns
        counts = frames[0]["user"].value_counts().tolist() if has_user else [len(frames[0])]
        most = max(counts, default=0)
        words = "some fills may be missing: the fills of some very active accounts are not complete"
        is_active = most >= _VERY_ACTIVE
        remarks[words + (f"; one account has {most:,} fills here" if is_active else "")] = is_active
    if history:
        remarks[history] = False
    if covered := facts.get("covered"):
        until_ms = to_ms(covered[-1][1])
        remarks |= coverage_remarks(until_ms, parameters.get("end"), session.now_ms())
    is_empty = not any(len(frame) for frame in frames)
    if parameters.get("dex"):
        lists_markets = operation.parameters[:1] == (DEX,) and len(operation.tables) == 1
        world = session.world if isinstance(session.world, Mapping) else {}
        remarks |= dex_remarks(parameters["dex"], world, is_empty, lists_markets=lists_markets)
    return remarks | (_empty_remarks(request) if is_empty else {})


def gap_remarks(facts: Mapping[str, Any]) -> Remarks:
    """Return a remark if the provenance of rows has places where some may be missing or repeated.

    Examples
    --------
    >>> gap_remarks({"gaps": ["BTC came twice", "ETH came twice"]})
    {'rows may be missing or repeated: BTC came twice; and 1 more, under gaps in provenance': True}
    """
    if not (gaps := facts.get("gaps")):
        return {}
    more = f"; and {len(gaps) - 1} more, under gaps in provenance" if len(gaps) > 1 else ""
    return {f"rows may be missing or repeated: {gaps[0]}{more}": True}


def _empty_remarks(request: "Request") -> Remarks:
    """Return remarks about an answer without rows."""
    operation, parameters, asked_ms = request.operation, request.parameters, request.asked_ms
    remarks: Remarks = {}
    if own := _OWN_ROWS.get(operation.type):
        words = "no rows came of users of this builder; if the address is an account, "
        remarks[f"{words}{own} has its rows"] = False
    if operation.type == "fundingHistory" and not is_perp_coin(parameters["coin"]):
        words = f"no rows came: {parameters['coin']} is no perp, and only perps have funding"
        remarks[words] = True
    service_ms, start = request.session.source.stated_now_ms(), parameters.get("start") or 0
    is_away = service_ms is not None and abs(service_ms - asked_ms) > DAY
    if service_ms is not None and is_away and (request.is_aged or service_ms < start <= asked_ms):
        words = (
            f"no rows came. The range was counted from {to_iso(asked_ms)}, but the service's "
            f"present is {to_iso(service_ms)}. Pass dates before it. Or repeat the call: an age "
            "then counts from the service's present (unless now_ms of the session is set)"
        )
        remarks[words] = True
    if request.ends_on_date:
        day = to_iso(parameters["end"])[:10]
        words = (
            f"no rows came, and the range ends where {day} begins: a date means 00:00 UTC. Pass "
            f"the next day as the end to include {day}"
        )
        remarks[words] = True
    return remarks


def coverage_remarks(until_ms: int, end_ms: int | None, now_ms: int) -> Remarks:
    """Return a remark if an archive has a history only up to a time before its present.

    Parameters
    ----------
    until_ms : int
        Up to when the history is complete.
    end_ms : int or None
        The end of the requested range; None if the request has no end.
    now_ms : int
        The present of the archive.
    """
    if until_ms >= (now_ms if end_ms is None else min(now_ms, end_ms)):
        return {}
    words = (
        f"the archive has this history up to {to_iso(until_ms)} only, and its present is "
        f"{to_iso(now_ms)}; refresh the archive to get the rows in between"
    )
    # A refresh of many histories takes minutes, so their ends differ by minutes without a gap.
    return {words: now_ms - until_ms > HOUR}


def dex_remarks(
    dex: Any, world: Mapping[str, Any], is_empty: bool, *, lists_markets: bool = False
) -> Remarks:
    """Return a remark if the requested dex does not exist, as far as that is known.

    Parameters
    ----------
    dex : str or None
        The requested dex.
    world : mapping
        What a local service contains; empty for any other service. Only a simulated world, which
        has a seed, lists every name: recordings and archives have rows of further names.
    is_empty : bool
        Whether no row came. True also for the state of an account: it is no evidence that a dex
        exists, because for a dex that does not exist, every amount of the state is 0.
    lists_markets : bool, default False
        Whether the answer lists the markets of a dex, so that it has rows if the dex exists.
    """
    known = world.get("dexes")
    is_named = isinstance(dex, str) and canonical_dex(dex) not in ("", ALL_DEXES)
    if not is_named or not (is_empty or "seed" in world):
        return {}
    if known and canonical_dex(dex) not in known:
        return {f"there is no dex {dex!r}; {suggest_names(dex, known)}": True}
    if not known and is_empty:
        return {f"no rows came; the service may not know the dex {dex!r}": lists_markets}
    return {}


def join_remarks(remarks: Mapping[str, bool]) -> tuple[str, str]:
    """Return the words of all remarks, and the words of those that warn."""
    return "; ".join(remarks), "; ".join(words for words, warns in remarks.items() if warns)
