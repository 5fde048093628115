"""A request while it arrives on a connection, and the head of its response."""

import http
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Final

from toolkit.errors import BadRequest
from toolkit.service.access import Key
from toolkit.service.messages import Response

__all__ = ["ArrivingRequest", "response_head"]

_REASONS: Final = {status.value: status.phrase for status in http.HTTPStatus}


@dataclass(slots=True)
class ArrivingRequest:
    """A request while it arrives."""

    target: bytes = b""
    method: str = ""
    version: str = "1.1"
    headers: dict[str, str] = field(default_factory=dict)
    header_count: int = 0
    header_bytes: int = 0
    received_bytes: int = 0
    """Bytes of the pieces in which the headers arrive, before they are complete."""
    body: bytearray = field(default_factory=bytearray)
    body_bytes: int = 0
    key: Key | None = None
    response: Response | None = None
    """The response, if the headers alone decide it. The body is then not kept."""
    is_last: bool = False
    """Whether the connection closes after the response."""

    def add_header(self, name: str, value: str) -> None:
        """Add a header; its name is in lower case. Values of the same name become a list."""
        if name not in self.headers:
            self.headers[name] = value
            return
        if name == "host":
            raise BadRequest("The request has two Host headers")
        self.headers[name] += ", " + value


def response_head(request: ArrivingRequest, response: Response) -> bytes:
    """Return the status line and the headers of a response."""
    status = response.status
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append(f"date: {formatdate(usegmt=True)}")
    lines.append(f"content-length: {len(response.content)}")
    if request.is_last:
        lines.append("connection: close")
    elif request.version == "1.0":
        lines.append("connection: keep-alive")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")
