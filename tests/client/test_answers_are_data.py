"""Answers are data: no part of the package turns received bytes or text into code."""

import ast
import itertools
import json
import pickle
from pathlib import Path

import httpx
import msgpack
import pytest

import toolkit as tk
from toolkit.client import open_session
from toolkit.errors import ToolkitError

PACKAGE = Path(tk.__file__).parent
EVALUATES = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
METHODS = {"read_pickle", "eval", "query", "import_module", "system", "popen"}
"""Methods of libraries that evaluate text or start a shell."""


def test_package_has_no_eval_or_pickle():
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = set()
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names} & UNPICKLES
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0]} & UNPICKLES
            elif isinstance(node, ast.Call):
                function = node.func
                if isinstance(function, ast.Name):
                    names = {function.id} & EVALUATES
                elif isinstance(function, ast.Attribute):
                    names = {function.attr} & METHODS
                names |= {
                    keyword.arg
                    for keyword in node.keywords
                    if keyword.arg in {"allow_pickle", "shell"}
                }
            found += [f"{path.relative_to(PACKAGE)}:{node.lineno} {name}" for name in names]
    assert found == []


class Bomb:
    """An object whose pickle creates a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_code_in_answer_does_not_run(tmp_path):
    trace = tmp_path / "trace"
    code = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    row = {"coin": code, "px": code, "__reduce__": code, "__class__": code}
    answers = (
        pickle.dumps(Bomb(trace)),
        code.encode(),
        json.dumps([row]).encode(),
        msgpack.packb([code, {code: (code,)}, msgpack.ExtType(5, pickle.dumps(Bomb(trace)))]),
    )
    pickle.loads(answers[0])
    trace.unlink()  # it works if it is read
    types = ("application/json", "application/octet-stream", "text/x-python")
    for content, type_ in itertools.product(answers, types):

        def respond(request, content=content, type_=type_):
            return httpx.Response(200, headers={"content-type": type_}, content=content)

        with open_session(
            "http://127.0.0.1:9",
            api_key="a-secret-key",
            transport=httpx.MockTransport(respond),
            default=False,
        ) as session:
            for ask in (
                lambda: tk.user_fills("0x" + "1" * 40, session=session),
                lambda: tk.meta(session=session),
                lambda: tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session),
            ):
                with pytest.raises(ToolkitError):
                    ask()
    assert not trace.exists()
