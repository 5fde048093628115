"""environment.yml, requirements.lock and the imports agree with pyproject.toml."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.installation import EXTRAS, extra_requirements

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
LOCK = (ROOT / "requirements.lock").read_text()
DEMO_LOCK = (ROOT / "requirements-demo.lock").read_text()

CONDA_NAMES = {
    "duckdb": "python-duckdb",
    "isal": "python-isal",
    "jupyter-server": "jupyter_server",
    "jupyterlab-server": "jupyterlab_server",
    "matplotlib": "matplotlib-base",
    "msgpack": "msgpack-python",
}
"""Name of a distribution in the package registry -> its different name in conda-forge."""

BOUNDED = {
    "deltalake": "its log and its errors: toolkit/archive",
    "duckdb": "an engine: each version changes what a relation can do",
    "httpx": "versions before 1: its errors and transports: toolkit/client",
    "jupyterlab": "the format of its workspaces and extensions: toolkit/lab",
    "msgspec": "versions before 1: the records and their errors",
    "numpy": "dtypes and casts of every frame",
    "pandas": "dtypes of every frame",
    "polars": "an engine: each version changes what a lazy frame can do",
    "pyspark": "an engine, and its protocol of workers: toolkit/archive/engines.py",
    "typer": "versions before 1: the classes of commands: toolkit/cli/fetch.py",
    "uvicorn": "versions before 1: how it stops, and its settings: toolkit/service/http.py",
    "zstandard": "versions before 1: frames and their errors",
}
"""Libraries with an upper bound -> what of them this project depends on and may change."""


def requirement_names(*extras):
    """Return the requirements of the core and of extras, with those of the extras in them."""
    items = [Requirement(text) for text in PROJECT["dependencies"]]
    for extra in extras:
        for item in map(Requirement, PROJECT["optional-dependencies"][extra]):
            own = item.name == PROJECT["name"]
            items += requirement_names(*sorted(item.extras)) if own else [item]
    return list(dict.fromkeys(items))


def locked_versions(lock=LOCK):
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", lock, flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def imported_names():
    """Return the top-level modules that toolkit/ imports anywhere in a file."""
    names = set()
    for path in (ROOT / "toolkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"toolkit"}


def test_conda_environment_repeats_dependencies():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    wanted = {
        f"{CONDA_NAMES.get(item.name, item.name)}{item.specifier}"
        for item in requirement_names("all")
    }
    given = {str(Requirement(line)) for line in listed}
    assert given == wanted | {f"python{PROJECT['requires-python']}", "pip"}


def test_lock_is_within_bounds():
    locked = locked_versions()
    items = requirement_names("all", "spark", "docs", "dev")
    wrong = [i for i in items if locked[canonicalize_name(i.name)] not in i.specifier]
    assert wrong == []
    assert [i for i in items if not any(part.operator == ">=" for part in i.specifier)] == []


def test_fast_changing_libraries_are_bounded():
    bounded = {
        item.name
        for item in requirement_names("all", "spark")
        if any(part.operator == "<" for part in item.specifier)
    }
    assert bounded == BOUNDED.keys()


def test_lock_pins_with_hashes():
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) == len(locked_versions())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|file:|--(?:extra-)?index-url|--find-links|@", LOCK) == []


def test_demo_lock_has_reports_alone():
    demo, names = locked_versions(DEMO_LOCK), {item.name for item in requirement_names("reports")}
    assert demo.items() <= locked_versions().items()
    assert {canonicalize_name(name) for name in names} | {"hatchling", "editables"} <= demo.keys()
    assert len(demo) < 110
    assert {
        entry for entry in re.split(r"\n(?=\S)", DEMO_LOCK.strip()) if "sha256" not in entry
    } == set()


def test_every_import_is_declared():
    declared = {canonicalize_name(item.name) for item in requirement_names("all", "spark")}
    distributions = packages_distributions()
    undeclared = {
        name
        for name in imported_names()
        if not declared & {canonicalize_name(found) for found in distributions.get(name, ())}
    }
    assert undeclared == set()


def test_extra_all_includes_every_extra():
    assert set(EXTRAS) | {"all", "spark", "dev", "docs"} == set(PROJECT["optional-dependencies"])
    assert {f"{item.name}" for item in requirement_names(*EXTRAS)} == {
        item.name for item in requirement_names("all")
    }


def test_workflow_uses_supported_versions():
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    tried = jobs["tests"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    named = [text.removeprefix(prefix) for text in PROJECT["classifiers"] if prefix in text]
    assert len(tried) == 3
    assert (tried[0], tried[-1]) == (named[0], named[-1])
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert f"{named[0]} to {named[-1]}" in (ROOT / "docs/install.md").read_text("utf-8")


def test_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == citation["version"] == PROJECT["version"]
    assert newest[2] == str(citation["date-released"])


def test_extra_requirements_include_nested_extras():
    names = {Requirement(text).name for text in extra_requirements("lab")}
    assert {"jupyterlab", "jinja2", "scipy", "matplotlib", "httptools"} <= names
    assert PROJECT["name"] not in names
    assert "pandas" in {Requirement(text).name for text in extra_requirements("")}
