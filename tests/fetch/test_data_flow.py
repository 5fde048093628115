"""The way of one call through the modules is short, and it never climbs."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import toolkit as tk

PACKAGE = Path(tk.__file__).parent
SERVICE = ("service/", "local_service.py")
MOST_MODULES = 15
HEIGHTS = {"fetch": 4, "client": 3, "frames": 3, "completeness": 2, "contract": 1}


def module_of(frame: FrameType) -> str:
    """Return the module of a frame, relative to the package; empty for other code."""
    path = frame.f_code.co_filename
    return path[len(str(PACKAGE)) + 1 :] if path.startswith(str(PACKAGE)) else ""


def callers(frame: FrameType) -> Iterator[str]:
    """Yield the modules of the package that a frame was called from, the nearest first."""
    caller = frame.f_back
    while caller is not None:
        if module := module_of(caller):
            yield module
        caller = caller.f_back


def height(module: str) -> int:
    return HEIGHTS.get(module.partition("/")[0], 0)


def test_one_call_uses_few_modules(session, users) -> None:
    tk.user_fills_by_time(users[0], "3d", session=session)  # decoders are made with the first call
    visited: set[str] = set()
    climbs: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        module = module_of(frame)
        if event != "call" or not module:
            return
        above = list(callers(frame))
        if any(name.startswith(SERVICE) for name in [module, *above]):
            return  # the other side, which tk.local runs in this process
        visited.add(module)
        if above and height(module) > height(above[0]):
            climbs.add((above[0], module))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        tk.user_fills_by_time(users[0], "3d", session=session)
    finally:
        sys.setprofile(before)
    assert len(visited) <= MOST_MODULES, sorted(visited)
    assert climbs == set()
