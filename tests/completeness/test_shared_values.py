"""Values of provenance that frames share: like a list or a dict, but without copies."""

import copy
import json
import pickle

import pandas as pd
import pytest

from toolkit.completeness.shared_values import share_value

PLAIN = [["a", "b"], {"a": "yes", "b": "no"}]
EVERY = pytest.mark.parametrize("plain", PLAIN, ids=["list", "dict"])


@EVERY
def test_shared_value_equals_plain_value(plain):
    shared = share_value(plain)
    for same in (shared, copy.copy(shared), pickle.loads(pickle.dumps(shared))):
        assert same == plain
        assert plain == same
        assert repr(same) == repr(plain)
        assert json.dumps(same) == json.dumps(plain)
        assert copy.deepcopy(same) is same


def test_attrs_survive_pickle_and_parquet(tmp_path):
    frame = pd.DataFrame({"px": [1.0]})
    frame.attrs["toolkit"] = {"users": share_value(PLAIN[0]), "states": share_value(PLAIN[1])}
    frame.to_parquet(tmp_path / "frame.parquet")
    for same in (
        pickle.loads(pickle.dumps(frame)),
        pd.read_parquet(tmp_path / "frame.parquet"),
        frame.copy(),
        pd.concat([frame, frame.copy()]),
    ):
        assert same.attrs == frame.attrs


@pytest.mark.parametrize(
    "change",
    [
        lambda users, states: users.append("c"),
        lambda users, states: users.sort(),
        lambda users, states: users.__setitem__(0, "c"),
        lambda users, states: states.__setitem__("a", "no"),
        lambda users, states: states.pop("a"),
        lambda users, states: states.update(a="no"),
    ],
)
def test_shared_value_cannot_change(change):
    users, states = map(share_value, PLAIN)
    with pytest.raises(TypeError, match=r"so it cannot change\. Change a copy: (list|dict)\("):
        change(users, states)
    assert [users, states] == PLAIN
