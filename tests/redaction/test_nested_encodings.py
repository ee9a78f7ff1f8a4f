"""A secret inside of two encodings is taken out as well: Base64 of Base64, of JSON, of an address, in hex."""

import base64
import html
import json
import random
import string
import tracemalloc
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bulk.ledger.results import dump
from bulk.redaction.known import MASK
from bulk.redaction.registry import Registry

LETTERS = string.ascii_letters + string.digits
TOKENS = {
    "classic": "ghp_" + "a1B2c3D4e5" * 3 + "Zz9xY8",
    "long": "".join(random.Random("long").choices(LETTERS, k=520)),
    "odd": "own+token/with=odd&letters%7f3a-of?it",
    "short": "own-token-of-20-char",
}

BASE64 = frozenset(f"{LETTERS}+/".encode())

Encode = Callable[[bytes], bytes]


def lines_of(width: int) -> Encode:
    """Base64 in lines of that many letters."""

    def encode(raw: bytes) -> bytes:
        whole = base64.b64encode(raw)
        return b"\n".join(whole[at : at + width] for at in range(0, len(whole), width))

    return encode


INNER: dict[str, Encode] = {
    "Base64": base64.b64encode,
    "Base64url": base64.urlsafe_b64encode,
    "lines of 60": lines_of(60),
    "lines of 76": lines_of(76),
    "hex": lambda raw: raw.hex().encode(),
    "HEX": lambda raw: raw.hex().upper().encode(),
    "JSON": lambda raw: json.dumps({"token": raw.decode()}).encode(),
    "JSON with \\/": lambda raw: json.dumps({"token": raw.decode()}).replace("/", "\\/").encode(),
    "percent": lambda raw: quote(raw.decode(), safe="").encode(),
    "plus": lambda raw: quote_plus(raw.decode()).encode(),
    "entities": lambda raw: html.escape(raw.decode()).encode(),
    "UTF-16": lambda raw: raw.decode().encode("utf-16-le"),
}
OUTER: dict[str, Encode] = {
    "Base64": base64.b64encode,
    "Base64url": lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"="),
    "lines of 60": lines_of(60),
    "hex": lambda raw: raw.hex().encode(),
}


def decoded_twice(text: str) -> list[bytes]:
    """What somebody reads who undoes Base64 or hex once and twice: not with the product's own means."""
    found, now = [], [text.encode()]
    for _ in range(2):
        after = []
        for each in now:
            letters = each.translate(bytes.maketrans(b"-_", b"+/"))
            whole = bytes(letter for letter in letters if letter in BASE64)
            for start in range(4):
                piece = whole[start:]
                after.append(base64.b64decode(piece[: len(piece) // 4 * 4]))
            try:
                after.append(bytes.fromhex(each.decode("ascii")))
            except ValueError:
                continue
        found += after
        now = after
    return found


def is_left(secret: bytes, line: bytes) -> bool:
    """Whether a line's content still holds it, decoded once or twice."""
    text = orjson.loads(line)["result"]["content"]
    return any(secret in each or secret in each.replace(b"\n", b"") for each in (text.encode(), *decoded_twice(text)))


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_known_token_inside_of_two_encodings_is_taken_out(kind: str, inner: str, outer: str) -> None:
    """failures.md row 63: a token in JSON in Base64 in JSON, and the like, at every offset of each encoding."""
    token, registry = TOKENS[kind], Registry()
    registry.add(token, is_deep=True)
    for before in range(3):
        for within in range(3):
            deep = INNER[inner](b"x" * before + token.encode()) if inner[:4] != "JSON" else INNER[inner](token.encode())
            told = OUTER[outer](b"y" * within + deep + b" z").decode()
            line = dump({"job": "a", "id": None, "result": {"content": told, "sha": "x"}, "error": None}) + b"\n"
            clean, _ = registry.redact_lines(bytearray(line * 2), [len(line)] * 2, [0, 0])
            first = bytes(clean).splitlines()[0]
            assert MASK.encode() in first, told
            assert not is_left(token.encode(), first)
            assert orjson.loads(first)["result"]["sha"] == "x"
            assert MASK in registry.redact(f"see {told} there")


@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("kind", ["classic", "long"])
def test_no_end_of_a_line_within_hides_one(kind: str, width: int) -> None:
    """Wherever the lines of the inner Base64 end within the token."""
    token, registry = TOKENS[kind].encode(), Registry()
    registry.add(TOKENS[kind], is_deep=True)
    for before in range(width):
        told = base64.b64encode(lines_of(width)(b"x" * before + token)).decode()
        assert MASK in registry.redact(told), before


@pytest.mark.parametrize("inner", ["Base64", "lines of 76", "percent", "JSON", "hex"])
def test_a_private_key_inside_of_two_encodings_is_taken_out(inner: str) -> None:
    """Nobody told us of it: PEM of every kind that an App, or somebody's README, may have."""
    keys = (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1()))
    for key in keys:
        for form in (PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8, PrivateFormat.OpenSSH):
            pem = key.private_bytes(Encoding.PEM, form, NoEncryption())
            middle = pem.splitlines()[len(pem.splitlines()) // 2]
            for before in range(3):
                deep = INNER[inner](b"x" * before + pem)
                told = base64.b64encode(b"y" * before + deep).decode()
                line = dump({"job": "a", "id": None, "result": {"content": told}, "error": None}) + b"\n"
                clean, _ = Registry().redact_lines(bytearray(line), [len(line)], [0])
                assert MASK.encode() in clean
                assert not any(middle in each for each in decoded_twice(orjson.loads(clean)["result"]["content"]))


def test_what_holds_no_secret_stays() -> None:
    """Base64 of Base64 of anything else, and of another token that has ended, is somebody's text."""
    registry, dice = Registry(), random.Random("stays")
    registry.add(TOKENS["classic"], is_deep=True)
    registry.add(TOKENS["long"], is_deep=True)
    registry.forget(TOKENS["long"])
    for inner in INNER.values():
        for text in ("".join(dice.choices(LETTERS, k=300)), TOKENS["long"]):
            told = base64.b64encode(inner(text.encode())).decode()
            assert registry.redact(told) == told


def test_tokens_that_end_alike_are_forgotten_one_by_one() -> None:
    """Two tokens share a piece: while one of them is known, it is found."""
    registry, tail = Registry(), TOKENS["long"][-60:]
    first, second = ("".join(random.Random(name).choices(LETTERS, k=30)) + tail for name in "ab")
    registry.add(first, is_deep=True)
    registry.add(second, is_deep=True)
    registry.forget(first)
    told = base64.b64encode(base64.b64encode(second.encode())).decode()
    assert registry.redact(told) == MASK


def test_tokens_that_differ_in_a_few_bits_are_forgotten_one_by_one() -> None:
    """Two tokens have the same letters in Base64, but for the last ones: while one of them is known, it is found."""
    registry = Registry()
    first, second = (f"an-opaque-token-that-ends-in-{end}" for end in "AB")
    registry.add(first)
    registry.add(second)
    registry.forget(first)
    for before in (b"", b"x", b"xy"):
        told = base64.b64encode(before + second.encode()).decode()
        assert MASK in registry.redact(told)


def test_a_token_takes_little_memory() -> None:
    """Of hundreds of tokens one takes less than 200 kB, for all spellings that it is looked for in."""
    registry, dice = Registry(), random.Random("tokens")
    tokens = ["ghs_" + "".join(dice.choices(LETTERS, k=36)) for _ in range(50)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for token in tokens:
            registry.add(token, is_deep=True)
        assert tracemalloc.get_traced_memory()[0] - before < 200_000 * len(tokens)
    finally:
        tracemalloc.stop()
