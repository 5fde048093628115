"""A service of fills as one writes it with a web framework: FastAPI over columns in SQLite.

`python -m tests.benchmarks.web_framework FILE` serves the database on a free port.
"""

import contextlib
import socket
import sqlite3
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from tests.benchmarks.history import history_fills, serve_module

FIELDS = list(msgspec.to_builtins(next(history_fills(1))[1]))
PAGE = 2_000


def write_columns(path, rows, users):
    """Write a table with a column for each field, and an index on what is asked for."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE fills (account, {', '.join(FIELDS)})")
        values = (
            (user, *msgspec.to_builtins(fill).values())
            for name in users
            for user, fill in history_fills(rows, name)
        )
        marks = ", ".join("?" * (len(FIELDS) + 1))
        connection.executemany(f"INSERT INTO fills VALUES ({marks})", values)
        connection.execute("CREATE INDEX by_user ON fills (account, time, txIndex)")
        connection.commit()


def make_app(path):
    """Return an application that answers pages of fills from a time on."""
    app = FastAPI()
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.row_factory = sqlite3.Row

    @app.post("/info")
    async def info(request: Request):
        question: dict[str, Any] = await request.json()
        rows = connection.execute(
            f"SELECT {', '.join(FIELDS)} FROM fills WHERE account = ? AND time >= ? "
            "ORDER BY time, txIndex LIMIT ?",
            (question["user"], question["startTime"], PAGE),
        )
        return JSONResponse([dict(row) for row in rows])

    return app


def serve_columns(path):
    """Serve the database from a process of its own."""
    return serve_module("tests.benchmarks.web_framework", path)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(make_app(Path(sys.argv[1])), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
