"""An App for a whole day, with a platform whose clock is wrong: its tokens are renewed in time, and not more often."""

import json
from collections import Counter
from pathlib import Path

import anyio
import pytest

from bulk.report.record import Report
from bulk.sandbox.areas.served import AREAS
from bulk.sandbox.settings import RateLimit
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.wire.fates import FINE, Fate, answer
from tests.simulation.world import HOURS, World, now, simulate, world

HOURLY = 12


def seed(installations: int, each: int) -> str:
    """`installations` installations, with `each` repositories each."""
    made = [{"prefix": "org-", "count": installations, "each": each}]
    return json.dumps({"apps": [{"slug": "fleet", "client_id": "Iv1.fleet", "installations": made}]})


async def read_all(made: World, installations: int, each: int, **limits: object) -> Report:
    """Read every repository as the App."""
    (made.path / "app.pem").write_bytes((made.path / "platform" / "fleet.private-key.pem").read_bytes())
    (made.path / "app.pem").chmod(0o600)
    owners = range(1, installations + 1)
    items = [{"owner": f"org-{owner}", "repo": f"repo-{number:05d}"} for owner in owners for number in range(each)]
    app = {"app": {"client_id": "Iv1.fleet", "private_key": "file:app.pem"}}
    jobs = {"reads": {"operation": "readme.get", "credential": "fleet", "items": items}}
    return await made.run(made.write("day", jobs, limits, credentials={"fleet": app}))


def journal(path: Path) -> list[dict[str, object]]:
    """The lines of the sandbox's journal."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("installations", "hours", "skew_s"),
    [
        (2, 4, -300.0),
        pytest.param(50, 24, -300.0, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
        pytest.param(50, 24, 300.0, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_hours_of_an_app(tmp_path: Path, installations: int, hours: int, skew_s: float) -> None:
    """Nothing is ever sent with a token that has ended, each installation mints once in 55 minutes, and every budget is
    used in full: for hours, the platform's clock five minutes wrong."""

    async def main() -> None:
        limits = {"core": RateLimit(HOURLY, 3600)}
        async with world(
            tmp_path, seed_data=seed(installations, hours * HOURLY), limits=limits, platform_skew_s=skew_s, areas=AREAS
        ) as made:
            report = await read_all(made, installations, hours * HOURLY, pace="burst")
            assert report.exit_code == 0, made.runs[-1].last_status
        lines = journal(made.journal_path)
        reads = [line for line in lines if str(line["path"]).endswith("/readme")]
        refused = [line["path"] for line in lines if line["status"] not in (200, 201)]
        assert refused in ([], ["/api/v3/app/installations"])  # the first JWT, before the platform's time is known
        assert len(reads) == installations * hours * HOURLY
        mints = Counter(str(line["path"]) for line in lines if "access_tokens" in str(line["path"]))
        assert len(mints) == installations
        assert all(abs(count - hours * 60 / 55 - 0.5) <= 1.5 for count in mints.values()), mints

    simulate(main, at_most_s=(hours + 1) * HOURS, tick_s=600.0)


def test_budgets_that_suffice_hold_nothing_up(tmp_path: Path) -> None:
    """Each of ten installations has a budget for exactly its items: what is in flight is not counted as still to be
    sent, so that nothing is spread over the window, and all is done in the first two seconds."""

    async def main() -> None:
        limits = {"core": RateLimit(40, 20)}
        async with world(tmp_path, seed_data=seed(10, 40), limits=limits, latency_ms=20.0) as made:
            report = await read_all(made, 10, 40)
            assert (report.exit_code, now() < 2.0) == (0, True), now()

    simulate(main)


def test_what_a_run_waits_for_while_no_token_comes(tmp_path: Path) -> None:
    """While a gateway answers for the platform where tokens are made, the status says what is waited for, not that the
    credential is refused, and names no time at which the run would end: it was in no status at all."""

    def fate_of(exchange: Exchange) -> Fate:
        return answer(502) if "access_tokens" in exchange.path and now() < 20.0 else FINE

    async def main() -> None:
        async with world(tmp_path, seed_data=seed(2, 9), fate_of=fate_of, areas=AREAS) as made:
            async with anyio.create_task_group() as group:
                group.start_soon(read_all, made, 2, 9)
                await anyio.sleep(15.0)
                status = made.runs[-1].last_status
            assert {wait.what for wait in status.waits} == {
                f"credential fleet@org-{number}: its token is being minted" for number in (1, 2)
            }
            assert status.finish_at is None
            assert made.runs[-1].last_status.state == "complete"

    simulate(main)
