"""Ranks of validators."""

from tests.plots.figures import draw_figure


def test_six_validators_have_six_colours(results):
    ranks = results["validator_ranks"]
    lines = draw_figure("validator_ranks", ranks).axes[0].lines
    assert ranks.ranks["validator"].nunique() == 6
    assert len({line.get_color() for line in lines if len(line.get_xdata()) > 2}) == 6
