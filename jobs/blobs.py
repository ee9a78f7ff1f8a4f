"""Git blobs and Base64: what a file's content is called and how it travels. Pure.

A blob's name is the SHA-1 of `blob`, its size and its bytes: whoever has the bytes knows what the platform will call
them.
"""

import binascii
import hashlib


def blob_sha(content: bytes) -> str:
    """The name that git gives to a file with this content (40 hexadecimal digits), as `git hash-object` prints it."""
    sha = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    sha.update(content)
    return sha.hexdigest()


def decode(text: str) -> bytes:
    """The bytes that Base64 text stands for. Line breaks are let through, as the platform's own answers have them.

    Raises:
        ValueError: it is no Base64: another character, or padding that is missing, excessive or misplaced.
    """
    if "\n" in text:
        text = text.replace("\r\n", "").replace("\n", "")
    return binascii.a2b_base64(text, strict_mode=True)


def encode(content: bytes) -> str:
    """Base64 text for `content`, on one line."""
    return binascii.b2a_base64(content, newline=False).decode("ascii")
