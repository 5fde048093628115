"""The merge of provenance: nothing is claimed that does not hold for every part."""

from hypothesis import given
from hypothesis import strategies as st

from toolkit.completeness import merge

STATES = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), st.sampled_from(["yes", "no", "latest", "first 5 rows"])
)


def part(**facts):
    return {
        "operation": "meta",
        "source": "one",
        "simulated": False,
        "asked_at": "2026-01-02",
        "complete": "yes",
        "pages": 1,
        "requests": 2,
        "retries": {"429": 1},
        "first": "1_0",
        "rows": 5,
        **facts,
    }


def test_missing_fields_are_summed():
    parts = [part(), part(missing_fields={"fee": 2}), part(missing_fields={"fee": 1, "oid": 3})]
    merged = merge.merge_provenance(parts, parameters={}, states={}, failed={})
    assert merged["missing_fields"] == {"fee": 3, "oid": 3}
    result = merge.merge_inputs({"fills": merged})
    assert result["inputs"]["fills"]["missing_fields"] == {"fee": 3, "oid": 3}


def test_counts_are_summed():
    merged = merge.merge_provenance([part(), part(pages=3)], parameters={}, states={}, failed={})
    assert (merged["pages"], merged["requests"], merged["retries"]) == (4, 4, {"429": 2})
    assert "first" not in merged
    assert "rows" not in merged


def test_differing_sources_are_joined_or_left_out():
    other = part(source="two", simulated=True, asked_at="2026-01-01", numbers="exact")
    merged = merge.merge_provenance([part(), other], parameters={}, states={}, failed={})
    assert merged["source"] == "one, two"
    assert merged["simulated"]
    assert merged["asked_at"] == "2026-01-01"
    assert "numbers" not in merged


def test_merge_keeps_failures_and_remarks():
    merged = merge.merge_provenance(
        [part(history="x"), part(history="y"), part(history="x")],
        parameters={"coins": ["BTC"]},
        states={"BTC": "yes"},
        failed={"ETH": "refused"},
        reasons=["one", "two", "one"],
    )
    assert merged["complete"] == "no"
    assert merged["failed"] == {"ETH": "refused"}
    assert (merged["why"], merged["history"]) == ("one; two", "x; y")


@given(STATES)
def test_merge_keeps_state_of_each_subject(states):
    merged = merge.merge_provenance([part()], parameters={}, states=states, failed={})
    assert merge.subject_states(list(states), merged) == states


@given(STATES)
def test_overall_state_is_yes_only_if_all_are(states):
    complete = merge.overall_completeness(states, {})
    assert (complete == "yes") == (set(states.values()) <= {"yes"})


def test_common_covered_range_is_intersection():
    parts = [{"covered": [("2026-01-01", "2026-01-09")]}, {}, {"covered": [("2026-01-03", "b")]}]
    assert merge.common_covered(parts) == {"covered": [("2026-01-03", "2026-01-09")]}
    assert merge.common_covered([{}, {}]) == {}


def test_parameters_that_differ_are_listed():
    each = [{"dex": "", "coin": "BTC", "start": 1}, {"dex": "flx", "coins": ["ETH", "BTC"]}]
    assert merge.merge_parameters(each) == {"dexes": ["", "flx"], "coins": ["BTC", "ETH"]}


def test_inputs_state_their_completeness():
    for states, expected in (
        (("yes", "yes"), "yes"),
        (("no", "no"), "no"),
        (("yes", "no"), "no (b)"),
    ):
        inputs = {name: {"complete": state} for name, state in zip("ab", states, strict=True)}
        assert merge.merge_inputs(inputs)["complete"] == expected
    assert merge.merge_inputs({"a": {}})["complete"] == "unknown"
