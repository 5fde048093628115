"""Where results come from."""

from toolkit.pnl import attribution

from .examples import ME, fills, funding, ledger

FETCHED = {"source": "here", "simulated": False, "complete": "yes", "rows": 7, "pages": 1}


def said(frame, **facts):
    result = frame.copy()
    result.attrs["toolkit"] = {**FETCHED, "rows": len(frame), **facts}
    return result


def facts_of(*frames):
    return attribution(*frames, account=ME).attrs["toolkit"]


def test_incomplete_input_is_named():
    frames = {"fills": said(fills()), "funding": said(funding()), "ledger": said(ledger())}
    facts = facts_of(*frames.values())
    assert (facts["complete"], facts["simulated"]) == ("yes", False)
    for name, frame in frames.items():
        other = said(frame, complete="no", simulated=True, source="elsewhere")
        facts = facts_of(*(frames | {name: other}).values())
        assert (facts["complete"], facts["simulated"]) == (f"no ({name})", True)
        assert "source" not in facts
        assert facts["inputs"][name]["complete"] == "no"
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
