"""Write the licences of every pinned dependency to build/licences.csv; fail if one is not allowed.

`make sbom` runs it after it wrote the bill of materials, build/sbom.json. A dependency that is
missing there is an error, too.
"""

import csv
import json
import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[1]

_TABLES: Final = tomllib.loads((ROOT / "docs/licences.toml").read_text("utf-8"))
ALLOWED: Final = set(_TABLES["allowed"])
NAMES: Final[dict[str, str]] = _TABLES["names"]
READ: Final[dict[str, str]] = _TABLES["read"]


def pinned_names() -> list[str]:
    """Return the names of the packages in requirements.lock."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    return re.findall(r"^([A-Za-z0-9_.-]+)==", text, flags=re.MULTILINE)


def licences_of(package: Distribution) -> list[str]:
    """Return the SPDX names of the licences that the metadata of a package name."""
    metadata = package.metadata
    if (read := READ.get(package.name.lower())) is not None:
        return [read]
    classifiers = metadata.get_all("Classifier", [])
    texts = [text.split(" :: ")[-1] for text in classifiers if text.startswith("License ::")]
    expressions = metadata.get_all("License-Expression", [])
    if expressions or texts in ([], ["OSI Approved"]):
        text = next(iter([*expressions, *metadata.get_all("License", [])]), "")
        texts = re.split(r"[()]| AND | OR ", text.strip().partition("\n")[0])
    names = [NAMES.get(name.strip(), name.strip()) for name in texts if name.strip()]
    return names or ["not named"]


def installed_licences() -> dict[tuple[str, str], list[str]]:
    """Return name and version of each pinned package that is installed -> its licences.

    Packages for other operating systems or versions of Python are not installed.
    """
    licences = {}
    for name in pinned_names():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        licences[name, package.version] = licences_of(package)
    return licences


def main() -> None:
    """Write the list, and exit with an error that names licences that are not allowed."""
    licences = installed_licences()
    path = ROOT / "build/licences.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("package", "version", "licences"))
        for (name, version), names in licences.items():
            writer.writerow((name, version, ", ".join(names)))
    print(f"{len(licences)} packages in {path.relative_to(ROOT)}")
    materials = json.loads((ROOT / "build/sbom.json").read_text("utf-8"))["components"]
    listed = {canonicalize_name(material["name"]) for material in materials}
    if missing := [name for name, _ in licences if canonicalize_name(name) not in listed]:
        sys.exit(f"The bill of materials lacks {', '.join(missing)}")
    unknown = {name: names for (name, _), names in licences.items() if not set(names) <= ALLOWED}
    if unknown:
        sys.exit(f"Licences that are not allowed: {unknown}. Read and add: docs/licences.toml")


if __name__ == "__main__":
    main()
