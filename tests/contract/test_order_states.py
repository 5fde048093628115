"""Order states and their groups."""

from toolkit.contract import order_states


def test_every_state_has_one_group():
    listed = [state for group in order_states.GROUPS.values() for state in group]
    assert len(listed) == len(set(listed)) == 25
    assert all(
        order_states.order_state_group(state) in order_states.GROUPS
        for state in order_states.STATES
    )
    assert {
        state: order_states.order_state_group(state) for state in order_states.UPSTREAM_STATES
    } == (order_states.UPSTREAM_STATES)
    assert order_states.order_state_group("neverHeardOf") == "unknown"
