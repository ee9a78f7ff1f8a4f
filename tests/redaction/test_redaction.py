"""What is written holds no secret, known or by its shape, in any spelling; and what is JSON stays JSON."""

import base64
import json
import pickle
import random
import string
import time
from html.entities import html5
from urllib.parse import quote

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bulk.ledger.results import dump, encode_all
from bulk.model import Encoded, Media, OutcomeKind
from bulk.platform.cache.cache_entry import CacheEntry, as_result, head_of, without_secrets
from bulk.redaction import json_lines, remember, shapes
from bulk.redaction.known import FEW_LONG, LONG_CHARS, MASK
from bulk.redaction.registry import GROUP_BYTES, Registry
from tests.ledger.samples import finished

PRINTABLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
secrets = st.text(PRINTABLE, min_size=12, max_size=50)
NAMES = {meant: name.rstrip(";") for name, meant in html5.items() if len(meant) == 1 and name.endswith(";")}


def one_of(dice: random.Random, char: str, quoted: str) -> str:
    """`char` in one of the ways in which a text of ours or of theirs may have it."""
    code = ord(char)
    digits = "".join(dice.choice((digit.lower(), digit.upper())) for digit in f"{code:04x}")
    zeros = "0" * dice.randrange(4)
    ways = [f"\\u{digits}", f"%{digits[2:]}", f"%25{digits[2:]}", f"&#{zeros}{code};", f"&#x{zeros}{code:x};", quoted]
    if char in NAMES:
        ways.append(f"&{NAMES[char]};")
    return dice.choice(ways)


def spelled(dice: random.Random, secret: str) -> str:
    """`secret` in one way, or some of its characters in another, or all of it in Base64 or hex; inside of JSON."""
    raw = secret.encode()
    before, after = dice.randbytes(dice.randrange(4)), dice.randbytes(dice.randrange(4))
    shifted = base64.b64encode(before + raw + after)
    lines = base64.encodebytes(before + raw + after).decode()
    whole = [
        raw.hex(),
        raw.hex().upper(),
        shifted.decode(),
        shifted.translate(bytes.maketrans(b"+/", b"-_")).decode(),
        "\n".join(shifted.decode()[at : at + 60] for at in range(0, len(shifted), 60)),
        "\n".join(lines[at : at + 7] for at in range(0, len(lines), 7)),
        quote(secret, safe=""),
        quote(quote(secret, safe=""), safe=""),
        "".join(f"%{byte:02x}" for byte in raw),
        "\0".join(secret),
    ]
    if dice.random() < 0.4:
        return json.dumps(dice.choice(whole))[1:-1]
    share = dice.choice((0.0, 0.1, 0.5, 1.0))
    text = "".join(
        one_of(dice, char, inside) if dice.random() < share else inside
        for char, inside in ((char, json.dumps(char)[1:-1]) for char in secret)
    )
    return text.replace("/", "\\/") if dice.random() < 0.3 else text


def is_readable_in(secret: str, data: bytes) -> bool:
    """Whether somebody who undoes one or two encodings finds it: not with the product's own means."""
    found = [data.decode("utf-8", "replace")]
    value = orjson.loads(data)
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            stack += [*each, *each.values()]
        elif isinstance(each, list):
            stack += each
        else:
            found.append(str(each))
    return any(secret in text or secret.encode().hex() in text.lower() for text in found)


@example(secret="0000000000\\0", seed=49, place="value")
@example(secret="00000000000000000000000000000000000000000000&A0;", seed=571, place="value")
@given(
    secret=secrets,
    seed=st.integers(0, 2**32),
    place=st.sampled_from(["value", "content", "name", "request id", "message"]),
)
def test_no_spelling_of_a_secret_is_in_a_line(secret: str, seed: int, place: str) -> None:
    """failures.md row 63: in a value, a name of a member, the request's id; the line stays the JSON that it was."""
    dice = random.Random(seed)
    registry = Registry()
    registry.add(secret)
    inside = (
        f"{dice.choice(('', 'x ', 'é', '=', '🎉'))}{spelled(dice, secret)}{dice.choice(('', ' y', 'é', '&', '🎉'))}"
    )
    ours = b'"job":"a","index":3,"id":null,"item":{"owner":"acme"},"outcome":"succeeded"'
    line = b'{%s,"request_id":%%s,"result":%%s,"error":%%s}\n' % ours
    text = f'"{inside}"'.encode()
    others = {"request id": b'"r"', "result": b"null", "error": b"null"}
    match place:
        case "value":
            others["result"] = b'{"n":[1.50,%s,{"deep":%s}]}' % (text, text)
        case "content":
            others["result"] = b'{"content":%s,"content":"YWJj\\nYWJj","more":[{"content":%s}]}' % (text, text)
        case "name":
            others["result"] = b"{%s:1}" % text
        case "request id":
            others["request id"] = text
        case _:
            others["error"] = b'{"code":"not_found","message":%s}' % text
    whole = bytearray(line % (others["request id"], others["result"], others["error"]))
    orjson.loads(whole)
    clean, lengths = registry.redact_lines(whole * 2, [len(whole)] * 2, [0, 0])
    assert sum(lengths) == len(clean)
    first, second = bytes(clean[: lengths[0]]), bytes(clean[lengths[0] :])
    assert first == second
    read = orjson.loads(first)
    assert MASK.encode() in first, inside
    assert not is_readable_in(secret, first)
    assert (read["job"], read["index"], read["outcome"], read["item"]) == ("a", 3, "succeeded", {"owner": "acme"})
    assert registry.redact_lines(bytearray(first), [len(first)], [0])[0] == first, "what is clean stays"


ODD = st.sampled_from(
    ['"job"', "null,", "true", "false", "name", '{"', "12345678", "result", "succeeded", "1234", "\\u0041", "\\n\\n\\n",
     '\\"\\"', "n\\ab", "***", "ud83d\\ude00", '":"', "\\\\\\\\", "&amp;", "%41%41", "outcome", '","id":', "\n\n\n\n"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 10**10) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | ODD | st.sampled_from(["\nab\n", "🎉🎉", 'a"b\\c', "12345678", "C:\\new"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | ODD, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@example(secret="12345678", value=["a", {"b": 12345678}, "%31%32345678", "12345678"], other=1)
@given(secret=ODD | st.text(min_size=4, max_size=9), value=VALUES, other=VALUES)
def test_a_line_may_be_jumped_through(secret: str, value: object, other: object) -> None:
    """Where only what is suspicious is looked at, a line becomes what it becomes where everything is."""
    registry = Registry()
    registry.add(secret)
    line = orjson.dumps(
        {"job": "a", "id": None, "item": other, "outcome": "failed", "result": value, "error": None}
    )  # fmt: skip
    hits = registry.hits(line)
    assert json_lines.line_without(line, registry.spans, hits) == json_lines.line_without(
        line, registry.spans, range(len(line))
    )


@given(secret=ODD | st.text(min_size=4, max_size=9), value=VALUES, is_ascii=st.booleans())
def test_whatever_the_secret_is_a_line_stays_json(secret: str, value: object, is_ascii: bool) -> None:
    """A secret that looks like JSON, like a word of ours or like a number: the structure and our own words stay."""
    registry = Registry()
    registry.add(secret)
    text = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    whole = b'{"job":"name","index":1234,"id":null,"outcome":"succeeded","attempts":1,"result":%s}\n' % text
    clean, lengths = registry.redact_lines(bytearray(whole), [len(whole)], [0])
    read = orjson.loads(clean)
    assert lengths == [len(clean)]
    assert list(read) == ["job", "index", "id", "outcome", "attempts", "result"]
    assert (read["job"], read["index"], read["outcome"], read["attempts"]) == ("name", 1234, "succeeded", 1)
    ours = registry.redact_json(whole, (b"succeeded",))
    assert list(orjson.loads(ours)) == list(read)
    assert orjson.loads(ours)["outcome"] == "succeeded"


SHAPES = {
    "ghp_" + "a1B2" * 9: "ghp_",
    "github_pat_" + "a1B2_" * 9: "github_pat_",
    "v1." + "0f" * 20: "0f0f",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N": "eyJ",
    "https://raw.example.com/a/b?ref=x&token=AABBCC99": "AABBCC99",
    "https://x.example.com/a?X-Amz-Signature=0123abcd&b=1": "0123abcd",
    "https://me:hunter2secret@example.com/x": "hunter2secret",
    "https://0123456789abcdef0123456789abcdef@example.com/x": "0123456789",
    "Authorization: token 0123456789abc": "0123456789abc",
    "Bearer 0123456789abcdefghij": "0123456789",
    "Authorization: Basic " + base64.b64encode(b"me:hunter2secret").decode(): "bWU6",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----": "MIIEow",
}


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("spell", [str, quote, lambda text: json.dumps(text).replace("e", "\\u0065")], ids="pqj")
def test_what_looks_like_a_secret_is_taken_out(text: str, spell) -> None:
    """failures.md row 63: nobody told us of it, and it is a token, a signed URL, a header or a key, in any spelling."""
    given_text = spell(f"see {text} there")
    left = Registry().redact(given_text)
    assert MASK in left
    assert SHAPES[text] not in left
    value = json.dumps({"a": [given_text]}).encode()
    assert SHAPES[text].encode() not in Registry().redact_json(value)


@pytest.mark.parametrize("text", SHAPES)
def test_a_line_break_hides_no_shape(text: str) -> None:
    """Lines are first looked through quickly: whatever a closer look would take out is noticed by that."""
    registry = Registry()
    registry.add("nn-hunter2-hunter2")
    for at in range(len(text)):
        line = dump({"result": {"content": f"{text[:at]}\n{text[at:]}", "next": "nnn"}, "error": None})
        if registry.spans(line):
            assert registry.is_in(line, is_json=True)
            assert MASK.encode() in registry.redact_lines(bytearray(line), [len(line)], [0])[0]


@pytest.mark.parametrize(
    "text",
    [
        "Basic authentication is off", "ssh://git@example.com/a.git", "git@example.com:a/b.git", "Bearer tokens expire",
        "see https://example.com/a@b", "v1.2.3", "ghp_import", "the token is bad", "tokens=3", "a?page=2&per_page=100",
        "eyJ", "authorization is required", "https://example.com:8443/x", "pkg:npm/%40scope/name@1.0",
        "sha=3d21ec53a331",
        "3d21ec53a331a6f037a91c368710b99387d012c1", "C:\\users\\new", "100% of &c; &amp; &#x; \\u00 %zz",
    ],
)  # fmt: skip
def test_ordinary_texts_stay(text: str) -> None:
    """What only resembles a secret is somebody's text."""
    registry = Registry()
    registry.add("hunter2-hunter2")
    registry.add("main")
    registry.add("")
    assert registry.redact(text) == text
    assert registry.redact("domain remains main-ly") == f"domain remains {MASK}-ly"
    line = dump({"id": None, "result": "a\nmain\nb \\n main\\nothing domain"})
    left = registry.redact_lines(bytearray(line), [len(line)], [0])[0]
    assert orjson.loads(left)["result"] == f"a\n{MASK}\nb \\n {MASK}\\nothing domain"


def test_results_and_kept_answers_hold_no_secret() -> None:
    """failures.md rows 62, 63: lines of results, also of the platform's own text, and bodies that are kept."""
    secret = "told-to-nobody/4711"
    remember(secret)
    text = json.dumps({"hook": {"secret": secret}, secret: [secret.replace("/", "\\/")]}).replace("t", "\\u0074")
    group = [
        finished(0, result={"config": {"secret": secret, "url": f"https://h.example.com/?token={secret}"}}),
        finished(1, result=Encoded(text.encode())),
        finished(2, OutcomeKind.FAILED),
    ]
    lines, lengths = encode_all(group)
    assert len(lines) == sum(lengths)
    parsed = [orjson.loads(line) for line in lines.splitlines()]
    assert [line["index"] for line in parsed] == [0, 1, 2]
    assert secret not in str(parsed)
    head = head_of('"e"', "", "application/json", "")
    assert head is not None
    body = dump({"sha": "x", "download_url": "https://h.example.com/a?token=AABBCCDD"})
    rows = [
        (1, b"a", as_result(head, "readme.get", body, body), body, 5),
        (2, b"b", head, secret.encode(), 5),
        (3, b"c", head, b"plain", 5),
    ]
    many = [finished(at, result=Encoded(b'"%s"' % (b"x" * 900), at % 3 == 0)) for at in range(500)]
    many += [*group, finished(900, result=Encoded(b'"y"', True))]
    lines, lengths = encode_all(many)
    assert [orjson.loads(line)["index"] for line in lines.splitlines()] == [*range(500), 0, 1, 2, 900]
    assert [len(line) + 1 for line in lines.splitlines()] == lengths
    assert secret.encode() not in lines
    clean = without_secrets(rows)
    assert [row[0] for row in clean] == [1, 3]
    stored = CacheEntry(clean[0], Media.JSON)
    assert stored.is_result_of("readme.get")
    assert orjson.loads(stored.body)["download_url"] == "https://h.example.com/a?token=***"


def test_many_long_tokens_cost_little() -> None:
    """Adding a token takes time for it alone, and looking through a line does not depend on how many there are."""
    dice = random.Random("tokens")
    letters, registry = string.ascii_letters + string.digits, Registry()
    tokens = ["".join(dice.choices(letters, k=520)) for _ in range(100)]
    took = []
    for token in tokens:
        started = time.thread_time()
        registry.add(token)
        took.append(time.thread_time() - started)
    assert sorted(took)[50] < 0.005
    line = dump({"a": [{"name": f"r{number}", "url": "https://example.com/x"} for number in range(80)]})
    took.clear()
    for _ in range(20):
        started = time.thread_time()
        assert not registry.is_in(line)
        took.append(time.thread_time() - started)
    assert sorted(took)[10] < 0.005  # the median: a collection of garbage falls into one of them
    for token in tokens:
        for form in (token, token.encode().hex(), quote(token), base64.b64encode(b"u:" + token.encode()).decode()):
            assert registry.redact(f"x {form} y").count(MASK) == 1


def test_what_is_forgotten_takes_no_room() -> None:
    """A day of tokens that end: each is found as long as it is known, in every spelling, and afterwards the memory is
    what it was; what is still known is found all the while."""
    registry = Registry()
    kept = [f"kept-secret-{number:04d}" for number in range(40)]
    for text in kept:
        registry.add(text)
    before = tracked(registry)
    for number in range(300):
        token = f"opaque+token/{number:05d}-of-an-hour"
        registry.add(token)
        spellings = (token, token.encode().hex(), base64.b64encode(b"x" + token.encode()).decode())
        assert all(registry.redact(f"a {text} b") == "a *** b" for text in spellings)
        registry.forget(token)
        assert not registry.holds(token)
        assert registry.redact(f"a {token} b") == f"a {token} b"
    assert tracked(registry) < before + 100
    assert all(registry.redact(f"a {text} b") == "a *** b" for text in kept)


def tracked(registry: Registry) -> int:
    """What a registry holds, as long as it is written (bytes)."""
    return len(pickle.dumps(registry))


@pytest.mark.parametrize("others", [0, FEW_LONG])
def test_a_long_secret_is_found_wherever_it_stands(others: int) -> None:
    """At every place of a text, as shortly as long ones may be, among few secrets and among so many that texts are cut
    into other blocks; and no more once it is forgotten."""
    dice, registry = random.Random("places"), Registry()
    early, late = ("".join(dice.choices(string.ascii_letters, k=LONG_CHARS)) for _ in range(2))
    registry.add(early)
    for _ in range(others):
        registry.add("".join(dice.choices(string.ascii_letters, k=LONG_CHARS)))
    registry.add(late)
    for secret in (early, late):
        for spelling in (secret, secret.encode().hex()):
            for before in range(2 * LONG_CHARS):
                assert registry.is_in(b" " * before + spelling.encode() + b" ."), before
                assert registry.redact(" " * before + spelling) == " " * before + MASK
        registry.forget(secret)
        assert not any(registry.is_in(b" " * before + secret.encode() + b" .") for before in range(2 * LONG_CHARS))


@pytest.mark.parametrize("secret", ["ghp_" + "a1B2c3D4e5" * 3 + "Zz9xY8", "an-opaque-token-of-33-characters!"])
def test_lines_that_are_looked_through_together_are_lines(secret: str) -> None:
    """A secret is found in the last line of a group and in the first one of the next; what seems to stretch over two
    lines is in neither of them, and they stay."""
    registry = Registry()
    registry.add(secret, is_deep=True)
    filler, half = "x" * 1_000, 6  # of the letters that show a token too few are in the first line
    per_group = -(-GROUP_BYTES // len(dump({"result": filler}) + b"\n"))
    for number in range(per_group - 2, per_group + 2):
        values = [filler] * (2 * per_group)
        values[number] = f"{secret} {filler[len(secret) :]}"
        lines = [dump({"result": value}) + b"\n" for value in values]
        clean, _ = registry.redact_lines(bytearray(b"".join(lines)), [len(line) for line in lines], [0] * len(lines))
        found = bytes(clean).splitlines(keepends=True)
        assert orjson.loads(found[number])["result"] == f"{MASK} {filler[len(secret) :]}"
        assert [line for at, line in enumerate(found) if at != number] == lines[:number] + lines[number + 1 :]
    torn = [dump({"result": f"a {secret[:half]}"}) + b"\n", dump({"result": f"{secret[half:]} b"}) + b"\n"]
    clean, _ = registry.redact_lines(bytearray(b"".join(torn)), [len(line) for line in torn], [0, 0])
    assert bytes(clean) == b"".join(torn)


def test_words_have_what_they_are_looked_for_by() -> None:
    """Where the letters that words of a key have in common are not in a text, none of the words is."""
    for piece, words in shapes._ENCODED:
        assert words
        assert all(piece in word for word in words)
