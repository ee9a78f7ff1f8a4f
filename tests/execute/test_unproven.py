"""Items that end `unknown`: a write that may have been done, and a later answer that does not prove that it was not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.execute.test_item_runner import JSON, play, sends, writes_meet
from tests.simulation.schedules import snapshot
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import DROP_AFTER, FINE, Fate, answer
from tests.simulation.world import PREFIX, World, simulate, world
from tests.simulation.writes import WRITES


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ("", "unknown"),
        ('"login is taken"', "unknown"),
        ('{"code": "custom", "message": "login is taken"}', "unknown"),
        ('{"code": "invalid", "field": "login"}', "failed"),
    ],
)
def test_a_name_that_was_free_and_is_refused_without_a_code(folder: Path, errors: str, outcome: str) -> None:
    """The organization can't be seen; its creation was lost and the repeat refused, in words alone: nobody knows
    whether because it was made."""
    refusal = answer(422, b'{"message": "Validation Failed", "errors": [%b]}' % errors.encode(), JSON)

    def fate_of(exchange: Exchange) -> Fate:
        return answer(404, b'{"message": "Not Found"}', JSON) if "rulesets" in exchange.path else meet(exchange)

    meet = writes_meet(DROP_AFTER, then=refusal)

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], code) == (outcome, 1 if outcome == "failed" else 6)
        assert "Validation Failed" in lines[0]["error"]["message"]
        assert sends(made) == 2

    play(folder, "organization.create", [{"login": "acme-web", "admin": "octoadmin"}], fate_of, check)


@pytest.mark.parametrize(
    "fates",
    [
        [answer(303, b"", Location=f"{PREFIX}/login", is_passed_on=True)],
        [DROP_AFTER, answer(422, b'{"message": "Validation Failed"}', JSON)],
    ],
    ids=["redirected", "lost, then refused"],
)
def test_what_nobody_can_read_back_is_unknown_after_a_refusal(folder: Path, fates: list[Fate]) -> None:
    """failures.md row 11: a snapshot that may have been taken is not `failed` because of what came next: no read shows
    whether it was."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], lines[0]["error"]["code"], code) == ("unknown", "unknown_outcome", 6)
        assert sends(made) == len(fates)
        assert len(made.effects()) == 1

    play(folder, "snapshot.create", [snapshot("repo-00000", "build")], writes_meet(*fates), check)


def test_what_is_refused_for_what_it_holds_was_not_taken_before(folder: Path) -> None:
    """A snapshot of a commit that does not exist: its first answer is lost, and the second one says invalid."""

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert (lines[0]["outcome"], lines[0]["error"]["code"], code) == ("failed", "rejected", 1)
        assert sends(made) == 2

    item = {**snapshot("repo-00000", "build"), "sha": "0" * 40}
    play(folder, "snapshot.create", [item], writes_meet(DROP_AFTER, then=FINE), check)


FOLLOWED = ("rename, followed", "security, followed", "attached to some, followed", "many read, followed")


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_read_that_fails_after_an_accepted_write_does_not_make_it_failed(folder: Path, name: str) -> None:
    """What the platform has accepted, and nobody may look at afterwards, is `unknown`, with what the read was told; and
    it is not sent again."""
    write = WRITES[name]

    async def main() -> None:
        async with world(folder, seed_data=write.seed_data) as made:
            is_accepted = False

            def fate_of(exchange: Exchange) -> Fate:
                nonlocal is_accepted
                is_refused = is_accepted and not exchange.is_write and "/rate_limit" not in exchange.path
                is_accepted = is_accepted or exchange.is_write
                return answer(403, b'{"message": "Not accessible by this token"}', JSON) if is_refused else FINE

            made.network.fate_of = fate_of
            job = {"job": {"operation": write.operation, "items": [write.item]}}
            manifest = made.write("run", job, {"settle": "2s"})
            assert (await made.run(manifest)).exit_code == 6
            (line,) = made.lines(manifest)
            assert (line["outcome"], line["error"]["code"]) == ("unknown", "unknown_outcome")
            assert "Not accessible by this token" in line["error"]["message"]
            assert sends(made) == 1
            assert len(made.effects()) == 1

    simulate(main)


def test_the_answer_to_an_earlier_deletion_proves_none(folder: Path) -> None:
    """A cache answers a second deletion with the commit of the first one, and does not pass it on: the file is still
    there, so it is sent again."""
    commit = {"sha": "c" * 40, "message": "m", "url": "https://x/repos/acme-eng/hello-world/git/commits/c"}
    body = json.dumps({"content": None, "commit": commit}).encode()

    def check(made: World, lines: list[dict[str, Any]], code: int) -> None:
        assert ([line["outcome"] for line in lines], code) == (["succeeded"] * 2, 0)
        assert (sends(made), len(made.effects())) == (3, 2)

    place = {"owner": "acme-eng", "repo": "hello-world", "message": "m"}
    items = [{**place, "path": path} for path in ("README.md", "docs/guide.md")]
    play(
        folder,
        "contents.delete",
        items,
        writes_meet(answer(200, body, JSON, is_passed_on=True), answer(200, body, JSON)),
        check,
    )
