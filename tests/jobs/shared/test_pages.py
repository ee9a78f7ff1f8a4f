"""Reading every page of a list."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from bulk.model import ErrorCode, OutcomeKind
from bulk_jobs.shared import pages, proofs
from tests.jobs.driver import Driven, drive, reply

PATH = "/orgs/acme/hooks"
BASE = "https://code.example.com/api/v3"


def page(entries: Any, following: str | None = None, *, is_unchanged: bool = False) -> Any:
    """A page, and the query of the one that its link leads to."""
    headers = {"link": f'<{BASE}{PATH}?{following}>; rel="next"'} if following else {}
    return reply(body=_objects(entries), headers=headers, is_unchanged=is_unchanged)


def _objects(found: Any) -> Any:
    """Entries of lists are numbers here, and objects in answers."""
    if isinstance(found, dict):
        return {name: _objects(each) for name, each in found.items()}
    return [{"id": each} if isinstance(each, int) else each for each in found] if isinstance(found, list) else found


def numbers(entries: Any) -> list[int]:
    """The numbers of entries."""
    return [entry["id"] for entry in entries]


def read(*answers: Any, **options: Any) -> Driven:
    """The listing and the requests that it took."""
    field = options.get("field")
    proof = proofs.listing_in(field, {}, {}) if field else proofs.listing({})
    return drive(pages.read_all(PATH, proof, **options), *answers)


def test_every_page_in_order():
    """All entries of all pages, asked for by the hundred, each page where the one before says."""
    driven = read(page([1, 2], "per_page=100&page=2"), page([3], "per_page=100&page=3"), page([4]))
    assert driven.shown() == [f"GET {PATH}?per_page=100", *(f"GET {PATH}?per_page=100&page={n}" for n in (2, 3))]
    assert (numbers(driven.ended.entries), driven.ended.pages, driven.ended.flaw) == ([1, 2, 3, 4], 3, None)


@pytest.mark.parametrize("again", [[2, 3], []])
def test_a_last_page_without_entries_is_read_twice_where_a_link_led_to_it(again: list[int]):
    """The list has become shorter meanwhile, or the answer is untrue; the second one is no kept one."""
    driven = read(page([1], "per_page=100&page=2"), page([]), page(again))
    assert [(each.query[-6:], each.is_fresh) for each in driven.requests[1:]] == [("page=2", False), ("page=2", True)]
    assert (numbers(driven.ended.entries), driven.ended.pages) == ([1, *again], 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2, 3], [3, 4]),
        ([{"version_id": 1}, {"version_id": 2}], [{"version_id": 2}, {"version_id": 3}]),
        ([{"repository": {"id": 1}}], [{"repository": {"id": 1}, "status": "attached"}, {"repository": {"id": 2}}]),
    ],
)
def test_what_moved_to_the_next_page_is_listed_once(first: Any, second: Any):
    """Something new was put before it while the list was read: the last entry of a page is the first of the next."""
    listing = read(page(first, "page=2"), page(second)).ended
    assert listing.entries == [*_objects(first), *_objects(second)[1:]]


def surely(*answers: Any) -> Driven:
    """The listing that decides what is not there."""
    return drive(pages.read_surely(PATH, proofs.listing({})), *answers)


@pytest.mark.parametrize("number", [2**53, 0, "", True])
def test_an_id_that_stands_on_a_page_twice_is_no_entrys_own(number: Any):
    """A gateway rounds long numbers, or hides them: entries that are called differently are all listed."""
    first = [{"id": number, "login": "one"}, {"id": number, "login": "two"}, {"id": 3}]
    second = [{"id": 3}, {"id": number, "login": "four"}, {"id": number, "login": "five"}]
    listing = read(page(first, "page=2"), page(second)).ended
    assert listing.entries == [*first, *second[1:]]


def test_what_is_not_there_is_read_twice():
    """Something was deleted while a list of several pages was read, so that an entry moved to a page that had been
    read: the second reading shows it. A list of one page is read once; a second reading that fails is not a list."""
    driven = surely(page([1, 2], "page=2"), page([4]), page([1, 3], "page=2"), page([4]))
    assert numbers(driven.ended.entries) == [1, 2, 4, 3]
    assert all(request.is_fresh for request in driven.requests)
    assert len(surely(page([1, 2])).requests) == 1
    assert surely(page([1, 2], "page=2"), page([4]), page([1], "per_page=100")).ended.flaw is not None


def test_a_full_page_without_links_is_followed():
    """Not every platform gives links: after a page that is exactly full the next one is asked for, until one is not
    full, or has nothing that the one before lacks. A link to a last page that is this one tells the end."""
    full, more, rest = [*range(100)], [*range(99, 199)], [*range(198, 230)]
    driven = read(page(full), page(more), page(rest), targets="branch")
    asked = "targets=branch&per_page=100"
    assert [request.query for request in driven.requests] == [asked, f"{asked}&page=2", f"{asked}&page=3"]
    assert numbers(driven.ended.entries) == [*range(230)]
    for last in ([], full, [*full[1:], 0]):
        listing = read(page(full), page(last)).ended
        assert (numbers(listing.entries), listing.flaw) == (full, None)
    over = {"link": f'<{BASE}{PATH}?page=1>; rel="last"'}
    assert len(read(reply(body=_objects(full), headers=over)).requests) == 1
    assert numbers(read(page([1, 2]), page([3]), per_page=2).ended.entries) == [1, 2, 3]
    assert "goes on after 2 pages" in read(page(full), page(more), most_pages=2).ended.why


@pytest.mark.parametrize("size", [30, 100])
def test_a_page_whose_links_were_lost_on_the_way_is_followed(size: int):
    """A gateway takes the links of one answer away: the list of 250 webhooks ended with its second page, and counted as
    the whole. By a cursor no page can be asked for without a link."""
    first, more, rest = [*range(size)], [*range(size, 2 * size)], [*range(2 * size, 3 * size - 1)]
    driven = read(page(first, "per_page=100&page=2"), page(more), page(rest))
    assert [request.query for request in driven.requests][1:] == ["per_page=100&page=2", "per_page=100&page=3"]
    assert (numbers(driven.ended.entries), driven.ended.pages) == ([*range(3 * size - 1)], 3)
    driven = read(page(first), page(more, f"per_page={size}&page=3"), page(rest))
    assert numbers(driven.ended.entries) == [*range(3 * size - 1)]
    for last in ([], more):
        assert numbers(read(page(first, "page=2"), page(more), page(last)).ended.entries) == [*range(2 * size)]
    assert len(read(page(first, "after=x"), page(more)).requests) == 2


@pytest.mark.parametrize("size", [30, 100])
def test_a_full_page_with_links_to_pages_before_it_alone_is_followed(size: int):
    """A `Link` lost its link to the next page, and kept the others: the list of 250 webhooks ended with its first page,
    or its second, and counted as the whole. A page that is not full is the last one, as is one that comes again."""
    back = {"link": f'<{BASE}{PATH}?page=1>; rel="first", <{BASE}{PATH}?page=1>; rel="prev"'}
    first, second, rest = [*range(size)], [*range(size, 2 * size)], [*range(2 * size, 3 * size - 1)]
    shown, *others = (reply(body=_objects(each), headers=back) for each in (first, second, rest))
    for before in (page(first, "per_page=100&page=2"), shown):
        driven = read(before, *others)
        assert (numbers(driven.ended.entries), driven.ended.pages) == ([*range(3 * size - 1)], 3)
    assert numbers(read(shown, shown).ended.entries) == first


@pytest.mark.parametrize("size", [10, 25, 30, 50, 64])
def test_pages_that_are_smaller_than_was_asked_for_are_followed(size: int):
    """A platform without links may cut its pages at a round number. From then on pages of that size are asked for, so
    that their numbers mean the same to it whichever size it counts with; a page with fewer entries is the last one."""
    first, second, rest = [*range(size)], [*range(size, 2 * size)], [*range(2 * size, 2 * size + 3)]
    driven = read(page(first), page(second), page(rest), targets="branch")
    assert [request.query for request in driven.requests] == [
        "targets=branch&per_page=100",
        f"targets=branch&per_page={size}&page=2",
        f"targets=branch&per_page={size}&page=3",
    ]
    assert numbers(driven.ended.entries) == [*range(2 * size + 3)]
    for last in ([], first):
        assert numbers(read(page(first), page(last)).ended.entries) == first
    assert len(read(page(first[:-1])).requests) == 1
    assert len(read(page([1], "page=2"), page(first)).requests) == 2


@pytest.mark.parametrize("size", [10, 37, 99])
def test_what_a_list_lacks_is_certain_wherever_its_pages_are_cut(size: int):
    """Where absence matters, a page without links is followed from ten entries on. A list that ends there is read once,
    and one that goes on twice."""
    first, rest = [*range(size)], [*range(size, size + 3)]
    driven = surely(page(first), page(rest), page(first), page(rest))
    assert driven.requests[1].query == f"per_page={size}&page=2"
    assert numbers(driven.ended.entries) == [*range(size + 3)]
    for last in ([], first):
        once = surely(page(first), page(last))
        assert (numbers(once.ended.entries), once.ended.pages, len(once.requests)) == (first, 1, 2)
    assert len(surely(page([*range(9)])).requests) == 1
    assert len(surely(page(first, "page=2"), page([]), page(first, "page=2"), page([])).requests) == 4


@pytest.mark.parametrize(
    "link",
    [
        "",
        "</style.css>; rel=preload",
        f'{BASE}{PATH}?page=2; rel="next"',
        f'garbage, <{BASE}{PATH}?page=2>; rel="next"',
        f'<{BASE}{PATH}?page=1>; rel="first, <{BASE}{PATH}?page=2>; rel="next"',
    ],
)
def test_a_link_that_says_nothing_of_pages_ends_no_list(link: str):
    """A gateway that adds links of its own, or damages those of the platform: a list of 250 webhooks ended with its
    first page, and counted as the whole."""
    first, second, rest = [*range(100)], [*range(100, 200)], [*range(200, 250)]
    answers = (reply(body=_objects(each), headers={"link": link}) for each in (first, second, rest))
    driven = read(*answers)
    assert [request.query for request in driven.requests][1:] == ["per_page=100&page=2", "per_page=100&page=3"]
    assert numbers(driven.ended.entries) == [*range(250)]


def test_a_link_that_leaves_out_a_page_is_not_followed():
    """From page 1 to page 3: the entries of page 2 were missed, and the list counted as the whole."""
    assert "from page 1 to page 3" in read(page([1], "page=3")).ended.why
    assert "from page 2 to page 4" in read(page([1], "page=2"), page([2], "page=4")).ended.why


def test_an_entry_that_comes_again_on_a_later_page_is_listed_once():
    """Many new ones were put before it, or a cursor leads back: webhooks were listed twice. A page as long as any
    before it that shows nothing new comes again, and a shorter one is the end of a list that others change."""
    pages_of = ([1, 2, 3], [4, 5, 6], [1, 5, 7], [8])
    driven = read(*(page(each, f"after={each[-1]}" if each != [8] else None) for each in pages_of))
    assert numbers(driven.ended.entries) == [*range(1, 9)]
    again = read(page([1, 2], "after=a"), page([3, 4], "after=b"), page([5, 6], "after=c"), page([3, 4])).ended
    assert "page 4 repeats" in again.why
    assert numbers(read(page([1, 2, 3], "page=2"), page([3])).ended.entries) == [1, 2, 3]
    assert numbers(read(page([1, 2, 1])).ended.entries) == [1, 2]


def test_a_link_to_the_last_page_alone_is_enough():
    """A platform that names the last page, and no next one, is asked for each page by its number up to that one; a
    last page that has no number, or is this one, ends the list."""

    def linked(entries: Any, last: str) -> Any:
        return reply(body=_objects(entries), headers={"link": f'<{BASE}{PATH}?per_page=2&{last}>; rel="last"'})

    driven = read(linked([1, 2], "page=3"), linked([3, 4], "page=3"), linked([5], "page=3"))
    assert [request.query for request in driven.requests][1:] == ["per_page=100&page=2", "per_page=100&page=3"]
    assert numbers(driven.ended.entries) == [1, 2, 3, 4, 5]
    assert numbers(read(linked([1, 2], "page=3"), linked([3], "page=2")).ended.entries) == [1, 2, 3]
    for last in ("page=1", "after=x", "page=", "page=\u0663", "page=-2", f"page={'9' * 5000}", "a&" * 60):
        assert len(read(linked([1, 2], last)).requests) == 1


def test_what_a_full_page_without_links_lacks_is_read_twice():
    """Whether there was a second page while the first one was read is not known."""
    full = page([*range(100)])
    assert numbers(surely(full, page([]), page([*range(1, 101)]), page([])).ended.entries) == [*range(101)]


def test_by_cursor():
    """A cursor is passed on as the platform wrote it, and other parameters stay."""
    driven = read(page([1], "after=Y3Vyc29y%3D%3D"), page([2]), per_page=50, targets="branch", status=None)
    assert [request.query for request in driven.requests] == [
        "targets=branch&per_page=50",
        "targets=branch&per_page=50&after=Y3Vyc29y%3D%3D",
    ]


def test_a_place_in_the_list_is_not_inherited():
    """What a link says of its place replaces all that the link before said; the caller's own parameters stay."""
    driven = read(page([1], "page=2&cursor=x"), page([2], "after=y"), page([3]), targets="tag")
    assert driven.requests[2].query == "targets=tag&per_page=100&after=y"


def test_entries_within_objects():
    """Where a page is an object, its field is read, and what stands beside it is kept of the first page."""
    answers = (page({"total": 2, "rows": [1]}, "page=2"), page({"total": 9, "rows": [2]}))
    listing = read(*answers, field="rows").ended
    assert (numbers(listing.entries), listing.first["total"]) == ([1, 2], 2)


def test_an_unchanged_page_that_is_full_may_have_another_one_behind_it():
    """The 101st webhook came: the first page was as it had been, a 304 confirmed it with the links that it had had, and
    the new one was never seen."""
    back = {"link": f'<{BASE}{PATH}?page=1>; rel="first"'}
    full = reply(body=_objects([*range(100)]), headers=back, is_unchanged=True)
    assert numbers(read(full, page([100])).ended.entries) == [*range(101)]
    short = reply(body=_objects([*range(99)]), headers=back, is_unchanged=True)
    assert len(read(short).requests) == 1


def test_only_a_list_that_did_not_change_at_all_is_unchanged():
    """One new page, whichever, makes the whole list new."""
    for first, last in ((True, True), (False, True), (True, False)):
        driven = read(page([1], "page=2", is_unchanged=first), page([2], is_unchanged=last))
        outcome = pages.outcome_of(driven.ended)
        assert outcome.kind is (OutcomeKind.UNCHANGED if first and last else OutcomeKind.SUCCEEDED)
        assert numbers(outcome.result) == [1, 2]


def test_links_that_lead_nowhere_end():
    """One empty page may be followed by a full one; after three in a row the list can't be used."""
    assert numbers(read(page([1], "page=2"), page([], "page=3"), page([2])).ended.entries) == [1, 2]
    empty = (page([], f"page={number}") for number in (3, 4, 5))
    assert "without entries" in read(page([1], "page=2"), *empty).ended.why


def test_a_page_that_comes_again_ends_the_list():
    """Where the place in a link is ignored, the same page comes for ever: as the first one, or as the one before."""
    assert "repeats" in read(page([1], "page=2"), page([1])).ended.why
    assert "repeats" in read(page([1], "page=2"), page([2], "page=3"), page([1], "page=4")).ended.why
    assert "repeats" in read(page([1], "page=2"), page([2], "page=3"), page([2])).ended.why


def test_a_link_that_leads_elsewhere_is_not_followed():
    """Another list, or a user name in it: nothing more is sent, and a part is not the whole (failures.md row 12)."""
    for target in (f"{BASE}/orgs/acme/members?page=2", f"https://x@code.example.com{PATH}?page=2"):
        listing = read(reply(body=[{"id": 1}], headers={"link": f'<{target}>; rel="next"'})).ended
        assert listing.flaw.error.code is ErrorCode.BAD_RESPONSE
        assert "not followed" in listing.why
        assert not listing.entries
        assert pages.outcome_of(listing) is listing.flaw


def test_a_link_to_another_host_never_leads_there():
    """Requests have no host of their own: only the query of a link is used (failures.md row 12)."""
    away = reply(body=[{"id": 1}], headers={"link": f'<https://evil.example{PATH}?page=2>; rel="next"'})
    assert [request.path for request in read(away, page([2])).requests] == [PATH, PATH]


def test_pages_in_a_circle():
    """A link back to a page that was read ends it (failures.md row 12)."""
    for back in ("per_page=100", "page=2", "page=2&per_page=100"):
        driven = read(page([1], "per_page=100&page=2"), page([2], back))
        assert (driven.ended.flaw.error.code, "leads back" in driven.ended.why) == (ErrorCode.BAD_RESPONSE, True)


def test_pages_without_end():
    """After the most pages it is given up (failures.md row 12)."""
    driven = read(*(page([number], f"page={number + 2}") for number in range(3)), most_pages=3)
    assert (len(driven.requests), "goes on after 3 pages" in driven.ended.why) == (3, True)
    assert pages.MOST_PAGES == 10_000


def test_a_list_that_would_fill_the_memory():
    """Pages that go on for ever, each as large as it may be, took the process and all its other items along."""
    half = bytes(pages.MOST_BYTES // 2)
    first, second = (replace(page([n], f"page={n + 1}"), raw=half) for n in (1, 2))
    assert "goes on after 256 MiB" in read(first, second).ended.why
    assert numbers(read(first, replace(page([2]), raw=half)).ended.entries) == [1, 2]


def test_pages_are_not_kept():
    """Of a list of many pages only its entries stay in memory, whatever stands beside them (failures.md row 30)."""
    many, beside = 300, "x" * 100_000
    steps = pages.read_all(PATH, proofs.listing_in("rows", {}, {}), field="rows")

    def read_them() -> Any:
        next(steps)
        try:
            for number in range(many):
                # made anew for each page, as an answer is
                rows = {"rows": [{"id": number * 100 + n} for n in range(100)], "beside": beside + str(number)}
                steps.send(page(rows, f"per_page=100&page={number}x" if number + 1 < many else None))
        except StopIteration as ended:
            return ended.value
        raise AssertionError("it wants more pages")

    tracemalloc.start()
    try:
        listing = read_them()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(listing.entries) == many * 100
    assert peak < 14_000_000, f"{peak:,} bytes: the pages themselves have {many * len(beside):,}"


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, None), (None, None), ([1], "rows"), ({"rows": 5}, "rows"), ("x", None), ({"message": "x"}, None)],
)
def test_what_is_no_list(body, field):
    """An answer of another shape is not an empty list (failures.md row 27)."""
    assert read(page(body), field=field).is_disbelieved
    later = {"rows": [1]} if field else [1]
    assert read(page(later, "page=2"), page(body), field=field).is_disbelieved
    with pytest.raises((TypeError, LookupError)):  # what an older version kept was never looked at
        read(page(body, is_unchanged=True), field=field)


def test_a_status_that_the_caller_takes():
    """Of the first page only: later ones must be there."""
    taken = frozenset((200, 404))
    gone = read(reply(404), accept=taken)
    assert (gone.ended.status, gone.ended.entries, gone.ended.flaw) == (404, [], None)
    later = read(page([1], "page=2"), page([2]), accept=taken)
    assert [request.accept for request in later.requests] == [taken, frozenset((200,))]


def test_fresh_and_paused():
    """Every page of a read-back is fresh; only the first one waits."""
    driven = read(page([1], "page=2"), page([2]), is_fresh=True, pause_s=2.0)
    assert [(request.is_fresh, request.pause_s) for request in driven.requests] == [(True, 2.0), (True, 0.0)]


@pytest.mark.parametrize("entries", [[{"id": 1}, "x"], [{"id": 1}, None], [[]]])
def test_entries_are_objects(entries):
    """A list of anything else is not a list of the specification's; an empty one may be."""
    assert read(page(entries)).is_disbelieved
    assert read(page([])).ended.why == ""
