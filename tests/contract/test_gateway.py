"""What a gateway answers instead of the service: docs/live_service.md, section 8."""

import pytest

from toolkit.contract.answers import decode
from toolkit.contract.operations import get_operation
from toolkit.errors import AnswerInvalid, NotPermitted, RateLimited, ServiceDown, ServiceError

CLOUDFLARE = {"server": "cloudflare", "cf-ray": "8f1c22-FRA", "content-type": "text/html"}
PAGE = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>secret</body></html>"
)


def error_of(status: int, content: bytes, headers: dict[str, str] | None = None) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        decode(get_operation("userFills"), status, headers or CLOUDFLARE, content)
    assert caught.value.status == status
    return caught.value


@pytest.mark.parametrize(
    "content",
    [
        b"error code: 1010",
        b"<html><h1>Error 1010</h1></html>",
        b'<html><span class="cf-error-code">1010</span></html>',
    ],
)
def test_1010_is_refused_client(content: bytes) -> None:
    error = error_of(403, content)
    assert type(error) is NotPermitted
    assert error.message.startswith("the gateway (cloudflare, cf-ray 8f1c22-FRA) refused")
    assert "error code 1010" in error.message
    assert "no missing add-on" in error.hint
    assert "user_agent" in error.hint
    assert "<" not in str(error)


def test_missing_add_on_stays_one() -> None:
    error = error_of(403, b'{"error":"Permission denied"}', {})
    assert (type(error), error.message) == (NotPermitted, "Permission denied")
    assert "add-on that the key must have bought" in error.hint


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 521, 522, 523, 524, 530])
@pytest.mark.parametrize("content", [b"", b"error code: 522", PAGE, b'{"error":"Timeout error"}'])
def test_gateway_failures_are_asked_again(status: int, content: bytes) -> None:
    assert type(error_of(status, content)) is ServiceDown


@pytest.mark.parametrize("status", [501, 505, 511])
def test_lasting_failures_are_not(status: int) -> None:
    assert type(error_of(status, b"")) is ServiceError


def test_1015_is_rate_limited() -> None:
    error = error_of(429, b"error code: 1015", CLOUDFLARE | {"retry-after": "30"})
    assert isinstance(error, RateLimited)
    assert (error.retry_after, "error code 1015" in error.message) == (30.0, True)
    assert "quota" not in error.hint


@pytest.mark.parametrize("status", [403, 404, 500, 502, 522])
def test_web_page_is_never_shown(status: int) -> None:
    error = error_of(status, PAGE)
    words = "the answer is a web page of the gateway (cloudflare, cf-ray 8f1c22-FRA)"
    assert error.message.startswith(words)
    assert "secret" not in str(error)


def test_web_page_of_403_is_refused_client() -> None:
    error = error_of(403, PAGE)
    assert type(error) is NotPermitted
    assert "no missing add-on" in error.hint


@pytest.mark.parametrize("type_", ["userFills", "perpTwapSnapshots"])
def test_web_page_of_404_is_wrong_address(type_: str) -> None:
    with pytest.raises(ServiceError) as caught:
        decode(get_operation(type_), 404, {"server": "nginx"}, PAGE)
    assert type(caught.value) is ServiceError  # not NotReady, which tk.poll waits for
    assert "Check the base URL" in caught.value.hint


def test_status_stands_once_in_message() -> None:
    assert str(error_of(503, b"{}")).count("503") == 1


@pytest.mark.parametrize("content", [PAGE, b"\n  <html>", b"\xef\xbb\xbf<html>"])
@pytest.mark.parametrize("type_", ["userFills", "perpTwapSnapshots", "meta"])
def test_good_status_with_web_page_is_invalid(content: bytes, type_: str) -> None:
    with pytest.raises(AnswerInvalid, match=r"is a web page \(from cloudflare, cf-ray") as caught:
        decode(get_operation(type_), 200, CLOUDFLARE, content)
    assert "<" not in str(caught.value)
    assert "login page" in str(caught.value)


def test_odd_headers_are_left_out() -> None:
    error = error_of(403, b"error code: 1010", {"server": "a\nb", "cf-ray": "x" * 500})
    assert "a\nb" not in error.message
    assert len(error.message) < 200
