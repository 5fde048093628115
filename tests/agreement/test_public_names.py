"""Each public name has one path: users import it there, and pickles and tracebacks show it.

`inspect.getsource` works for functions. It does not work for public classes that a private module
defines: up to Python 3.12, inspect looks for a class in the file of its ``__module__``, which is
the public path. The public path is worth more, and the methods of these classes have their source.
"""

import ast
import inspect
import pickle
import re
import runpy
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import toolkit as tk

ROOT = Path(__file__).parents[2]
API = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")["api_pages"]


def functions_and_classes():
    """Return every public function and class by the name that users write."""
    names = API.public_names()
    blocks = names["reports.blocks"]
    own = {
        f"reports.blocks.{name}": value
        for name, value in vars(blocks).items()
        if getattr(value, "__module__", "") == blocks.__name__ and not name.startswith("_")
    }
    return {
        name: value
        for name, value in (names | own).items()
        if inspect.isfunction(value) or inspect.isclass(value)
    }


PUBLIC = functions_and_classes()
# tk.archive.world_of gives them to the local service.
NO_PUBLIC_CLASS = {"Sources", "WorldFacts"}
EACH = pytest.mark.parametrize("name", PUBLIC)
EACH_FUNCTION = pytest.mark.parametrize(
    "name", [name for name, value in PUBLIC.items() if inspect.isfunction(value)]
)


def classes_in(annotation):
    """Yield the classes of an annotation, also those inside unions and containers."""
    if inspect.isclass(annotation):
        yield annotation
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def test_stub_lists_each_name_once():
    tree = ast.parse((ROOT / "toolkit" / "__init__.pyi").read_text())
    imported = [
        alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    assert sorted(imported) == tk.__all__
    assigned = [statement for statement in tree.body if isinstance(statement, ast.Assign)]
    assert assigned == [], "lazy_loader makes __all__ from the imports"


@EACH
def test_module_is_public_path(name):
    path = f"toolkit.{name}".rpartition(".")[0]
    is_error = "." not in name and inspect.isclass(PUBLIC[name]) and name in tk.errors.__all__
    assert PUBLIC[name].__module__ == ("toolkit.errors" if is_error else path), (
        "use publish_as or publish_names of toolkit/public_names.py"
    )


@EACH
def test_pickle_round_trip(name):
    assert pickle.loads(pickle.dumps(PUBLIC[name])) is PUBLIC[name]


@EACH_FUNCTION
def test_source_of_function(name):
    assert f"def {PUBLIC[name].__name__}(" in inspect.getsource(PUBLIC[name])


@EACH_FUNCTION
def test_returned_classes_are_public(name):
    returned = typing.get_type_hints(PUBLIC[name]).get("return")
    hidden = [
        kind.__qualname__
        for kind in classes_in(returned)
        if kind.__module__.startswith("toolkit") and kind not in PUBLIC.values()
    ]
    assert set(hidden) <= NO_PUBLIC_CLASS, "a user cannot annotate them: export them"


def signatures(name):
    """Yield the signatures of a function, or of the public methods of a class."""
    value = PUBLIC[name]
    if inspect.isfunction(value):
        yield name, inspect.signature(value)
        return
    if issubclass(value, Exception):
        yield name, inspect.signature(value.__init__)
        return
    for key, member in API.list_members(value).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function) and (key == "__init__" or key[0] != "_"):
            yield f"{name}.{key}", inspect.signature(function)


def annotations(name):
    """Yield the annotations of a function, or of the public methods and fields of a class."""
    for place, signature in signatures(name):
        yield f"{place} ->", signature.return_annotation
        for parameter in signature.parameters.values():
            yield f"{place}({parameter.name})", parameter.annotation
    if inspect.isclass(PUBLIC[name]):
        for kind in PUBLIC[name].__mro__:
            if kind.__module__.partition(".")[0] == "toolkit":
                fields = vars(kind).get("__annotations__", {})
                yield from ((f"{name}.{key}", fields[key]) for key in fields if key[0] != "_")


def has_any(annotation):
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return bool(re.search(r"\bAny\b", text.replace(SHAPE_OF_NUMPY, "numpy.ndarray[")))


SHAPE_OF_NUMPY = "numpy.ndarray[tuple[typing.Any, ...], "  # numpy.typing.NDArray is written with it


@EACH
def test_no_any_in_signature(name):
    found = [place for place, annotation in annotations(name) if has_any(annotation)]
    assert found == [], "write object, a Protocol, a TypedDict or the class of the result"


def test_any_is_found():
    assert has_any("Callable[..., Any]")
    assert has_any(dict[str, Any])
    assert not has_any("AnyColumn")
    places = {place for name in ("archive.Archive", "Plan") for place, _ in annotations(name)}
    assert {"archive.Archive.refresh(fetch)", "Plan.rows"} <= places


@EACH_FUNCTION
def test_type_hints_resolve(name):
    assert "return" in typing.get_type_hints(PUBLIC[name])


def test_private_import_shows_public_path():
    """A result names its public class, also if nobody has used the public name before."""
    code = (
        "from toolkit.client.session import Session\n"
        "from toolkit.frames.provenance import Provenance\n"
        "import pickle\n"
        "print(Session.__module__, pickle.loads(pickle.dumps(Provenance(rows=1))))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "toolkit {'rows': 1}\n"


def test_results_survive_pickling():
    with tk.local(seed=7, size="tiny") as session:
        fills = tk.user_fills(session.world["users"][0], session=session)
        plan = tk.plan(tk.user_fills, session.world["users"][0], session=session)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert pickle.loads(pickle.dumps(tk.provenance(fills))) == tk.provenance(fills)
    assert b"toolkit.descriptions" not in pickle.dumps(tk.describe(fills))
