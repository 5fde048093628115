"""A call, a request inside the service and a refresh take a short way through the modules.

A climb is a call from a lower layer back to a higher one.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import toolkit as tk

PACKAGE = Path(tk.__file__).parent
SERVICE = ("service/", "local_service.py")
MOST_MODULES = 15
MOST_MORE_MODULES = 10  # of a refresh, in addition to those of a call
LAYERS = {"archive": 5, "service": 5, "fetch": 4, "client": 3, "frames": 3, "completeness": 2}
CONTRACT = 1


def module_of(frame):
    """Return the module of a frame, relative to the package; empty for other code."""
    path = frame.f_code.co_filename
    return path[len(str(PACKAGE)) + 1 :] if path.startswith(str(PACKAGE)) else ""


def callers(frame):
    """Yield the modules of the package that a frame was called from, the nearest first."""
    caller = frame.f_back
    while caller is not None:
        if module := module_of(caller):
            yield module
        caller = caller.f_back


def layer(module):
    folder = module.partition("/")[0]
    return LAYERS.get(folder, CONTRACT if folder == "contract" else 0)


@dataclass
class Way:
    """The modules that some code visits, of one side: the client or the service."""

    is_service: bool = False
    modules: set[str] = field(default_factory=set)
    climbs: set[tuple[str, str]] = field(default_factory=set)

    def follow(self, action):
        before = sys.getprofile()
        sys.setprofile(self._look)
        try:
            action()
        finally:
            sys.setprofile(before)

    def _look(self, frame, event, _):
        module = module_of(frame)
        if event != "call" or not module or module == "local_service.py":
            return
        above = list(callers(frame))
        # tk.local runs the service in this process.
        in_service = any(name.startswith(SERVICE) for name in [module, *above])
        if in_service != self.is_service:
            return
        self.modules.add(module)
        is_entry = in_service and not any(name.startswith("service/") for name in above)
        if above and not is_entry and layer(module) > layer(above[0]):
            self.climbs.add((above[0], module))


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def user(session):
    return str(session.world["users"][0])


def follow_call(session, user, *, is_service=False):
    def fetch():
        tk.user_fills_by_time(user, "3d", session=session)

    fetch()  # decoders are made with the first call
    way = Way(is_service)
    way.follow(fetch)
    return way


def follow_refresh(session, user, archive):
    way = Way()
    way.follow(lambda: archive.refresh(tk.user_fills_by_time, user, session=session))
    return way


def test_call_visits_few_modules(session, user):
    way = follow_call(session, user)
    assert len(way.modules) <= MOST_MODULES, sorted(way.modules)
    assert way.climbs == set()


def test_request_in_service_visits_few_modules(session, user):
    way = follow_call(session, user, is_service=True)
    assert "service/application.py" in way.modules
    assert len(way.modules) <= MOST_MODULES, sorted(way.modules)
    assert way.climbs == set()


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_refresh_visits_few_modules_more(session, user, tmp_path, is_first):
    call = follow_call(session, user)
    follow_refresh(session, user, tk.archive.open(tmp_path / "other"))  # decoders
    archive = tk.archive.open(tmp_path / "archive")
    if not is_first:
        archive.refresh(tk.user_fills_by_time, user, session=session)
    way = follow_refresh(session, user, archive)
    more = way.modules - call.modules
    assert len(more) <= MOST_MORE_MODULES, sorted(more)
    assert way.climbs == set()
