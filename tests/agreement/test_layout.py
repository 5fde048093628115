"""The layout of the project: module names, test folders, and no local paths."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VAGUE = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
BESIDE_THE_MIRROR = {
    "agreement",
    "benchmarks",
    "browser",
    "foreign_clients",
    "conformance",
    "end",
    "faults",
    "notebooks",
    "reality",
    "scale",
    "typing",
}
PROJECT_FILES = [
    ".ci/run",
    ".ci/sbom",
    ".ci/wheel",
    ".devcontainer/devcontainer.json",
    ".pre-commit-config.yaml",
    ".github/ISSUE_TEMPLATE/fault.md",
    ".github/pull_request_template.md",
    ".github/workflows/tests.yml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "docs/accounting.md",
    "docs/comparison.md",
    "docs/fetching.md",
    "docs/glossary.md",
    "docs/how_to.md",
    "docs/install.md",
    "docs/live_service.md",
    "docs/scale.md",
    "environment.yml",
    "requirements.lock",
]
"""Files that people look for in a project, and pages that no other test reads."""
SOMEONES_MACHINE = re.compile(r"(?<![\w.}])/(?:root|home|Users|work|tmp)/\w")


def tracked_files(*patterns):
    """Return the files of the checkout; a copy without git has none."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=False
    )
    names = listing.stdout.decode().split("\0")[:-1]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_no_module_has_a_vague_name():
    assert [p.name for p in (ROOT / "toolkit").rglob("*.py") if p.stem in VAGUE] == []


def test_folders_mirror_toolkit():
    packages = {path.name for path in (ROOT / "toolkit").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert folders - packages - BESIDE_THE_MIRROR == set()


def test_contributing_names_test_folders():
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert {name for name in BESIDE_THE_MIRROR if f"`tests/{name}/`" not in told} == set()


def test_project_files_exist():
    assert [name for name in PROJECT_FILES if not (ROOT / name).is_file()] == []


def test_how_to_page_has_25_questions():
    headings = re.findall(r"^##+ .*\?$", (ROOT / "docs/how_to.md").read_text("utf-8"), re.M)
    assert len(set(headings)) >= 25


def test_package_is_typed():
    assert (ROOT / "toolkit" / "py.typed").exists()


def test_no_local_paths():
    if not (
        paths := tracked_files("*.py", "*.md", "*.toml", "*.yml", "*.ipynb", "Makefile", ".ci/*")
    ):
        pytest.skip("not a git checkout")
    found = {
        path.relative_to(ROOT).as_posix(): places
        for path in paths
        if path != Path(__file__) and (places := SOMEONES_MACHINE.findall(path.read_text()))
    }
    assert found == {}
