"""A content without a secret is not looked at twice, and what stands around it is written as if it had been."""

import base64
import random

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.ledger.results import dump
from bulk.redaction import json_lines
from bulk.redaction.registry import GROUP_BYTES, Registry

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "Zz9xY8"
ADDRESS = "https://host/raw/acme/api/main/README.md?token=AAAA2B82F206B1496"

texts = st.one_of(
    st.binary(max_size=300).map(lambda data: base64.encodebytes(data).decode()),
    st.text(max_size=30),
    st.sampled_from(
        [
            "",
            '"',
            "\\",
            'a"b',
            "a\\",
            '\\"',
            '"content":"',
            "\n",
            TOKEN,
            f"{TOKEN}\n",
            ADDRESS,
            f'"{ADDRESS}',
            "a%41&amp;",
        ]
    ),
)
names = st.sampled_from(["content", "url", "download_url", 'a"content', TOKEN, f'{TOKEN}"content', "contents", ADDRESS])
values = st.recursive(
    st.one_of(texts, st.integers(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=8,
)


@given(lines=st.lists(values, min_size=1, max_size=4))
@example(lines=[{"content": 'a"b', "url": ADDRESS}])
@example(lines=[{"content": "YWJj\n", f'{TOKEN}"content': "YWJj\n", "url": ADDRESS}])
@example(lines=[{"content": "", "url": ADDRESS, "more": [{"content": "YQ==\n"}]}])
def test_lines_are_as_if_all_of_them_were_looked_at(lines: list[object]) -> None:
    """Whatever contents, names and secrets stand in them."""
    registry = Registry()
    registry.add(TOKEN, is_deep=True)
    written = [dump({"job": "a", "result": value, "error": None}) + b"\n" for value in lines]
    clean, sizes = registry.redact_lines(bytearray(b"".join(written)), [*map(len, written)], [0] * len(written))
    expected = [json_lines.line_without(line, registry.spans, registry.hits(line)) for line in written]
    assert bytes(clean) == b"".join(expected)
    assert sizes == [*map(len, expected)]
    for line in bytes(clean).splitlines():
        orjson.loads(line)


def test_a_clean_content_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of each file of a private repository holds a token: each of its lines is changed."""
    registry, seen = Registry(), []
    spans, hits = registry.spans, registry.hits

    def look(data: bytes, with_words: bool = True) -> list[tuple[int, int]]:
        seen.append(data)
        return spans(data, with_words)

    def search(data: bytes) -> list[int]:
        seen.append(data)
        return hits(data)

    monkeypatch.setattr(registry, "spans", look)
    monkeypatch.setattr(registry, "hits", search)
    content = base64.encodebytes(b"a line of text\n" * 200).decode()
    line = dump({"job": "a", "result": {"content": content, "download_url": ADDRESS}, "error": None}) + b"\n"
    clean, _ = registry.redact_lines(bytearray(line * 3), [len(line)] * 3, [0, 0, 0])
    assert clean.count(b"?token=***") == 3
    assert clean.count(dump(content)) == 3
    assert seen
    assert max(map(len, seen)) < 200


def test_texts_that_are_searched_together_are_told_apart() -> None:
    """Kept answers are searched many at once: exactly those that hold a secret are named, wherever groups end."""
    registry, secret = Registry(), "canary-of-a-kept-answer/0123456789"
    registry.add(secret)
    dice = random.Random("kept")
    kept = [dump({"path": f"{number}.md", "content": "QUJD" * dice.randrange(2_000)}) for number in range(200)]
    hidden = {0, 199, *dice.sample([*range(1, 9), *range(40, 199)], 70)}
    for place in hidden:
        hides = dice.choice(
            (secret, base64.b64encode(secret.encode()).decode(), "https://h.example.com/?token=" + secret)
        )
        kept[place] = dump({"path": hides, "content": "QUJD"} if place % 2 else {"path": "x", "content": hides})
    kept[20] = b""
    assert sum(map(len, kept)) > 3 * GROUP_BYTES
    assert registry.suspects(kept) == hidden
    assert registry.suspects(kept[9:40]) == set()
    assert registry.suspects([]) == set()
