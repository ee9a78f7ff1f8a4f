"""`contents.put` with `mode: replace`, which looks first, and what takes a write of a file back."""

import pytest

from bulk.model import ErrorCode, OutcomeKind
from bulk.undo import Irreversible, Undo
from tests.jobs.driver import drive, item_of, reply, run
from tests.jobs.files.test_contents_put import (
    ABSENT,
    CONFLICT,
    CREATE,
    ITEM,
    OLD,
    OURS,
    PUT,
    REPLACE,
    THIRD,
    URL,
    WRITTEN,
    _file,
    _folder,
)


def test_replace_looks_first():
    """The sha that was given goes with it, in lower case; a platform would make a file that is gone anew."""
    driven = run(PUT, REPLACE, _file(OLD), reply(200, WRITTEN))
    assert driven.shown() == [f"GET {URL}", f"PUT {URL}"]
    assert driven.requests[1].body["sha"] == OLD
    assert driven.requests[1].before == OLD


@pytest.mark.parametrize(("answer", "word"), [(_file(THIRD), THIRD), (_file(OURS), OURS), (ABSENT, "is not there")])
def test_replace_sends_nothing_where_the_file_is_another(answer, word):
    """Another blob, or no file: a conflict that says what it is, without a write."""
    driven = run(PUT, REPLACE, answer)
    assert (driven.error.code, len(driven.requests)) == (ErrorCode.CONFLICT, 1)
    assert word in driven.error.message


def test_replace_of_what_has_the_content_already():
    """With `if_exists: unchanged` nothing is sent where the file has it already, found before the write or after one
    that was refused; any other blob, or no file, is a conflict all the same."""
    like = {**REPLACE, "if_exists": "unchanged"}
    for answers in ([_file(OURS)], [_file(OLD), reply(409, CONFLICT), _file(OURS)]):
        assert run(PUT, like, *answers).outcome.kind is OutcomeKind.UNCHANGED
    for answer in (_file(THIRD), ABSENT):
        assert run(PUT, like, answer).error.code is ErrorCode.CONFLICT


def test_replace_of_what_this_run_has_just_left():
    """Right behind its own write nothing is looked at, because a copy may lag; what is gone is a conflict."""
    steps = PUT.steps_after(item_of(PUT, **REPLACE), OLD, 5.0)
    assert drive(steps, reply(200, WRITTEN)).shown() == [f"PUT {URL}"]
    gone = drive(PUT.steps_after(item_of(PUT, **REPLACE), "", 5.0), ABSENT)
    assert gone.error.code is ErrorCode.CONFLICT


@pytest.mark.parametrize(("answer", "word"), [(_file(THIRD), THIRD), (_file(OURS), OURS), (ABSENT, "is not there")])
def test_replace_fails_where_the_file_is_another(answer, word):
    """The file is no longer that blob when the write comes: a conflict that says what it is."""
    driven = run(PUT, REPLACE, _file(OLD), reply(409, CONFLICT), answer)
    assert driven.error.code is ErrorCode.CONFLICT
    assert word in driven.error.message
    assert driven.outcome.http_status == 409


def test_replace_with_an_overlapping_write():
    """A 409 while the file is still that blob: once more with the same sha."""
    driven = run(
        PUT,
        REPLACE,
        _file(OLD),
        reply(409, CONFLICT),
        _file(OLD),
        _folder(("CODEOWNERS", "file", OLD)),
        reply(200, WRITTEN),
    )
    assert driven.requests[4].body["sha"] == OLD


def test_replace_by_the_same_content_sends_nothing():
    """A commit without a difference is not made; the file must be that blob all the same."""
    same = {**ITEM, "mode": "replace", "sha": OURS}
    assert run(PUT, same, _file(OURS)).outcome.kind is OutcomeKind.UNCHANGED
    assert run(PUT, same, _file(THIRD)).error.code is ErrorCode.CONFLICT
    assert run(PUT, same, ABSENT).error.code is ErrorCode.CONFLICT


@pytest.mark.parametrize("commit", [None, {"sha": "c" * 40, "parent": "d" * 40}])
def test_a_creation_whose_answer_was_lost_is_not_taken_back(commit):
    """A file with the same bytes may have been there before, where nobody had looked or a 404 hid it: it stays."""
    result = {"path": "docs/CODEOWNERS", "sha": OURS, **({"commit": commit} if commit else {})}
    assert isinstance(PUT.undo(item_of(PUT, **CREATE), None, result), Undo if commit else Irreversible)
    assert isinstance(PUT.undo(item_of(PUT, **ITEM), None, result), Undo if commit else Irreversible)
