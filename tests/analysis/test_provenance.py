"""Where results come from."""

import pytest

from toolkit.analysis.funding import payments as fundings
from toolkit.pnl import attribution

from .examples import ME, exact, fills, funding, ledger

FETCHED = {"source": "here", "simulated": False, "complete": "yes", "rows": 7, "pages": 1}


def said(frame, **facts):
    result = frame.copy()
    result.attrs["toolkit"] = {**FETCHED, "rows": len(frame), **facts}
    return result


def facts_of(*frames):
    return attribution(*frames, account=ME).attrs["toolkit"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_incomplete_input_is_named(place):
    names = ("fills", "funding", "ledger")
    frames = [said(fills()), said(funding()), said(ledger())]
    assert facts_of(*frames)["complete"] == "yes"
    assert facts_of(*frames)["simulated"] is False
    frames[place] = said(frames[place], complete="no", simulated=True, source="elsewhere")
    facts = facts_of(*frames)
    assert facts["complete"] == f"no ({names[place]})"
    assert facts["simulated"] is True
    assert "source" not in facts
    assert facts["inputs"][names[place]]["complete"] == "no"


def test_complete_is_unknown_without_provenance():
    assert facts_of(fills())["complete"] == "unknown"
    assert facts_of(said(fills()), funding())["complete"] == "unknown (funding)"


def test_inputs_state_rows_and_fetched_rows():
    few = said(fills()).head(2)
    facts = facts_of(few, None, said(ledger(), parameters={"user": ME}))
    assert not {"rows", "pages", "parameters"} & set(facts)
    assert list(facts["inputs"]) == ["fills", "ledger"]
    assert (facts["inputs"]["fills"]["rows"], facts["inputs"]["fills"]["fetched_rows"]) == (2, 7)
    assert facts["inputs"]["ledger"]["parameters"] == {"user": ME}
    assert facts["source"] == "here"


def test_helper_result_keeps_simulated_flag():
    facts = fundings.sums(exact(said(funding(), simulated=True))).attrs["toolkit"]
    assert facts["simulated"] is True
    assert facts["inputs"]["funding"]["rows"] == 3


def test_results_say_their_helper():
    total = fundings.sums(exact(said(funding())), ["coin", "day"]).attrs["toolkit"]
    assert (total["helper"], total["by"]) == ("funding.sums", ["coin", "day"])
    assert list(total["inputs"]) == ["funding"]
    curve = fundings.accrual(exact(said(funding())), "coin", step="week").attrs["toolkit"]
    assert (curve["helper"], curve["by"], curve["step"]) == ("funding.accrual", ["coin"], "week")
    assert list(curve["inputs"]) == ["funding"]
