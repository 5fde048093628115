"""Errors: one tree, clear messages, and pickling."""

import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest

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

EXAMPLES: list[ToolkitError] = [
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
WARNINGS = {
    "HistoryWarning",
    "IncompleteWarning",
    "KeyExposed",
    "LimitWarning",
    "MissingAmounts",
    "MissingDirections",
    "MissingFees",
    "MissingField",
    "MissingTokens",
    "RepeatedRows",
    "UnknownField",
    "UnnamedAccount",
    "UnusedPrices",
}
# The command line and the local service catch these.
INTERNAL = {
    "archive/history_pull.py: RowsDisagree",
    "service/api_keys.py: KeysUnreadable",
    "service/recordings.py: NoRecordings",
    "service/store.py: StoreDamaged",
}
EACH = pytest.mark.parametrize("error", EXAMPLES, ids=[type(item).__name__ for item in EXAMPLES])


def test_error_tree_is_complete():
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert classes == set(errors.__all__)
    assert all(name in (errors.__doc__ or "") for name in classes)
    tried = {type(item).__name__ for item in EXAMPLES} | {"ToolkitError"} | WARNINGS
    assert tried == classes
    assert all(issubclass(getattr(errors, name), UserWarning) for name in WARNINGS)


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


@EACH
def test_every_error_is_a_toolkit_error(error):
    assert isinstance(error, ToolkitError)
    assert str(error)


@EACH
@pytest.mark.parametrize("clone", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])
def test_errors_survive_pickling(error, clone):
    again = clone(error)  # type: ignore[operator]
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (BadRequest, 400),
        (InvalidKey, 401),
        (NotPermitted, 403),
        (NotReady, 404),
        (RateLimited, 429),
        (ServiceDown, 500),
    ],
)
def test_each_error_has_default_status(kind, status):
    assert kind("why").status == status
    assert issubclass(kind, ServiceError)


def test_service_error_states_status_and_hint():
    error = InvalidKey("Invalid API key", operation="userFills")
    assert str(error) == (
        "userFills: Invalid API key (status 401). Check TOOLKIT_API_KEY or the api_key of "
        "tk.connect"
    )
    assert str(ServiceDown("Timeout error", status=502, hint="")) == "Timeout error (status 502)"


def test_answer_invalid_states_column_and_row():
    error = AnswerInvalid(
        "not a legal time", operation="userFills", column="time", row=0, value="x"
    )
    assert str(error) == "userFills, column time, row 0: not a legal time; value 'x'"
    assert str(AnswerInvalid("cut off")) == "answer: cut off"


def test_long_value_is_shortened():
    shown = str(AnswerInvalid("too long", value="x" * 1_000_000))
    assert len(shown) < 200
    assert shown.endswith("…")


def test_incomplete_carries_rows():
    error = Incomplete("why", rows="frame", cursor="1_2")
    assert (error.rows, error.cursor) == ("frame", "1_2")


def test_missing_columns_is_value_error():
    with pytest.raises(ValueError, match="closed_pnl"):
        raise MissingColumns("closed_pnl")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda tk, fills: tk.plan(fills), "a DataFrame is not a fetch function"),
        (lambda tk, fills: tk.many(tk.user_fills, None), "takes a list of accounts"),
        (
            lambda tk, fills: tk.provenance({}),
            "takes a pandas frame of a fetch function, not a dict",
        ),
        (lambda tk, fills: tk.pnl.attribution(None), "pandas, Polars, DuckDB or PySpark, not None"),
        (lambda tk, fills: tk.pnl.attribution([fills]), "not a list. To join frames: tk.concat"),
        (
            lambda tk, fills: tk.pnl.attribution(tk.user_fills),
            r"pass its result: user_fills\(\.\.\.\)",
        ),
        (
            lambda tk, fills: tk.accounts.values(tk.batch_clearinghouse_states(["0x" + "a" * 40])),
            "Pass one of its frames: .accounts, .positions, .failed",
        ),
        (lambda tk, fills: tk.pnl.attribution(fills, by="month"), "dex, hour, day, week"),
        (lambda tk, fills: tk.slippage_history("BTC", "10k", 0), "such as 10000, not '10k'"),
    ],
)
def test_common_mistake_has_clear_message(mistake, message):
    import toolkit as tk

    with tk.local(seed=7, size="tiny") as session:
        fills = tk.user_fills_by_time(session.world["users"][0], "1d")
        with pytest.raises((TypeError, ValueError, tk.ToolkitError), match=message):
            mistake(tk, fills)
