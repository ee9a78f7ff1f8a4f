"""The form of a file, found out from its content: CycloneDX or SPDX 2, plain or compressed."""

import gzip
import io
import zlib

import msgspec
import zstandard

from bulk_jobs.shared.sboms import cyclonedx, cyclonedx_xml, spdx
from bulk_jobs.shared.sboms.bill import Bill, BillFlaw
from bulk_jobs.shared.sboms.decoding import decode

MOST_BYTES = 256 * 1024 * 1024
"""The largest bill after decompression (bytes); a larger one is refused."""

_STEP_BYTES = 4 * 1024
"""A zstd file is decompressed in steps of this size (bytes), each of which grows to at most 128 MiB."""

_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_UTF_16 = b"\xff\xfe", b"\xfe\xff"
"""The first bytes of a file that a shell of Windows has written."""


class _Head(msgspec.Struct, rename={"bom_format": "bomFormat", "spdx_version": "spdxVersion", "context": "@context"}):
    bom_format: str = ""
    spdx_version: str = ""
    context: msgspec.Raw = msgspec.Raw(b"")
    sbom: msgspec.Raw = msgspec.Raw(b"")


_HEAD = msgspec.json.Decoder(_Head)


def read_bill(data: bytes) -> Bill:
    """Read a bill of materials.

    Raises:
        BillFlaw: the data has no known form, or can't be read.
    """
    raw = _decompressed(data)
    text = _in_utf_8(raw)
    first = text.lstrip()[:1]
    if first == b"<":
        return cyclonedx_xml.read_xml(raw)  # XML names its encoding itself
    if first != b"{":
        raise BillFlaw("expected a bill of materials: CycloneDX as JSON or XML, or SPDX 2.2 or 2.3 as JSON")
    head = decode(_HEAD, text, "JSON")
    if bytes(head.sbom).startswith(b"{"):  # the form of the platform's own export
        text = bytes(head.sbom)
        head = decode(_HEAD, text, "JSON")
    if head.bom_format.casefold() == "cyclonedx":
        return cyclonedx.read_json(text)
    if head.spdx_version in ("SPDX-2.2", "SPDX-2.3"):
        return spdx.read_json(text)
    if head.spdx_version:
        raise BillFlaw(f"is {head.spdx_version[:20]}; SPDX 2.2 and 2.3 can be read")
    if b"spdx.org/rdf/3" in bytes(head.context).replace(b"\\/", b"/"):
        raise BillFlaw("is SPDX 3, which is another model; export it as SPDX 2.3 or CycloneDX")
    raise BillFlaw("is JSON, and neither CycloneDX (bomFormat) nor SPDX 2 (spdxVersion)")


def _in_utf_8(data: bytes) -> bytes:
    if not data.startswith(_UTF_16):
        return data.removeprefix(_BOM)
    try:
        return data.decode("utf-16").encode()
    except UnicodeError as error:
        raise BillFlaw(f"is not UTF-16 that can be read: {error}") from None


def _decompressed(data: bytes) -> bytes:
    try:
        if data.startswith(_GZIP):
            with gzip.open(io.BytesIO(data)) as file:
                found = file.read(MOST_BYTES + 1)
        elif data.startswith(_ZSTD):
            found = _of_zstd(data)
        else:
            return data
    except EOFError:
        raise BillFlaw("is gzip that ends too early") from None
    except (zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise BillFlaw(f"can't be decompressed: {error}") from None
    if len(found) > MOST_BYTES:
        raise BillFlaw(f"has more than {MOST_BYTES // 1024 // 1024} MiB when it is decompressed")
    return found


def _of_zstd(data: bytes) -> bytes:
    """Return the decompressed content of all frames; if that is more than `MOST_BYTES`, only its beginning.

    A stream reader would not notice that the last frame breaks off.
    """
    found, size, at = list[bytes](), 0, 0
    frame = zstandard.ZstdDecompressor().decompressobj()
    while at < len(data) and size <= MOST_BYTES:
        if frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
        part = data[at : at + _STEP_BYTES]
        found.append(frame.decompress(part))
        size += len(found[-1])
        at += len(part) - len(frame.unused_data)
    if size <= MOST_BYTES and not frame.eof:
        raise BillFlaw("is zstd that ends too early")
    return b"".join(found)
