"""Values under the pointer: areas of an SVG figure, with places worked out by hand."""

import re

import matplotlib.dates
import pandas as pd
from matplotlib.figure import Figure

from toolkit.widgets.svg import draw_svg, hover_areas

AREA = re.compile(
    r'<rect x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"><title>([^<]*)</title>'
)


def read_areas(svg):
    found = AREA.findall(svg)
    return [(*(float(number) for number in place), text) for *place, text in found]


def test_areas_of_curve_end_between_points():
    figure = Figure(figsize=(10, 5))  # 720 by 360 points
    axes = figure.add_axes((0.1, 0.2, 0.5, 0.4))  # from 72 to 432, and from 144 to 288
    axes.plot([0, 1, 4], [1234.5, -2.25, float("nan")], label="cost <b> +3.50")
    axes.plot([0, 1, 4], [5, 6, 7])
    axes.plot([0, 4], [0, 0], label="a line without points")
    axes.set(xlim=(0, 4), xlabel="size", ylabel="bps")
    assert read_areas(hover_areas(figure)) == [
        (72, 144, 45, 144, "size: 0\ncost &lt;b&gt;: 1,234.5\nbps: 5"),
        (117, 144, 180, 144, "size: 1\ncost &lt;b&gt;: \N{MINUS SIGN}2.25\nbps: 6"),
        (297, 144, 135, 144, "size: 4\nbps: 7"),
    ]


def test_last_point_of_long_curve_has_area():
    figure = Figure()
    figure.add_subplot().plot(range(1000), range(1000), label="equity")
    texts = [area[-1] for area in read_areas(hover_areas(figure))]
    assert len(texts) == 251
    assert (texts[0], texts[-1]) == ("0\nequity: 0", "999\nequity: 999")


def test_areas_of_bars_cover_bars():
    figure = Figure(figsize=(10, 5))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.bar([2, 6], [10, -5], width=2, label="net")
    axes.set(xlim=(0, 8), ylim=(-10, 10))
    assert read_areas(hover_areas(figure)) == [
        (90, 0, 180, 180, "2\nnet: 10"),
        (450, 180, 180, 90, "6\nnet: \N{MINUS SIGN}5"),
    ]


def test_areas_state_times_in_utc():
    figure = Figure()
    axes = figure.add_subplot()
    times = pd.to_datetime(["2025-09-01T00:00Z", "2025-09-01T12:30Z", "2025-09-02T00:00Z"])
    axes.plot(times, [1.0, 2.0, 3.0], label="equity")
    axes.xaxis.set_major_formatter(
        matplotlib.dates.ConciseDateFormatter(matplotlib.dates.AutoDateLocator())
    )
    texts = [area[-1] for area in read_areas(hover_areas(figure))]
    assert texts[1] == "2025-09-01 12:30 UTC\nequity: 2"


def plot_line(values, **_):
    figure = Figure()
    figure.add_subplot().plot(values)
    return figure


def test_widget_figures_have_areas():
    svg = draw_svg(plot_line, [0.0, 1.0, -2.0, 3.0, 2.5])
    assert len(read_areas(svg)) == 5
    assert svg.endswith("</g></svg></figure>")
