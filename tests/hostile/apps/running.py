"""One run of an App in one way, in virtual time, and what effects, budgets and files say of it."""

import base64
import functools
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bulk.engine import commands
from bulk.engine.again import Again
from bulk.errors import BulkError
from bulk.report.fold import Report
from tests.hostile.apps.fleet import CLIENT_ID, OWNERS, REPOSITORIES, Fleet, repository_id
from tests.hostile.apps.ways import Way
from tests.hostile.http.turn import BASE_URL
from tests.hostile.pools.members import readme_of
from tests.hostile.virtual import AFTERWARDS_S, ended, in_virtual_time, lines_of, wall

Work = Literal["reads", "files"]
EACH: Mapping[Work, int] = {"files": 24, "reads": 48}
"""Items of each owner (count): they take as many requests."""
LANES = 4
"""Files are written in so many repositories of each owner (count)."""
AT_MOST_S = 20_000.0
DONE = ("succeeded", "unchanged")


@functools.cache
def key() -> rsa.RSAPrivateKey:
    """The App's key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def items_of(work: Work, each: int) -> list[dict[str, Any]]:
    """So many items of each owner, one owner after the other."""
    found = []
    for owner in OWNERS:
        for number in range(each):
            repo = {"owner": owner, "repo": f"r{number % (REPOSITORIES if work == 'reads' else LANES)}"}
            content = base64.b64encode(f"{owner} {number}\n".encode()).decode()
            file = {"path": f"f{number}.txt", "message": "A file.", "content": content}
            found.append(repo if work == "reads" else {**repo, **file})
    return found


@dataclass(slots=True)
class Tried:
    """What came of a run, and of the one that goes on with it when nothing is wrong any more.

    Attributes:
        first, last: the reports; None: it did not end. trouble: why. leaks: files that hold a secret.
        lines: of the results after the first run, and `after` those after the last, by index.
    """

    way: Way
    work: Work
    items: Sequence[Mapping[str, Any]]
    fleet: Fleet
    first: Report | None
    last: Report | None
    trouble: str
    lines: Mapping[int, Mapping[str, Any]]
    after: Mapping[int, Mapping[str, Any]]
    leaks: Sequence[str]
    refused: int
    took_s: float

    def broken(self) -> list[str]:
        """What does not hold, in words."""
        if self.trouble:
            return [self.trouble]
        return [*self._unfinished(), *self._lies(self.lines), *self._lies(self.after), *self._wasteful()]

    def _unfinished(self) -> Iterator[str]:
        way, others = self.way, Counter[str]()
        if self.first is not None and self.first.exit_code not in way.exits:
            yield f"exit code {self.first.exit_code}, not one of {way.exits}"
        for index, item in enumerate(self.items):
            line = self.lines.get(index)
            if not way.raises and item["owner"] in way.spared and (line is None or line["outcome"] not in DONE):
                others[f"{item['owner']}: {_told(line)}"] += 1
        for index in range(len(self.items)):
            line = self.after.get(index)
            if line is None or (line["outcome"] not in DONE and line != self.lines.get(index)):
                others[f"after all: {_told(line)}"] += 1
            elif line["outcome"] not in DONE and line["error"]["code"] not in way.codes:
                others[_told(line)] += 1
        yield from (f"{count} × {what}" for what, count in others.items())

    def _lies(self, lines: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
        for index, line in lines.items():
            item = self.items[index]
            times = self._times(item)
            if times > 1:
                yield f"done {times} times: {item['owner']} {item['path']}"
            if line["outcome"] in DONE and not self._is_so(item, line):
                yield f"{line['outcome']}, but it is not so: {item}"
            if line["outcome"] in ("failed", "skipped") and times:
                yield f"{line['outcome']} ({line['error']['code']}), but it was done"

    def _wasteful(self) -> Iterator[str]:
        if self.refused > self.way.refused:
            yield f"{self.refused} requests beyond the budgets"
        if self.leaks:
            yield f"secrets in {', '.join(self.leaks)}"
        if self.took_s > self.way.took_s:
            yield f"it took {self.took_s:.0f} s"
        most = max(place.mints for place in self.fleet.places)
        if most > self.way.mints:
            yield f"{most} tokens of one installation"

    def _times(self, item: Mapping[str, Any]) -> int:
        return sum(effect.key == _key(item) for effect in self.fleet.platform.effects.ours() if self.work == "files")

    def _is_so(self, item: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
        if self.work == "reads":
            return base64.b64decode(line["result"]["content"]) == readme_of(f"{item['owner']}/{item['repo']}")
        return bool(self.fleet.platform.state.get(_key(item), math.inf) == base64.b64decode(item["content"]))


def _told(line: Mapping[str, Any] | None) -> str:
    return (
        "no outcome" if line is None else f"{line['outcome']} {(line['error'] or {}).get('code', '')}: {line['error']}"
    )


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return "file", repository_id(OWNERS.index(item["owner"]), int(item["repo"][1:])), "trunk", item.get("path")


def try_way(way: Way, work: Work = "files") -> Tried:
    """Do items of each installation; then nothing is wrong any more, and the run is gone on with."""
    items = items_of(work, EACH[work])

    async def main() -> Tried:
        fleet = Fleet(key(), wall, way.limit, way.window_s)
        way.change(fleet)
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            path = Path(folder)
            run_dir, manifest = path / "run", _manifest(path, work, items, way)
            run = partial(commands.run_manifest, manifest, run_dir=run_dir)
            resume = partial(commands.resume_run, run_dir, again=Again())
            last, first, trouble, began = None, None, "", wall()
            try:
                first, trouble = await ended(run, fleet, {}, AT_MOST_S)
            except BulkError as error:
                is_right = way.raises and way.raises in str(error)
                trouble = "" if is_right else f"{type(error).__name__}: {error}"[:300]
            took_s, refused, lines = wall() - began, _refused(fleet), _lines(run_dir)
            if not trouble:
                await anyio.sleep(AFTERWARDS_S)
                fleet.recover()
                last, trouble = await ended(run if way.raises else resume, fleet, {}, AT_MOST_S)
            return Tried(
                way, work, items, fleet, first, last, trouble, lines, _lines(run_dir), _leaks(run_dir, fleet), refused,
                took_s,
            )  # fmt: skip

    return in_virtual_time(main)


def _refused(fleet: Fleet) -> int:
    return sum(refused for place in fleet.places for _, _, refused in place.pays.spent())


def _lines(run_dir: Path) -> dict[int, dict[str, Any]]:
    return {line["index"]: line for line in lines_of(run_dir / "results.jsonl").get("work", [])}


def _leaks(run_dir: Path, fleet: Fleet) -> list[str]:
    """The files of a run that hold a token, a JSON web token or its signature, or a line of the key."""
    pem = _pem().splitlines()
    secrets = [pem[3], *(token.encode() for token in fleet.tokens)]
    secrets += [part.encode() for token in fleet.jwts for part in token.split(".")[1:]]
    files = {path.name: path.read_bytes() for path in sorted(run_dir.rglob("*")) if path.is_file()}
    return [name for name, data in files.items() if any(secret in data for secret in secrets)]


def _pem() -> bytes:
    return key().private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _manifest(path: Path, work: Work, items: Sequence[Mapping[str, Any]], way: Way) -> Path:
    (path / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    pem = path / "app.pem"
    pem.touch(0o600)
    pem.write_bytes(_pem())
    app = {"client_id": CLIENT_ID, "private_key": "file:app.pem", "permissions": way.permissions}
    operation = "readme.get" if work == "reads" else "contents.put"
    whole = {
        "version": 1,
        "name": "fleet",
        "platform": {"base_url": BASE_URL, "credentials": {"fleet": {"app": app}}},
        "limits": {"concurrency": 16},
        "jobs": {"work": {"operation": operation, "credential": "fleet", "items": "items.jsonl"}},
    }
    manifest = path / "manifest.yaml"
    manifest.write_text(json.dumps(whole))
    return manifest


def told(tried: Tried) -> str:
    """One line of the table."""
    mints = "/".join(str(place.mints) for place in tried.fleet.places)
    spent = " ".join("+".join(str(served) for _, served, _ in place.pays.spent()) for place in tried.fleet.places)
    outcomes = Counter(line["outcome"] for line in tried.lines.values())
    exits = "/".join("-" if report is None else str(report.exit_code) for report in (tried.first, tried.last))
    broken = "; ".join(tried.broken()[:4])
    return (
        f"{tried.way.name:<44} {tried.work:<5} {tried.took_s:7.1f} s  exit {exits}  mints {mints:<8} "
        f"{dict(outcomes)} {tried.refused} refused, spent {spent}  {'!!! ' if broken else ''}{broken}"
    )
