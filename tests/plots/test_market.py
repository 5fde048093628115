"""Figures of fits, hours, depth, execution, accrual: in both themes, of nothing, and true."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from toolkit.plots import alt

FIGURES = (
    "depth_profile",
    "funding_accrual",
    "markout",
    "resilience",
    "slippage_fit",
    "slippage_heatmap",
    "spreads",
)
ESTIMATES = ("markout", "resilience", "slippage_fit", "spreads")
EVERY = pytest.mark.parametrize("name", FIGURES)
SIZES = (1e3, 1e4, 1e5, 1e6)
HOSTILE = r"$\frac$<b>&"


@pytest.fixture(scope="module")
def frames():
    """Fetch what the results are made of; shocks are made by hand, every 200 seconds."""
    session = tk.local(seed=7, size="tiny", default=False)
    depth = tk.current_depth(session=session)
    market = depth[depth["coin"] == "BTC"]
    batches = []
    for second in range(0, 800, 10):
        left = 0.6 * 2.0 ** (-(second % 200) / 30) if second >= 200 else 0.0
        made = market.copy()
        made["timestamp_ms"] += pd.Timedelta(seconds=second)
        made[["bid_depth_usd", "ask_depth_usd"]] *= (1 - left) * (1 + 0.01 * np.sin(second))
        batches.append(made)
    samples = [tk.slippage_history("PURR", usd, 0, session=session) for usd in SIZES]
    fills = tk.many(tk.user_fills_by_time, session.world["users"][:12], 0, session=session)
    perps = fills[~fills["coin"].str.contains("^@|/|#")]
    funding = tk.builder_approved_funding_by_time(session.world["builders"][0], 0, session=session)
    made = {"depth": pd.concat(batches), "samples": pd.concat(samples), "fills": perps}
    for name, like in (("depth", depth), ("samples", samples[0]), ("fills", fills)):
        made[name].attrs = like.attrs
    return {**made, "funding": funding}


def results_of(frames, rows=slice(None)):
    """Give every result; of no rows with ``slice(0)``."""
    cut = {name: frame.iloc[rows] for name, frame in frames.items()}
    for name, frame in frames.items():
        cut[name].attrs = frame.attrs
    samples, fills = cut["samples"], cut["fills"]
    one_size = samples[samples["amount_usd"] == 1e4]
    spans = {"max_age": "1h", "cluster": "user"}
    return {
        "depth_profile": tk.depth.profile(cut["depth"]),
        "funding_accrual": tk.funding.accrual(cut["funding"]),
        "markout": tk.execution.markout(fills, fills, ["10m", "1h"], **spans),
        "resilience": tk.depth.resilience(cut["depth"]),
        "slippage_fit": tk.slippage.fit(samples),
        "slippage_heatmap": tk.slippage.heatmap(one_size),
        "spreads": tk.execution.spreads(fills, fills, "1h", **spans),
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
    assert figure.axes[0].get_xlabel() or name == "spreads"


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


def test_names_are_text_not_mathematics(frames, results):
    for name in ("depth_profile", "funding_accrual", "slippage_heatmap"):
        figure = getattr(tk.plots, name)(results[name].assign(coin=HOSTILE))
        assert png(figure)
        assert any(HOSTILE in text for text in texts(figure))
    samples = frames["samples"].assign(coin=HOSTILE)
    assert png(tk.plots.slippage_fit(tk.slippage.fit(samples, draws=9)))


def test_one_row_draws(results):
    for name in ("depth_profile", "funding_accrual", "slippage_heatmap"):
        assert png(getattr(tk.plots, name)(results[name].iloc[:1]))


def test_the_fitted_line_is_the_law(results):
    fit = results["slippage_fit"]
    half, a, k, _ = fit.params.loc[fit.params["side"] == "buy", "estimate"]
    lines = fit.plot().axes[0].get_lines()
    line = next(one for one in lines if str(one.get_label()).startswith("buy: exponent"))
    usd, bps = line.get_xdata(), line.get_ydata()
    np.testing.assert_allclose(bps, half + a * (np.asarray(usd) / 1e5) ** k)
    # The largest sizes had no median: the books were too thin, and triangles say so.
    lost = fit.samples[(fit.samples["side"] == "buy") & fit.samples["q50"].isna()]
    thin = [one for one in lines if one.get_marker() == "^"]
    assert len(thin[0].get_xdata()) == len(lost) > 0


def test_the_half_life_stands_in_the_figure(results):
    found = results["resilience"]
    assert found["half_life"] == pytest.approx(30, rel=0.1)
    label = f"half-life {found['half_life']:.1f} s"
    assert any(text.startswith(label) for text in texts(found.plot()))


def test_too_much_for_one_figure_is_refused(results, frames):
    other = results["depth_profile"].assign(coin="ETH")
    two = pd.concat([results["depth_profile"], other])
    with pytest.raises(ValueError, match="one market"):
        tk.plots.depth_profile(two)
    with pytest.raises(ValueError, match="one coin and amount"):
        tk.plots.slippage_heatmap(tk.slippage.heatmap(frames["samples"]))
    with pytest.raises(ValueError, match="side"):
        tk.plots.slippage_heatmap(results["slippage_heatmap"], side="both")
    many = [frames["samples"].assign(coin=f"C{number}") for number in range(5)]
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.slippage.fit(pd.concat(many), draws=2).plot()
    by_coin = tk.execution.markout(frames["fills"], frames["fills"], ["1h"], by="coin")
    with pytest.raises(ValueError, match="at most 6 groups"):
        by_coin.plot()
