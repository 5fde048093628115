"""The fetch functions against the local service."""

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import toolkit as tk
from toolkit import fetch
from toolkit.contract.operations import OPERATIONS
from toolkit.frames import provenance


@pytest.fixture(scope="module")
def session():
    with tk.local(seed=7, size="tiny") as result:
        yield result


@pytest.fixture(scope="module")
def subjects(session):
    """The arguments of the functions with a range: the most active subjects."""
    users = session.world["users"]
    busy = max(users, key=lambda user: len(fetch.user_fills(user, session=session)))
    return {
        "user_fills_by_time": (busy, 0),
        "builder_approved_funding_by_time": (session.world["builders"][0], 0),
        "slippage_history": (session.world["perp_coins"][0], 10_000, 0),
        "user_non_funding_ledger_updates": (busy,),
    }


RANGED = [
    "user_fills_by_time",
    "builder_approved_funding_by_time",
    "slippage_history",
    "user_non_funding_ledger_updates",
]
ONE_PAGE = {"user_fills_by_time": 7, "builder_approved_funding_by_time": 7, "slippage_history": 5}


@pytest.mark.parametrize("name", RANGED)
def test_page_size_and_numbers_change_no_row(name, session, subjects):
    call, options = getattr(fetch, name), {"max_rows": 200, "session": session}
    floats, exact, text = (
        call(*subjects[name], numbers=numbers, **options) for numbers in ("float", "exact", "text")
    )
    for column in floats.columns[floats.dtypes == "float64"]:
        wire = pd.to_numeric(text[column]).astype("float64")
        assert_frame_equal(floats[[column]], wire.to_frame(), check_exact=True)
        assert_frame_equal(floats[[column]], exact[column].astype("float64").to_frame())
    if name in ONE_PAGE:
        paged = call(*subjects[name], page_size=ONE_PAGE[name], **options)
        assert_frame_equal(floats, paged, check_flags=False)
        assert provenance(paged)["pages"] > provenance(floats)["pages"]


@pytest.mark.parametrize("name", RANGED)
def test_range_and_cursor_select_rows(name, session, subjects):
    call = getattr(fetch, name)
    *subject, start = (*subjects[name], 0) if len(subjects[name]) == 1 else subjects[name]
    whole = call(*subject, start, session=session)
    operation = next(operation for operation in OPERATIONS.values() if operation.function == name)
    key = [path.rsplit(".", 1)[-1] for path in operation.key]
    assert len(whole) > 0
    assert (provenance(whole)["complete"], provenance(whole)["simulated"]) == ("yes", True)
    assert_frame_equal(whole, whole.sort_values(key, kind="stable"))
    times = "timestamp" if name == "slippage_history" else "time"
    first, last = whole[times].iloc[len(whole) // 4], whole[times].iloc[len(whole) // 2]
    part = call(*subject, first, last, session=session)
    expected = whole[whole[times].between(first, last)].reset_index(drop=True)
    assert_frame_equal(part, expected, check_flags=False)
    if "cursor" in operation.by_wire:
        row = whole.iloc[len(whole) // 2]
        cursor = "_".join(
            str(row[part].value // 1_000_000 if part == "time" else row[part]) for part in key
        )
        rest = call(*subject, cursor=cursor, session=session)
        keys = whole[key].itertuples(index=False, name=None)
        after = [other > tuple(row[key]) for other in keys]
        assert_frame_equal(rest, whole[after].reset_index(drop=True), check_flags=False)


def test_latest_fills_are_end_of_history(session, subjects):
    user, _ = subjects["user_fills_by_time"]
    latest = fetch.user_fills(user, max_rows=50, session=session)
    assert len(latest) == 50
    assert latest["time"].is_monotonic_decreasing
    assert provenance(latest)["complete"] == "latest"
    history = fetch.user_fills_by_time(user, 0, session=session)
    assert set(latest["time"]) == set(history["time"].iloc[-50:])


def test_meta_of_every_dex_has_unique_names(session):
    for dex in session.world["dexes"]:
        perps = fetch.meta(dex=dex, session=session)
        assert len(perps) > 0
        assert perps["name"].is_unique
