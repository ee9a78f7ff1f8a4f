"""Keeps the code that Jinja makes of a template, because making it takes 50 ms at the end of each run.

It is kept where Python keeps the code of the module beside it, by the same rules (`PYTHONDONTWRITEBYTECODE`,
`PYTHONPYCACHEPREFIX`), and counts only for the same template, options, Jinja and Python. Where it can't be kept, it is
made each time.
"""

import contextlib
import hashlib
import importlib.util
import marshal
import sys
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from bulk.storage.private_files import read_regular, write_whole

_DIGEST_BYTES = hashlib.sha256().digest_size


class TemplateCache(jinja2.BytecodeCache):
    """The code of templates, beside them; `options`: what else than a template decides its code."""

    def __init__(self, options: str) -> None:
        self._options = options

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the path of the template; empty where it is not a file."""
        return filename or ""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take the code that was kept, if it is of this template and intact."""
        if not bucket.key:
            return
        try:
            kept = read_regular(_place(bucket.key))
        except OSError:
            return
        code = kept[_DIGEST_BYTES:]
        if kept[:_DIGEST_BYTES] == self._digest(bucket, code):
            bucket.code = marshal.loads(code)  # noqa: S302 - as Python reads the code of a module

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code, if that is possible and wanted."""
        if not bucket.key or sys.dont_write_bytecode:
            return
        code, path = marshal.dumps(bucket.code), _place(bucket.key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self._digest(bucket, code) + code)

    def _digest(self, bucket: Bucket, code: bytes) -> bytes:
        versions = f"{jinja2.__version__} {bucket.checksum} {self._options}".encode()
        return hashlib.sha256(importlib.util.MAGIC_NUMBER + versions + b"\0" + code).digest()


def _place(template: str) -> Path:
    return Path(importlib.util.cache_from_source(template))
