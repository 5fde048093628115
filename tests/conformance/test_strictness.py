"""Clarifications: "a writer adds no field of its own"."""

from typing import Any

from tests.conformance.conftest import Caller


def test_clearinghouse_state__leverage_has_type_and_value(tiny: Caller, summary: Any) -> None:
    answer = tiny.ask("batchClearinghouseStates", users=summary["users"], dex="ALL_DEXES")
    leverages = [
        held["position"]["leverage"]
        for _, by_dex in answer["successful_states"]
        for state in by_dex.values()
        for held in state["assetPositions"]
    ]
    assert {frozenset(one) for one in leverages} == {frozenset(("type", "value"))}
