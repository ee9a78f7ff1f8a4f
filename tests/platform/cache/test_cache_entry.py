"""Answers that were kept as the results that they became: who gets them undecoded, and when nobody does."""

import sqlite3
from dataclasses import replace

import pytest

from bulk.model import Encoded, ErrorCode, Outcome, Reply, failed, succeeded
from bulk.platform.cache.validators import ValidatorStore
from tests.platform.cache.kept_answers import BODY, GET, RAW, reply, store

CONFIRMED = Reply(status=304, headers={})
READ = "readme.get"


def kept_as(one: ValidatorStore, answered: Reply, outcome: Outcome) -> Outcome:
    """Keep an answer, and tell how an item ended with it."""
    key = one.key_of(GET)
    assert key is not None
    assert one.keep(GET, answered, key)
    return one.note_result(key, READ, answered, outcome)


@pytest.mark.parametrize("is_flushed", [False, True])
def test_a_result_is_written_again_as_it_was(tmp_path, is_flushed):
    """A 304 gives the operation whose result the answer became its text, on one line; others get the value."""
    one, answered = store(tmp_path), reply(raw=b'{\n  "name": "README.md",\r\n  "size": 3\n}\n')
    outcome = kept_as(one, answered, succeeded(answered.body))
    assert type(outcome.result) is Encoded
    if is_flushed:
        one.flush()
    found = one.find(GET)
    assert found is not None
    again = one.reply_from(found, CONFIRMED, READ)
    assert (again.status, again.is_unchanged) == (200, True)
    assert (again.body.text, again.body.decoded()) == (b'{"name":"README.md","size":3}', BODY)
    assert one.reply_from(found, CONFIRMED, "contents.get").body == BODY
    assert one.reply_from(found, CONFIRMED).body == BODY
    assert found.etag == '"e1"'
    one.close()


def deep(levels: int) -> object:
    """Lists within lists."""
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


NOT_AS_IT_CAME = {
    "another value": lambda body: succeeded(dict(body)),
    "a note": lambda body: succeeded(body, note="not verified"),
    "bytes to save": lambda body: succeeded(body, payload=b"x"),
    "a failure": lambda body: failed(ErrorCode.REJECTED, "no", result=body),
}


@pytest.mark.parametrize("ends", NOT_AS_IT_CAME.values(), ids=NOT_AS_IT_CAME)
def test_only_what_is_the_answer_is_kept_as_a_result(tmp_path, ends):
    """What an operation made of an answer, or ended with beside it, is not what the next 304 stands for."""
    one, answered = store(tmp_path), reply()
    outcome = ends(answered.body)
    assert kept_as(one, answered, outcome) is outcome
    found = one.find(GET)
    assert found is not None
    assert one.reply_from(found, CONFIRMED, READ).body == BODY
    one.close()


@pytest.mark.parametrize(("levels", "is_kept"), [(200, True), (300, False)])
def test_what_is_nested_too_deeply_is_decoded(tmp_path, levels, is_kept):
    """A value that a line can't hold as it is (ledger/results.py) is not kept as if it could."""
    raw = b"[" * levels + b"1" + b"]" * levels
    one, answered = store(tmp_path), reply(body=deep(levels), raw=raw)
    kept_as(one, answered, succeeded(answered.body))
    found = one.find(GET)
    assert found is not None
    body = one.reply_from(found, CONFIRMED, READ).body
    assert type(body) is (Encoded if is_kept else list)
    one.close()


def test_what_is_on_its_way_to_disk_stays_as_it_came(tmp_path):
    """Told too late, the store goes on with the body as it was."""
    one, answered = store(tmp_path), reply()
    key = one.key_of(GET)
    assert key is not None
    one.keep(GET, answered, key)
    one.flush()
    one.note_result(key, READ, answered, succeeded(answered.body))
    found = one.find(GET)
    assert found is not None
    assert (found.body, one.reply_from(found, CONFIRMED, READ).body) == (RAW, BODY)
    one.close()


@pytest.mark.parametrize("is_result", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE answer SET body = CAST('{"name":"README.md","size":3' AS BLOB)""",
        """UPDATE answer SET body = CAST(replace(CAST(body AS TEXT), '3', '4') AS BLOB)""",
        "UPDATE answer SET body = 5",
        "UPDATE answer SET body = X''",
        "UPDATE answer SET head = replace(head, 'e1', 'e2')",
        "UPDATE answer SET head = 'x'",
        "UPDATE answer SET head = X'00'",
        "UPDATE answer SET used_at = 'x', head = ''",
        "UPDATE answer SET body = (SELECT body FROM answer AS other WHERE other.number != answer.number)",
    ],
)
def test_a_damaged_answer_is_none(tmp_path, damage, is_result):
    """failures.md row 13: a row that is not as it was kept stood for an answer when a 304 came, where it could be read
    at all: another size, no bytes of a raw file, the answer to another request."""
    one, answered = store(tmp_path), reply()
    if is_result:
        kept_as(one, answered, succeeded(answered.body))
    else:
        one.keep(GET, answered)
    other = replace(GET, path="/repos/acme/web/readme")
    one.keep(other, reply(raw=b'{"name": "other"}'))
    one.close()
    again = store(tmp_path)
    assert (again.find(GET) is None, again.find(other) is None) == (False, False)
    again.close()
    (path,) = tmp_path.glob("*.db")
    with sqlite3.connect(path) as database:
        database.execute(damage)
    database.close()
    again = store(tmp_path)
    assert again.find(GET) is None
    assert again.keep(GET, answered)
    assert again.find(GET) is not None
    assert again.is_open
    again.close()


def test_the_text_of_a_result_counts_where_memory_is_bounded(tmp_path):
    """What waits to be written is counted as it will be written."""
    one, answered = store(tmp_path), reply(raw=RAW + b" " * 1_000)
    kept_as(one, answered, succeeded(answered.body))
    assert one._pending_bytes == len(b'{"name":"README.md","size":3}')
    one.close()


@pytest.mark.parametrize(
    ("kept", "named", "is_confirmed"),
    [
        ('"a"', '"a"', True),
        ('"a"', "", True),
        ('"a"', 'W/"a"', True),
        ('W/"a"', '"a"', True),
        ('"a-gzip"', '"a"', True),
        ('"a"', 'W/"a;gzip"', True),
        ('"a"', '"b"', False),
        ('W/"a"', 'W/"b"', False),
        ('"a-gzip"', '"b-gzip"', False),
        ("", '"b"', True),
    ],
)
def test_a_304_confirms_only_the_version_that_it_names(tmp_path, kept, named, is_confirmed):
    """failures.md row 13: what names another one is given on as it came, and the kept answer is forgotten."""
    one = store(tmp_path)
    one.keep(GET, reply({"etag": kept, "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"}))
    found = one.find(GET)
    assert found is not None
    answered = Reply(status=304, headers={"etag": named} if named else {})
    assert (one.reply_from(found, answered) is not answered) is is_confirmed
    assert (one.find(GET) is not None) is is_confirmed
    one.close()


@pytest.mark.parametrize(
    ("etag", "named", "changed", "is_confirmed"),
    [
        ("", "", "Thu, 01 Jan 2026 00:00:00 GMT", True),
        ("", "", "Thursday, 01-Jan-26 00:00:00 GMT", True),
        ("", "", "Wed, 31 Dec 2025 00:00:00 GMT", False),
        ("", "", "Fri, 02 Jan 2026 00:00:00 GMT", False),
        ('"a"', '"a"', "Fri, 02 Jan 2026 00:00:00 GMT", True),
    ],
)
def test_a_304_confirms_only_the_date_that_it_names(tmp_path, etag, named, changed, is_confirmed):
    """failures.md row 13: where a file was replaced with an older one, a platform that compares dates says 304, and the
    newer content stayed for ever."""
    one = store(tmp_path)
    one.keep(GET, reply({"etag": etag, "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"}))
    found = one.find(GET)
    assert found is not None
    answered = Reply(status=304, headers={"etag": named, "last-modified": changed})
    assert (one.reply_from(found, answered) is not answered) is is_confirmed
    one.close()


@pytest.mark.parametrize("kind", ["text/html", "application/json", "application/vnd.service.raw"])
@pytest.mark.parametrize("link", ["", "</style.css>; rel=preload"])
def test_what_is_beside_a_304_tells_nothing_of_the_kept_body(tmp_path, kind, link):
    """A gateway gives a 304 a content type and links of its own: JSON was taken for a page, raw bytes for JSON, and a
    list ended with its first page."""
    kept = {
        "etag": '"a"',
        "content-type": "application/json; charset=utf-8",
        "link": '<https://x/y?page=2>; rel="next"',
    }
    one = store(tmp_path)
    one.keep(GET, reply(kept))
    found = one.find(GET)
    assert found is not None
    answered = one.reply_from(found, Reply(status=304, headers={"content-type": kind, "link": link, "etag": '"a"'}))
    assert answered.body == BODY
    assert {name: answered.headers[name] for name in kept} == kept
    newer = '<https://x/y?page=1>; rel="prev", <https://x/y?page=3>; rel="next"'
    assert one.reply_from(found, Reply(status=304, headers={"link": newer})).headers["link"] == newer
    one.close()
