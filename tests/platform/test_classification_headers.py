"""Limits, dates, waits and links, read from whatever a platform sends."""

import math
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.model import ErrorCode, Media, Reply, Request
from bulk.platform.classification import (
    Limits,
    VerdictKind,
    classify,
    date_from_headers,
    limits_from_body,
    limits_from_headers,
    request_headers,
    retry_after_s,
)
from bulk.urls import _next_target, has_next_link, within_base

BASE = "https://code.example.com/api/v3"
NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=UTC).timestamp()


def limit_headers(**changes: str | None) -> dict[str, str]:
    """`X-RateLimit-*` of a usual answer, some of them changed or, with None, missing."""
    usual = {"limit": "5000", "remaining": "4999", "used": "1", "reset": "1795248000", "resource": "core"}
    return {f"x-ratelimit-{name}": value for name, value in (usual | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Limits("core", 5000, 4999, 1, 1795248000)),
        ({"resource": " Dependency_Snapshots "}, Limits("dependency_snapshots", 5000, 4999, 1, 1795248000)),
        ({"resource": None, "used": None}, Limits(None, 5000, 4999, None, 1795248000)),
        ({"resource": "\u202ecore"}, Limits(None, 5000, 4999, 1, 1795248000)),
        ({"remaining": "-5"}, Limits("core", 5000, 0, 1, 1795248000)),
        ({"remaining": "9999"}, Limits("core", 5000, 5000, 1, 1795248000)),
        ({"limit": "0", "used": "-1", "reset": "-1"}, Limits("core", 0, 0, 0, 0)),
        ({"limit": "-1"}, None),
        ({"limit": "5000, 5000", "remaining": "4999,4999"}, Limits("core", 5000, 4999, 1, 1795248000)),
        ({"remaining": "4999, 12"}, None),
        ({"limit": None}, None),
        ({"remaining": None}, None),
        ({"reset": None}, Limits("core", 5000, 4999, 1, 0)),
        ({"reset": "soon"}, Limits("core", 5000, 4999, 1, 0)),
        ({"reset": "1795248000.25"}, Limits("core", 5000, 4999, 1, 1795248001)),
        ({"reset": "1795248000000"}, Limits("core", 5000, 4999, 1, 1795248000)),
        ({"reset": "2026-11-21T08:00:00Z"}, Limits("core", 5000, 4999, 1, 1795248000)),
        ({"reset": "2026-11-21T09:00:00.5+01:00"}, Limits("core", 5000, 4999, 1, 1795248001)),
        ({"reset": "Sat, 21 Nov 2026 08:00:00 GMT"}, Limits("core", 5000, 4999, 1, 1795248000)),
        ({"reset": "90"}, Limits("core", 5000, 4999, 1, 0)),
        ({"limit": ""}, None),
        ({"limit": "9" * 5000}, None),
        ({"remaining": "1.5"}, None),
        ({"remaining": "٣"}, None),
    ],
)
def test_limits_of_headers_are_clamped_or_left_out(changes, expected):
    """failures.md row 31: absent, negative, rising and senseless limits never become a number out of bounds."""
    assert limits_from_headers(limit_headers(**changes)) == expected


def test_an_end_that_counts_from_now_is_measured_on_the_platforms_clock():
    """A gateway names the seconds that are left of a window: they count from the `Date` of its answer."""
    headers = limit_headers(reset="90") | {"date": "Sat, 21 Nov 2026 08:00:00 GMT"}
    assert limits_from_headers(headers) == Limits("core", 5000, 4999, 1, int(NOW) + 90)


def test_limits_of_the_status_are_read_by_category():
    """`GET /rate_limit`: every category that can be understood, in lower case; the others are left out."""
    good = {"limit": 10, "used": 3, "remaining": 7, "reset": 1795248000}
    body = {
        "resources": {
            "core": good,
            "Search": {**good, "remaining": 7.0},
            "scim": {**good, "remaining": -1},
            "bad1": {**good, "limit": "10"},
            "bad3": {**good, "remaining": True},
            "bad5": [],
            "bad6": {**good, "limit": 10**15},
            "": good,
            "x" * 100: good,
        },
        "rate": good,
    }
    found = limits_from_body(body)
    assert found.keys() == {"core", "search", "scim"}
    assert found["core"] == Limits("core", 10, 7, 3, 1795248000)
    assert (found["search"].remaining, found["scim"].remaining) == (7, 0)
    ends: list[object] = [None, math.inf, "2026-11-21T08:00:00Z", 1795248000000, "1795248000", 90, True]
    told = {f"end{number}": {**good, "reset": end} for number, end in enumerate(ends)}
    resets = [each.reset for each in limits_from_body({"resources": told}, NOW).values()]
    assert resets == [0, 0, 1795248000, 1795248000, 1795248000, int(NOW) + 90, 0]
    assert limits_from_body({"rate": good}) == {"core": Limits("core", 10, 7, 3, 1795248000)}
    useless: list[object] = [None, [], "x", {}, {"resources": []}, {"rate": None}]
    assert all(limits_from_body(body) == {} for body in useless)


@given(st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers() | st.floats() | st.text())))
def test_no_status_makes_it_raise(resources):
    """failures.md row 31: whatever `/rate_limit` holds, limits are within bounds."""
    for name, limits in limits_from_body({"resources": resources}).items():
        assert name == limits.category
        assert 0 <= limits.remaining <= limits.limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 60 ", 60.0),
        ("1.5", 1.5),
        ("-5", 0.0),
        ("3700", 3700.0),
        ("99999", 3700.0),
        ("9" * 400, 3700.0),
        ("Sat, 21 Nov 2026 08:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 07:00:00 GMT", 0.0),
        ("Sat, 21 Nov 2099 08:00:00 GMT", 3700.0),
        ("Saturday, 21-Nov-26 08:00:30 GMT", 30.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("30s", 30.0),
        ("30 seconds", 30.0),
        ("2026-11-21T08:00:30Z", 30.0),
        ("2026-99-21T08:00:30Z", None),
        ("1795248030", 30.0),
        ("1795248030000", 30.0),
        ("1795240000", 0.0),
        ("9999999999", 3700.0),
        ("٣", None),
        ("Sat, 99 Nov 2026 08:00:30 GMT", None),
    ],
)
def test_how_long_to_wait(text, expected):
    """failures.md row 34: seconds or a date, never below 0, never above 3,700 s, and nothing where it says nothing."""
    assert retry_after_s({"retry-after": text}, NOW) == expected
    assert retry_after_s({}, NOW) is None


@given(text=st.text(), now=st.floats())
@example("Sat, 21 Nov 2026 08:00:30 GMT", math.nan)
@example("1795248030", math.nan)
@example("1795248030", math.inf)
@example("Sat, 31 Dec 9999 23:59:59 -2359", 0.0)
@example("Sat, 01 Jan 0001 00:00:00 +2359", 0.0)
def test_a_wait_is_always_within_bounds(text, now):
    """failures.md row 31: no text and no clock make a wait negative, endless or an exception."""
    wait = retry_after_s({"retry-after": text}, now)
    assert wait is None or 0.0 <= wait <= 3_700.0


@given(at=st.integers(86_400, 250_000_000_000))
def test_dates_are_read_back(at):
    """A Date header is the second in which it was written."""
    text = format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)
    assert date_from_headers({"date": text}) == at


@given(st.text())
def test_no_date_makes_it_raise(text):
    """Whatever stands in a Date header, there is a number or nothing."""
    found = date_from_headers({"date": text})
    assert found is None or math.isfinite(found)


def test_media_become_the_vendors_types():
    """Each representation has its media type, in the vendor's name; a version only where one was asked for."""
    types = {
        media: request_headers(Request(method="GET", path="/", media=media), "service", None, False) for media in Media
    }
    assert {media: headers["Accept"] for media, headers in types.items()} == {
        Media.JSON: "application/vnd.service+json",
        Media.RAW: "application/vnd.service.raw+json",
        Media.HTML: "application/vnd.service.html+json",
        Media.OBJECT: "application/vnd.service.object+json",
    }
    assert request_headers(Request(method="PUT", path="/"), "github", "2022-11-28", True) == {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "Content-Type": "application/json",
    }


# -- links

CURRENT = "/orgs/acme/hooks?per_page=100"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f'<{BASE}/orgs/acme/hooks?page=2>; rel="next"', "/orgs/acme/hooks?page=2"),
        (f"<{BASE}/x>; rel=next", "/x"),
        (f'<{BASE}/1>; rel="prev", <{BASE}/3>; rel="next", <{BASE}/9>; rel="last"', "/3"),
        (f'<{BASE}/1>;rel="prev",<{BASE}/3>;rel="next"', "/3"),
        (f'<{BASE}/3>; title="a, <b>; rel=\\"no\\""; REL="last NEXT"', "/3"),
        (f'<{BASE}/x?a=1,2;3&b=<>>; rel="next"', None),
        (f'<{BASE}/x?a=1,2;3>; rel="next"', "/x?a=1,2;3"),
        (f'<{BASE}/3>; rel="last"; rel="next"', None),
        (f'<{BASE}/3>; rel=""; x=y', None),
        (f"<{BASE}/3>", None),
        (f'{BASE}/3; rel="next"', None),
        ("", None),
        ("garbage", None),
        (f'<{BASE}/3>; rel="next', None),
        ('<?page=2>; rel="next"', "/orgs/acme/hooks?page=2"),
        ('<other?page=2>; rel="next"', "/orgs/acme/other?page=2"),
        ('</api/v3/y>; rel="next"', "/y"),
        (f'<{BASE}/x#part>; rel="next"', "/x"),
        ('<https://CODE.example.com:443/api/v3/x>; rel="next"', "/x"),
        (f'<{BASE}/3>; rel="n\\ext"', "/3"),
    ],
)
def test_the_next_page_is_found_as_rfc_8288_says(header, expected):
    """The link whose relations hold `next`, absolute or relative, whatever stands around it."""
    target = _next_target({"link": header})
    assert (target if target is None else within_base(target, BASE, CURRENT)) == expected


def test_the_port_that_a_scheme_means_may_be_left_out():
    """With it or without it, here or there, it is the same platform; another port is another one."""
    for scheme, port in (("http", 80), ("https", 443)):
        plain, named = f"{scheme}://host/api", f"{scheme}://host:{port}/api"
        for base, target in ((plain, named), (named, plain), (plain, plain)):
            assert within_base(f"{target}/x", base, "/y") == "/x"
        assert within_base(f"{scheme}://host:{port + 1}/api/x", plain, "/y") is None


ASTRAY = [
    "https://evil.example.com/api/v3/x",
    "https://code.example.com@evil.example.com/api/v3/x",
    "https://evil@code.example.com/api/v3/x",
    "https://@code.example.com/api/v3/x",
    "https://code.example.com.evil.org/api/v3/x",
    "http://code.example.com/api/v3/x",
    "https://code.example.com:8443/api/v3/x",
    "https://code.example.com:bad/api/v3/x",
    "//evil.example.com/api/v3/x",
    "///evil.example.com/api/v3/x",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/plain,x",
    "https://169.254.169.254/api/v3/x",
    f"{BASE}evil/x",
    "https://code.example.com/other/x",
    "https://code.example.com/api/v3",
    f"{BASE}/../../admin",
    f"{BASE}/%2e%2e/%2e%2e/admin",
    f"{BASE}/%252e%252e/admin",
    f"{BASE}/a/..%2f..%2fadmin",
    f"{BASE}/./x",
    f"{BASE}\\@evil.example.com/x",
    f"{BASE}/%5c..%5cx",
    "/\\evil.example.com/api/v3/x",
    "https:\\\\evil.example.com/api/v3/x",
    f"{BASE}/x\r\nHost: evil",
    f"{BASE}/x y",
    f"{BASE}/\u202ex",
    "https://xn--cde-5ka.example.com/api/v3/x",
    "https://code.example.com/api/v3/" + "x" * 9000,
    "https://[::1/api/v3/x",
]


@pytest.mark.parametrize("target", ASTRAY)
def test_a_link_that_leads_elsewhere_is_not_followed(target):
    """failures.md row 12: another host, scheme, port or path, a user name, `..` in disguise: not followed, and told."""
    assert within_base(target, BASE, CURRENT) is None
    assert has_next_link({"link": f'<{target}>; rel="next"'})


def test_having_no_next_page_differs_from_a_refused_one():
    """A listing that ends is told from one whose next page must not be followed."""
    assert not has_next_link({})
    assert not has_next_link({"link": f'<{BASE}/1>; rel="first"'})


@given(
    target=st.text(
        alphabet=st.sampled_from(list("abc/.:@%\\?#[]<> 0123456789e2f5c&=-~")) | st.characters(), max_size=60
    )
    | st.builds(lambda tail: BASE + tail, st.text(max_size=30)),
    base=st.sampled_from([BASE, "http://127.0.0.1:8080/api/v3", "https://[2001:db8::1]/api/v3", "https://host"]),
)
@example("//code.example.com/api/v3/x", BASE)
@example("", BASE)
def test_no_target_leads_out_of_the_base(target, base):
    """failures.md row 12: whatever a link says, what is followed has the base's origin and lies below its path."""
    found = within_base(target, base, "/orgs/acme?page=1")
    if found is not None:
        url, origin = urlsplit(base + found), urlsplit(base)
        assert (url.scheme, url.netloc) == (origin.scheme, origin.netloc)
        assert url.path.startswith(f"{origin.path}/")
        assert ".." not in url.path.split("/")
        assert found.isascii()
        assert not any(char.isspace() or char in "\\#" for char in found)


@given(st.text(alphabet=st.sampled_from(list('<>;,="\\ relnxt/')), max_size=200))
@example("<" * 5000)
@example("<a>;" + ' x="' * 2000)
def test_no_link_header_makes_it_raise(header):
    """failures.md row 12: garbage in a Link header is not a next page, and takes no time."""
    has_next_link({"link": header})


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, None, VerdictKind.ASTRAY, ErrorCode.VALIDATION_FAILED),
        (404, None, VerdictKind.ASTRAY, ErrorCode.NOT_FOUND),
        (404, [], VerdictKind.ASTRAY, ErrorCode.NOT_FOUND),
        (405, None, VerdictKind.ASTRAY, ErrorCode.VALIDATION_FAILED),
        (410, None, VerdictKind.ASTRAY, ErrorCode.VALIDATION_FAILED),
        (404, {"message": "Not Found"}, VerdictKind.REFUSED, ErrorCode.NOT_FOUND),
        (409, None, VerdictKind.REFUSED, ErrorCode.CONFLICT),
        (407, None, VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE),
        (511, {"message": "Log in"}, VerdictKind.BAD_RESPONSE, ErrorCode.BAD_RESPONSE),
    ],
)
def test_what_stands_before_the_platform_refuses_nothing(status, body, kind, code):
    """failures.md row 2: no such place, without the platform's message, and the login of a proxy."""
    got = classify(Request(method="GET", path="/x"), Reply(status=status, headers={}, body=body), "service")
    assert (got.kind, got.code) == (kind, code)
