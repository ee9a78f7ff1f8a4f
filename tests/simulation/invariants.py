"""What must hold of every run, whatever happened to it. Each function raises AssertionError with what it found."""

import base64
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bulk.engine.run import Run
from bulk.sandbox.git.repositories import Repositories
from tests.simulation.schedules import OWNER, Expected
from tests.simulation.wire.exchanges import Exchange
from tests.simulation.world import PREFIX, World

EPSILON_S = 1e-6
MOST_AT_ONCE = 12
"""Requests that are under way together in a storm (count)."""


def watch(world: World) -> None:
    """Check at every request and at every outcome that is told; what is wrong is kept in `world.violations`."""

    def guarded(check: Callable[[], None]) -> None:
        try:
            check()
        except AssertionError as wrong:
            world.violations.append(str(wrong) or repr(wrong))

    def at_request(exchange: Exchange) -> None:
        guarded(lambda: counters_are_sane(world))
        guarded(lambda: intent_is_durable(world, exchange))

    world.network.watchers.append(at_request)
    world.on_told = lambda: guarded(lambda: told_is_durable(world))


def every_item_ended_once_and_right(world: World, manifest: Path, expected: Mapping[tuple[str, int], Expected]) -> None:
    """Every item has exactly one line, and it says what happened."""
    lines = world.lines(manifest)
    ended = Counter((line["job"], line["index"]) for line in lines)
    once = Counter(expected.keys())
    assert ended == once, f"too often: {ended - once}, without an end: {once - ended}"
    wrong = []
    for line in lines:
        wanted = expected[line["job"], line["index"]]
        if not wanted.is_met(line["outcome"], line["error"] and line["error"]["code"]):
            wrong.append(f"{line['job']} #{line['index']} {line['outcome']} {line['error']}, expected {wanted}")
    assert not wrong, "\n".join(wrong)


def every_effect_is_there_once(world: World, expected: Mapping[tuple[str, int], Expected]) -> None:
    """The platform was changed as asked, each change once: by its own journal."""
    effects_are(world.effects(), expected)


def effects_are(effects: Iterable[str], expected: Mapping[tuple[str, int], Expected]) -> None:
    """These effects, each as often as items ask for it."""
    wanted = Counter(each.effect for each in expected.values() if each.effect)
    found = Counter(_without_hash(effect) for effect in effects)
    assert found == wanted, f"too often: {found - wanted}, missing: {wanted - found}"


def _without_hash(effect: str) -> str:
    """What was changed, without the sha that nobody knows before."""
    return effect.rpartition(" ")[0] if effect.startswith(("commit ", "snapshot ")) else effect


def files_hold(world: World, files: Mapping[tuple[str, str], bytes | None]) -> None:
    """Every file ends up with what its lane's last item asked for."""
    context = world.sandbox.context
    repositories = context.get(Repositories)
    owner = context.state.organization(OWNER)
    assert owner is not None
    for (name, path), content in files.items():
        repository = context.state.repository(owner, name)
        assert repository is not None
        revision = repositories.revision(repository)
        entry = revision.entry(path) if revision else None
        held = revision.read(entry) if revision and entry else None
        assert held == content, f"{name} {path} holds {held!r}"


def lanes_never_overlap(world: World) -> None:
    """The client never has two writes of one repository under way, however its name is written."""
    by_lane: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in world.network.exchanges:
        lane = lane_of(exchange.path)
        if exchange.is_write and lane:
            by_lane[lane].append(exchange)
    for lane, writes in by_lane.items():
        for before, after in itertools.pairwise(writes):
            assert before.ended_at is not None, f"{lane}: #{before.number} has no end"
            assert before.ended_at <= after.at, f"{lane}: #{before.number} and #{after.number} overlap"


def lane_of(path: str) -> str:
    """What a write of that path must be alone with: a repository's contents; empty where the path does not tell."""
    parts = path.removeprefix(PREFIX).partition("?")[0].casefold().split("/")
    return "/".join(parts[:5]) if len(parts) > 4 and parts[4] == "contents" else ""


def budgets_were_kept(world: World, others: int = 0, outages: Sequence[tuple[float, float]] = ()) -> None:
    """No request left beyond a budget: the platform had to refuse none, but for what arrived after it was given up,
    what was under way while somebody else took the last, and what nobody could know in an outage, because every
    answer, that of `/rate_limit` too, was another's.

    Args:
        others: how often somebody else may have taken the last.
        outages: when the platform said nothing itself: begin and end (the loop's seconds).
    """
    unforeseen = sum(
        came_late(exchange)
        or (exchange.fate.is_passed_on and any(begin <= exchange.at < end for begin, end in outages))
        for exchange in world.network.exchanges
    )
    refused = [entry for entry in world.journal() if entry.status == 403 and entry.remaining == 0]
    assert len(refused) <= unforeseen + others * MOST_AT_ONCE, refused


def came_late(exchange: Exchange) -> bool:
    """It reached the platform when the client had given it up: nobody knew that it would still cost something."""
    return exchange.ended_at is not None and exchange.arrived_at is not None and exchange.ended_at < exchange.arrived_at


def nothing_after_the_first_401(world: World, token: str) -> None:
    """Once the client has heard of a 401, nothing more leaves with that token."""
    heard = [
        exchange.answered_at
        for exchange in world.network.exchanges
        if exchange.token == token and exchange.status == 401 and exchange.answered_at is not None
    ]
    if heard:
        first = min(heard)
        late = [
            (exchange.number, exchange.at, exchange.path)
            for exchange in world.network.exchanges
            if exchange.token == token and exchange.at > first + EPSILON_S
        ]
        assert not late, f"401 at {first}: {late}"


def nothing_leaked(world: World, run: Run) -> None:
    """No permit, reservation, lane or connection is left."""
    governor = run.governor
    assert governor.concurrency.in_flight == 0
    for account in governor.accounts.values():
        assert account.in_flight == 0
        for queue in account.queues.values():
            assert not queue.waiting
            assert queue.bucket is None or queue.bucket.in_flight == 0
    assert run.scheduler.in_flight == 0
    assert not world.network.client_wires


def counters_are_sane(world: World) -> None:
    """Checked at every request: what the governor counts is what is under way."""
    if not world.runs:
        return
    governor = world.runs[-1].governor
    concurrency = governor.concurrency
    assert 0 <= concurrency.in_flight <= concurrency.most
    assert sum(account.in_flight for account in governor.accounts.values()) == concurrency.in_flight
    for account in governor.accounts.values():
        for queue in account.queues.values():
            if queue.bucket is not None:
                assert 0 <= queue.bucket.in_flight <= account.in_flight
                assert 0 <= queue.bucket.free <= queue.bucket.limit


def intent_is_durable(world: World, exchange: Exchange) -> None:
    """Checked at a write's first byte: the ledger on disk knows of it."""
    if not exchange.is_write or world.current is None:
        return
    path = exchange.path.removeprefix(PREFIX).partition("?")[0]
    asked = "SELECT 1 FROM intents WHERE method = ? AND path = ?"
    found = world.ledger().execute(asked, (exchange.method, path)).fetchone()
    assert found is not None, f"#{exchange.number} {exchange.method} {path} left without an intent"


def told_is_durable(world: World) -> None:
    """Checked whenever a listener is told: the ledger on disk has these outcomes."""
    (known,) = world.ledger().execute("SELECT coalesce(sum(items), 0) FROM counts").fetchone()
    told = len(world.told_items)
    assert known >= told, f"{told} outcomes were told, {known} are in the ledger"


def budgets_are_accounted(world: World, run: Run, first: int = 0) -> None:
    """What the governor took from its buckets is what left, answers that cost nothing apart, for the world's last run.

    Args:
        first: how much had left before that run (count).
    """
    for account in run.governor.accounts.values():
        for category, queue in account.queues.items():
            bucket = queue.bucket
            if bucket is None:
                continue
            left = [
                exchange
                for exchange in world.network.exchanges[first:]
                if category_of(exchange) == category and exchange.status != 304
            ]
            taken = bucket.sent - bucket.given_back
            assert taken == len(left), f"{category}: {taken} taken, {len(left)} left"


def category_of(exchange: Exchange) -> str | None:
    """Which budget pays; None for what is free."""
    if exchange.path == f"{PREFIX}/rate_limit":
        return None
    return "dependency_snapshots" if exchange.path.endswith("/snapshots") else "core"


def nowhere(folder: Path, secret: str) -> None:
    """No file below `folder` holds the secret, in any of the forms in which it may leave."""
    forms = [secret.encode(), *(base64.b64encode(b" " * skip + secret.encode())[4:-4] for skip in range(3))]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert not any(form in path.read_bytes() for form in forms), path
