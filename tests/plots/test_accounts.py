"""Figures of equity, positions, trips, accounts and liquidations: both themes, nothing, truth."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from tests.analysis.examples import HOUR, MONDAY, times
from toolkit.errors import MissingColumns
from toolkit.plots import alt

FIGURES = (
    "equity_curve",
    "liquidation_map",
    "lorenz_curve",
    "migration_map",
    "positions_over_time",
    "trip_returns",
)
EVERY = pytest.mark.parametrize("name", FIGURES)
HOSTILE = r"$\frac$<b>&"


def one_coin(levels: pd.DataFrame) -> pd.DataFrame:
    placed = levels.dropna(subset="distance")
    kept = placed[placed["coin"] == placed["coin"].iloc[0]]
    kept.attrs = levels.attrs
    return kept


@pytest.fixture(scope="module")
def results() -> dict[str, pd.DataFrame]:
    session = tk.local(seed=7, size="tiny", default=False)
    users, dexes = session.world["users"], session.world["dexes"]
    fills = tk.user_fills_by_time(users[8], 0, session=session)
    meta = tk.many(tk.meta, dexes, session=session)
    contexts = tk.many(tk.meta_and_asset_ctxs, dexes, session=session)
    snapshot = tk.account_value_snapshots(["ALL"], session=session)
    states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=session)
    perps = fills[fills["coin"].isin(fills["coin"].unique()[:4])]
    perps.attrs = fills.attrs
    levels = tk.liquidations.levels(states.positions, contexts, reach=0.9, width=0.05)
    return {
        "equity_curve": tk.pnl.drawdown(tk.pnl.equity(fills), of="realised"),
        "liquidation_map": one_coin(levels),
        "lorenz_curve": tk.accounts.lorenz(snapshot),
        "migration_map": tk.accounts.migration(snapshot, snapshot),
        "positions_over_time": tk.pnl.positions(perps, meta),
        "trip_returns": tk.pnl.round_trips(fills),
    }


def drawn(name: str, frame: pd.DataFrame, **more: object) -> Figure:
    figure: Figure = getattr(tk.plots, name)(frame, **more)
    return figure


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]


@pytest.mark.parametrize("theme", ["light", "dark"])
@EVERY
def test_draws_in_both_themes_and_is_marked_as_simulated(name, theme, results):
    before = results[name].copy(deep=True)
    figure = drawn(name, results[name], theme=theme)
    assert png(figure)[:4] == b"\x89PNG"
    assert "simulated" in texts(figure)
    assert alt(figure).endswith("Simulated data: yes.")
    assert len(alt(figure)) > 60
    assert all(ax.get_ylabel() for ax in figure.axes)
    assert figure.axes[-1].get_xlabel()
    pd.testing.assert_frame_equal(results[name], before)


@EVERY
def test_draws_nothing_and_one_row(name, results):
    for empty in (pd.DataFrame(), results[name].iloc[:0]):
        figure = drawn(name, empty)
        assert png(figure)
        assert "no data" in texts(figure)
        assert "no data" in alt(figure)
    assert png(drawn(name, results[name].iloc[:1]))


@EVERY
def test_draws_on_given_axes(name, results):
    figure = Figure()
    ax = figure.add_subplot()
    assert drawn(name, results[name], ax=ax) is figure
    assert figure.axes == [ax]


@EVERY
def test_refuses_an_unknown_theme(name, results):
    with pytest.raises(ValueError, match="theme"):
        drawn(name, results[name], theme="pink")


@pytest.mark.parametrize("name", ["positions_over_time", "liquidation_map"])
def test_names_are_text_not_mathematics(name, results):
    figure = drawn(name, results[name].assign(coin=HOSTILE))
    assert png(figure)
    assert HOSTILE in alt(figure)


def test_several_at_once_are_refused(results):
    for name in ("equity_curve", "positions_over_time"):
        two = pd.concat([results[name].assign(user="a"), results[name].assign(user="b")])
        with pytest.raises(ValueError, match="pick one"):
            drawn(name, two)
    many = pd.concat([results["positions_over_time"].assign(coin=f"C{n}") for n in range(7)])
    with pytest.raises(ValueError, match="at most 6"):
        drawn("positions_over_time", many)
    two = pd.concat([results["liquidation_map"], results["liquidation_map"].assign(coin="ODD")])
    with pytest.raises(ValueError, match="one coin"):
        drawn("liquidation_map", two)


def test_a_gap_is_not_drawn_as_zero():
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(3)), "realised": [1.0, 2.0, 3.0]}
        | {"pnl": [1.0, np.nan, 5.0]}
    )
    figure = drawn("equity_curve", tk.pnl.drawdown(rows))
    whole = figure.axes[0].lines[0].get_ydata()
    assert np.isnan(whole[1])
    assert "ends at +5.00" in alt(figure)
    assert len(figure.axes) == 2


def test_without_marks_the_drawdown_is_that_of_what_was_realised():
    """Up to 4, down to 1, up to 2: 3 below the height, then 2; the account began at 0."""
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(4)), "realised": [-1.0, 4.0, 1.0, 2.0]}
        | {"pnl": np.nan}
    )
    for given in (rows, tk.pnl.drawdown(rows), tk.pnl.drawdown(rows, of="realised")):
        figure = drawn("equity_curve", given)
        lower = figure.axes[1]
        assert lower.get_ylabel() == "drawdown of\nrealised, USD"
        assert lower.lines[0].get_ydata().tolist() == [-1, 0, -3, -2]
        assert "the deepest drawdown of what was realised is \N{MINUS SIGN}3.00" in alt(figure)
    known = drawn("equity_curve", rows.assign(pnl=[1.0, 5.0, np.nan, 3.0]))
    assert known.axes[1].get_ylabel() == "drawdown, USD"
    falls = known.axes[1].lines[0].get_ydata()
    assert np.isnan(falls[2])
    assert falls[[0, 1, 3]].tolist() == [0, 0, -2]


def test_a_curve_without_its_columns_is_refused_in_words():
    rows = pd.DataFrame({"time": times([MONDAY]), "equity": [1.0]})
    with pytest.raises(
        MissingColumns, match=r"curve: columns realised, pnl missing; give .*equity"
    ):
        drawn("equity_curve", rows)


def test_bars_are_the_notional(results):
    levels = results["liquidation_map"]
    figure = drawn("liquidation_map", levels)
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == pytest.approx(
        levels["notional"].sum()
    )
    assert "of open interest" not in alt(figure)
    assert "covers" in alt(figure)


def test_lines_reach_a_bin_s_notional_where_the_bin_ends():
    """Bins of 5 %: longs from 0 to -5 and from -20 to -25, shorts from 10 to 15."""
    rows = pd.DataFrame(
        {"coin": "X", "side": ["long", "long", "short"], "distance": [0.0, -0.2, 0.1]}
        | {"low": [95.0, 75.0, 110.0], "high": [100.0, 80.0, 115.0], "unplaced": 0.0}
        | {"notional": [1e3, 2e3, 5e3], "cumulative": [1e3, 3e3, 5e3], "covered": 1.0}
    )
    longs, shorts = drawn("liquidation_map", rows).axes[0].lines[:2]
    assert np.column_stack(longs.get_data()) == pytest.approx(
        np.array([[0, 0], [-5, 1e3], [-25, 3e3]])
    )
    assert np.column_stack(shorts.get_data()) == pytest.approx(np.array([[0, 0], [15, 5e3]]))
