"""A secret that characters which nobody sees stand within: it is whole again wherever they are left out."""

import json
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bulk.model import Media
from bulk.platform.cache.cache_entry import CacheEntry, head_of, without_secrets
from bulk.redaction.known import MASK
from bulk.redaction.printable import JOINERS, printable
from bulk.redaction.registry import Registry

TOKEN = "ghp_" + "hidden" * 6
SECRET = "hook-S3cret-wXyZ"
HIDDEN = (
    "\u200b", "\u2060", "\u200e", "\u202e", "\ufeff", "\u00ad", "\x07", "\x7f", "\x85", "\0", "\ue000", "\U000e0041",
    "\u0378", "\ud800", *JOINERS, "\x1b[31m", "\x9b0m", "\x1b]0;title\x07", "\x1bc",
)  # fmt: skip


def shown(text: str) -> str:
    """What is seen of it, and what is copied from there."""
    return printable(text.translate(dict.fromkeys(map(ord, JOINERS))))


def known() -> Registry:
    """Knows one of the two; the other one is known by its shape."""
    registry = Registry()
    registry.add(SECRET)
    return registry


@given(
    secret=st.sampled_from((TOKEN, SECRET)),
    seed=st.integers(0, 2**32),
    is_ascii=st.booleans(),
    around=st.sampled_from(("", "é \n", "привет\u00a0")),
)
def test_no_secret_is_whole_when_they_are_left_out(secret: str, seed: int, is_ascii: bool, around: str) -> None:
    """failures.md rows 62, 63: in a message, in a value and in a name of a member of a line of results."""
    dice, registry = random.Random(seed), known()
    split = around + "".join(char + dice.choice(HIDDEN) * (dice.random() < 0.3) for char in secret) + "\u200b" + around
    message = registry.redact(split)
    assert MASK in message
    assert secret not in shown(message)
    text = json.dumps(split.replace("\ud800", ""), ensure_ascii=is_ascii).encode()
    for result in (b"[%s]", b"{%s:1}", b'{"content":%s}'):
        line = b'{"job":"a","index":3,"id":null,"result":%s,"error":null}\n' % (result % text)
        clean, _ = registry.redact_lines(bytearray(line * 2), [len(line)] * 2, [0, 0])
        for each in bytes(clean).splitlines():
            assert orjson.loads(each)["job"] == "a"
            assert secret not in shown(json.dumps(orjson.loads(each), ensure_ascii=False)), each
    assert not registry.is_in(orjson.dumps(message.encode("utf-8", "replace").decode()))


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("secret", [TOKEN, SECRET])
def test_none_of_them_hides_a_secret_where_it_is_the_only_one(secret: str, is_ascii: bool, hidden: str) -> None:
    """failures.md rows 62, 63: JSON may hold DEL as it is, and nothing else marks such a text."""
    registry, split = known(), f"{secret[:9]}{hidden}{secret[9:]}"
    text = json.dumps(split, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    for result in (b"[%s]", b"{%s:1}", b'{"content":%s}'):
        line = b'{"job":"a","index":3,"id":null,"result":%s,"error":null}\n' % (result % text)
        clean, _ = registry.redact_lines(bytearray(line), [len(line)], [0])
        for each in (bytes(clean), registry.redact_json(b"[%s]" % text)):
            assert secret not in shown(
                json.dumps(json.loads(each.decode("utf-8", "surrogatepass")), ensure_ascii=False)
            )


@pytest.mark.parametrize(
    "text", ["naïve ’quotes’ — 你好\u00a0!", "👩\u200d🔬 and \u200b nothing", "\x1b[1mbold\x1b[0m"]
)
def test_texts_without_secrets_keep_theirs(text: str) -> None:
    """What hides nothing stays as it is."""
    registry = known()
    assert registry.redact(text) == text
    line = b'{"job":"a","result":%s,"error":null}\n' % orjson.dumps(text)
    assert registry.redact_lines(bytearray(line), [len(line)], [0])[0] == line


@pytest.mark.parametrize("place", range(4))
def test_a_validator_that_holds_a_token_is_not_kept(place: int) -> None:
    """failures.md row 62: a platform that echoes a token in ETag, Last-Modified, Content-Type or Link: the answer is
    not kept, because with a mask in its place the header would say something else."""
    values = ['"abc"', "Fri, 01 Jan 2021 00:00:00 GMT", "application/json", '<https://a.example/?page=2>; rel="next"']
    heads = [
        head_of(*(f"{value}{TOKEN}" if at == place else value for at, value in enumerate(values))),
        head_of(*values),
    ]
    rows = [(number, b"k", head or "", b"[]", 1) for number, head in enumerate(heads)]
    kept = without_secrets(rows)
    assert [row[0] for row in kept] == [1]
    assert CacheEntry(kept[0], Media.JSON).etag == '"abc"'
