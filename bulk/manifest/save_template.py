"""The template of `save`: a file name below `saved/`, filled from the item's own fields.

Whatever an item holds, the file stays below `saved/` and can be made on every common file system: characters that no
file name may hold are percent-encoded, as are names that Windows reserves; segments above 255 bytes end in a hash.
Slashes are kept only in fields that are paths by name (`path`, `…_path`). The same item always gives the same name.
Source: interface.md §2, failures.md row 67.
"""

import functools
import hashlib
import re
from typing import Any

from bulk.capabilities import secret_fields
from bulk.flaws import name_shown, unknown_name
from bulk.manifest.manifest import Job
from bulk.operation import AnyOperation, Item

MOST_SEGMENT_BYTES = 255
MOST_PATH_BYTES = 2_000
"""Longest path below `saved/` (bytes of UTF-8), so that the run directory's own still fits in front of it."""

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\%\ud800-\udfff]')
_NOT_IN_SEGMENTS = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\%/\ud800-\udfff]')
_NOT_IN_TEMPLATES = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\\ud800-\udfff]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)", re.IGNORECASE)
_HASH_DIGITS = 16


class SaveFlaw(ValueError):
    """A template or an item gives no file name.

    Attributes:
        field: the item's field that is to blame; empty: the template is.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Template:
    """A compiled template."""

    def __init__(self, text: str, operation: AnyOperation) -> None:
        """Compile a template.

        Raises:
            SaveFlaw: the template is absolute, leads out of `saved/`, names a field that items lack, or holds something
                that no file name may hold.
        """
        self._parts: list[str | tuple[str, ...]] = []
        fields = operation.Item.__struct_encode_fields__
        for part in _PART.finditer(text):
            name = part[1]
            if part[0] in ("{{", "}}"):
                self._parts.append(part[0][0])
            elif name is not None:
                first = name.split(".")[0]
                if first not in fields:
                    raise SaveFlaw(f"{{{name_shown(name)}}}: {unknown_name(first, fields)}")
                if any(name == secret or secret.startswith(name + ".") for secret in secret_fields(operation)):
                    raise SaveFlaw(f"{{{name_shown(name)}}} is a secret, which no file name may hold")
                self._parts.append(tuple(name.split(".")))
            elif part[0] in "{}":
                raise SaveFlaw("expected {field}; a brace that stands for itself is written twice")
            else:
                self._parts.append(part[0])
        self._refuse_bad(text)

    def _refuse_bad(self, text: str) -> None:
        literal = "".join("x" if isinstance(part, tuple) else part for part in self._parts)
        if not text.strip():
            raise SaveFlaw("expected the name of a file, such as {owner}/{repo}.md")
        if text.startswith("/"):
            raise SaveFlaw("expected a path below the run directory's saved/, got an absolute one")
        found = _NOT_IN_TEMPLATES.search(literal)
        if found:
            raise SaveFlaw(f"holds {found[0]!r}, which no file name may hold everywhere")
        flaw = _flaw_of(literal)
        if flaw:
            raise SaveFlaw(flaw)

    def fill(self, item: Item) -> str:
        """Return the path below `saved/` for `item`, with slashes.

        Raises:
            SaveFlaw: a field was not given or is neither text nor a number, or the path would leave `saved/`.
        """
        path = "".join(part if isinstance(part, str) else _value(item, part) for part in self._parts)
        flaw = _flaw_of(path)
        if flaw:
            raise SaveFlaw(f"save: {flaw}", self._to_blame())
        safe = "/".join(map(_safe_segment, path.split("/")))
        if len(safe.encode()) > MOST_PATH_BYTES:
            raise SaveFlaw(f"save: the path is longer than {MOST_PATH_BYTES:,} bytes", self._to_blame())
        return safe

    def _to_blame(self) -> str:
        paths = [".".join(part) for part in self._parts if isinstance(part, tuple)]
        return next((name for name in paths if _is_path(name)), paths[-1] if paths else "")


def saved_path(job: Job, item: Item) -> str:
    """Return where the result of `item` is saved, relative to the run directory's `saved/`. `job.save` is given.

    Raises:
        SaveFlaw: this item gives no file name; the check has said so before anything was sent.
    """
    return _template(job.save or "", job.operation).fill(item)


def folded(path: str) -> str:
    """Return `path` as file systems that ignore case and the form of accents compare it."""
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


@functools.lru_cache(maxsize=256)
def _template(text: str, operation: AnyOperation) -> Template:
    return Template(text, operation)


def _value(item: Item, path: tuple[str, ...]) -> str:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, dict) else _attribute(value, name)
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str | int):
        text = str(value)
    else:
        text = ""
    if not text:
        name = ".".join(path)
        raise SaveFlaw(f"is needed by save, and was not given as text or a number: {{{name}}}", name)
    if _is_path(path[-1]):
        return _NOT_IN_NAMES.sub(_encoded, text)
    if text in (".", ".."):
        raise SaveFlaw("save: a name of dots alone would leave its folder", ".".join(path))
    return _NOT_IN_SEGMENTS.sub(_encoded, text)


def _attribute(value: object, name: str) -> object:
    """Return the field of a struct that users call `name` (`enterprise-team`); None where there is none."""
    names: tuple[str, ...] = getattr(value, "__struct_encode_fields__", ())
    fields: tuple[str, ...] = getattr(value, "__struct_fields__", ())
    return getattr(value, fields[names.index(name)]) if name in names else None


def _is_path(name: str) -> bool:
    return name == "path" or name.endswith("_path")


def _encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _flaw_of(path: str) -> str:
    if "\0" in path:
        return "holds a NUL character"
    if path.startswith("/"):
        return "would be an absolute path"
    for segment in path.split("/"):
        if segment in (".", ".."):
            return "has a segment . or .., which would leave its folder"
        if not segment:
            return "has an empty segment (a slash at an end, or two in a row)"
    return ""


def _safe_segment(segment: str) -> str:
    if segment[-1] in ". ":
        segment = segment[:-1] + f"%{ord(segment[-1]):02X}"
    if _RESERVED.match(segment):
        segment = f"%{ord(segment[0]):02X}{segment[1:]}"
    raw = segment.encode()
    if len(raw) <= MOST_SEGMENT_BYTES:
        return segment
    digest = hashlib.sha256(raw).hexdigest()[:_HASH_DIGITS]
    kept = raw[: MOST_SEGMENT_BYTES - _HASH_DIGITS - 1].decode("utf-8", "ignore")
    return f"{kept}~{digest}"
