"""Expensive things, made once, and shared by the processes of a run and by later runs."""

import hashlib
import pickle
from functools import cache
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build" / "tests"


@cache
def _digest(*sources):
    digest = hashlib.blake2b(digest_size=8)
    for source in sources:
        path = ROOT / source
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def made_once(name, make, *sources):
    """Return `make()` from a file that is keyed by the code in `sources` (files and folders)."""
    path = PLACE / f"{name}-{_digest('requirements.lock', 'toolkit', *sources)}.pickle"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if path.exists():
            return pickle.loads(path.read_bytes())
        made = make()
        for old in PLACE.glob(f"{name}-*.pickle"):
            old.unlink()
        part = path.with_suffix(".part")
        part.write_bytes(pickle.dumps(made))
        part.rename(path)
    return made
