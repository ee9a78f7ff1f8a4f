"""Private keys, JSON web tokens and long tokens are taken out however they are spelled, known or not."""

import functools
import json
from urllib.parse import quote

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bulk.ledger.results import dump
from bulk.redaction.known import MASK
from bulk.redaction.registry import BLOCK_BYTES, Registry
from tests.canaries import keys_in, pieces_of, spellings_of

BITS = (1024, 2048, 4096)
_SMALL = rsa.generate_private_key(public_exponent=65537, key_size=BITS[0])
WAYS = sorted(spellings_of(_SMALL))


@functools.cache
def key_of(bits: int) -> rsa.RSAPrivateKey:
    """A key of `bits` bits, made where it is needed: a large one takes half a second, and every process collects."""
    return _SMALL if bits == BITS[0] else rsa.generate_private_key(public_exponent=65537, key_size=bits)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("way", WAYS)
def test_a_private_key_is_taken_out(bits: int, way: str) -> None:
    """failures.md row 63: nobody told us of the key; in a message, and in a value and a content of a line."""
    key, registry = key_of(bits), Registry()
    spelled = spellings_of(key)[way].decode()
    assert keys_in(spelled.encode(), [key]) or "entities" in way or "percent" in way, "the search would not find it"
    left = registry.redact(f"see {spelled} there")
    assert MASK in left
    assert left.startswith("see ")
    assert not keys_in(left.encode(), [key]), left
    for result in ({"a": [f"see {spelled} there"]}, {"content": spelled, "sha": "x"}, {spelled: 1}):
        line = dump({"job": "a", "id": None, "result": result, "error": None}) + b"\n"
        clean, _ = registry.redact_lines(bytearray(line * 2), [len(line)] * 2, [0, 0])
        assert MASK.encode() in clean
        assert not keys_in(bytes(clean), [key])
        assert orjson.loads(clean.splitlines()[0])["job"] == "a"
        assert not keys_in(registry.redact_json(json.dumps(result).encode()), [key]) or spelled in result


def test_files_with_a_key_are_not_kept() -> None:
    """Of a file, whatever its bytes are: a private key in any spelling taints it, and so does a known secret; a public
    key and what only looks like a secret are somebody's text."""
    registry, secret = Registry(), "told+to/nobody-4711"
    registry.add(secret)
    for spelled in (*spellings_of(key_of(2048)).values(), secret.encode(), quote(secret, safe="").encode()):
        assert registry.taints(b"\xff before " + spelled + b" behind \x00")
        assert registry.taints(b"x" * (BLOCK_BYTES - 20) + spelled + b"x" * BLOCK_BYTES), "over the end of a block"
    pem = key_of(2048).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for text in (pem, b"export TOKEN=ghp_" + b"a1B2" * 9, b"100% of &amp; PRIVATE things"):
        assert not registry.taints(text)


def test_every_spelling_has_pieces_that_are_searched_for() -> None:
    """The search for keys finds each spelling of a key that it reads, and no other key."""
    key, other = key_of(2048), key_of(4096)
    assert len(pieces_of(key)) > 50
    for way, spelled in spellings_of(key).items():
        assert keys_in(b"x" + spelled + b"x", [key]), way
        assert not keys_in(spelled, [other]), way


def test_public_keys_and_long_texts_stay() -> None:
    """A public key is none of a private one, nor is what only begins like one."""
    registry = Registry()
    for key in map(key_of, BITS):
        for form in (PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1):
            pem = key.public_key().public_bytes(Encoding.PEM, form).decode()
            assert registry.redact(pem) == pem
    for text in (
        "MIIEowIBAAxx",
        "0201000282",
        "5052495641544520",
        "IBAAKC",
        "2d2d2d",
        "x MII IBADANBgkqhkiG9w0BAQEFAASC y",
    ):
        assert registry.redact(text) == text


def test_long_tokens_go_whole() -> None:
    """Installation tokens with dots, as the platform gives since 2026, leave nothing behind where nobody knows them."""
    parts = [letter * 40 for letter in "abc"]
    left = Registry().redact(f"x ghs_{'.'.join(parts)} y, see ghs_{parts[0]}. Then")
    assert left == f"x {MASK} y, see {MASK}. Then"
