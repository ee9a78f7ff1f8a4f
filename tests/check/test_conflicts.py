"""Items against each other: what can't both be meant is refused before anything is sent; what is not sent is told."""

import itertools
import json
from typing import Any

import pytest

from bulk.bundle.checked import load_checked
from bulk.bundle.streams import LaneIndex
from bulk.check.conflicts import skeleton
from bulk.errors import ManifestError
from bulk.operation import find
from tests.manifest.making import a_job, check_in, check_text, lanes_of, workspace_in

FILE = {"owner": "acme", "repo": "api", "path": "a.txt", "message": "m", "content": "QQ=="}
SNAPSHOT = {
    "owner": "acme",
    "repo": "api",
    "version": 0,
    "ref": "refs/heads/main",
    "sha": "0" * 39 + "1",
    "scanned": "2026-11-21T08:00:00Z",
    "detector": {"name": "d", "version": "1", "url": "https://example.com/d"},
    "job": {"id": "1", "correlator": "build"},
}


def job(operation: str, *items: dict[str, Any], number: int = 0, **more: Any) -> Any:
    """A job of an operation that ships, with inline items on lines 10, 11, …"""
    lines = tuple({"": 10 + place} for place in range(len(items)))
    return a_job(find(operation), items, number=number, name=f"j{number}", item_lines=lines, **more)


def flaws_of(folder, *jobs):
    """(line, message) of every flaw."""
    with pytest.raises(ManifestError) as caught:
        check_in(folder, *jobs)
    return [(flaw.line, flaw.message) for flaw in caught.value.flaws]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"content": "Qg=="}, "writes the file that item 0 writes otherwise"),
        ({"content": "Qg==", "owner": "ACME"}, "writes the file that item 0 writes otherwise"),
        ({"message": "n"}, ""),
        ({"content": "Qg==", "path": "A.txt"}, ""),
        ({"content": "Qg==", "branch": "dev"}, ""),
        ({"content": "Qg==", "repo": "web"}, ""),
    ],
)
def test_two_writes_to_one_file(tmp_path, change, words):
    """Two contents for one file are refused with the line of the second; another path, branch or words are not
    (failures.md row 54)."""
    items = (FILE, {**FILE, **change})
    if not words:
        check_in(tmp_path, job("contents.put", *items))
        return
    ((line, message),) = flaws_of(tmp_path, job("contents.put", *items))
    assert line == 11
    assert message.startswith(words)
    assert "allow_overwrites: true" in message
    check_in(tmp_path, job("contents.put", *items, allow_overwrites=True))


def test_the_job_of_the_later_write_insists(tmp_path):
    """A deletion after a write in another job is refused too, and only the later job's word counts."""
    gone = {name: FILE[name] for name in ("owner", "repo", "path", "message")}
    write, delete = job("contents.put", FILE, allow_overwrites=True), job("contents.delete", gone, number=1)
    ((_, message),) = flaws_of(tmp_path, write, delete)
    assert message.startswith("deletes the file that item 0 of job j0 writes otherwise")
    check_in(tmp_path, write, job("contents.delete", gone, number=1, allow_overwrites=True))


def test_needs_between_jobs_is_an_order_that_is_meant(tmp_path):
    """A job that needs the other, also over a third, may overwrite what it wrote; within a job nothing changes."""
    later = {**FILE, "content": "Qg=="}
    between = job("organization.create", {"login": "acme", "admin": "x"}, number=1, needs=("j0",))
    check_in(tmp_path, job("contents.put", FILE), between, job("contents.put", later, number=2, needs=("j1",)))
    assert flaws_of(tmp_path, job("contents.put", FILE), between, job("contents.put", later, number=2))


def test_overwrites_are_allowed_in_the_manifest(tmp_path):
    """`allow_overwrites: true` is a field of a job, and nothing else than true or false; files of items name lines."""
    items = "".join(json.dumps({**FILE, "content": content}) + "\n" for content in ("QQ==", "Qg=="))
    text = "jobs: {x: {operation: contents.put, items: a.jsonl, allow_overwrites: %s}}\n"
    checked, _ = check_text(tmp_path, text % "true", a_jsonl=items)
    assert checked.jobs[0].items == 2
    with pytest.raises(ManifestError, match=r"a\.jsonl:2: writes the file that item 0"):
        check_text(tmp_path, text % "false", a_jsonl=items)
    with pytest.raises(ManifestError, match="allow_overwrites: expected true or false"):
        check_text(tmp_path, text % "maybe", a_jsonl=items)


def test_items_are_compared_wherever_they_come_from(tmp_path):
    """A CSV file, whose items are kept in a spool, is compared with inline items."""
    path = tmp_path / "a.csv"
    path.write_text("owner,repo,path,message,content\nacme,api,b.txt,m,QQ==\nacme,api,a.txt,m,Qg==\n")
    table = a_job(find("contents.put"), path, number=1, name="table")
    ((line, message),) = flaws_of(tmp_path, job("contents.put", FILE), table)
    assert (line, message.startswith("writes the file that item 0 of job j0")) == (3, True)


def renames(*pairs):
    """A job of renames: `ab` is from a to b."""
    return job("organization.rename", *({"org": f"org-{old}", "login": f"org-{new}"} for old, new in pairs))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["bc", "ab"], None),
        (["cd", "bc", "ab"], None),
        (["ab", "cd"], None),
        (["ab", "bc"], "begins at its free end"),
        (["ab", "ba"], "goes in a circle"),
        (["bc", "ab", "ca"], "circle"),
        (["ab", "ac"], "which item 0 renames to"),
        (["ac", "bc"], "makes an organization 'org-c', as item 0 does otherwise"),
    ],
)
def test_renames_in_chains_and_circles(tmp_path, pairs, words):
    """A chain from its free end is fine; one in the wrong order, a circle or a fork is refused and explained
    (failures.md row 54)."""
    if words is None:
        check_in(tmp_path, renames(*pairs))
    else:
        assert words in flaws_of(tmp_path, renames(*pairs))[0][1]


def test_no_order_of_a_circle_is_accepted(tmp_path):
    """Whatever the order of renames that go in a circle, the check refuses them (failures.md row 54)."""
    for number, order in enumerate(itertools.permutations(["ab", "bc", "cd", "da"])):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        assert flaws_of(workspace, renames(*order))


def test_names_that_differ_only_by_case(tmp_path):
    """Two creations of one name, in another case or with another admin, are refused with both; equal ones are noted
    (failures.md row 54)."""
    web, capital = {"login": "acme-web", "admin": "x"}, {"login": "Acme-Web", "admin": "x"}
    ((line, message),) = flaws_of(tmp_path, job("organization.create", web, capital))
    assert line == 11
    assert "'Acme-Web' and 'acme-web' of item 0 are one name" in message
    assert "as item 0 does" in flaws_of(tmp_path, job("organization.create", web, {**web, "admin": "y"}))[0][1]
    checked, _ = check_in(tmp_path, job("organization.create", web, web))
    assert "asks for the same as an earlier one" in checked.notes[0]
    made = job("organization.rename", {"org": "old", "login": "ACME-WEB"}, number=1)
    assert "are one name" in flaws_of(tmp_path, job("organization.create", web), made)[0][1]
    makes_room = job("organization.rename", {"org": "acme-web", "login": "acme-old"})
    check_in(tmp_path, makes_room, job("organization.create", web, number=1))


def test_names_that_look_alike_are_noted(tmp_path):
    """New names that look alike are told with both names; more than five pairs are counted (failures.md row 56)."""
    names = ["acme-web", "acrne-web", "acme-vveb", "other"]
    checked, _ = check_in(tmp_path, job("organization.create", *({"login": name, "admin": "x"} for name in names)))
    alike = [note for note in checked.notes if "looks like" in note]
    assert len(alike) == 2
    assert "'acrne-web' looks like 'acme-web'" in alike[0]
    many = [{"login": f"o{place}{letter}-x", "admin": "x"} for place in range(2, 5) for letter in "1li0o"]
    checked, _ = check_in(tmp_path, job("organization.create", *many))
    assert checked.notes[-1] == "4 more new names look like others"


def test_what_looks_alike():
    """0 and o, 1, l and i, rn and m are one, wide letters are letters; other letters are not (failures.md row 56)."""
    alike = [("Acme0", "acmeo"), ("bi1l", "blil"), ("rnodern", "modem"), ("\uff41cme", "acme")]
    assert all(skeleton(one) == skeleton(other) for one, other in alike)
    assert skeleton("acme-a") != skeleton("acme-b")


def test_opposite_enablements(tmp_path):
    """One product switched on and off, or one setting set to two values, is refused unless the order is meant."""
    on = {"enterprise": "acme", "security_product": "dependabot_alerts", "enablement": "enable_all"}
    off = {**on, "enterprise": "Acme", "enablement": "disable_all"}
    ((_, message),) = flaws_of(tmp_path, job("enterprise-security.enable", on, off))
    assert message.startswith("is disable_all for dependabot_alerts, and item 0 the opposite")
    check_in(tmp_path, job("enterprise-security.enable", on, off, allow_overwrites=True))
    check_in(tmp_path, job("enterprise-security.enable", on, {**off, "security_product": "secret_scanning"}))
    field = "secret_scanning_enabled_for_new_repositories"
    first, second = ({"enterprise": "acme", field: value} for value in (True, False))
    between = {"enterprise": "acme", "dependabot_alerts_enabled_for_new_repositories": True}
    ((line, message),) = flaws_of(tmp_path, job("enterprise-security.update", first, between, second))
    assert (line, message.startswith(f"sets {field} to another value than item 0")) == (12, True)


def test_snapshots_out_of_order(tmp_path):
    """A snapshot scanned before an earlier one of its lane is refused unless it is meant; time zones count."""
    older = {**SNAPSHOT, "scanned": "2026-11-21T08:30:00+01:00"}
    ((line, message),) = flaws_of(tmp_path, job("snapshot.create", SNAPSHOT, older))
    assert line == 11
    assert "before item 0 of the same repository, correlator and detector" in message
    check_in(tmp_path, job("snapshot.create", older, SNAPSHOT))
    check_in(tmp_path, job("snapshot.create", SNAPSHOT, older, allow_overwrites=True))
    check_in(tmp_path, job("snapshot.create", SNAPSHOT, {**older, "repo": "web"}))


def snapshots(*names, number=0, **more):
    """A job of snapshots of these repositories."""
    items = [{**SNAPSHOT, "repo": name, "id": str(place)} for place, name in enumerate(names)]
    return job("snapshot.create", *items, number=number, **more)


def superseded_of(checked, workspace):
    """(job, index) of what is not sent."""
    with LaneIndex(checked, workspace) as index:
        found = index.superseded(after=0, count=100)
        assert index.superseded(after=found[-1][0] if found else 0, count=100) == []
        return [(entry.job, entry.index) for _, entry in found]


def test_only_the_last_snapshot_of_a_lane_is_sent(tmp_path):
    """Earlier snapshots of a lane are taken out of it, are not requests, and the notes say what that saves."""
    checked, workspace = check_in(tmp_path, snapshots("a", "b", "A", "a", "c", "b"))
    assert superseded_of(checked, workspace) == [(0, 0), (0, 1), (0, 2)]
    assert sorted(lanes_of(checked, workspace)) == [
        (0, "acme/a build d", [(0, 3)]),
        (0, "acme/b build d", [(0, 5)]),
        (0, "acme/c build d", [(0, 4)]),
    ]
    found = checked.jobs[0]
    assert (found.items, found.superseded, found.lanes) == (6, 3, 3)
    assert (found.least_requests, found.most_requests) == (3, 3)
    note = "job j0: 3 items are superseded by a later one and not sent, which saves 3 of its requests"
    assert note in checked.notes
    assert load_checked(checked.manifest, workspace_in(tmp_path)) == checked


def test_a_snapshot_is_superseded_only_by_one_that_is_sent_when_it_would_be(tmp_path):
    """Across jobs only where both wait for the same and use one credential: else the later one may never be sent."""
    later: dict[str, dict[str, Any]] = {
        "same": {},
        "needs": {"needs": ("j0",)},
        "credential": {"credential": "other"},
    }
    expected = {"same": [(0, 0)], "needs": [], "credential": []}
    for name, more in later.items():
        folder = tmp_path / name
        folder.mkdir()
        found = superseded_of(*check_in(folder, snapshots("a"), snapshots("a", number=1, **more)))
        assert found == expected[name], name
