"""Figures of TWAPs, orders, builders, staking, auctions: in both themes, of nothing, and true."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from tests.analysis.examples import DAY, MONDAY, times
from toolkit.plots import alt

FIGURES = (
    "auction_line",
    "builder_cohorts",
    "builder_routing",
    "fill_times",
    "lifetime_value",
    "order_mix",
    "order_transitions",
    "twap_adherence",
    "twap_pressure",
    "twap_quality",
    "validator_ranks",
    "validator_yields",
)
ESTIMATES = ("fill_times", "lifetime_value", "validator_ranks")
EVERY = pytest.mark.parametrize("name", FIGURES)
HOSTILE = r"$\frac$<b>&"
BUILDER = "0x" + "b" * 40


@pytest.fixture(scope="module")
def frames():
    """Fetch what the results are made of."""
    session = tk.local(seed=7, size="tiny", default=False)
    users, world = session.world["users"], session.world
    return {
        "twaps": tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session),
        "fills": tk.many(tk.user_fills_by_time, users[:12], 0, session=session),
        "marks": tk.many(tk.meta_and_asset_ctxs, world["dexes"], session=session),
        "orders": tk.many(tk.historical_orders, users, session=session),
        "builder": tk.builder_approved_fills_by_time(world["builders"][1], 0, session=session),
        "history": tk.many(tk.validator_apr_history, world["validators"], session=session),
        "auction": tk.spot_pair_deploy_auction_status(session=session),
        "address": world["builders"][1],
    }


def results_of(frames, rows=slice(None)):
    """Give every result; of no rows with ``slice(0)``."""
    cut = {name: value if name == "address" else value.iloc[rows] for name, value in frames.items()}
    for name, value in frames.items():
        if name != "address":
            cut[name].attrs = value.attrs
    mine, address = cut["builder"], cut["address"]
    return {
        "auction_line": tk.auctions.decay(cut["auction"]),
        "builder_cohorts": tk.builders.cohorts(mine, address),
        "builder_routing": tk.builders.routing(mine, address, by="user"),
        "fill_times": tk.orders.time_to_fill(cut["orders"]),
        "lifetime_value": tk.builders.lifetime_value(mine, address, until="2025-10-20"),
        "order_mix": tk.orders.mix(cut["orders"]),
        "order_transitions": tk.orders.transitions(cut["orders"]),
        "twap_adherence": tk.twaps.adherence(cut["twaps"]),
        "twap_pressure": tk.twaps.pressure(cut["twaps"], cut["marks"]),
        "twap_quality": tk.twaps.quality(cut["fills"], cut["fills"]),
        "validator_ranks": tk.staking.rank_stability(cut["history"]),
        "validator_yields": tk.staking.apy(cut["history"]),
    }


@pytest.fixture(scope="module")
def results(frames):
    return results_of(frames)


@pytest.fixture(scope="module")
def empty(frames):
    return results_of(frames, slice(0))


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]


@pytest.mark.parametrize("theme", ["light", "dark"])
@EVERY
def test_draws_in_both_themes_and_is_marked_as_simulated(name, theme, results):
    figure = getattr(tk.plots, name)(results[name], theme=theme)
    assert png(figure)[:4] == b"\x89PNG"
    assert "simulated" in texts(figure)
    assert alt(figure).endswith("Simulated data: yes.")
    assert len(alt(figure)) > 60
    ax = figure.axes[0]
    assert ax.get_xlabel() or name == "validator_ranks"


@EVERY
def test_draws_nothing(name, empty):
    figure = getattr(tk.plots, name)(empty[name])
    assert png(figure)
    assert "no data" in texts(figure)
    assert "no data" in alt(figure)


@EVERY
def test_draws_on_given_axes_and_refuses_an_unknown_theme(name, results):
    figure = Figure()
    ax = figure.add_subplot()
    assert getattr(tk.plots, name)(results[name], ax=ax) is figure
    assert figure.axes == [ax]
    with pytest.raises(ValueError, match="theme"):
        getattr(tk.plots, name)(results[name], theme="pink")


@EVERY
def test_leaves_its_input_alone(name, results):
    result = results[name]
    frame = result.params if name in ESTIMATES else result
    before = frame.copy(deep=True)
    getattr(tk.plots, name)(result, transparent=True)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_draw_themselves(name, results):
    assert alt(results[name].plot()) == alt(getattr(tk.plots, name)(results[name]))
    assert results[name].plot(theme="dark").get_facecolor()[0] < 0.5


def test_names_are_text_not_mathematics(results):
    for name, column in (
        ("order_mix", "status"),
        ("twap_pressure", "market"),
        ("validator_yields", "validator"),
        ("builder_routing", "user"),
    ):
        figure = getattr(tk.plots, name)(results[name].iloc[:1].assign(**{column: HOSTILE}))
        assert png(figure)
        assert HOSTILE in texts(figure)


def test_marks_stand_where_the_figures_say(results):
    rows = results["twap_adherence"].dropna(subset="elapsed")
    lines = tk.plots.twap_adherence(results["twap_adherence"]).axes[0].lines[1:]
    drawn = sorted(point for line in lines for point in line.get_xydata().tolist())
    assert drawn == sorted(rows[["elapsed", "progress"]].to_numpy().tolist())
    bars = [
        bar.get_width()
        for bar in tk.plots.builder_routing(results["builder_routing"]).axes[0].patches
    ]
    assert sum(bars) == pytest.approx(results["builder_routing"]["volume"].sum())


def test_a_week_that_is_not_over_is_hatched_not_zero():
    fills = pd.DataFrame(
        {
            "user": ["a", "b"],
            "coin": "BTC",
            "px": 100.0,
            "sz": 1.0,
            "side": "B",
            "time": times([MONDAY, MONDAY + 7 * DAY]),
            "fee": 0.2,
            "builder": BUILDER,
            "builder_fee": 0.1,
        }
    )
    made = tk.builders.cohorts(fills, BUILDER, until=MONDAY + 8 * DAY)
    figure = tk.plots.builder_cohorts(made)
    png(figure)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == (~made["complete"]).sum() == 2
    shades = np.ma.getmaskarray(figure.axes[0].images[0].get_array())
    assert shades.sum() == 3  # two weeks that are not over, and one that has not begun
    assert "100%" in texts(figure)
    assert "0%" not in texts(figure)


def test_one_matrix_at_a_time(frames):
    rows = frames["orders"]
    with pytest.raises(ValueError, match="one matrix can be drawn"):
        tk.plots.order_transitions(tk.orders.transitions(rows, by="coin"))
    with pytest.raises(ValueError, match="one mix can be drawn"):
        tk.plots.order_mix(tk.orders.mix(rows, by="coin"))


def test_what_has_no_price_is_named_not_drawn(frames):
    made = tk.twaps.pressure(frames["twaps"], frames["marks"].iloc[:0])
    assert "no data" in alt(tk.plots.twap_pressure(made))
    whole = tk.twaps.pressure(frames["twaps"], frames["marks"])
    lost = whole.loc[whole["orders"] > 0, "market"].iloc[0]
    rest = frames["marks"][frames["marks"]["name"] != lost]
    some = tk.twaps.pressure(frames["twaps"], rest)
    figure = tk.plots.twap_pressure(some)
    assert f"without a price: {lost}" in figure.axes[0].get_xlabel()
    assert "1 without a price" in alt(figure)
