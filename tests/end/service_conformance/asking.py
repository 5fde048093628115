"""Asks over HTTP."""

from typing import Any

import httpx


class Client:
    """Asks over HTTP, with one key."""

    def __init__(self, base_url: str, secret: str) -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        self.http = httpx.Client(base_url=base_url, headers=headers)

    def post(self, **body: Any) -> httpx.Response:
        return self.http.post("/info", json=body)

    def ask(self, **body: Any) -> Any:
        got = self.post(**body)
        assert got.status_code == 200, got.text
        assert got.headers["content-type"] == "application/json"
        return got.json()

    def refuse(self, **body: Any) -> tuple[int, str]:
        got = self.post(**body)
        assert list(got.json()) == ["error"]
        return got.status_code, got.json()["error"]
