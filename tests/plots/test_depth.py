"""Depth, its recovery, and price changes after fills."""

import pytest

from tests.plots.figures import list_texts


def test_resilience_label_has_half_life(results):
    found = results["resilience"]
    assert found["half_life"] == pytest.approx(30, rel=0.1)
    label = f"half-life {found['half_life']:.1f} s"
    assert any(text.startswith(label) for text in list_texts(found.plot().figure))
