"""Which route answers which path."""

from __future__ import annotations

import pytest

from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.routes import Route, Router


async def nothing(call: Call) -> Answer:
    """An area function."""
    return Answer()


PATTERNS = (
    ("GET", "/orgs/{org}/hooks"),
    ("GET", "/repos/{owner}/{repo}/contents"),
    ("GET", "/repos/{owner}/{repo}/contents/{path...}"),
    ("POST", "/enterprises/{enterprise}/{product}/{enablement}"),
    ("POST", "/enterprises/{enterprise}/teams/{team}/organizations/add"),
    ("GET", "/enterprises/{enterprise}/teams/{team}"),
)
ROUTER = Router(Route(method, path, nothing) for method, path in PATTERNS)


def found(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """The pattern and the parameters that a path leads to."""
    match = ROUTER.match(method, path)
    return None if match is None else (match[0].path, match[1])


def test_parameters_are_decoded_once() -> None:
    """A parameter is one segment, decoded once; an encoded slash stays in it."""
    assert found("GET", "/orgs/a%2Fb%2541/hooks") == ("/orgs/{org}/hooks", {"org": "a/b%41"})


def test_literals_may_be_encoded() -> None:
    """`%6F` and `o` are the same character of a path (RFC 3986), whoever chose to encode it."""
    assert found("GET", "/%6Frgs/a/h%6f%6Fks") == ("/orgs/{org}/hooks", {"org": "a"})
    assert found("GET", "/orgs%2Fa/hooks") is None


@pytest.mark.parametrize(
    ("path", "tail"),
    [("docs/a.md", "docs/a.md"), ("docs%2Fa%20b.md", "docs/a b.md"), ("", ""), ("a/", "a/"), ("%C3%A9", "é")],
)
def test_tails(path: str, tail: str) -> None:
    """A tail takes what is left, slashes included, and may be empty."""
    assert found("GET", f"/repos/o/r/contents/{path}") == (
        "/repos/{owner}/{repo}/contents/{path...}",
        {"owner": "o", "repo": "r", "path": tail},
    )


def test_literals_go_first_and_fall_back() -> None:
    """A literal segment wins over a parameter, unless only the parameter leads on with this method."""
    assert found("GET", "/enterprises/acme/teams/x") == (
        "/enterprises/{enterprise}/teams/{team}",
        {"enterprise": "acme", "team": "x"},
    )
    assert found("POST", "/enterprises/acme/teams/x") == (
        "/enterprises/{enterprise}/{product}/{enablement}",
        {"enterprise": "acme", "product": "teams", "enablement": "x"},
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/orgs/a/hooks/"),
        ("GET", "/orgs//hooks"),
        ("DELETE", "/orgs/a/hooks"),
        ("GET", "/orgs/%FF/hooks"),
        ("GET", "/orgs"),
        ("GET", ""),
        ("GET", "orgs/a/hooks"),
    ],
)
def test_no_route(method: str, path: str) -> None:
    """A trailing slash, an empty or undecodable parameter and another method lead nowhere."""
    assert found(method, path) is None


def test_head_is_a_get() -> None:
    """HEAD is answered by the GET route."""
    assert found("HEAD", "/orgs/a/hooks") == ("/orgs/{org}/hooks", {"org": "a"})


def test_no_route_twice() -> None:
    """Two routes of the same method and shape are a mistake that shows at the start."""
    with pytest.raises(ValueError, match="twice"):
        Router([Route("GET", "/a/{b}", nothing), Route("GET", "/a/{c}", nothing)])
