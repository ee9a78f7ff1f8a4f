"""Proofs of answers about files: the kind of the answer, content that is whole, and the repository that was asked.

If the content of a file object does not have the size that the object names, it was cut on the way. Whether the content
is the blob that the object names is not computed, because that takes as long as a tenth of a read. Raw bytes have only
their content type: plain JSON, or HTML for a raw read, did not come from the file. Every read of a file is checked, so
this module is compiled. Source: specification, File content object and File write result.
"""

import unicodedata
from codecs import BOM_UTF8
from functools import partial
from typing import Any

import msgspec

from bulk.model import BodyFile, Media, Reply
from bulk.proof import Check, Proof
from bulk_jobs.shared import normal_forms

_LISTS_NOTHING = "it lists nothing, and git knows no empty directory but the root"
_NOT_FILES = ("dir", "symlink", "submodule")


def of_file(identity: Check) -> Proof:
    """Return the proof that an answer is a file object with its content."""
    return Proof(_flaw_of_file, identity)


def of_content(identity: Check, *, is_root: bool) -> Proof:
    """Return the proof that an answer is a file object with its content, the entries of a directory, or the description
    of a symlink or submodule; for the media types json and object.

    Only the listing of a repository's root may be empty, also after a redirect.
    """
    return Proof(_flaw_of_content if is_root else _flaw_of_content_below, identity)


def of_path_state(identity: Check) -> Proof:
    """Return a proof as that of `of_content` below the root, but for which a file may be without content: its blob is
    enough."""
    return Proof(_flaw_of_path_state, identity)


def of_directory(identity: Check) -> Proof:
    """Return the proof that an answer is the list of a directory's entries."""
    return Proof(_flaw_of_directory, identity)


def of_bytes(media: Media) -> Proof:
    """Return the proof that an answer is the bytes of a file (raw or html), or describes a thing that has no bytes."""
    return Proof(_flaw_of_raw if media is Media.RAW else _flaw_of_html)


def written(owner: str, repo: str, path: str, message: str, ours: str) -> Proof:
    """Return the proof that an answer is a file write result with the blob `ours` at this path, and its commit."""
    return Proof(partial(_flaw_of_written, path, ours), partial(_flaw_of_commit, f"/repos/{owner}/{repo}/", message))


def deleted(owner: str, repo: str, branch: str | None, message: str) -> Proof:
    """Return the proof that an answer is a file write result whose content is null, with the commit of the deletion,
    which no other deletion of the branch has made."""
    root = f"/repos/{owner}/{repo}/"
    return Proof(_flaw_of_deleted, partial(_flaw_of_commit, root, message), partial(_commit_of, f"{root} {branch}"))


def of_place(owner: str, repo: str, path: str | None) -> Check:
    """Return a check that the thing of an answer is in this repository, and at this path; None: at any path."""
    return partial(_flaw_of_place, f"/repos/{owner}/{repo}/", path)


def is_described(found: Any) -> bool:
    """Return whether JSON that came instead of bytes describes the thing: a directory, a symlink or a submodule."""
    if _flaw_of_nothing(found):
        return False
    if isinstance(found, list):
        return not _flaw_of_entries(found)
    return isinstance(found, dict) and (isinstance(found.get("entries"), list) or found.get("type") in _NOT_FILES)


def json_of(data: bytes) -> Any:
    """Return the JSON value of `data`, which may begin with a byte order mark; None where it is not JSON."""
    try:
        return msgspec.json.decode(data.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def is_plain_json(reply: Reply) -> bool:
    """Return whether an answer has the content type of plain JSON, and not one of the vendor's."""
    return _content_type(reply) == "application/json"


def _flaw_of_file(reply: Reply) -> str:
    body = reply.body
    is_file = type(body) is dict and body.get("type") == "file"
    return _flaw_of_whole(body) if is_file else "it is not a file"


def _flaw_of_content(reply: Reply) -> str:
    body = reply.body
    is_file = isinstance(body, dict) and body.get("type") == "file"
    return _flaw_of_whole(body) if is_file else _flaw_of_other(body)


def _flaw_of_content_below(reply: Reply) -> str:
    return _flaw_of_nothing(reply.body) or _flaw_of_content(reply)


def _flaw_of_nothing(body: Any) -> str:
    entries = body.get("entries") if isinstance(body, dict) else body
    return _LISTS_NOTHING if isinstance(entries, list) and not entries else ""


def _flaw_of_path_state(reply: Reply) -> str:
    body = reply.body
    if flaw := _flaw_of_nothing(body):
        return flaw
    if isinstance(body, dict) and body.get("type") == "file":
        return "" if isinstance(body.get("sha"), str) else "it names no blob"
    return _flaw_of_other(body)


def _flaw_of_directory(reply: Reply) -> str:
    return _flaw_of_entries(reply.body) if isinstance(reply.body, list) else "it is not a listing"


def _flaw_of_whole(body: dict[str, Any]) -> str:
    content, encoding, size = body.get("content"), body.get("encoding"), body.get("size")
    if encoding == "base64" and type(content) is str:
        if size == _decoded_bytes(content):
            return ""
        return "its content does not have the size that it names" if isinstance(size, int) else "it names no size"
    if encoding == "none" or body.get("submodule_git_url") is not None:
        return ""
    return "it is a file without content"


def _decoded_bytes(text: str) -> int:
    """Return how many bytes a Base64 text encodes. Decoding it would take longer than all other checks."""
    letters = len(text)
    if "\n" in text:
        letters -= text.count("\n") + text.count("\r")
    padding = text[-8:].count("=")  # line ends may follow it
    return letters // 4 * 3 - padding if letters % 4 == 0 else -1


def _flaw_of_other(body: Any) -> str:
    if isinstance(body, list):
        return _flaw_of_entries(body)
    if not isinstance(body, dict):
        return "it is neither an object nor a list"
    entries = body.get("entries")
    if isinstance(entries, list):
        return _flaw_of_entries(entries)
    if body.get("type") in ("symlink", "submodule") and isinstance(body.get("sha"), str):
        return ""
    return "it does not say what stands there"


def _flaw_of_entries(entries: list[Any]) -> str:
    for entry in entries:
        if not (isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("name"), str)):
            return "an entry of its listing does not say what it is"
    return "" if len({entry["name"] for entry in entries}) == len(entries) else "its listing has a name twice"


def _flaw_of_place(root: str, path: str | None, reply: Reply) -> str:
    body = reply.body
    if path is None and isinstance(body, dict):
        url = body.get("url")
        is_within = isinstance(url, str) and url.startswith(root, url.find("/repos/"))
        return "" if is_within else _flaw_of_one(root, body, None)
    entries = body.get("entries") if isinstance(body, dict) else body
    if path and isinstance(entries, list) and not entries:
        return _LISTS_NOTHING
    if isinstance(body, list):
        for entry in body:
            flaw = _flaw_of_one(root, entry, None)
            if flaw:
                return flaw
            if path and isinstance(entry.get("path"), str) and not _is_at(entry["path"].rpartition("/")[0], path):
                return "an entry of its listing lies elsewhere"
        return ""
    return _flaw_of_one(root, body, path)


def _flaw_of_written(path: str, ours: str, reply: Reply) -> str:
    content = reply.body.get("content")
    if not isinstance(content, dict):
        return "it holds no content"
    sha, at = content.get("sha"), content.get("path")
    if not isinstance(sha, str) or sha.lower() != ours:
        return "its content is not the blob that was sent"
    if not isinstance(at, str) or not _is_at(at, path):
        return "its path is not the one that was written"
    return _flaw_of_sha(reply)


def _flaw_of_deleted(reply: Reply) -> str:
    return _flaw_of_sha(reply) if reply.body["content"] is None else "its content is not null"


def _flaw_of_sha(reply: Reply) -> str:
    commit = reply.body.get("commit")
    return "" if isinstance(commit, dict) and isinstance(commit.get("sha"), str) else "it names no commit"


def _flaw_of_commit(root: str, message: str, reply: Reply) -> str:
    commit = reply.body["commit"]
    shown = commit.get("message")
    # a platform may join blanks, and write more below the message
    if isinstance(shown, str) and shown != message and not _joined(shown).startswith(_joined(message)):
        return "its commit has another message"
    return _flaw_of_one(root, commit, None)


def _joined(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _commit_of(branch: str, reply: Reply) -> str:
    sha: str = reply.body["commit"]["sha"]
    return f"{branch} {sha}"


def _flaw_of_one(root: str, found: dict[str, Any], path: str | None) -> str:
    url, at = found.get("url"), found.get("path")
    # the first `/repos/` counts: a path within another repository may look like a place in this one
    if isinstance(url, str) and "/repos/" in url and not url.startswith(root, url.find("/repos/")):
        wanted, shown = root.casefold(), (url.casefold(), normal_forms.unescaped(url).casefold())
        if not any(each.startswith(wanted, each.find("/repos/")) for each in shown):
            return "its url names another repository"
    if path is not None and isinstance(at, str) and not _is_at(at, path):
        return "its path is not the one that was asked for"
    return ""


def _is_at(shown: str, asked: str) -> bool:
    if shown == asked:
        return True
    return unicodedata.normalize("NFC", shown).strip("/") == unicodedata.normalize("NFC", asked).strip("/")


def _flaw_of_raw(reply: Reply) -> str:
    if _content_type(reply) == "text/html":
        return "it is a page of HTML"
    return _flaw_of_html(reply)


def _flaw_of_html(reply: Reply) -> str:
    body = reply.body
    if not isinstance(body, bytes | BodyFile):
        return "it is not the bytes of a file"
    if "content-range" in reply.headers:
        return "it is a part of the file"
    if not is_plain_json(reply):
        return ""
    return "" if isinstance(body, bytes) and is_described(json_of(body)) else "it is JSON, not the file"


def _content_type(reply: Reply) -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()
