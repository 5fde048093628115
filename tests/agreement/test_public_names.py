"""Each public name has one path: users import it there, and pickles and tracebacks show it.

The helpers show the private file in their package too, such as ``toolkit.pnl._attribution``.
`inspect.getsource` does not work for public classes of the other modules: up to Python 3.12,
inspect looks for a class in the file of its ``__module__``, which is the public path. The public
path is worth more, and the methods of these classes have their source.
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

import toolkit as tk

ROOT = Path(__file__).parents[2]
API = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")


def functions_and_classes():
    """Return every public function and class by the name that users write."""
    names = API["public_names"]()
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
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


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


def wrong(is_right, names=PUBLIC):
    """Return the public names whose value does not meet a condition."""
    return [name for name in names if not is_right(name, names[name])]


def test_modules_are_public_paths():
    def is_public(name, value):
        is_error = "." not in name and name in tk.errors.__all__
        path = f"toolkit.{name}".rpartition(".")[0]
        module = value.__module__.partition("._")[0]
        return module == ("toolkit.errors" if is_error else path)

    assert wrong(is_public) == [], "use publish_as or publish_names of toolkit/public_names.py"


def test_public_names_survive_pickling():
    assert wrong(lambda _, value: pickle.loads(pickle.dumps(value)) is value) == []


def test_functions_have_source_and_docstring():
    def is_documented(name, function):
        if f"def {function.__name__}(" not in inspect.getsource(function):
            return False
        docstring = inspect.getdoc(function) or ""
        signature = inspect.signature(function)
        returns = signature.return_annotation not in (None, "None")
        return name.startswith("reports.blocks.") or (
            (not signature.parameters or "\nParameters\n----------\n" in docstring)
            and (not returns or re.search(r"\n(Returns|Yields)\n-+\n", docstring))
        )

    assert wrong(is_documented, FUNCTIONS) == []


def test_returned_classes_are_public():
    hidden = {
        kind.__qualname__
        for function in FUNCTIONS.values()
        for kind in classes_in(typing.get_type_hints(function)["return"])
        if kind.__module__.startswith("toolkit") and kind not in PUBLIC.values()
    }
    assert hidden == set(), "a user cannot annotate them: export them"


def signatures(name, value):
    """Yield the signatures of a function, or of the public methods of a class."""
    if inspect.isfunction(value):
        yield name, inspect.signature(value)
        return
    if issubclass(value, Exception):
        yield name, inspect.signature(value.__init__)
        return
    for key, member in API["list_members"](value).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if inspect.isfunction(function) and (key == "__init__" or key[0] != "_"):
            yield f"{name}.{key}", inspect.signature(function)


def annotations(name, value):
    """Yield the annotations of a function, or of the public methods and fields of a class."""
    for place, signature in signatures(name, value):
        yield f"{place} ->", signature.return_annotation
        for parameter in signature.parameters.values():
            yield f"{place}({parameter.name})", parameter.annotation
    if inspect.isclass(value):
        for kind in value.__mro__:
            if kind.__module__.partition(".")[0] == "toolkit":
                fields = vars(kind).get("__annotations__", {})
                yield from ((f"{name}.{key}", fields[key]) for key in fields if key[0] != "_")


def has_any(annotation):
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return bool(re.search(r"\bAny\b", text.replace(SHAPE_OF_NUMPY, "numpy.ndarray[")))


SHAPE_OF_NUMPY = "numpy.ndarray[tuple[typing.Any, ...], "  # numpy.typing.NDArray is written with it


def test_no_any_in_signatures():
    found = dict(place for item in PUBLIC.items() for place in annotations(*item))
    assert {"archive.Archive.refresh(fetch)", "Plan.rows"} <= found.keys()
    with_any = [place for place, annotation in found.items() if has_any(annotation)]
    assert with_any == [], "write object, a Protocol, a TypedDict or the class of the result"
    kinds = ("Callable[..., Any]", dict[str, Any], "AnyColumn")
    assert list(map(has_any, kinds)) == [True, True, False]


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
