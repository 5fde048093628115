"""Frames below each other keep saying where they come from, and claim no more than each part."""

from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from toolkit import archive
from toolkit.times import DAY, HOUR


@pytest.fixture(scope="module", name="session")
def _session() -> tk.Session:
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module", name="user")
def _user(session: tk.Session) -> str:
    return str(session.world["users"][0])


@pytest.fixture(scope="module", name="middle")
def _middle(session: tk.Session) -> int:
    return session.now_ms() - DAY


def test_many_questions_are_added_up(session: tk.Session) -> None:
    coins, amounts = session.world["perp_coins"][:2], (1_000, 5_000)
    parts = [tk.slippage_history(c, a, "1d", session=session) for c in coins for a in amounts]
    before = [tk.provenance(one) for one in parts]
    whole = tk.concat(parts)
    facts = tk.provenance(whole)
    assert len(whole) == facts["rows"] == sum(map(len, parts))
    assert (facts["complete"], facts["simulated"]) == ("yes", True)
    assert facts["parameters"]["coins"] == coins
    assert facts["parameters"]["amounts"] == list(amounts)
    assert facts["parameters"]["start"] == before[0]["parameters"]["start"]
    for name in ("requests", "points", "pages"):
        assert facts[name] == sum(one[name] for one in before)
    assert [tk.provenance(one) for one in parts] == before  # they are left as they were
    assert list(whole.index) == list(range(len(whole)))
    assert whole.dtypes.equals(parts[0].dtypes)


@pytest.mark.parametrize("shift", [0, 1, -HOUR])
def test_ranges_of_one_subject_that_meet_or_overlap_are_whole(
    session: tk.Session, user: str, middle: int, shift: int
) -> None:
    one = tk.user_fills_by_time(user, 0, middle, session=session)
    two = tk.user_fills_by_time(user, middle + shift, session=session)
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    whole = tk.concat([one, two])
    pd.testing.assert_frame_equal(whole, all_of_it)
    facts = tk.provenance(whole)
    assert facts["complete"] == "yes"
    assert facts["parameters"]["start"] == 0
    assert "end" not in facts["parameters"]
    assert len(tk.concat([two, one, all_of_it])) == len(all_of_it)


def test_what_goes_on_from_a_cursor_shows_no_row_twice(session: tk.Session, user: str) -> None:
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    times = all_of_it["time"]
    row = all_of_it[times.duplicated(keep="last") & (all_of_it["tx_index"] >= 0)].iloc[0]
    moment = row["time"].value // 1_000_000
    for end in (moment, moment + HOUR):
        one = tk.user_fills_by_time(user, 0, end, session=session)
        two = tk.user_fills_by_time(user, cursor=f"{moment}_{row['tx_index']}", session=session)
        pd.testing.assert_frame_equal(tk.concat([one, two]), all_of_it)
    early = tk.user_fills_by_time(user, 0, moment - 1, session=session)
    assert tk.provenance(tk.concat([early, two]))["complete"] == "no"


def test_a_gap_is_said(session: tk.Session, user: str, middle: int) -> None:
    one = tk.user_fills_by_time(user, 0, middle, session=session)
    two = tk.user_fills_by_time(user, middle + 2, session=session)
    facts = tk.provenance(tk.concat([one, two]))
    assert facts["complete"] == "no"
    assert "nothing between" in facts["why"]
    other = tk.user_fills_by_time(session.world["users"][1], 0, session=session)
    facts = tk.provenance(tk.concat([one, two, other]))
    assert facts["complete"].startswith("not of ")
    assert user in facts["complete"]


def test_what_a_part_lacks_the_whole_lacks(session: tk.Session, user: str) -> None:
    cut = tk.user_fills_by_time(user, 0, max_rows=5, session=session)
    other = tk.user_fills_by_time(session.world["users"][1], 0, session=session)
    facts = tk.provenance(tk.concat([cut, other]))
    assert facts["complete"].startswith("not of ")
    assert list(facts["states"].values()) == ["first 5 rows"]
    filtered = other[other["px"] > other["px"].median()]
    facts = tk.provenance(tk.concat([filtered]))
    assert facts["complete"].startswith("no longer")
    with pytest.raises(ValueError, match=r"ranges overlap .* may stand there twice"):
        tk.concat([cut, tk.user_fills_by_time(user, 0, session=session)])
    latest = tk.user_fills(user, session=session)
    assert tk.provenance(tk.concat([latest]))["complete"] == "latest"
    twice = tk.provenance(tk.concat([latest, latest]))
    assert twice["complete"] == "no"
    assert "asked more than once" in twice["why"]


def test_frames_of_many_subjects(session: tk.Session, middle: int) -> None:
    users = session.world["users"][:4]
    all_of_it = tk.many(tk.user_fills_by_time, users, 0, session=session)
    early = tk.many(tk.user_fills_by_time, users, 0, middle, session=session)
    late = tk.many(tk.user_fills_by_time, users[1:], middle - HOUR, session=session)
    first = tk.many(tk.user_fills_by_time, users[:1], middle, session=session)
    whole = tk.concat([early, late, first])
    facts = tk.provenance(whole)
    assert (facts["complete"], facts["parameters"]["users"]) == ("yes", users)
    order = ["user", "time", "tx_index", "tid"]
    pd.testing.assert_frame_equal(
        whole.sort_values(order, ignore_index=True), all_of_it.sort_values(order, ignore_index=True)
    )
    facts = tk.provenance(tk.concat([early, late]))
    assert facts["complete"] == "yes"  # each for its own range


def test_what_does_not_belong_together_is_refused(session: tk.Session, user: str) -> None:
    fills = tk.user_fills_by_time(user, 0, session=session)
    with pytest.raises(ValueError, match="userFillsByTime and meta hold different records"):
        tk.concat([fills, tk.meta(session=session)])
    with pytest.raises(ValueError, match=r"differ in their columns \(builder, venue\)"):
        tk.concat([fills, tk.user_fills(user, session=session)])
    with pytest.raises(ValueError, match="differ in their columns"):
        tk.concat([fills, tk.user_fills_by_time(user, 0, numbers="text", session=session)])
    states = tk.batch_clearinghouse_states([user], session=session)
    with pytest.raises(ValueError, match="differ in their columns"):
        tk.concat([states.accounts, states.positions])
    with pytest.raises(ValueError, match="does not say where it comes from"):
        tk.concat([pd.DataFrame({"px": [1.0]})])
    with pytest.raises(ValueError, match="no certificate"):
        tk.concat([tk.frame("userFillsByTime", [])])
    with pytest.raises(ValueError, match="no frame"):
        tk.concat([])


def test_two_operations_of_one_record_and_states_of_several_dexes(session: tk.Session) -> None:
    status = [
        tk.perp_deploy_auction_status(session=session),
        tk.spot_pair_deploy_auction_status(session=session),
    ]
    assert tk.provenance(tk.concat(status))["complete"] == "yes"
    dexes = session.world["dexes"]
    markets = tk.concat(tk.meta_and_asset_ctxs(dex=dex, session=session) for dex in dexes)
    assert tk.provenance(markets)["parameters"]["dexes"] == dexes


def test_archived_ranges_count_as_far_as_they_are_proved(
    session: tk.Session, user: str, middle: int, tmp_path: Path
) -> None:
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, user, 0, middle, session=session)
    archived = kept.frame(tk.user_fills_by_time, user)
    for start, complete in ((middle + 1, "yes"), (middle + 2, "no")):
        late = tk.user_fills_by_time(user, start, session=session)
        assert tk.provenance(tk.concat([archived, late]))["complete"] == complete
