"""Files of repositories, and the README that is preferred.

Keys: ("file", repository id, branch, path) -> bytes; ("commit", repository id, sha) -> its branch, and until when that
was as the commit has it: those before our writes can be read.
"""

import base64
import hashlib
import math
from typing import Any

from tests.hostile.http.messages import Answer, refused, shown
from tests.hostile.http.turn import BASE_URL, Turn

READMES = ("README.md", "README.rst", "readme.txt")
SHOWN_BYTES = 1_000_000


def blob_sha(data: bytes) -> str:
    """The id that git gives these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def repository(turn: Turn) -> dict[str, Any] | None:
    """The repository that the path names, in any case."""
    found: dict[str, Any] | None = turn.get("repository", turn.names["owner"].lower(), turn.names["repo"].lower())
    return found


def _files(turn: Turn, repo: dict[str, Any], branch: str) -> dict[str, bytes]:
    name, at = turn.get("commit", repo["id"], branch) or (branch, turn.read_at)
    return {key[3]: data for key, data in turn.state.under(("file", repo["id"], name), at)}


def _parent(turn: Turn, repo: dict[str, Any], branch: str) -> str:
    """The commit before a write that is about to be done."""
    before = math.nextafter(turn.now, 0.0)
    files = sorted((key[3], data) for key, data in turn.state.under(("file", repo["id"], branch), before))
    sha = hashlib.sha1(f"{branch} {files}".encode(), usedforsecurity=False).hexdigest()
    turn.state.set(("commit", repo["id"], sha), (branch, before), turn.now)
    return sha


def _about(turn: Turn, repo: dict[str, Any], branch: str, path: str, data: bytes) -> dict[str, Any]:
    sha, full = blob_sha(data), repo["full_name"]
    url = f"{BASE_URL}/repos/{full}/contents/{path}?ref={branch}"
    page, git = f"https://git.example.test/{full}/blob/{branch}/{path}", f"{BASE_URL}/repos/{full}/git/blobs/{sha}"
    return {
        "type": "file",
        "size": len(data),
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": sha,
        "url": url,
        "git_url": git,
        "html_url": page,
        "download_url": f"https://raw.example.test/{full}/{branch}/{path}?token=once{sha[:6]}",
        "_links": {"self": url, "git": git, "html": page},
        "lfs": None,
    }


def _file(turn: Turn, repo: dict[str, Any], branch: str, path: str, data: bytes) -> Answer:
    accept = turn.ask.headers.get("accept", "")
    if "raw" in accept:
        return Answer(200, data, (("content-type", "application/vnd.service.raw; charset=utf-8"),))
    if "html" in accept:
        page = b"<article>" + data.replace(b"<", b"&lt;") + b"</article>"
        return Answer(200, page, (("content-type", "text/html; charset=utf-8"),))
    about = _about(turn, repo, branch, path, data)
    if len(data) > SHOWN_BYTES:
        return shown(200, {**about, "encoding": "none", "content": ""})
    return shown(200, {**about, "encoding": "base64", "content": base64.encodebytes(data).decode()})


def read(turn: Turn) -> Answer:
    """A file, or the files of a directory."""
    repo = repository(turn)
    if repo is None:
        return refused(404, "no such repository")
    branch = turn.ask.one("ref", repo["default_branch"])
    path, files = turn.names.get("path", "").strip("/"), _files(turn, repo, branch)
    if path in files:
        return _file(turn, repo, branch, path, files[path])
    prefix = f"{path}/" if path else ""
    entries: dict[str, dict[str, Any]] = {}
    for name, data in files.items():
        if name.startswith(prefix):
            first, deeper, _ = name[len(prefix) :].partition("/")
            about = _about(turn, repo, branch, prefix + first, b"" if deeper else data)
            entries[first] = {**about, "type": "dir", "size": 0} if deeper else about
    if not entries and (path or branch != repo["default_branch"]):
        return refused(404, f"nothing at {path!r}")
    listing = [entries[name] for name in sorted(entries)]
    if "object" in turn.ask.headers.get("accept", ""):
        return shown(200, {"type": "dir", "path": path, "name": path, "entries": listing})
    return shown(200, listing)


def readme(turn: Turn) -> Answer:
    """The README in the root."""
    repo = repository(turn)
    if repo is not None:
        branch = turn.ask.one("ref", repo["default_branch"])
        files = _files(turn, repo, branch)
        for name in READMES:
            if name in files:
                return _file(turn, repo, branch, name, files[name])
    return refused(404, "no README")


def write(turn: Turn) -> Answer:
    """Create or replace a file: without `sha` nothing may be there, with it exactly that blob."""
    repo, body = repository(turn), turn.ask.json()
    if repo is None:
        return refused(404, "no such repository")
    branch, path = body.get("branch") or repo["default_branch"], turn.names["path"]
    before = turn.get("file", repo["id"], branch, path)
    if not body.get("message") or not isinstance(body.get("content"), str):
        return refused(422, "message and content are needed")
    if before is not None and not body.get("sha"):
        return refused(422, "sha of the replaced file was not supplied")
    if body.get("sha") and (before is None or blob_sha(before) != body["sha"].lower()):
        return refused(409, f"{path} is not at {body['sha']}")
    data = base64.b64decode(body["content"])
    parent = _parent(turn, repo, branch)
    turn.change("file", ("file", repo["id"], branch, path), data)
    commit, written = _commit(turn, repo, body, path, parent), _about(turn, repo, branch, path, data)
    return shown(200 if before is not None else 201, {"content": written, "commit": commit})


def delete(turn: Turn) -> Answer:
    """Delete a file that is exactly that blob."""
    repo, body = repository(turn), turn.ask.json()
    if repo is None:
        return refused(404, "no such repository")
    branch, path = body.get("branch") or repo["default_branch"], turn.names["path"]
    before = turn.get("file", repo["id"], branch, path)
    if before is None:
        return refused(404, f"nothing at {path!r}")
    if not body.get("message") or not body.get("sha"):
        return refused(422, "message and sha are needed")
    if blob_sha(before) != body["sha"].lower():
        return refused(409, f"{path} is not at {body['sha']}")
    parent = _parent(turn, repo, branch)
    turn.change("file deleted", ("file", repo["id"], branch, path), None)
    return shown(200, {"content": None, "commit": _commit(turn, repo, body, path, parent)})


def _commit(turn: Turn, repo: dict[str, Any], body: dict[str, Any], path: str, parent: str) -> dict[str, Any]:
    sha = hashlib.sha1(f"{turn.now} {path}".encode(), usedforsecurity=False).hexdigest()
    committer = body.get("committer") or {"name": "Robot", "email": "robot@example.test"}
    author = body.get("author") or committer
    url = f"{BASE_URL}/repos/{repo['full_name']}/git/commits/{sha}"
    return {
        "sha": sha,
        "node_id": f"C_{sha[:10]}",
        "url": url,
        "html_url": f"https://git.example.test/{repo['full_name']}/commit/{sha}",
        "message": turn.normal.commit_message(body["message"]),
        "committer": {"date": turn.stamp(), **committer},
        "author": {"date": turn.stamp(), **author},
        "tree": {"url": url.replace("/commits/", "/trees/"), "sha": sha[::-1]},
        "parents": [{"sha": parent, "url": url.replace(sha, parent), "html_url": f"https://git.example.test/{parent}"}],
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }
