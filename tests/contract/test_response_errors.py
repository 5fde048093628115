"""Error answers of a gateway in front of the service. docs/live_service.md, section 8."""

import pytest

from toolkit.contract.answers import decode
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import AnswerInvalid, NotPermitted, RateLimited, ServiceDown, ServiceError

CLOUDFLARE = {"server": "cloudflare", "cf-ray": "8f1c22-FRA", "content-type": "text/html"}
PAGE = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>secret</body></html>"
)


def raised_error(status, content, headers=None):
    with pytest.raises(ServiceError) as caught:
        decode(OPERATIONS["userFills"], status, headers or CLOUDFLARE, content)
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
def test_code_1010_is_not_permitted(content):
    error = raised_error(403, content)
    assert type(error) is NotPermitted
    assert error.message.startswith("the gateway (cloudflare, cf-ray 8f1c22-FRA) refused")
    assert "error code 1010" in error.message
    assert "not a missing add-on" in error.hint
    assert "user_agent" in error.hint
    assert "<" not in str(error)


def test_denied_permission_hints_at_add_on():
    error = raised_error(403, b'{"error":"Permission denied"}', {})
    assert (type(error), error.message) == (NotPermitted, "Permission denied")
    assert "Buy the add-on for this key" in error.hint


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 521, 522, 523, 524, 530])
@pytest.mark.parametrize("content", [b"", b"error code: 522", PAGE, b'{"error":"Timeout error"}'])
def test_gateway_failures_are_service_down(status, content):
    assert type(raised_error(status, content)) is ServiceDown


@pytest.mark.parametrize("status", [501, 505, 511])
def test_permanent_gateway_failures_are_service_error(status):
    assert type(raised_error(status, b"")) is ServiceError


def test_1015_is_rate_limited():
    error = raised_error(429, b"error code: 1015", CLOUDFLARE | {"retry-after": "30"})
    assert isinstance(error, RateLimited)
    assert (error.retry_after, "error code 1015" in error.message) == (30.0, True)
    assert "quota" not in error.hint


@pytest.mark.parametrize("status", [403, 404, 500, 502, 522])
def test_web_page_text_is_hidden(status):
    error = raised_error(status, PAGE)
    words = "the answer is a web page of the gateway (cloudflare, cf-ray 8f1c22-FRA)"
    assert error.message.startswith(words)
    assert "secret" not in str(error)


def test_403_web_page_is_refused_client():
    error = raised_error(403, PAGE)
    assert type(error) is NotPermitted
    assert "not a missing add-on" in error.hint


@pytest.mark.parametrize("type_", ["userFills", "perpTwapSnapshots"])
def test_404_web_page_is_wrong_address(type_):
    with pytest.raises(ServiceError) as caught:
        decode(OPERATIONS[type_], 404, {"server": "nginx"}, PAGE)
    assert type(caught.value) is ServiceError  # not NotReady, which tk.poll waits for
    assert "Check the base URL" in caught.value.hint


def test_message_has_status_once():
    assert str(raised_error(503, b"{}")).count("503") == 1


@pytest.mark.parametrize("content", [PAGE, b"\n  <html>", b"\xef\xbb\xbf<html>"])
@pytest.mark.parametrize("type_", ["userFills", "perpTwapSnapshots", "meta"])
def test_web_page_with_status_200_is_refused(content, type_):
    with pytest.raises(AnswerInvalid, match=r"is a web page \(from cloudflare, cf-ray") as caught:
        decode(OPERATIONS[type_], 200, CLOUDFLARE, content)
    assert "<" not in str(caught.value)
    assert "login page" in str(caught.value)


def test_unprintable_headers_are_hidden():
    error = raised_error(403, b"error code: 1010", {"server": "a\nb", "cf-ray": "x" * 500})
    assert "a\nb" not in error.message
    assert len(error.message) < 200


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (400, b"Failed to read the JSON body", "Failed to read the JSON body"),
        (400, b'{"message": "user is missing"}', "user is missing"),
        (422, b'{"detail": [{"loc": ["user"]}]}', '[{"loc": ["user"]}]'),
        (400, b'{"code": 7}', 'the answer has no error message: {"code": 7}'),
        (500, b'{"error": null}', 'the answer has no error message: {"error": null}'),
        (400, b'{"error": "bad\\u001b[31m\\nvalue"}', "bad [31m value"),
        (400, b"one\x00\r\n two\x7f", "one two"),
        (400, b'{"message": "no <html><body>page</body>"}', "no"),
        (400, b'{"error": "<html>page</html>"}', "the answer has no error message"),
        (400, b"\xff\xfe\x00", "the answer has no error message"),
        (400, b"x" * 5_000, "x" * 199 + "…"),
        (400, b'{"error": "%s"}' % (b"x" * 5_000), "x" * 999 + "…"),
    ],
)
def test_error_quotes_body(status, content, message):
    assert raised_error(status, content, {}).message == message


@pytest.mark.parametrize("content", [b"", PAGE])
@pytest.mark.parametrize("status", [301, 302, 308])
def test_redirect_names_target(status, content):
    headers = {"location": "https://service.test/info/?token=secret#part"}
    error = raised_error(status, content, headers)
    assert error.message == "the service redirects to https://service.test/info/"
    assert error.hint.startswith("Check the base URL. The client does not follow redirects")


@pytest.mark.parametrize(
    ("content", "is_address_wrong"),
    [
        (b'{"error":"User not found"}', False),
        (b'{"message":"no such coin"}', False),
        (b'{"detail":"Not Found"}', True),  # the answer of a framework for an unknown path
        (b"404 page not found", True),
        (b"{}", True),
        (b"", True),
    ],
)
def test_404_with_message_is_no_wrong_address(content, is_address_wrong):
    error = raised_error(404, content, {})
    assert type(error) is ServiceError
    assert ("Check the base URL" in error.hint) is is_address_wrong
