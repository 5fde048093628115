"""Figures of builders: what stays readable when little is known."""

import pandas as pd

from tests.analysis.examples import MONDAY, times
from toolkit import builders, plots


def test_an_interval_of_two_users_does_not_flatten_the_curve() -> None:
    """One brought 1 USD, one nothing: the mean lies between 0 and thousands of USD."""
    fills = pd.DataFrame(
        {
            "user": ["u", "v"],
            "coin": "BTC",
            "px": 100.0,
            "sz": 1.0,
            "side": "B",
            "time": times([MONDAY, MONDAY]),
            "fee": 1.0,
            "builder": "0xb",
            "builder_fee": [1.0, 0.0],
        }
    )
    value = builders.lifetime_value(fills, "0xb", weeks=1, until="2025-10-20")
    assert value.params["high"].item() > 1000
    axes = plots.lifetime_value(value).axes[0]
    assert axes.get_ylim() == (0, 3 * 0.5)
