"""The query of a next page: taken from a `Link`, and never a way out of the list that is read."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.urls import LONGEST_CHARS, has_next_link, next_query, tells_of_pages

PATH = "/orgs/acme/hooks"
BASE = "https://code.example.com/api/v3"


def of(target: str, path: str = PATH, query: str = "per_page=100") -> str | None:
    """What a link to `target` makes of the query."""
    return next_query({"link": f'<{target}>; rel="next"'}, path, query)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (f"{BASE}/orgs/acme/hooks?per_page=100&page=2", "per_page=100&page=2"),
        (f"{BASE}/organizations/101/hooks?per_page=100&page=2", "per_page=100&page=2"),
        (f"{BASE}/orgs/acme/hooks?page=2", "per_page=100&page=2"),
        (f"{BASE}/orgs/ACME/Hooks?after=Y3Vyc29yOjE%3D&per_page=50", "after=Y3Vyc29yOjE%3D&per_page=50"),
        ("/api/v3/orgs/acme/hooks?page=2", "per_page=100&page=2"),
        ("?page=2", "per_page=100&page=2"),
        (f"{BASE}/orgs/acme/hooks?page=2&a[]=1&a[]=2", "per_page=100&page=2&a%5B%5D=1&a%5B%5D=2"),
        (f"{BASE}/orgs/acme/hooks?page=2&q=", "per_page=100&page=2&q="),
        ("http://code.example.com/api/v3/orgs/acme/hooks?page=2", "per_page=100&page=2"),
        (f"{BASE}/orgs/acme/hooks", None),
        (f"{BASE}/orgs/acme/members?page=2", None),
        (f"{BASE}/orgs/acme/hooks/?page=2", None),
        ("https://me:secret@code.example.com/api/v3/orgs/acme/hooks?page=2", None),
        ("file:///orgs/acme/hooks?page=2", None),
        ("javascript:hooks?page=2", None),
        (f"{BASE}/orgs/acme/hooks?page=2 3", None),
        (f"{BASE}\\orgs/acme/hooks?page=2", None),
        (f"{BASE}/orgs/acme/hooks?page={'2' * LONGEST_CHARS}", None),
        (f"{BASE}/orgs/acme/hooks?{'&'.join(f'p{number}=1' for number in range(60))}", None),
        ("https://[::1/orgs/acme/hooks?page=2", None),
    ],
)
def test_the_query_of_the_next_page(target, expected):
    """Only a link to a page of the same list counts; what it does not repeat stays (failures.md row 12)."""
    assert of(target) == expected


def test_an_empty_parameter_stays():
    """What the list was asked with is kept, also where it has no value."""
    assert of(f"{BASE}/orgs/acme/hooks?page=2", query="q=&per_page=100") == "q=&per_page=100&page=2"


def test_a_segment_may_be_encoded_in_another_way():
    """`ent%3Aplatform` and `ent:platform` are the same last segment."""
    assert of(f"{BASE}/teams/ent:platform?page=2", "/teams/ent%3Aplatform") == "per_page=100&page=2"


def test_without_a_next_link_there_is_no_query():
    """No header, an empty one, and one that leads to the last page only."""
    for headers in ({}, {"link": ""}, {"link": f'<{BASE}/orgs/acme/hooks?page=9>; rel="last"'}):
        assert next_query(headers, PATH, "") is None
        assert not has_next_link(headers)


@pytest.mark.parametrize(
    ("anchor", "is_ours"),
    [
        ("", True),
        (f"{BASE}{PATH}?per_page=100", True),
        ("?per_page=100", True),
        (f"{BASE}/organizations/101/hooks", True),
        ("https://docs.example.com/", False),
        ("https://docs.example.com/guide/1", False),
        ("#part", False),
        (f"{BASE}{PATH}#part", False),
        ("https://[::1/hooks", False),
    ],
)
def test_a_link_of_another_thing_is_none_of_the_list(anchor: str, is_ours: bool):
    """A gateway gave its own links, each with the `anchor` of what it is a link of (RFC 8288 §3.2): the list led to
    them, and could not be read (failures.md row 12)."""
    target = f"{BASE}{PATH}?page=2" if is_ours else "https://docs.example.com/guide/2?page=2"
    for placed in (f'rel="next"; anchor="{anchor}"', f'anchor="{anchor}"; REL=next'):
        headers = {"link": f"<{target}>; {placed}"}
        assert has_next_link(headers) is is_ours
        assert tells_of_pages(headers) is is_ours
    both = {"link": '<https://docs.example.com/guide/2?page=9>; rel="next"; anchor="/1", <?page=2>; rel="next"'}
    assert next_query(both, PATH, "") == "page=2"


@given(target=st.text(), path=st.text(), query=st.text())
@example("https://elsewhere.example/hooks?page=2", PATH, "")
@example("http://[/hooks?page=2", PATH, "")
@example("/hooks?page=%ED%A0%80", PATH, "a=\ud800")
def test_no_link_makes_it_raise(target, path, query):
    """Whatever a platform sends, the answer is a query or nothing, and a query leads to no other place."""
    found = next_query({"link": f'<{target}>; rel="next"'}, path, query)
    if found is not None:
        assert found.isascii()
        assert not set(found) & set(" #?\r\n")
        assert parse_qsl(found, keep_blank_values=True)
