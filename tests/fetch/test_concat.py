"""Concatenated frames keep provenance, and claim no more than each part."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from toolkit import archive
from toolkit.errors import ArchiveError
from toolkit.times import DAY, HOUR, to_iso, to_ms


@pytest.fixture(scope="module")
def user(session):
    return session.world["users"][0]


@pytest.fixture(scope="module")
def middle(session):
    return session.now_ms() - DAY


def inside_a_moment(fills):
    """Return a time, and a cursor that rows of the same time follow."""
    goes_on = fills["time"].eq(fills["time"].shift(-1)) & fills["tx_index"].lt(
        fills["tx_index"].shift(-1)
    )
    row = fills[goes_on & (fills["tx_index"] >= 0)].iloc[0]
    moment = row["time"].value // 1_000_000
    return moment, f"{moment}_{row['tx_index']}"


def test_concat_sums_costs_of_parts(session):
    coins, amounts = session.world["perp_coins"][:2], (1_000, 5_000)
    parts = [tk.slippage_history(c, a, "1d", session=session) for c in coins for a in amounts]
    before = [tk.provenance(part) for part in parts]
    whole = tk.concat(parts)
    facts = tk.provenance(whole)
    assert len(whole) == facts["rows"] == sum(map(len, parts))
    assert (facts["complete"], facts["simulated"]) == ("yes", True)
    assert facts["parameters"]["coins"] == coins
    assert facts["parameters"]["amounts"] == list(amounts)
    assert facts["parameters"]["start"] == before[0]["parameters"]["start"]
    for name in ("requests", "points", "pages"):
        assert facts[name] == sum(item[name] for item in before)
    assert [tk.provenance(part) for part in parts] == before  # concat does not change its inputs
    assert list(whole.index) == list(range(len(whole)))
    assert whole.dtypes.equals(parts[0].dtypes)


def test_adjacent_ranges_are_complete(session, user, middle):
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    one = tk.user_fills_by_time(user, 0, middle, session=session)
    for shift in (0, 1, -HOUR):
        two = tk.user_fills_by_time(user, middle + shift, session=session)
        whole = tk.concat([one, two])
        pd.testing.assert_frame_equal(whole, all_of_it)
        facts = tk.provenance(whole)
        assert facts["complete"] == "yes"
        assert facts["parameters"]["start"] == 0
        assert "end" not in facts["parameters"]
        assert len(tk.concat([two, one, all_of_it])) == len(all_of_it)


def test_cursor_range_repeats_no_row(session, user):
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    moment, cursor = inside_a_moment(all_of_it)
    for end in (moment, moment + HOUR):
        one = tk.user_fills_by_time(user, 0, end, session=session)
        two = tk.user_fills_by_time(user, cursor=cursor, session=session)
        pd.testing.assert_frame_equal(tk.concat([one, two]), all_of_it)
    early = tk.user_fills_by_time(user, 0, moment - 1, session=session)
    apart = tk.concat([early, two])
    assert tk.provenance(apart)["complete"] == "no"
    assert len(apart) == len(early) + len(two)


def test_cursor_at_present_repeats_no_row(session):
    """The last funding rows have the time of the present."""
    builder = session.world["builders"][0]
    whole = tk.builder_approved_funding_by_time(builder, 0, session=session)
    row = whole.iloc[-7]
    moment = to_ms(row["time"])
    assert moment == session.now_ms() == to_ms(whole["time"].iloc[-1])
    cursor = f"{moment}_{row['user']}_{row['coin']}"
    rest = tk.builder_approved_funding_by_time(builder, cursor=cursor, session=session)
    assert len(rest) == 6
    for parts in ([rest, whole], [whole, rest]):
        joined = tk.concat(parts)
        pd.testing.assert_frame_equal(joined, whole)
        assert tk.provenance(joined)["complete"] == "yes"


def test_gap_between_parts_is_incomplete(session, user, middle):
    one = tk.user_fills_by_time(user, 0, middle, session=session)
    two = tk.user_fills_by_time(user, middle + 2, session=session)
    facts = tk.provenance(tk.concat([one, two]))
    assert facts["complete"] == "no"
    assert "no frame has the rows between" in facts["why"]
    other = tk.user_fills_by_time(session.world["users"][1], 0, session=session)
    facts = tk.provenance(tk.concat([one, two, other]))
    assert facts["complete"].startswith("not of ")
    assert user in facts["complete"]


def test_incomplete_part_stays_incomplete(session, user):
    cut = tk.user_fills_by_time(user, 0, max_rows=5, session=session)
    other = tk.user_fills_by_time(session.world["users"][1], 0, session=session)
    facts = tk.provenance(tk.concat([cut, other]))
    assert facts["complete"].startswith("not of ")
    assert list(facts["states"].values()) == ["first 5 rows"]
    filtered = other[other["px"] > other["px"].median()]
    facts = tk.provenance(tk.concat([filtered]))
    assert facts["complete"].startswith("no longer")
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    whole = tk.concat([cut, all_of_it])
    assert tk.provenance(whole)["complete"] == "yes"
    pd.testing.assert_frame_equal(whole, all_of_it)
    broken = all_of_it.copy()
    broken.attrs["toolkit"] = {**all_of_it.attrs["toolkit"], "complete": "no"}
    with pytest.raises(ValueError, match="overlap"):
        tk.concat([broken, all_of_it])
    latest = tk.user_fills(user, session=session)
    assert tk.provenance(tk.concat([latest]))["complete"] == "latest"
    twice = tk.provenance(tk.concat([latest, latest]))
    assert twice["complete"] == "no"
    assert "requested more than once" in twice["why"]


def test_pull_continues_after_max_rows(session, user):
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    cut = tk.user_fills_by_time(user, 0, max_rows=33, session=session)
    rest = tk.user_fills_by_time(user, cut["time"].max(), session=session)
    whole = tk.concat([rest, cut])
    assert tk.provenance(whole)["complete"] == "yes"
    order = ["time", "tx_index", "tid"]
    pd.testing.assert_frame_equal(
        whole.sort_values(order, ignore_index=True), all_of_it.sort_values(order, ignore_index=True)
    )
    # Its last row is no safe cursor: the transaction of this row may be cut.
    after = tk.user_fills_by_time(user, cursor=tk.provenance(cut)["last"], session=session)
    facts = tk.provenance(tk.concat([cut, after]))
    assert facts["complete"] == "no"
    assert "Continue from the time of the last row" in facts["why"]


@st.composite
def pulls(draw):
    """A pull: the row with which it begins, the row with which it ends, and `max_rows`."""
    first, length = draw(st.integers(0, 100)), draw(st.none() | st.integers(0, 60))
    last = None if length is None else min(first + length, 108)
    return first, last, draw(st.none() | st.integers(1, 60))


@given(st.lists(pulls(), min_size=2, max_size=4))
def test_no_row_is_lost_or_repeated(session, requests):
    user = tk.reports.example_account(session=session)
    whole = tk.user_fills_by_time(user, 0, session=session)
    times = whole["time"].astype("int64")
    begins = [0 if first == 0 else int(times[first]) for first, _, _ in requests]
    ends = [None if last is None else int(times[last]) for _, last, _ in requests]
    parts = [
        tk.user_fills_by_time(user, begin, end, max_rows=rows, session=session)
        for begin, end, (_, _, rows) in zip(begins, ends, requests, strict=True)
    ]
    joined = tk.concat(parts)
    key = ["time", "tx_index", "tid"]
    assert not joined.duplicated(key).any()
    facts = tk.provenance(joined)
    if facts["complete"] == "yes":
        until = facts["parameters"].get("end", session.now_ms())
        inside = whole[(times >= min(begins)) & (times <= until)]
        pd.testing.assert_frame_equal(
            joined.sort_values(key, ignore_index=True), inside.reset_index(drop=True)
        )
    else:
        rows = pd.concat(parts).drop_duplicates(key)
        lost = rows[~rows["tid"].isin(joined["tid"])]
        assert lost["time"].isin([part["time"].max() for part in parts]).all()


def test_different_filters_are_refused(session, user, middle):
    def pull(*times, **filters):
        return tk.user_fills_by_time(user, *times, session=session, **filters)

    whole = pull(0)
    for filters in ({"dex": "main_dex"}, {"aggregate_by_time": True}):
        with pytest.raises(ValueError, match="different filters"):
            tk.concat([whole, pull(0, **filters)])
        name, value = next(iter(filters.items()))
        with pytest.raises(ValueError, match=rf"\(none; {name} {value}\) overlap from"):
            tk.concat([whole, pull(middle, **filters)])
        assert len(tk.concat([pull(0, middle), pull(middle + 1, **filters)])) <= len(whole)
    with pytest.raises(ValueError, match=r"\(dex main_dex; aggregate_by_time True\)"):
        tk.concat([pull(0, dex="main_dex"), pull(0, aggregate_by_time=True)])
    with pytest.raises(ValueError, match="different filters"):
        tk.concat(
            [tk.user_fills(user, session=session), tk.user_fills(user, dex="", session=session)]
        )
    dexes = tk.concat(pull(0, dex=dex or "main_dex") for dex in session.world["dexes"])
    assert set(dexes["coin"]) <= set(whole["coin"])


def test_cut_part_of_many_is_refused(session, user):
    many = tk.many(tk.user_fills_by_time, [user], 0, max_rows=10, session=session)
    rest = tk.user_fills_by_time(user, many["time"].max(), session=session)
    with pytest.raises(ValueError, match="Fetch one of the ranges again, without max_rows"):
        tk.concat([many, rest])


def test_concat_of_many_equals_one_pull(session, middle):
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
    assert facts["complete"] == "yes"  # each subject for its own range


def test_fills_name_their_account(session):
    one, two = session.world["users"][:2]
    parts = [tk.user_fills_by_time(user, 0, session=session) for user in (one, two)]
    whole = tk.concat(parts)
    pd.testing.assert_frame_equal(
        whole, tk.many(tk.user_fills_by_time, [one, two], 0, session=session)
    )
    assert "user" not in parts[0].columns
    trips = [len(tk.pnl.round_trips(part)) for part in parts]
    assert tk.pnl.round_trips(whole)["user"].value_counts().to_dict() == dict(
        zip((one, two), trips, strict=True)
    )
    third = tk.user_fills_by_time(session.world["users"][2], 0, session=session)
    named = tk.many(tk.user_fills_by_time, [one, two], 0, session=session)
    mixed = tk.concat([third, named])
    assert mixed["user"].iloc[[0, -1]].tolist() == [session.world["users"][2], two]
    alone = tk.many(tk.user_fills_by_time, [one], 0, session=session)
    assert set(tk.concat([alone, parts[0]])["user"]) == {one}
    ledgers = [tk.user_non_funding_ledger_updates(user, 0, session=session) for user in (one, two)]
    assert tk.concat(ledgers)["account"].tolist() == [one] * len(ledgers[0]) + [two] * len(
        ledgers[1]
    )


def test_fill_in_two_answers_counts_once(session):
    """The column of the requested builder is no account, and is not part of a fill's identity."""
    builders = session.world["builders"]
    answers = [tk.builder_approved_fills_by_time(each, 0, session=session) for each in builders]
    joined = tk.concat(answers)
    for rows in (joined, tk.many(tk.builder_approved_fills_by_time, builders, 0, session=session)):
        assert "account" not in rows
        assert rows["requested_builder"].tolist() == [
            each for each, part in zip(builders, answers, strict=True) for _ in range(len(part))
        ]
        once = rows.drop_duplicates(["user", "tid", "oid"])
        assert len(once) < len(rows)
        with pytest.warns(tk.errors.RepeatedRows):
            weeks = tk.builders.activity(rows, "week")
        pd.testing.assert_frame_equal(weeks, tk.builders.activity(once, "week"))


def test_requested_builder_is_described_and_no_group(session):
    rows = tk.many(tk.builder_approved_fills_by_time, session.world["builders"], 0, session=session)
    words = tk.describe(rows).set_index("column")
    assert words.loc["requested_builder", "meaning"] == "builder of the request"
    each = rows[rows["requested_builder"] == session.world["builders"][1]]
    with pytest.raises(ValueError, match="cannot group by 'requested_builder'"):
        tk.builders.revenue(each, by="requested_builder")
    alone = tk.builder_approved_fills_by_time(session.world["builders"][1], 0, session=session)
    assert tk.builders.revenue(each)["revenue"].sum() == tk.builders.revenue(alone)["revenue"].sum()


def test_overlapping_answers_of_builders_are_joined_once(session):
    builders = session.world["builders"][:2]
    start, end = session.world["start_ms"], session.now_ms() - 1
    middle, later = start + (end - start) // 3, start + (end - start) // 2
    parts = [
        tk.builder_approved_fills_by_time(each, first, last, session=session)
        for each in builders
        for first, last in ((start, later), (middle, end))
    ]
    whole = [
        tk.builder_approved_fills_by_time(each, start, end, session=session) for each in builders
    ]
    joined = tk.concat(parts)
    assert joined["requested_builder"].value_counts().to_dict() == {
        each: len(frame) for each, frame in zip(builders, whole, strict=True)
    }


def test_concat_refuses_other_frames(session, user, tmp_path):
    fills = tk.user_fills_by_time(user, 0, session=session)
    text = tk.user_fills_by_time(user, 0, numbers="text", session=session)
    states = tk.batch_clearinghouse_states([user], session=session)
    plain = tk.frame("userFunding", [])
    for frames, error, named in (
        ([fills, tk.meta(session=session)], ValueError, "userFillsByTime and meta"),
        ([fills, tk.user_fills(user, session=session)], ValueError, r"\(builder, venue\)"),
        ([fills, text], ValueError, "columns"),
        ([states.accounts, states.positions], ValueError, "columns"),
        ([pd.DataFrame({"px": [1.0]})], ValueError, "provenance"),
        ([tk.frame("userFillsByTime", [])], ValueError, "certificate"),
        ([plain, plain], ValueError, r"pandas\.concat"),
        ([], ValueError, "no frame"),
        (fills, TypeError, "a list of frames"),
    ):
        with pytest.raises(error, match=named):
            tk.concat(frames)
    names = session.world["builders"][:2]
    parts = [tk.user_fills_by_time(user, 0, builder=name, session=session) for name in names]
    combined = tk.concat(parts)
    assert tk.provenance(combined)["complete"] == "yes"
    with pytest.raises(ArchiveError, match="several requests"):
        archive.open(tmp_path).ingest(combined)


def test_concat_joins_operations_and_dexes(session):
    status = [
        tk.perp_deploy_auction_status(session=session),
        tk.spot_pair_deploy_auction_status(session=session),
    ]
    statuses = tk.concat(status)
    assert tk.provenance(statuses)["complete"] == "yes"
    assert tk.provenance(statuses)["operation"] == "perpDeployAuctionStatus"
    dexes = session.world["dexes"]
    markets = tk.concat(tk.meta_and_asset_ctxs(dex=dex, session=session) for dex in dexes)
    assert tk.provenance(markets)["parameters"]["dexes"] == dexes


def test_concat_uses_proved_end_of_archive(session, user, middle, tmp_path):
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, user, 0, middle, session=session)
    archived = kept.frame(tk.user_fills_by_time, user)
    for start, complete in ((middle + 1, "yes"), (middle + 2, "no")):
        late = tk.user_fills_by_time(user, start, session=session)
        assert tk.provenance(tk.concat([archived, late]))["complete"] == complete


def test_concat_of_concat_is_refused(session):
    now = session.now_ms()
    one = tk.slippage_history("BTC", 1_000, now - 2 * DAY, now - DAY, session=session)
    two = tk.slippage_history("ETH", 1_000, now - DAY + 1, session=session)
    three = tk.slippage_history("BTC", 1_000, now - DAY + 1, session=session)
    once = tk.concat([one, two])
    assert tk.provenance(once)["parts"] == 2
    with pytest.raises(ValueError, match="once with all parts"):
        tk.concat([once, three])
    assert len(tk.concat([one, two, three])) == len(one) + len(two) + len(three)
    users = session.world["users"][:2]
    many = tk.many(tk.user_fills_by_time, users[:1], 0, session=session)
    with pytest.raises(ValueError, match="resume must be the frame or the error"):
        tk.many(tk.user_fills_by_time, users, 0, session=session, resume=tk.concat([many]))


def test_covered_range_ends_at_request_time(session, user, middle):
    """Its `end` may be later. Rows that came during the request are not repeated."""
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    for late in (0, HOUR):
        one = tk.user_fills_by_time(user, 0, middle + late, session=session)
        one.attrs["toolkit"]["parameters"]["end"] = session.now_ms() + DAY
        one.attrs["toolkit"]["asked_at"] = to_iso(middle)
        two = tk.user_fills_by_time(user, middle, session=session)
        for parts in ([one, two], [one, all_of_it]):
            whole = tk.concat(parts)
            pd.testing.assert_frame_equal(whole, all_of_it)
            assert tk.provenance(whole)["complete"] == "yes"
        two = tk.user_fills_by_time(user, middle + 2 * HOUR, session=session)
        facts = tk.provenance(tk.concat([one, two]))
        assert facts["complete"] == "no"
        assert "no frame has the rows between" in facts["why"]


def test_cursor_range_begins_next_millisecond(session, user, tmp_path):
    all_of_it = tk.user_fills_by_time(user, 0, session=session)
    moment, cursor = inside_a_moment(all_of_it)
    rest = tk.user_fills_by_time(user, cursor=cursor, session=session)
    whole = tk.concat([rest])
    assert tk.provenance(whole)["parameters"]["start"] == moment + 1
    kept = archive.open(tmp_path)
    kept.ingest(whole)
    archived = kept.frame(tk.user_fills_by_time, user, start=moment + 1)
    assert tk.provenance(archived)["complete"] == "yes"
    later = all_of_it[all_of_it["time"] > pd.Timestamp(moment, unit="ms", tz="UTC")]
    pd.testing.assert_frame_equal(archived, later.reset_index(drop=True))
    early = kept.frame(tk.user_fills_by_time, user, start=moment)
    assert tk.provenance(early)["complete"] == "no"
