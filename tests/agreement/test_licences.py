"""Every dependency has a licence of the allowed list, and no file names a package registry."""

import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from licences import ALLOWED, NAMES, READ, installed_licences, licences_of, pinned_names

ROOT = Path(__file__).parents[2]
REGISTRIES = ("pypi" + ".org", "pythonhosted" + ".org", "conda" + ".anaconda", "npmjs" + ".org")
"""In two parts, so that this file does not contain them."""


class FakePackage(Distribution):
    """A package with some lines of metadata."""

    def __init__(self, *lines):
        self.lines = "\n".join(("Metadata-Version: 2.4", "Name: fake", *lines))

    def read_text(self, filename):
        return self.lines if filename == "METADATA" else None

    def locate_file(self, path):
        raise NotImplementedError


def test_licences_are_allowed():
    licences = installed_licences()
    assert len(licences) > 100
    refused = {name: found for name, found in licences.items() if not set(found) <= ALLOWED}
    assert refused == {}


def test_licence_tables_name_only_locked_packages():
    assert set(NAMES.values()) <= ALLOWED
    assert READ.keys() <= set(pinned_names())
    assert set(READ.values()) <= ALLOWED


@pytest.mark.parametrize(
    ("lines", "licences"),
    [
        (["License-Expression: MIT AND (Apache-2.0 OR GPL-3.0)"], ["MIT", "Apache-2.0", "GPL-3.0"]),
        (["Classifier: License :: OSI Approved :: MIT License", "License: long text"], ["MIT"]),
        (["Classifier: License :: OSI Approved", "License: ISC"], ["ISC"]),
        (["License: MPL-2.0 AND MIT"], ["MPL-2.0", "MIT"]),
        (["Classifier: License :: Other/Proprietary License"], ["Other/Proprietary License"]),
        ([], ["not named"]),
    ],
)
def test_licences_are_read_from_metadata(lines, licences):
    assert licences_of(FakePackage(*lines)) == licences


def test_files_name_no_registry():
    """A lock with the address of a mirror would install from it on every machine."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("needs git and a clone")
    paths = [ROOT / name.decode() for name in listed.split(b"\0") if name]
    naming = [
        (path.name, registry)
        for path in paths
        if path.is_file()
        for registry in REGISTRIES
        if registry.encode() in path.read_bytes()
    ]
    assert naming == []
