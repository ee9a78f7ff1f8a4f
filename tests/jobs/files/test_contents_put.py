"""`contents.put`: what is sent, what is not, and what became of a lost answer."""

import base64

import msgspec
import pytest

from bulk.capabilities import FileError
from bulk.model import RAW_BODY_BYTES, Effect, ErrorCode, Media, OutcomeKind
from bulk_jobs.contents import PutContents
from bulk_jobs.shared.files import blobs
from tests.jobs.driver import drive, flaws, item_of, reply, run, settle

PUT = PutContents()
NEW = b"* @acme-eng/owners\n"
OURS, OLD, THIRD = blobs.blob_sha(NEW), "a" * 40, "b" * 40
ITEM = {
    "owner": "Acme-Eng",
    "repo": "api",
    "path": "docs/CODEOWNERS",
    "message": "Add CODEOWNERS",
    "content": base64.b64encode(NEW).decode(),
}
REPLACE = {**ITEM, "mode": "replace", "sha": OLD.upper()}
CREATE = {**ITEM, "mode": "create"}
URL = "/repos/Acme-Eng/api/contents/docs/CODEOWNERS"
WRITTEN = {
    "content": {
        "path": "docs/CODEOWNERS",
        "sha": OURS,
        "size": len(NEW),
        "html_url": "https://x/f",
        "download_url": "y",
    },
    "commit": {"sha": "c" * 40, "html_url": "https://x/c", "message": "Add CODEOWNERS"},
}
RESULT = {
    "path": "docs/CODEOWNERS",
    "sha": OURS,
    "size": len(NEW),
    "html_url": "https://x/f",
    "commit": {"sha": "c" * 40, "html_url": "https://x/c"},
}
CONFLICT = {"message": "docs/CODEOWNERS does not match"}
INVALID = {"message": 'Invalid request.\n\n"sha" wasn\'t supplied.'}


def _file(sha, **fields):
    return reply(body={"type": "file", "path": "docs/CODEOWNERS", "sha": sha, "size": 3, "encoding": "none", **fields})


def _folder(*entries):
    return reply(body=[{"name": name, "type": kind, "sha": sha} for name, kind, sha in entries])


ABSENT = reply(404)
DIRECTORY = reply(body={"type": "dir", "path": "docs/CODEOWNERS", "entries": [{"type": "file", "name": "a"}]})
SYMLINK = reply(body={"type": "symlink", "sha": THIRD, "target": "../x"})
SUBMODULE = reply(body={"type": "submodule", "sha": THIRD, "submodule_git_url": "https://x"})
EMPTY = reply(404, {"message": "This repository is empty."})


# -- ensure


def test_ensure_writes_a_new_file_after_one_look():
    """Not there: one read in the object form, one PUT without sha, which remembers the state before."""
    driven = run(PUT, {**ITEM, "branch": "dev"}, ABSENT, reply(201, WRITTEN))
    look, put = driven.requests
    assert driven.shown() == [f"GET {URL}?ref=dev", f"PUT {URL}"]
    assert (look.media, look.effect, look.is_fresh) == (Media.OBJECT, Effect.READ, False)
    assert put.effect is Effect.COMPARE_AND_SWAP
    assert put.before is None
    assert put.body == {"message": "Add CODEOWNERS", "content": ITEM["content"], "branch": "dev"}
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED
    assert driven.outcome.result == RESULT


def test_ensure_replaces_another_file_with_its_sha():
    """Another blob: the PUT names it, so that nobody else's write is lost."""
    driven = run(PUT, ITEM, _file(OLD.upper()), reply(200, WRITTEN))
    assert driven.requests[1].body["sha"] == OLD
    assert driven.requests[1].before == OLD
    assert driven.outcome.result == RESULT


def test_ensure_sends_nothing_where_the_file_is_so():
    """The same blob, also from the store: unchanged, with one read."""
    for is_unchanged in (False, True):
        answer = reply(body=_file(OURS, html_url="https://x/f").body, is_unchanged=is_unchanged)
        driven = run(PUT, ITEM, answer)
        assert driven.outcome.kind is OutcomeKind.UNCHANGED
        assert driven.outcome.result == {"path": "docs/CODEOWNERS", "sha": OURS, "size": 3, "html_url": "https://x/f"}


def test_people_and_branch_are_sent_as_given():
    """Committer and author go into the body with what was given and nothing else."""
    people = {
        "committer": {"name": "Mona", "email": "m@example.com"},
        "author": {"name": "Lisa", "email": "l@example.com", "date": "2026-11-21T08:00:00Z"},
    }
    body = run(PUT, {**CREATE, **people}, reply(201, WRITTEN)).requests[0].body
    assert body["committer"] == people["committer"]
    assert body["author"] == people["author"]
    assert "branch" not in body


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (DIRECTORY, "a directory"),
        (reply(body=[{"type": "file", "name": "a"}]), "a directory"),
        (SYMLINK, "a symlink to '../x'"),
        (SUBMODULE, "a submodule"),
    ],
)
def test_what_is_no_file_is_not_written(answer, word):
    """A directory, a symlink that leads nowhere or a submodule fails as a conflict that names it, before any write."""
    driven = run(PUT, ITEM, answer)
    assert driven.error.code is ErrorCode.CONFLICT
    assert word in driven.error.message
    assert "docs/CODEOWNERS" in driven.error.message


def test_a_symlink_to_a_file_is_named_after_the_refusal():
    """Reading it shows the file that it leads to, whose sha is refused; its folder tells why."""
    answers = [
        _file(OLD),
        reply(409, CONFLICT),
        _file(OLD),
        _folder(("x", "file", OLD), ("CODEOWNERS", "symlink", THIRD)),
    ]
    driven = run(PUT, ITEM, *answers)
    assert driven.shown()[3] == "GET /repos/Acme-Eng/api/contents/docs"
    assert driven.error.code is ErrorCode.CONFLICT
    assert "symlink" in driven.error.message


def test_ensure_looks_again_after_a_conflict():
    """Another write came between: the second PUT says so to the engine, which settles the first one before it sends it
    (tests/simulation/effects/test_third_values.py), and whose the second refusal is."""
    answers = [_file(OLD), reply(409, CONFLICT), _file(THIRD), reply(200, WRITTEN)]
    driven = run(PUT, ITEM, *answers)
    first, look, second = driven.requests[1:]
    assert look.is_fresh
    assert (first.body["sha"], second.body["sha"]) == (OLD, THIRD)
    assert second.before == THIRD
    assert second.accept == frozenset((200, 201))
    assert driven.outcome.result == RESULT


def test_ensure_after_a_file_was_created_or_deleted_meanwhile():
    """A 422 because a file has come, or a 409 because it has gone, leads to a second PUT that fits."""
    came = run(PUT, ITEM, ABSENT, reply(422, INVALID), _file(THIRD), reply(200, WRITTEN))
    assert came.requests[3].body["sha"] == THIRD
    gone = run(PUT, ITEM, _file(OLD), reply(409, CONFLICT), ABSENT, reply(201, WRITTEN))
    assert "sha" not in gone.requests[3].body
    assert came.outcome.result == gone.outcome.result == RESULT


def test_ensure_with_an_overlapping_write():
    """A 409 although nothing has changed at the path: the same PUT once more, then the engine waits and starts over."""
    answers = [_file(OLD), reply(409, CONFLICT), _file(OLD), _folder(("CODEOWNERS", "file", OLD)), reply(200, WRITTEN)]
    assert run(PUT, ITEM, *answers).outcome.result == RESULT
    without_folder = [_file(OLD), reply(409, CONFLICT), _file(OLD), reply(404), reply(200, WRITTEN)]
    assert run(PUT, ITEM, *without_folder).outcome.result == RESULT


def test_ensure_where_somebody_else_wrote_the_same():
    """Refused, and then already so: unchanged."""
    driven = run(PUT, ITEM, _file(OLD), reply(409, CONFLICT), _file(OURS))
    assert driven.outcome.kind is OutcomeKind.UNCHANGED


def test_a_422_that_the_file_does_not_explain_is_final():
    """The platform's words are the message."""
    driven = run(PUT, ITEM, ABSENT, reply(422, {"message": "path contains a malformed path component"}), ABSENT)
    assert driven.error.code is ErrorCode.VALIDATION_FAILED
    assert "malformed" in driven.error.message
    assert driven.outcome.http_status == 422


RULES = {"message": "Repository rule violations found\n\nChanges must be made through a pull request.\n\n"}
PROTECTED = {
    "message": "Could not update file: Changes must be made through a pull request.",
    "documentation_url": "https://docs.example.com/articles/about-protected-branches",
}


@pytest.mark.parametrize("body", [RULES, PROTECTED])
@pytest.mark.parametrize("item", [ITEM, REPLACE, CREATE])
def test_what_rules_refuse_is_not_sent_again(item, body):
    """One look shows that nobody else is to blame: no repeat changes the rules of a repository."""
    state = ABSENT if item is CREATE else _file(OLD)
    before = () if item is CREATE else (state,)
    driven = run(PUT, item, *before, reply(409, body), state)
    assert (driven.error.code, driven.outcome.http_status) == (ErrorCode.CONFLICT, 409)
    assert "pull request" in driven.error.message
    assert driven.outcome.gives_codes


# -- create; test_contents_replace.py has replace


def test_create_is_one_request():
    """Nothing is read before: the platform itself refuses what exists."""
    driven = run(PUT, CREATE, reply(201, WRITTEN))
    assert driven.shown() == [f"PUT {URL}"]
    assert driven.requests[0].before is None
    assert driven.outcome.kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize("sha", [THIRD, OURS])
def test_create_fails_where_the_file_exists(sha):
    """Whatever is in it, also the same content."""
    driven = run(PUT, CREATE, reply(422, INVALID), _file(sha))
    assert driven.error.code is ErrorCode.CONFLICT
    assert "exists already" in driven.error.message
    assert driven.outcome.http_status == 422


def test_create_of_what_is_a_directory():
    """The reason is named, not the platform's complaint about a sha."""
    assert "a directory" in run(PUT, CREATE, reply(422, INVALID), DIRECTORY).error.message


def test_create_with_an_overlapping_write():
    """A 409 while nothing is there: once more."""
    assert run(PUT, CREATE, reply(409, CONFLICT), ABSENT, reply(201, WRITTEN)).outcome.result == RESULT


LIKE = {**CREATE, "if_exists": "unchanged"}


def test_create_where_the_same_content_counts_as_unchanged():
    """It looks first, so that a refusal of its own write is not taken for somebody else's file."""
    assert run(PUT, LIKE, ABSENT, reply(201, WRITTEN)).outcome.result == RESULT
    assert run(PUT, LIKE, _file(OURS)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(PUT, LIKE, ABSENT, reply(422, INVALID), _file(OURS)).outcome.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize("answers", [(), (ABSENT, reply(422, INVALID))], ids=["before", "refused"])
def test_create_where_other_content_is_in_the_way(answers):
    """A file with other content is never overwritten: the creation fails as a conflict."""
    driven = run(PUT, LIKE, *answers, _file(THIRD))
    assert driven.error.code is ErrorCode.CONFLICT
    assert "exists already" in driven.error.message


def test_only_what_may_fail_says_what_a_file_that_exists_counts_as():
    """The mode ensure says by itself what it does about one."""
    assert set(flaws(PUT, {**LIKE, "mode": "ensure"})) == {"if_exists"}
    assert not list(flaws(PUT, {**LIKE, "mode": "replace", "sha": OLD}))


# -- answers


def test_the_content_is_left_out_of_results():
    """Base64 content is sent, never reported."""
    assert "content" in PUT.unreported


# -- settling


def test_settled_as_applied():
    """The new blob is there: succeeded, and the note says how that is known."""
    for before in (None, OLD):
        driven = settle(PUT, ITEM, before, _file(OURS))
        assert driven.outcome.kind is OutcomeKind.SUCCEEDED
        assert driven.outcome.result["sha"] == OURS
        assert "lost" in driven.outcome.result["note"]


def test_settled_as_not_applied_where_the_blob_is_the_one_before():
    """The old blob is there: not applied."""
    assert settle(PUT, ITEM, OLD, _file(OLD)).is_undone
    assert settle(PUT, REPLACE, OLD, _file(OLD.upper())).is_undone


def test_settled_as_not_applied_where_nothing_is_there():
    """A new file is not there, and the root of the repository can be listed: not applied."""
    driven = settle(PUT, {**ITEM, "branch": "dev"}, None, ABSENT, reply(body=[]))
    assert driven.is_undone
    assert driven.shown() == [f"GET {URL}?ref=dev", "GET /repos/Acme-Eng/api/contents"]


def test_settled_in_an_empty_repository():
    """A 404 that says the repository is empty proves that it can be seen, on the file or on the root."""
    assert settle(PUT, ITEM, None, EMPTY).is_undone
    assert settle(PUT, ITEM, None, ABSENT, EMPTY).is_undone


def test_a_404_alone_proves_nothing():
    """Neither the file nor the root: no permission perhaps, so undecided."""
    assert settle(PUT, ITEM, None, ABSENT, reply(404)).is_undecided
    assert settle(PUT, ITEM, OLD, ABSENT, reply(404)).is_undecided


@pytest.mark.parametrize("before", [None, OLD])
def test_after_a_third_value_nobody_knows(before):
    """Neither the new blob nor the one before: whether ours was there in between can't be told; all three are."""
    answers = [_file(THIRD)] + ([_folder(("CODEOWNERS", "file", THIRD))] if before else [])
    driven = settle(PUT, ITEM, before, *answers)
    assert driven.is_undecided
    assert driven.ended.found == {"wanted": OURS, "before": before, "found": THIRD}
    assert f"docs/CODEOWNERS is now the blob {THIRD}" in driven.ended.why


def test_settled_where_a_directory_has_come():
    """A directory at the path is a third value too."""
    driven = settle(PUT, ITEM, None, DIRECTORY)
    assert driven.is_undecided
    assert driven.ended.found == {"wanted": OURS, "before": None, "found": "a directory"}


def test_settled_where_the_file_was_deleted():
    """There was a file, and now there is none: somebody deleted it, before or after ours."""
    driven = settle(PUT, ITEM, OLD, ABSENT, reply(body=[]))
    assert driven.is_undecided
    assert driven.ended.found == {"wanted": OURS, "before": OLD, "found": None}
    assert "docs/CODEOWNERS is gone" in driven.ended.why


def test_settled_where_a_symlink_was_to_be_replaced():
    """Its own blob is the one before, although reading it shows another file: not applied."""
    driven = settle(PUT, REPLACE, OLD, _file(THIRD), _folder(("CODEOWNERS", "symlink", OLD)))
    assert driven.is_undone


# -- checks, files, lanes


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"content": None}, "content"),
        ({"content_file": "x"}, "content"),
        ({"content": "no base64!"}, "content"),
        ({"content": "aGVsbG8"}, "content"),
        ({"message": " \n"}, "message"),
        ({"message": "a\0b"}, "message"),
        ({"path": "../x"}, "path"),
        ({"path": "/x"}, "path"),
        ({"path": ".git/config"}, "path"),
        ({"branch": "a b"}, "branch"),
        ({"branch": "a\nb"}, "branch"),
        ({"mode": "replace"}, "sha"),
        ({"mode": "replace", "sha": "g" * 40}, "sha"),
        ({"mode": "create", "sha": OLD}, "sha"),
        ({"sha": OLD}, "sha"),
        ({"author": {"name": "x", "email": "nobody"}}, "author.email"),
        ({"committer": {"name": " ", "email": "a@b"}}, "committer.name"),
        ({"committer": {"name": "x", "email": "a@b", "date": "today"}}, "committer.date"),
        ({"owner": "a b"}, "owner"),
        ({"repo": ".."}, "repo"),
    ],
)
def test_checks(change, field):
    """Each value that the platform would refuse is a flaw of exactly its field."""
    fields = {name: value for name, value in {**ITEM, **change}.items() if value is not None}
    assert set(flaws(PUT, fields)) == {field}


def test_a_good_item_has_no_flaw():
    """Every mode, and content from a file, pass."""
    from_file = {name: value for name, value in ITEM.items() if name != "content"}
    for fields in (ITEM, CREATE, REPLACE, {**from_file, "content_file": "a/b"}, {**ITEM, "content": ""}):
        assert not flaws(PUT, fields)


def test_content_above_100_mb_is_refused():
    """One byte more than the platform takes, inline or from a file."""
    item = msgspec.structs.replace(item_of(PUT, **ITEM), content="AAAA" * (RAW_BODY_BYTES // 3 + 1))
    assert [(flaw.field, "100 MB" in flaw.message) for flaw in PUT.check(item)] == [("content", True)]
    with pytest.raises(FileError, match="100 MB"):
        PUT.with_file(item_of(PUT, **ITEM), "content_file", bytes(RAW_BODY_BYTES + 1))


def test_a_file_is_put_inline():
    """The file's bytes become the content, whatever they are, and the item passes the same checks."""
    fields = {name: value for name, value in ITEM.items() if name != "content"}
    item = PUT.with_file(item_of(PUT, **fields, content_file="x"), "content_file", b"\xff\0\n")
    assert blobs.decode(item.content or "") == b"\xff\0\n"
    assert not list(PUT.check(item))
    assert drive(PUT.steps(item), _file(blobs.blob_sha(b"\xff\0\n"))).outcome.kind is OutcomeKind.UNCHANGED


def test_no_other_field_takes_a_file():
    """A file for another field is an error, not a silent nothing."""
    with pytest.raises(FileError):
        PUT.with_file(item_of(PUT, **ITEM), "message", b"x")


def test_the_lane_is_the_repository():
    """All writes of one repository share it, whatever the file."""
    assert PUT.lanes(item_of(PUT, **ITEM)) == ("Acme-Eng/api",)
