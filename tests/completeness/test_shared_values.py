"""Values of provenance that frames share: like a list or a dict, but without copies."""

import pickle

import pandas as pd

from toolkit.completeness.shared_values import share_value

PLAIN = [["a", "b"], {"a": "yes", "b": "no"}]


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
