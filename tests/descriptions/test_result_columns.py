"""Each column of each helper's result has its own sentence and its unit."""

import functools
import re

import pytest

import toolkit as tk
from tests.scale.case import cases

# Audited fills keep the provenance of the fills, and the rows of a case have none.
CASES = [case for case in cases() if case.helper != "pnl.audit"]

PURE_NUMBERS = {
    "accounts.concentration": {"gini", "hhi", "effective"},
    "accounts.leverage": {"leverage", "net", "median_leverage"},
    "accounts.positioning": {"effective_accounts"},
    "builders.cohorts": {"active"},
    "depth.imbalance": {"imbalance"},
    "execution.impact": {
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

# Words that continue or refer to the text before: such a sentence means nothing by itself.
_CONTINUES = re.compile(
    r"(and|or|then|is|are|of|it|its|their|the same|the figure$|as for|who|whose|what|how)\b"
)
_REFERS = re.compile(r"[^.;]*\b(of these|of them|(at|in) that time|in the same cases|by then)\b")
_BEGINS = re.compile(r'[A-Za-z0-9"]|-?\(\w+ [-+*/] \w+')  # a word, or a formula


@functools.cache
def described_case(case):
    """Return the description of a case's result, without columns that only the user knows."""
    frames = case.frames(case.rows)
    described = tk.describe(case.function(**frames, **case.arguments))
    given = {name for frame in frames.values() for name in frame.columns}
    described = described[described["meaning"].ne("") | ~described["column"].isin(given)]
    return described if "frame" in described else described.assign(frame="")


def find_broken(sentences):
    """Return the sentences that are empty or only a part of a sentence."""
    return [
        sentence
        for sentence in sentences
        if not _BEGINS.match(sentence)
        or _CONTINUES.match(sentence)
        or _REFERS.match(sentence)
        or sentence[-1] in ",;:("
        or sentence.count("(") != sentence.count(")")
        or sentence.count('"') % 2
        or sentence.count("`") % 2
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_columns_have_whole_sentences(case):
    broken = find_broken(described_case(case)["meaning"])
    assert broken == [], f"{case}: correct these sentences in the docstring of the helper"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_columns_share_no_sentence(case):
    described = described_case(case)
    shared = described[described.duplicated(["frame", "meaning"], keep=False)]
    assert shared["column"].tolist() == [], f"{case}: write one sentence for each column"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_floats_have_units(case):
    described = described_case(case)
    without = described["dtype"].str.startswith("float") & described["unit"].eq("")
    found = set(described.loc[without, "column"])
    pure = PURE_NUMBERS.get(case.helper, set())
    assert found <= pure, f"{case}: name the unit in the sentence, or list a pure number here"


def test_pure_numbers_have_no_unit():
    listed = {(helper, name) for helper, names in PURE_NUMBERS.items() for name in names}
    found = set()
    for case in CASES:
        described = described_case(case)
        unitless = described.loc[described["unit"].eq(""), "column"]
        found |= {(case.helper, name) for name in unitless}
    assert listed - found == set(), "remove these: they have a unit, or do not exist"


def test_texts_have_no_unit():
    for case in CASES:
        described = described_case(case)
        assert set(described.loc[described["dtype"].eq("str"), "unit"]) <= {""}, str(case)


def test_figures_have_sentences():
    for case in CASES:
        result = case.function(**case.frames(case.rows), **case.arguments)
        params = getattr(result, "params", None)
        if params is not None and "name" in params:
            described = described_case(case)
            figures = described.loc[described["frame"] == "figures", "column"]
            assert figures.tolist() == params["name"].unique().tolist(), str(case)


def test_audited_fills_have_sentences():
    with tk.local(seed=7, size="tiny", default=False) as session:
        user = session.world["users"][0]
        fills = tk.user_fills_by_time(user, 0, session=session)
        audited = tk.pnl.audit(fills, tk.meta(session=session))
    described = tk.describe(audited).set_index("column")
    added = described.loc[[name for name in audited if name not in fills]]
    assert len(added) > 2
    assert find_broken(added["meaning"]) == []
    assert added["meaning"].is_unique
