"""What `bulk rehearse` and `bulk plan` say where an answer about limits is wrong, on a real port.

`python -m tests.hostile.commands.rehearsals` prints the table. The judge is the same where nothing is wrong: with any
one answer wrong the same limits count, and where no answer can be read it is said that they are not known.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anyio

from bulk.clock import Clock
from bulk.engine.commands import plan_manifest
from bulk.engine.rehearsal.command import Given, told
from bulk.manifest.reading import Overrides
from tests.hostile.http.messages import Answer, Ask, refused, shown
from tests.hostile.http.wire import Service, serve
from tests.hostile.wrong import Course

Say = Callable[[int, int], Answer | None]
"""What is answered instead of the right limits to the question of that number (from 1), in that second; None: those."""
ASKS = 5
"""So often the question is asked (count)."""
LIMIT = 60
UNKNOWN = "limits not known"


def _entry(now: int, **other: object) -> dict[str, object]:
    return {"limit": LIMIT, "remaining": 20, "used": 40, "reset": now + 30, **other}


def _limits(entry: object) -> Answer:
    return shown(200, {"resources": {"core": entry, "search": entry}, "rate": entry})


def _once(number: int, answer: Answer) -> Say:
    return lambda asked, now: answer if asked == number else None


def _always(answer: Answer) -> Say:
    return lambda asked, now: answer


def _entries(**other: object) -> Say:
    return lambda asked, now: _limits(_entry(now, **other))


WRONG: Mapping[str, Answer] = {
    "404": refused(404, "Not Found"),
    "403": refused(403, "No."),
    "429": refused(429, "Slower."),
    "502": Answer(502, b"<html>"),
    "a page": Answer(200, b"<html>", (("content-type", "text/html"),)),
    "half": Answer(200, b'{"resources": {"core": {"lim', (("content-type", "application/json"),)),
    "ok": shown(200, {"status": "ok"}),
    "no core": shown(200, {"resources": {"search": {"limit": 30, "remaining": 30, "reset": 0}}}),
    "null": _limits(None),
    "limits of 0": _limits({"limit": 0, "remaining": 0, "used": 0, "reset": 0}),
}
UNREADABLE: Mapping[str, Say] = {
    **{f"always {name}": _always(answer) for name, answer in WRONG.items() if name not in ("404", "limits of 0")},
    "a limit as text": _entries(limit="60"),
    "a limit beyond all numbers": _entries(limit=2**70, remaining=2**70),
    "a negative limit": _entries(limit=-1),
    "what is left as text": _entries(remaining="20"),
    "nulls": _entries(limit=None, remaining=None),
    "{}": _always(shown(200, {})),
    "[]": _always(shown(200, [])),
}
ONCE: Mapping[str, Say] = {
    f"{name}, answer {number}": _once(number, answer) for name, answer in WRONG.items() for number in (1, 3, ASKS)
}


class _Limits(Service):
    def __init__(self, say: Say) -> None:
        super().__init__({}, Clock().now)
        self._say, self._asked = say, 0

    def hear(self, ask: Ask) -> Course:
        """What becomes of a request."""
        now = int(self.wall())
        if ask.path == "/user":
            return Course(shown(200, {"id": 1, "login": "boss"}))
        self._asked += 1
        answer = self._say(self._asked, now) or _limits(_entry(now))
        return Course(answer.with_headers(("date", formatdate(now, usegmt=True))))


async def said(say: Say) -> tuple[dict[str, Any], list[str]]:
    """The limits with which a rehearsal counts, by category, and what it and the plan say of limits."""
    service = _Limits(say)
    async with await serve(service) as server:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            manifest, environ = Path(folder) / "manifest.yaml", {"T": "token-0123456789"}
            platform = {
                "base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/v3",
                "credentials": {"default": "env:T"},
            }
            items = [{"owner": "acme", "repo": f"r{number}"} for number in range(20)]
            jobs = {"reads": {"operation": "readme.get", "items": items}}
            manifest.write_text(json.dumps({"version": 1, "name": "rehearsed", "platform": platform, "jobs": jobs}))
            given = Given({}, {}, {}, (), seeds=1, asks=False, is_offline=False)
            found = await told(manifest, given, overrides=Overrides(), environ=environ)
            service._asked = 0
            planned = await plan_manifest(manifest, overrides=Overrides(), environ=environ)
    limits: dict[str, Any] = {name: budget.limit for name, budget in found.budgets.items()}
    (bucket,) = planned.buckets
    notes = [note for note in (*found.notes, *planned.notes) if UNKNOWN in note]
    return {**limits, "plan": bucket.limit, "is known": bucket.is_known}, notes


def main() -> int:
    """1 where something does not hold."""
    wrong = 0
    for name, say in {**ONCE, **UNREADABLE}.items():
        found, notes = anyio.run(said, say)
        is_right = found == RIGHT and not notes if name in ONCE else found == NOTHING and len(notes) == 2
        wrong += not is_right
        sys.stdout.write(f"{'   ' if is_right else '!!!'} {name:<32} {found} {notes[:1]}\n")
    return 1 if wrong else 0


RIGHT = {"core": LIMIT, "plan": LIMIT, "is known": True}
NOTHING = {"plan": None, "is known": False}

if __name__ == "__main__":
    sys.exit(main())
