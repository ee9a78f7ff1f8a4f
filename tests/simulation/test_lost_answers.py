"""Every operation that writes, times everything that can happen to the answer: the right outcome, exactly one effect.

The four losses: the connection breaks before the platform has the request, after it was carried out, a 502 comes
instead of the answer, and the request arrives only when the client has given it up.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.simulation import invariants
from tests.simulation.exchanges import Exchange
from tests.simulation.fates import DROP_AFTER, DROP_BEFORE, FINE, MUTE, Fate, answer, late
from tests.simulation.schedules import SETTLE_S, TIMEOUT_S, put, snapshot
from tests.simulation.world import now, simulate, world

README = {"owner": "acme-eng", "repo": "hello-world", "path": "README.md"}
ORGANIZATION = {"login": "acme-web", "admin": "octoadmin"}

WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "new file": ("contents.put", put("hello-world", "new.txt", "new", "acme-eng")),
    "replaced file": ("contents.put", put("hello-world", "docs/guide.md", "other", "acme-eng")),
    "created file": ("contents.put", put("hello-world", "new.txt", "new", "acme-eng", mode="create")),
    "blob replaced": ("contents.put", put("repo-00001", "README.md", "other", mode="replace")),
    "deleted file": ("contents.delete", {**README, "message": "Delete"}),
    "deleted blob": ("contents.delete", {"owner": "fleet", "repo": "repo-00001", "path": "README.md", "message": "D"}),
    "snapshot": ("snapshot.create", snapshot("repo-00001", "build")),
    "organization": ("organization.create", ORGANIZATION),
    "renamed organization": ("organization.rename", {"org": "acme-labs", "login": "acme-research"}),
    "renamed organization, followed": (
        "organization.rename",
        {"org": "acme-labs", "login": "acme-research", "wait": True},
    ),
}
LOSSES: dict[str, tuple[Fate, ...]] = {
    "before": (DROP_BEFORE,),
    "after": (DROP_AFTER,),
    "502 after": (answer(502, is_passed_on=True),),
    "502 before": (answer(502),),
    "late": (late(TIMEOUT_S + 6.0),),
    "late, then before": (late(TIMEOUT_S + 6.0), DROP_BEFORE),
    "never answered": (MUTE,),
    "before, then after": (DROP_BEFORE, DROP_AFTER),
    "cut in the head": (Fate(kind="cut", request_cut=40),),
    "cut in the answer": (Fate(kind="cut", answer_cut=60),),
    "cut in the answer's body": (Fate(kind="cut", answer_cut=1_100),),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("write", WRITES)
def test_one_effect_and_the_right_outcome(folder: Path, write: str, loss: str) -> None:
    """failures.md rows 4, 5, 6, 7, 24: whatever becomes of the answer, the effect is there once and the outcome is
    right."""
    operation, item = WRITES[write]
    asked = dict(item)
    fates = iter(LOSSES[loss])

    def fate_of(exchange: Exchange) -> Fate:
        return next(fates, FINE) if exchange.is_write else FINE

    async def main() -> None:
        async with world(folder, fate_of=fate_of) as made:
            invariants.watch(made)
            if write in ("blob replaced", "deleted blob"):
                asked["sha"] = await _sha_of(made, item)
            limits = {"request_timeout": TIMEOUT_S, "settle": SETTLE_S}
            manifest = made.write("lost", {"job": {"operation": operation, "items": [asked]}}, limits)
            report = await made.run(manifest)
            (line,) = made.lines(manifest)
            assert (line["outcome"], report.exit_code) == ("succeeded", 0)
            assert len(made.effects()) == 1
            assert not made.violations
            invariants.nothing_leaked(made, made.runs[-1])
            assert now() < TIMEOUT_S + 2 * SETTLE_S

    simulate(main)


async def _sha_of(made: Any, item: dict[str, Any]) -> str:
    """The blob that stands where `item` writes, by a run that reads it."""
    wanted = {name: item[name] for name in ("owner", "repo", "path")}
    manifest = made.write("look", {"job": {"operation": "contents.get", "items": [wanted]}})
    await made.run(manifest)
    sha: str = made.lines(manifest)[0]["result"]["sha"]
    return sha
