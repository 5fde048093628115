"""The layout of the project: test folders, imports without a circle, and no local paths."""

import ast
import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOMEONES_MACHINE = re.compile(r"(?<![\w.}])/(?:root|home|Users|work|tmp)/\w")
REGISTRIES = ("pypi" + ".org", "pythonhosted" + ".org", "conda" + ".anaconda", "npmjs" + ".org")
"""In two parts, so that this file does not contain them."""


@pytest.fixture(scope="module")
def tracked_texts():
    """Return the files of the checkout; a copy without git has none."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    paths = [ROOT / name for name in listing.stdout.decode().split("\0")[:-1]]
    if not paths:
        pytest.skip("needs git and a clone")
    return {path: path.read_text("utf-8", "replace") for path in paths if path.is_file()}


def test_contributing_names_test_folders():
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    packages = {path.name for path in (ROOT / "toolkit").iterdir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert [name for name in folders - packages if f"`tests/{name}/`" not in told] == []


def test_files_name_no_local_path(tracked_texts):
    kinds = {".py", ".md", ".toml", ".yml", ".ipynb"}
    found = {
        path: places
        for path, text in tracked_texts.items()
        if path.suffix in kinds or path.parent.name == ".ci" or path.name == "Makefile"
        if path != Path(__file__) and (places := SOMEONES_MACHINE.findall(text))
    }
    assert found == {}


def test_files_name_no_registry(tracked_texts):
    """A lock with the address of a mirror would install from it on every machine."""
    naming = [
        path.name
        for path, text in tracked_texts.items()
        if any(registry in text for registry in REGISTRIES)
    ]
    assert naming == []


def imported_at_module_level(path, modules):
    """Yield the modules of the package that a file imports when it is imported itself."""

    def statements(body):
        for node in body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from statements(node.orelse)
            elif isinstance(node, ast.With | ast.Try | ast.If | ast.ClassDef):
                yield from statements([*node.body, *getattr(node, "orelse", [])])
            else:
                yield node

    for node in statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in modules else node.module


def test_imports_have_no_circle():
    package = ROOT / "toolkit"
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    imports = {name: set(imported_at_module_level(path, modules)) for name, path in modules.items()}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
