"""Each column of each helper's result has its own sentence and its unit."""

import re

import pytest

import toolkit as tk
from tests.scale.case import cases

PURE_NUMBERS = {
    "accounts.concentration": {"gini", "hhi", "effective"},
    "accounts.leverage": {"leverage", "net", "median_leverage"},
    "accounts.positioning": {"effective_accounts"},
    "builders.cohorts": {"active"},
    "depth.imbalance": {"imbalance"},
    "execution.impact": {
        "y_root",
        "exponent",
        "autocorrelation",
        "autocorrelation_low",
        "autocorrelation_high",
    },
    "execution.spreads": {"sign_autocorrelation"},
    "funding.oracle_check": {"off_by"},
    "liquidations.cascade": {"amplification", "amplification_low", "amplification_high"},
    "performance.returns": {"leverage", "net_leverage"},
    "performance.skill": {"persistence", "p", "q"},
    "slippage.fit": {"k", "sigma"},
    "staking.rank_stability": {"concordance", "next_week", "rank"},
}
"""Columns and figures of floats without a unit: counts, ratios, correlations, exponents."""

# A word or a formula; not a word that continues or refers to the text before.
_WHOLE = re.compile(
    r"(?!(and|or|then|is|are|of|it|its|their|the same|the figure$|as for|who|whose|what|how)\b)"
    r"(?![^.;]*\b(of these|of them|(at|in) that time|in the same cases|by then)\b)"
    r'([A-Za-z0-9"]|-?\(\w+ [-+*/] \w+).*[^,;:(]$'
)


def is_broken(sentence):
    """Return whether a sentence is empty, or only a part of a sentence."""
    return not (
        _WHOLE.match(sentence)
        and sentence.count("(") == sentence.count(")")
        and sentence.count('"') % 2 == sentence.count("`") % 2 == 0
    )


@pytest.fixture(scope="module")
def described():
    """Return case -> description of its result, without columns that only the user knows."""
    tables = {}
    # Audited fills keep the provenance of the fills, and the rows of a case have none.
    for case in (case for case in cases() if case.helper != "pnl.audit"):
        frames = case.frames(case.rows)
        result = case.function(**frames, **case.arguments)
        table = tk.describe(result)
        given = {name for frame in frames.values() for name in frame.columns}
        table = table[table["meaning"].ne("") | ~table["column"].isin(given)]
        params = getattr(result, "params", None)
        if params is not None and "name" in params:
            figures = table.loc[table["frame"] == "figures", "column"]
            assert figures.tolist() == params["name"].unique().tolist(), str(case)
        tables[case] = table if "frame" in table else table.assign(frame="")
    return tables


def test_columns_have_whole_sentences(described):
    broken = {
        (case.helper, sentence)
        for case, table in described.items()
        for sentence in table["meaning"]
        if is_broken(sentence)
    }
    assert broken == set(), "correct these sentences in the docstring of the helper"


def test_columns_share_no_sentence(described):
    shared = {
        case.helper: table.loc[repeated, "column"].tolist()
        for case, table in described.items()
        if (repeated := table.duplicated(["frame", "meaning"], keep=False)).any()
    }
    assert shared == {}, "write one sentence for each column"


def test_numbers_have_units_and_texts_have_none(described):
    unitless, pure = set(), {(name, item) for name, items in PURE_NUMBERS.items() for item in items}
    for case, table in described.items():
        without = table[table["unit"].eq("")]
        floats = without["dtype"].str.startswith("float")
        wrong = {(case.helper, name) for name in without.loc[floats, "column"]} - pure
        assert wrong == set(), "name the unit in the sentence, or list a pure number here"
        unitless |= {(case.helper, name) for name in without["column"]}
        assert table.loc[table["dtype"].eq("str"), "unit"].eq("").all(), str(case)
    assert pure - unitless == set(), "remove these: they have a unit, or do not exist"


def test_audited_fills_have_sentences():
    with tk.local(seed=7, size="tiny", default=False) as session:
        fills = tk.user_fills_by_time(session.world["users"][0], 0, session=session)
        audited = tk.pnl.audit(fills, tk.meta(session=session))
    described = tk.describe(audited).set_index("column")["meaning"]
    added = described[[name for name in audited if name not in fills]]
    assert len(added) > 2
    assert not added.map(is_broken).any()
    assert added.is_unique
