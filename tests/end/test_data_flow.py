"""A call, a request inside the service and a refresh visit few modules."""

import sys
from pathlib import Path

import toolkit as tk

PACKAGE = f"{Path(tk.__file__).parent}/"
SERVICE = ("service/", "local_service.py")
MOST_MODULES = 15
MOST_MORE_MODULES = 10  # of a refresh, in addition to those of a call


def visited_modules(action):
    """Return the modules of the package that run on the side of the client and of the service."""
    client, service = set(), set()

    def look(frame, event, _):
        if event != "call":
            return
        modules = []
        while frame is not None:
            if (path := frame.f_code.co_filename).startswith(PACKAGE):
                modules.append(path.removeprefix(PACKAGE))
            frame = frame.f_back
        # tk.local runs the service in this process.
        is_service = any(name.startswith(SERVICE) for name in modules)
        (service if is_service else client).update(modules[:1])

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(before)
    return client, service - {"local_service.py"}


def test_calls_visit_few_modules(tmp_path):
    session = tk.local(seed=7, size="tiny", default=False)
    user = session.world["users"][0]
    archive, other = (tk.archive.open(tmp_path / name) for name in ("archive", "other"))

    def fetch():
        tk.user_fills_by_time(user, "3d", session=session)

    def refresh():
        archive.refresh(tk.user_fills_by_time, user, session=session)

    fetch()  # decoders are made with the first call
    other.refresh(tk.user_fills_by_time, user, session=session)
    client, service = visited_modules(fetch)
    assert "service/application.py" in service
    assert len(service) <= MOST_MODULES, sorted(service)
    assert len(client) <= MOST_MODULES, sorted(client)
    for _ in range(2):  # the second one finds an archive
        more = visited_modules(refresh)[0] - client
        assert 0 < len(more) <= MOST_MORE_MODULES, sorted(more)
