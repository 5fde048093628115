"""Errors: one tree, clear messages, and pickling."""

import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest

import toolkit as tk
from toolkit import errors
from toolkit.errors import (
    AnswerInvalid,
    BadRequest,
    Incomplete,
    InvalidKey,
    MissingColumns,
    NotPermitted,
    NotReady,
    RateLimited,
    ServiceDown,
    ServiceError,
    ToolkitError,
)

EXAMPLES = [
    ServiceError("not implemented: delegations", status=501, operation="delegations"),
    BadRequest("coin parameter is required", operation="slippageHistory"),
    InvalidKey("Invalid API key"),
    NotPermitted("Permission denied", operation="currentDepth"),
    NotReady("No snapshots are available yet", hint="Wait"),
    RateLimited("Rate limit exceeded", retry_after=1.5, operation="meta"),
    ServiceDown("Timeout error", status=502),
    AnswerInvalid("not a legal time", operation="userFills", column="time", row=3, value="noon"),
    errors.AnswerDamaged("it ends too early", operation="userFills"),
    Incomplete("a page is full", rows=[1, 2], cursor="1_2"),
    errors.Unreachable("no answer"),
    errors.BudgetSpent("100 points"),
    errors.NotConnected("call tk.connect"),
    MissingColumns("closed_pnl"),
    errors.MissingExtra("this needs scipy"),
    errors.ArchiveError("damaged"),
    errors.CommitConflict("another process"),
    errors.StoreUnreachable("no credentials"),
    errors.HistoryMismatch("a row is missing"),
    errors.ReportFailed("a cell failed"),
]
# The command line and the local service catch these.
INTERNAL = {
    "plots/style.py: NoData",
    "service/api_keys.py: KeysUnreadable",
    "service/recordings.py: NoRecordings",
    "service/store.py: StoreDamaged",
}


def test_error_tree_is_complete():
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert classes.keys() == set(errors.__all__)
    assert [name for name in classes if name not in errors.__doc__] == []
    tried = {type(error) for error in EXAMPLES} | {ToolkitError}
    assert all(issubclass(kind, ToolkitError) for kind in tried)
    others = set(classes.values()) - tried
    assert [kind for kind in others if not issubclass(kind, UserWarning)] == []


def test_errors_and_warnings_have_one_home():
    """Users catch and filter them by tk.errors: no module that they meet defines another one."""
    folder = Path(errors.__file__).parent
    elsewhere = {
        f"{path.relative_to(folder)}: {name}"
        for path in folder.rglob("*.py")
        if path.name != "errors.py" or path.parent != folder
        for name in re.findall(
            r"^class (\w+)\(\w*(?:Warning|Error|Exception)\)", path.read_text(), re.M
        )
    }
    assert elsewhere == INTERNAL


def test_errors_survive_pickling():
    for error in EXAMPLES:
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(again) is type(error)
            assert (str(again), again.args) == (str(error), error.args)
            assert str(error)
            assert vars(again) == vars(error)


def test_errors_have_default_status():
    kinds = {
        BadRequest: 400,
        InvalidKey: 401,
        NotPermitted: 403,
        NotReady: 404,
        RateLimited: 429,
        ServiceDown: 500,
    }
    assert {kind: kind("why").status for kind in kinds} == kinds
    assert all(issubclass(kind, ServiceError) for kind in kinds)


def test_messages_have_place_and_next_step():
    shown = str(InvalidKey("Invalid API key", operation="userFills"))
    assert shown.startswith("userFills: Invalid API key (status 401). ")
    assert "TOOLKIT_API_KEY" in shown
    assert str(ServiceDown("Timeout error", status=502, hint="")) == "Timeout error (status 502)"
    invalid = AnswerInvalid("not legal", operation="userFills", column="time", row=0, value="x")
    assert str(invalid) == "userFills, column time, row 0: not legal; value 'x'"
    assert str(AnswerInvalid("cut off")) == "answer: cut off"
    long = str(AnswerInvalid("too long", value="x" * 1_000_000))
    assert len(long) < 200
    assert long.endswith("…")


def test_errors_carry_what_they_name():
    error = Incomplete("why", rows="frame", cursor="1_2")
    assert (error.rows, error.cursor) == ("frame", "1_2")
    with pytest.raises(ValueError, match="closed_pnl"):
        raise MissingColumns("closed_pnl")


def test_common_mistakes_name_what_to_do():
    with tk.local(seed=7, size="tiny") as session:
        fills = tk.user_fills_by_time(session.world["users"][0], "1d")
        states = tk.batch_clearinghouse_states(["0x" + "a" * 40])
        mistakes = [
            (lambda: tk.plan(fills), "a DataFrame is not a fetch function"),
            (lambda: tk.many(tk.user_fills, None), "list of accounts"),
            (lambda: tk.provenance({}), "not a dict"),
            (lambda: tk.pnl.attribution(None), "not None"),
            (lambda: tk.pnl.attribution([fills]), r"tk\.concat"),
            (lambda: tk.pnl.attribution(tk.user_fills), r"user_fills\(\.\.\.\)"),
            (lambda: tk.accounts.values(states), r"\.accounts, \.positions, \.failed"),
            (lambda: tk.pnl.attribution(fills, by="month"), "dex, hour, day, week"),
            (lambda: tk.slippage_history("BTC", "10k", 0), "'10k'"),
        ]
        for mistake, named in mistakes:
            with pytest.raises((TypeError, ValueError, ToolkitError), match=named):
                mistake()
