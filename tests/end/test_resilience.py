"""Depth batches over the wire into the archive, and their half-life."""

import json

import pandas as pd
import pytest

import toolkit as tk
from toolkit.client import connect
from toolkit.local_service import InProcessTransport, application_of, simulated_store
from toolkit.service.api_keys import AcceptedKey, KeyQuotas
from toolkit.simulation.output.live_state import DEPTH_HALF_LIFE_SECONDS


def test_archived_batches_have_known_half_life(tmp_path):
    """Twenty minutes of one dex, a batch every ten seconds: three markets, two shocks each.

    One of the six leaves too few batches before the end.
    """
    store = simulated_store(7, "tiny")
    moments = [store.about["now_ms"]]
    application = application_of(
        store, KeyQuotas([AcceptedKey("t", "k")]), clock="live", now_ms=lambda: moments[0]
    )
    session = connect(
        "http://local",
        "k",
        transport=InProcessTransport(application),
        simulated=True,
        now_ms=application.now_ms,
        default=False,
    )  # fmt: skip
    archive = tk.archive.open(tmp_path / "archive")
    for _ in range(120):
        archive.refresh(tk.current_depth, dex="eqx", session=session)
        moments[0] += 10_000
    answers = archive.scan("answers", operation="currentDepth", engine="pandas")
    assert len(answers) == 120
    batches = [tk.frame("currentDepth", json.loads(body)) for body in answers["_body"]]
    depth = pd.concat(batches)
    found = tk.depth.resilience(depth.sample(frac=1, random_state=1), 50)
    assert found.n == 5
    assert found["half_life"] == pytest.approx(DEPTH_HALF_LIFE_SECONDS, rel=0.05)
