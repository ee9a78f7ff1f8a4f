"""Git blobs and Base64: what a file's content is called and how it travels. Pure.

A blob's name is the SHA-1 of `blob`, its size and its bytes: whoever has the bytes knows what the platform will call
them.
"""

import binascii
import hashlib

import msgspec


def blob_sha(content: bytes) -> str:
    """Return the name that git gives to a file with this content (40 hexadecimal digits), as `git hash-object` prints
    it."""
    sha = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    sha.update(content)
    return sha.hexdigest()


def decode(text: str) -> bytes:
    """Return the bytes that Base64 text stands for. Line breaks are let through, as the platform's own answers have
    them.

    Raises:
        ValueError: it is no Base64: another character, or padding that is missing, excessive or misplaced.
    """
    if "\n" in text:
        text = text.replace("\r\n", "").replace("\n", "")
    try:
        # a fifth of the time; it takes nothing that is wrong, but not all that is right
        return msgspec.convert(text, bytes)
    except (msgspec.ValidationError, UnicodeError):
        return binascii.a2b_base64(text, strict_mode=True)


def on_one_line(text: str, content: bytes) -> str:
    """Return `encode(content)`, where `content` is what `text` decodes to: most often `text` itself."""
    is_whole = len(text) == (len(content) + 2) // 3 * 4 and "\n" not in text
    # without padding there is one way to write it; with it the last bits may be wrong
    if is_whole and (text[-1:] != "=" or text[-4:] == encode(content[(len(content) - 1) // 3 * 3 :])):
        return text
    return encode(content)


def encode(content: bytes) -> str:
    """Return Base64 text for `content`, on one line."""
    return binascii.b2a_base64(content, newline=False).decode("ascii")
