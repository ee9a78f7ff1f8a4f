"""`contents.delete`: what is deleted, what was not there, and what became of a lost answer."""

import pytest

from bulk.model import Effect, ErrorCode, OutcomeKind
from bulk_jobs.contents import DeleteContents
from tests.jobs.driver import flaws, item_of, reply, run, settle

DELETE = DeleteContents()
OLD, THIRD = "a" * 40, "b" * 40
ITEM = {"owner": "acme-eng", "repo": "api", "path": "old.txt", "message": "Delete it"}
WITH_SHA = {**ITEM, "sha": OLD}
URL = "/repos/acme-eng/api/contents/old.txt"
DELETED = {"content": None, "commit": {"sha": "c" * 40, "html_url": "https://x/c"}}
RESULT = {"path": "old.txt", "sha": OLD, "commit": {"sha": "c" * 40, "html_url": "https://x/c"}}
CONFLICT = {"message": "old.txt does not match"}
ABSENT, EMPTY = reply(404), reply(404, {"message": "This repository is empty."})
ROOT = reply(body=[])


def _file(sha):
    return reply(body={"type": "file", "path": "old.txt", "sha": sha, "size": 3})


def _folder(*entries):
    return reply(body=[{"name": name, "type": kind, "sha": sha} for name, kind, sha in entries])


def test_without_a_sha_it_is_looked_up():
    """One read, one DELETE with the blob that was found."""
    driven = run(DELETE, {**ITEM, "branch": "dev"}, _file(OLD), reply(200, DELETED))
    assert driven.shown() == [f"GET {URL}?ref=dev", f"DELETE {URL}"]
    write = driven.requests[1]
    assert write.effect is Effect.COMPARE_AND_SWAP
    assert write.body == {"message": "Delete it", "sha": OLD, "branch": "dev"}
    assert write.before == OLD
    assert driven.outcome.result == RESULT


def test_with_a_sha_it_is_one_request():
    """Nothing is read; the platform compares."""
    driven = run(DELETE, WITH_SHA, reply(200, DELETED))
    assert driven.shown() == [f"DELETE {URL}"]
    assert driven.outcome.result == RESULT


@pytest.mark.parametrize("answers", [(ABSENT, ABSENT, ROOT), (ABSENT, ABSENT, EMPTY), (ABSENT, EMPTY), (EMPTY,)])
def test_what_is_not_there_is_unchanged(answers):
    """Absent, and the root of the branch can be listed (or the repository is empty)."""
    driven = run(DELETE, {**ITEM, "branch": "dev"}, *answers)
    assert driven.outcome.kind is OutcomeKind.UNCHANGED
    assert all(shown.endswith("?ref=dev") for shown in driven.shown())


def test_a_single_404_does_not_say_that_nothing_is_there():
    """What a second look shows is deleted."""
    driven = run(DELETE, ITEM, ABSENT, _file(OLD), reply(200, DELETED))
    assert driven.shown()[1:] == [f"GET {URL}", f"DELETE {URL}"]
    assert [request.is_fresh for request in driven.requests[:2]] == [False, True]
    assert driven.outcome.result == RESULT


def test_a_listing_that_shows_it_contradicts_every_404():
    """Half of all looks were answered 404, and the listing in between showed the file: it counted as gone."""
    shown, other = _folder(("old.txt", "file", OLD)), _folder(("new.txt", "file", OLD))
    driven = run(DELETE, ITEM, ABSENT, ABSENT, shown)
    assert (driven.error.code, "no listing confirms" in driven.error.message) == (ErrorCode.NOT_FOUND, True)
    assert settle(DELETE, ITEM, OLD, ABSENT, ABSENT, shown, method="DELETE").is_undecided
    assert settle(DELETE, ITEM, OLD, ABSENT, ABSENT, other, method="DELETE").outcome.kind is OutcomeKind.SUCCEEDED


def test_the_folder_of_a_file_tells_more_than_the_root():
    """It is listed, and only where there is no such folder the root."""
    below = {**ITEM, "path": "docs/old.txt"}
    listed = run(DELETE, below, ABSENT, ABSENT, _folder(("new.txt", "file", OLD)))
    assert listed.shown()[2:] == ["GET /repos/acme-eng/api/contents/docs"]
    gone = run(DELETE, below, ABSENT, ABSENT, reply(404), ROOT)
    assert gone.shown()[2:] == ["GET /repos/acme-eng/api/contents/docs", "GET /repos/acme-eng/api/contents"]
    assert {listed.outcome.kind, gone.outcome.kind} == {OutcomeKind.UNCHANGED}


@pytest.mark.parametrize(
    "above",
    [
        {"type": "file", "path": "docs", "url": "/repos/acme-eng/api/contents/docs", "sha": OLD, "size": 3},
        {"type": "dir", "entries": [{"type": "file", "name": "new.txt"}]},
    ],
)
def test_a_file_in_the_place_of_the_folder_has_nothing_below(above):
    """The folder that a path names may be a file, or be shown in the form of an object."""
    driven = run(DELETE, {**ITEM, "path": "docs/old.txt"}, ABSENT, ABSENT, reply(body=above))
    assert driven.outcome.kind is OutcomeKind.UNCHANGED


def test_a_404_may_be_a_lack_of_permission():
    """Where the root can't be listed either, it is not claimed that the file is gone."""
    driven = run(DELETE, ITEM, ABSENT, ABSENT, reply(404))
    assert driven.error.code is ErrorCode.NOT_FOUND
    assert "permission" in driven.error.message


def test_a_404_to_the_delete_itself():
    """With a sha the 404 comes from the DELETE: unchanged where the file is not there beside a root that is."""
    gone = run(DELETE, WITH_SHA, reply(404), ABSENT, ABSENT, ROOT)
    assert gone.outcome.kind is OutcomeKind.UNCHANGED
    assert all(request.is_fresh for request in gone.requests[1:])
    assert run(DELETE, WITH_SHA, reply(404), ABSENT, ABSENT, reply(404)).error.code is ErrorCode.NOT_FOUND
    assert run(DELETE, WITH_SHA, reply(404), EMPTY).outcome.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize("there", [OLD, THIRD])
def test_a_404_while_the_file_is_there(there):
    """Who may read a file and not delete it is told 404: the file itself is looked at before that is believed."""
    assert "is there" in run(DELETE, WITH_SHA, reply(404), ABSENT, _file(there)).error.message
    driven = run(DELETE, WITH_SHA, reply(404), _file(there))
    assert (driven.error.code, driven.outcome.http_status) == (ErrorCode.NOT_FOUND, 404)
    assert "is there" in driven.error.message


def test_directories_are_not_deleted():
    """What is not a file fails as a conflict that names it."""
    driven = run(DELETE, ITEM, reply(body={"type": "dir", "entries": [{"type": "file", "name": "a"}]}))
    assert driven.error.code is ErrorCode.CONFLICT
    assert "a directory" in driven.error.message


def test_after_a_conflict_the_newest_is_deleted():
    """Without a sha, whatever is there now is what is meant; a second refusal is the engine's."""
    driven = run(DELETE, ITEM, _file(OLD), reply(409, CONFLICT), _file(THIRD), reply(200, DELETED))
    assert driven.requests[2].is_fresh
    assert driven.requests[3].body["sha"] == THIRD
    assert 409 not in driven.requests[3].accept
    assert driven.outcome.result["sha"] == THIRD


def test_a_sha_means_that_blob_alone():
    """Another blob is a conflict and stays; the same one is an overlapping write and tried again."""
    driven = run(DELETE, WITH_SHA, reply(409, CONFLICT), _file(THIRD))
    assert driven.error.code is ErrorCode.CONFLICT
    assert THIRD in driven.error.message
    again = run(
        DELETE, WITH_SHA, reply(409, CONFLICT), _file(OLD), _folder(("old.txt", "file", OLD)), reply(200, DELETED)
    )
    assert again.outcome.result == RESULT


def test_gone_after_a_conflict():
    """Somebody else deleted it meanwhile: unchanged, where two looks say so; a single one said it of another blob."""
    assert run(DELETE, WITH_SHA, reply(409, CONFLICT), ABSENT, ABSENT, ROOT).outcome.kind is OutcomeKind.UNCHANGED
    twice = run(DELETE, ITEM, _file(OLD), reply(409, CONFLICT), _file(THIRD), reply(404), ABSENT, ABSENT, ROOT)
    assert twice.outcome.kind is OutcomeKind.UNCHANGED
    lied = run(DELETE, WITH_SHA, reply(409, CONFLICT), ABSENT, _file(THIRD))
    assert lied.error.code is ErrorCode.CONFLICT


def test_what_rules_refuse_is_not_sent_again():
    """One look shows that nobody else is to blame: no repeat changes the rules of a repository."""
    rules = {"message": "Repository rule violations found\n\nChanges must be made through a pull request.\n\n"}
    driven = run(DELETE, ITEM, _file(OLD), reply(409, rules), _file(OLD))
    assert (driven.error.code, driven.outcome.http_status, driven.outcome.gives_codes) == ("conflict", 409, True)


def test_a_symlink_is_named():
    """Reading it shows another file's blob, which the platform refuses."""
    driven = run(DELETE, ITEM, _file(OLD), reply(409, CONFLICT), _file(OLD), _folder(("old.txt", "symlink", THIRD)))
    assert "symlink" in driven.error.message


def test_settled_as_applied():
    """Gone, beside a root that can be listed: succeeded."""
    driven = settle(DELETE, {**ITEM, "branch": "dev"}, OLD, ABSENT, ABSENT, ROOT, method="DELETE")
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result["sha"] == OLD
    assert driven.shown() == [f"GET {URL}?ref=dev", f"GET {URL}?ref=dev", "GET /repos/acme-eng/api/contents?ref=dev"]
    assert settle(DELETE, ITEM, OLD, EMPTY).outcome.kind is OutcomeKind.SUCCEEDED


def test_settled_as_not_applied():
    """The blob from before is there."""
    assert settle(DELETE, ITEM, OLD, _file(OLD), method="DELETE").is_undone


def test_after_a_third_value_nobody_knows():
    """Another blob, or a directory: whether ours was done before that can't be told; all three are."""
    third = settle(DELETE, ITEM, OLD, _file(THIRD), _folder(("old.txt", "file", THIRD)), method="DELETE")
    assert third.is_undecided
    assert third.ended.found == {"wanted": None, "before": OLD, "found": THIRD}
    directory = settle(
        DELETE, ITEM, OLD, _folder(("a", "file", OLD)), _folder(("old.txt", "dir", OLD)), method="DELETE"
    )
    assert directory.ended.found == {"wanted": None, "before": OLD, "found": "a directory"}


def test_settled_where_a_symlink_is_still_there():
    """Its own blob is the one that was to be deleted: not applied."""
    driven = settle(DELETE, WITH_SHA, OLD, _file(THIRD), _folder(("old.txt", "symlink", OLD.upper())))
    assert driven.is_undone


def test_a_404_alone_proves_nothing():
    """Neither the file nor the root of its branch: undecided."""
    assert settle(DELETE, ITEM, OLD, ABSENT, ABSENT, reply(404)).is_undecided


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"path": "a//b"}, "path"),
        ({"sha": "z" * 40}, "sha"),
        ({"message": " "}, "message"),
        ({"author": {"name": "x", "email": "y"}}, "author.email"),
    ],
)
def test_checks(change, field):
    """Each value that the platform would refuse is a flaw of exactly its field."""
    assert set(flaws(DELETE, {**ITEM, **change})) == {field}
    assert not flaws(DELETE, WITH_SHA)


def test_it_shares_the_lane_of_all_writes_of_the_repository():
    """PUT and DELETE must not overlap."""
    assert DELETE.lanes(item_of(DELETE, **ITEM)) == ("acme-eng/api",)
    assert DELETE.resource == "contents"
