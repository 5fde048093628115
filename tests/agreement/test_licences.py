"""Every dependency has a licence of the allowed list."""

import sys
from importlib.metadata import Distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from licences import ALLOWED, NAMES, READ, installed_licences, licences_of, pinned_names


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
    assert {*NAMES.values(), *READ.values()} <= ALLOWED
    assert READ.keys() <= set(pinned_names())


def test_licences_are_read_from_metadata():
    cases = [
        (["License-Expression: MIT AND (Apache-2.0 OR GPL-3.0)"], ["MIT", "Apache-2.0", "GPL-3.0"]),
        (["Classifier: License :: OSI Approved :: MIT License", "License: long text"], ["MIT"]),
        (["Classifier: License :: OSI Approved", "License: ISC"], ["ISC"]),
        (["License: MPL-2.0 AND MIT"], ["MPL-2.0", "MIT"]),
        (["Classifier: License :: Other/Proprietary License"], ["Other/Proprietary License"]),
        ([], ["not named"]),
    ]
    wrong = [lines for lines, found in cases if licences_of(FakePackage(*lines)) != found]
    assert wrong == []
