"""Error answers of a gateway in front of the service. docs/live_service.md, section 8."""

import pytest

from toolkit import errors
from toolkit.contract.answers import decode
from toolkit.contract.operations import OPERATIONS

CLOUDFLARE = {"server": "cloudflare", "cf-ray": "8f1c22-FRA", "content-type": "text/html"}
PAGE = (
    b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>secret</body></html>"
)


def raised_error(status, content, headers=None):
    with pytest.raises(errors.ServiceError) as caught:
        decode(OPERATIONS["userFills"], status, headers or CLOUDFLARE, content)
    assert caught.value.status == status
    return caught.value


def test_code_1010_is_not_permitted():
    for content in (
        b"error code: 1010",
        b"<html><h1>Error 1010</h1></html>",
        b'<html><span class="cf-error-code">1010</span></html>',
    ):
        error = raised_error(403, content)
        assert type(error) is errors.NotPermitted
        assert "gateway (cloudflare, cf-ray 8f1c22-FRA)" in error.message
        assert "error code 1010" in error.message
        assert "user_agent" in error.hint
        assert "<" not in str(error)


def test_denied_permission_hints_at_add_on():
    error = raised_error(403, b'{"error":"Permission denied"}', {})
    assert (type(error), error.message) == (errors.NotPermitted, "Permission denied")
    assert "add-on" in error.hint


STATUSES = {
    **{
        400: errors.BadRequest,
        401: errors.InvalidKey,
        403: errors.NotPermitted,
        429: errors.RateLimited,
    },
    **dict.fromkeys((500, 502, 503, 504, 520, 522, 530), errors.ServiceDown),
    **dict.fromkeys((405, 413, 501, 505, 511), errors.ServiceError),
}


def test_status_selects_error_class():
    for status, kind in STATUSES.items():
        error = raised_error(status, b'{"error":"the reason"}')
        assert (type(error), error.message) == (kind, "the reason")
        assert str(error).startswith(f"userFills: the reason (status {status})")
        assert str(error).count(str(status)) == 1
        for content in (b"", b"[]", b"7", b"error code: 522", PAGE):
            assert status < 500 or type(raised_error(status, content)) is kind


def test_429_has_retry_after():
    for header, seconds in (
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        *[({"retry-after": wait}, None) for wait in ("inf", "1e400", "nan")],
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"server": "nginx"}, None),
    ):
        error = raised_error(429, b'{"error":"Rate limit exceeded"}', header)
        assert (type(error), error.retry_after) == (errors.RateLimited, seconds)


def test_1015_is_rate_limited():
    error = raised_error(429, b"error code: 1015", CLOUDFLARE | {"retry-after": "30"})
    assert isinstance(error, errors.RateLimited)
    assert (error.retry_after, "error code 1015" in error.message) == (30.0, True)
    assert "quota" not in error.hint


def test_web_page_text_is_hidden():
    for status in (403, 404, 500, 502, 522):
        error = raised_error(status, PAGE)
        assert "web page of the gateway (cloudflare, cf-ray 8f1c22-FRA)" in error.message
        assert "secret" not in str(error)
        if status == 403:
            assert type(error) is errors.NotPermitted
            assert "not a missing add-on" in error.hint


def test_web_page_with_status_200_is_refused():
    for content in (PAGE, b"\n  <html>", b"\xef\xbb\xbf<html>"):
        for type_ in ("userFills", "perpTwapSnapshots", "meta"):
            with pytest.raises(errors.AnswerInvalid, match=r"web page .*cf-ray") as caught:
                decode(OPERATIONS[type_], 200, CLOUDFLARE, content)
            assert "<" not in str(caught.value)
            assert "login page" in str(caught.value)


def test_unprintable_headers_are_hidden():
    error = raised_error(403, b"error code: 1010", {"server": "a\nb", "cf-ray": "x" * 500})
    assert "a\nb" not in error.message
    assert len(error.message) < 200


QUOTES = [
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
]


def test_error_quotes_body():
    got = [raised_error(status, content, {}).message for status, content, _ in QUOTES]
    assert got == [message for *_, message in QUOTES]


def test_redirect_names_target():
    headers = {"location": "https://service.test/info/?token=secret#part"}
    for status in (301, 302, 308):
        for content in (b"", PAGE):
            error = raised_error(status, content, headers)
            assert error.message.endswith(" https://service.test/info/")
            assert "base URL" in error.hint


def test_404_without_message_is_wrong_address():
    for content, is_address_wrong in (
        (b'{"error":"User not found"}', False),
        (b'{"message":"no such coin"}', False),
        (b'{"detail":"Not Found"}', True),  # the answer of a framework for an unknown path
        (b"404 page not found", True),
        (b"{}", True),
        (b"", True),
        (PAGE, True),
    ):
        error = raised_error(404, content, {"server": "nginx"})
        assert type(error) is errors.ServiceError
        assert ("base URL" in error.hint) is is_address_wrong
    snapshots = OPERATIONS["perpTwapSnapshots"]
    with pytest.raises(errors.NotReady, match="try again"):
        decode(snapshots, 404, {}, b'{"error":"No snapshots are available yet"}')
    with pytest.raises(errors.ServiceError, match="base URL") as caught:
        decode(snapshots, 404, {"server": "nginx"}, PAGE)
    assert type(caught.value) is errors.ServiceError  # not NotReady, which tk.poll waits for
