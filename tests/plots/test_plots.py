"""Every figure draws in both themes, of nothing, of one row, of hostile names; and says so."""

import importlib
import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from toolkit.analysis import funding, pnl, slippage
from toolkit.plots import alt, style

THEMES = ("light", "dark")
HOSTILE = r"$\frac$<b>&"


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def fills(session):
    user = tk.reports.example_account(session)
    return tk.user_fills_by_time(user, 0, session=session)


@pytest.fixture(scope="module")
def payments(session):
    builder = session.world["builders"][0]
    return tk.builder_approved_funding_by_time(builder, 0, session=session)


@pytest.fixture(scope="module")
def samples(session):
    frames = [tk.slippage_history("HPOS", a, "1d", session=session) for a in (1e3, 3e4, 1e6)]
    origin = {**frames[0].attrs}
    made = pd.concat([frame.assign() for frame in frames])
    made.attrs = origin
    return made


@pytest.fixture(scope="module")
def results(fills, payments, samples) -> dict[str, pd.DataFrame]:
    own = payments[payments["user"] == payments["user"].iloc[0]]
    return {
        "waterfall": pnl.attribution(fills, own),
        "cumulative_pnl": pnl.attribution(fills, own, by="hour"),
        "funding_by_coin": funding.sums(payments),
        "funding_over_time": funding.sums(payments, by="day"),
        "slippage_curve": slippage.curve(samples),
    }


FIGURES = (
    "waterfall",
    "cumulative_pnl",
    "funding_by_coin",
    "funding_over_time",
    "slippage_curve",
)
EVERY = pytest.mark.parametrize("name", FIGURES)


def drawn(name: str) -> Callable[..., Figure]:
    return getattr(tk.plots, name)


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    return buffer.getvalue()


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]


def test_every_figure_is_tested():
    """Each module of tests beside this one says which figures it draws."""
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    modules = [importlib.import_module(f"tests.plots.{path.stem}") for path in files]
    tested = {name for module in modules for name in getattr(module, "FIGURES", ())}
    assert tested == set(tk.plots.__all__) - {"alt"}


@pytest.mark.parametrize("theme", THEMES)
@EVERY
def test_draws_in_both_themes(name, theme, results):
    figure = drawn(name)(results[name], theme=theme)
    assert png(figure)[:4] == b"\x89PNG"
    assert len(alt(figure)) > 40


@pytest.mark.parametrize("theme", THEMES)
@EVERY
def test_draws_nothing(name, theme, results):
    for empty in (pd.DataFrame(), results[name].iloc[:0]):
        figure = drawn(name)(empty, theme=theme)
        assert png(figure)
        assert "no data" in texts(figure)
        assert "no data" in alt(figure)


@EVERY
def test_draws_one_row(name, results):
    assert png(drawn(name)(results[name].iloc[:1]))


@EVERY
def test_marks_simulated_data_only(name, results):
    result = results[name]
    assert "simulated" in texts(drawn(name)(result))
    real = result.copy()
    real.attrs = {}
    assert "simulated" not in texts(drawn(name)(real))
    assert alt(drawn(name)(real)).endswith("Simulated data: no.")


@EVERY
def test_draws_on_given_axes(name, results):
    figure = Figure()
    ax = figure.add_subplot()
    assert drawn(name)(results[name], ax=ax) is figure
    assert figure.axes == [ax]
    assert alt(figure)


@EVERY
def test_leaves_its_input_alone(name, results):
    before = results[name].copy(deep=True)
    drawn(name)(results[name])
    pd.testing.assert_frame_equal(results[name], before)


@EVERY
def test_refuses_an_unknown_theme(name, results):
    with pytest.raises(ValueError, match="theme"):
        drawn(name)(results[name], theme="pink")


@EVERY
def test_background_may_be_left_out(name, results):
    assert drawn(name)(results[name], transparent=True).get_facecolor()[3] == 0
    assert drawn(name)(results[name]).get_facecolor()[3] == 1


@pytest.mark.parametrize("name", ["funding_by_coin", "slippage_curve"])
def test_names_are_text_not_mathematics(name, results):
    result = results[name].assign(coin=HOSTILE)
    figure = drawn(name)(result)
    assert png(figure)
    assert HOSTILE in texts(figure)


def test_names_are_escaped_where_a_notebook_shows_them(results):
    figure = tk.plots.funding_by_coin(results["funding_by_coin"].assign(coin="<script>"))
    shown = figure._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_labels_of_the_waterfall_do_not_overlap(results):
    figure = tk.plots.waterfall(results["waterfall"])
    png(figure)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    boxes += [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_what_is_not_covered_is_not_drawn_as_zero(fills):
    figure = tk.plots.waterfall(pnl.attribution(fills))
    assert "not\ncovered" in texts(figure)
    assert "net, without\nfunding" in texts(figure)
    assert "funding not covered" in alt(figure)


def test_without_funding_there_is_no_line_with_funding(fills):
    figure = tk.plots.cumulative_pnl(pnl.attribution(fills, by="hour"))
    assert not any("funding" in text for text in texts(figure))


def test_a_waterfall_shows_one_row(results):
    with pytest.raises(ValueError, match="not 2 rows"):
        tk.plots.waterfall(pd.concat([results["waterfall"]] * 2))


def test_time_needs_a_result_by_time(results):
    for draw in (tk.plots.cumulative_pnl, tk.plots.funding_over_time):
        with pytest.raises(ValueError, match="by="):
            draw(results["funding_by_coin"])


def test_many_coins_are_joined(results):
    one = results["funding_by_coin"].iloc[:1]
    many = pd.concat([one.assign(coin=f"C{n}", net=n - 20.0) for n in range(40)])
    figure = tk.plots.funding_by_coin(many)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 16
    assert "25 others" in names


def test_too_many_curves_are_refused(results):
    curve = results["slippage_curve"]
    many = pd.concat([curve.assign(coin=f"C{n}") for n in range(5)])
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.plots.slippage_curve(many)


def test_thin_books_are_shown(results):
    curve = results["slippage_curve"]
    assert (curve["missing_share"] == 1).any()
    figure = tk.plots.slippage_curve(curve)
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    assert bars == curve.sort_values(["side", "amount_usd"])["missing_share"].tolist()
    assert "too thin in at most 100%" in alt(figure)


@pytest.mark.parametrize(
    ("value", "signed", "written"),
    [
        (0, True, "0.00"),
        (-0.001, True, "0.00"),
        (1234.5, True, "+1,234.50"),
        (-1234.5, False, f"{style.MINUS}1,234.50"),
        (12_345.6, False, "12,346"),
    ],
)
def test_amounts_are_written_alike(value, signed, written):
    assert style.usd(value, signed=signed) == written
