"""What a run remembers of its own writes: who is told, for how long, and what makes it forget."""

import msgspec
import pytest

from bulk import operation
from bulk.capabilities import ChangesThings, Combinable, ComparesState, CreatesNames
from bulk.execute.writes.recent_writes import RecentWrites
from bulk.model import Effect, ErrorCode, Outcome, OutcomeKind, Reply, Request, failed, succeeded, unchanged
from bulk.operation import Item
from bulk.undo import Undoable

SETTLE_S = 15.0
CAS = Effect.COMPARE_AND_SWAP
BLOB = "0BEC7c5f1b14d60d9cf23bbd7fd0e6de4d4a93ce"
PUT, DELETE, CREATE, THREAD = (
    operation.find(name) for name in ("contents.put", "contents.delete", "organization.create", "thread.mark-read")
)
REFUSED = failed(ErrorCode.CONFLICT, "somebody else wrote it")


def put(path: str = "a.txt", text: str = "YQ==", owner: str = "acme") -> Item:
    """An item of `contents.put`."""
    fields = {"owner": owner, "repo": "api", "path": path, "message": "Put", "content": text}
    return msgspec.convert(fields, PUT.Item)


def delete(path: str = "a.txt") -> Item:
    """An item of `contents.delete`."""
    return msgspec.convert({"owner": "acme", "repo": "api", "path": path, "message": "Delete"}, DELETE.Item)


def written(blob: str = BLOB) -> Outcome:
    """How a write ended that left `blob`."""
    return succeeded({"path": "a.txt", "sha": blob})


def first(writes: RecentWrites, item: Item, now: float) -> Request:
    """The first request of an item that is begun at `now`."""
    kind = PUT if isinstance(item, PUT.Item) else DELETE
    return next(writes.steps(kind, item, now))


@pytest.mark.parametrize("item", [put(owner="ACME"), delete()])
def test_the_next_item_is_told_and_does_not_look(item: Item) -> None:
    """Within the settle time it compares with the blob that was left, in lower case; then it looks again."""
    writes = RecentWrites(SETTLE_S)
    assert first(writes, item, 10.0).method == "GET"
    writes.add(PUT, put(), CAS, written(), 10.0)
    for now in (10.0, 24.9):
        request = first(writes, item, now)
        assert (request.method, request.body["sha"]) == ("DELETE" if item == delete() else "PUT", BLOB.lower())
    assert first(writes, item, 25.0).method == "GET"
    assert writes.until(PUT, put()) == writes.until(DELETE, delete()) == 25.0


def test_where_nothing_is_left_a_file_is_made_and_a_delete_looks() -> None:
    """After a delete a write compares with nothing; another delete has to see whether somebody made it anew."""
    writes = RecentWrites(SETTLE_S)
    writes.add(DELETE, delete(), CAS, succeeded({"path": "a.txt", "sha": BLOB}), 0.0)
    request = first(writes, put(), 1.0)
    assert (request.method, "sha" in request.body, request.before) == ("PUT", False, None)
    assert first(writes, delete(), 1.0).method == "GET"


def test_what_is_so_already_is_looked_at() -> None:
    """The same content once more: whether nothing has to be done is asked, not remembered."""
    writes = RecentWrites(SETTLE_S)
    writes.add(PUT, put(), CAS, written("2e65efe2a145dda7ee51d1741299f848e5bf752e"), 0.0)
    assert first(writes, put(), 1.0).method == "GET"
    assert first(writes, put(text="Yg=="), 1.0).method == "PUT"


@pytest.mark.parametrize(
    ("now", "pauses_s"), [(0.0, [1, 2, 4, 8]), (0.5, [1, 2, 4, 7.5]), (12.0, [1, 2]), (14.5, [0.5])]
)
@pytest.mark.parametrize("item", [put(), delete()])
def test_something_else_is_believed_when_the_settle_time_is_over(item: Item, now: float, pauses_s: list[float]) -> None:
    """An item that wants what was left looks until it is shown, and for the rest of the settle time at most."""
    writes, is_put = RecentWrites(SETTLE_S), isinstance(item, PUT.Item)
    ours = "2e65efe2a145dda7ee51d1741299f848e5bf752e"
    writes.add(PUT if is_put else DELETE, item, CAS, written(ours), 0.0)
    stale, fresh = Reply(status=200, headers={}, body={"sha": BLOB}), Reply(status=404, headers={})
    if is_put:
        fresh = Reply(status=200, headers={}, body={"sha": ours})
    for shown in range(len(pauses_s) + 1):
        steps = writes.steps(PUT if is_put else DELETE, item, now)
        looks = [next(steps), *(steps.send(stale) for _ in range(shown))]
        assert [(each.method, each.pause_s) for each in looks] == [("GET", s) for s in [0.0, *pauses_s[:shown]]]
        assert all(each.is_fresh for each in looks[1:])
        if is_put:
            with pytest.raises(StopIteration) as ended:
                steps.send(fresh)
            assert ended.value.value.kind is OutcomeKind.UNCHANGED
    steps = writes.steps(PUT if is_put else DELETE, item, now)
    looks = [next(steps), *(steps.send(stale) for _ in pauses_s)]
    assert steps.send(stale).method == ("PUT" if is_put else "DELETE")


def test_other_files_are_not_concerned() -> None:
    """Another path, another branch, another resource."""
    writes = RecentWrites(SETTLE_S)
    writes.add(PUT, put(), CAS, written(), 0.0)
    organization = msgspec.convert({"login": "acme", "admin": "octo"}, CREATE.Item)
    writes.add(CREATE, organization, Effect.CREATE_UNIQUE, succeeded({"id": 1}), 0.0)
    assert first(writes, put("b.txt"), 1.0).method == "GET"
    assert first(writes, msgspec.structs.replace(put(), branch="next"), 1.0).method == "GET"
    assert (writes.until(PUT, put("b.txt")), writes.until(CREATE, organization)) == (0.0, SETTLE_S)
    assert next(writes.steps(CREATE, organization, 1.0)).path.startswith("/")
    thread = msgspec.convert({"thread_id": 7}, THREAD.Item)
    assert writes.steps(THREAD, thread, 1.0) is not None
    writes.add(THREAD, thread, Effect.SET, succeeded(None), 1.0)
    writes.forget(THREAD, thread)
    assert (writes.until(THREAD, thread), writes.until(PUT, put())) == (0.0, SETTLE_S)


@pytest.mark.parametrize(
    ("effect", "outcome", "is_known"),
    [
        (CAS, REFUSED, False),
        (None, REFUSED, True),
        (CAS, succeeded(None), False),
        (CAS, succeeded({"sha": 7}), False),
        (None, unchanged({"sha": BLOB}), True),
    ],
)
def test_how_the_next_one_ends_decides_what_is_known(effect: Effect | None, outcome: Outcome, is_known: bool) -> None:
    """What was sent and refused, or answered without a blob, makes it forget; what was not sent does not."""
    writes = RecentWrites(SETTLE_S)
    writes.add(PUT, put(), CAS, written(), 0.0)
    writes.add(PUT, put(), effect, outcome, 1.0)
    assert (first(writes, delete(), 2.0).method == "DELETE") is is_known


def test_forgotten_on_demand_and_with_time() -> None:
    """A conflict makes it forget one file; the next write forgets what is older than the settle time, not more."""
    writes = RecentWrites(SETTLE_S)
    writes.forget(PUT, put())
    for number in range(3):
        writes.add(PUT, put(f"{number}"), CAS, written(), float(number))
    writes.forget(PUT, put("1"))
    assert [writes.until(PUT, put(f"{number}")) for number in range(3)] == [15.0, 0.0, 17.0]
    writes.add(PUT, put("0"), CAS, written(), 3.0)
    writes.add(PUT, put("3"), CAS, written(), 17.0)
    assert [writes.until(PUT, put(f"{number}")) for number in range(4)] == [18.0, 0.0, 0.0, 32.0]


UPDATE = operation.find("webhook.update")
CONFIG = {"url": "http://127.0.0.1:9/", "content_type": "json"}
HOOK = {"id": 1, "active": True, "events": ["push"], "config": CONFIG}


def hook(**more: object) -> Item:
    """An item of `webhook.update` that wants the webhook active."""
    fields = {"org": "acme", "hook_id": 1, "active": True, "drop_secret": True}
    return msgspec.convert({**fields, **more}, UPDATE.Item)


def looked(writes: RecentWrites, item: Item, shown: object) -> Request | Outcome:
    """What comes after the first look of an item that is begun at 11.0, and was shown that."""
    steps = writes.steps(UPDATE, item, 11.0)
    next(steps)
    try:
        return steps.send(Reply(status=200, headers={}, body=shown))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def test_a_look_that_may_be_of_before_is_repeated() -> None:
    """When the settle time is over: of the same webhook, where something was sent, and not where it shows that."""
    was, left = {**HOOK, "active": False}, {**HOOK, "events": ["push", "fork"]}
    writes = RecentWrites(SETTLE_S)
    writes.add(UPDATE, hook(org="Acme"), None, succeeded(left), 10.0)
    writes.add(UPDATE, hook(org="Acme"), Effect.SET, unchanged(left), 10.0)
    assert looked(writes, hook(), was) == _Sends("PATCH", 0.0)
    writes.add(UPDATE, hook(org="Acme"), Effect.SET, succeeded(left), 10.0)
    assert looked(writes, hook(), was) == _Sends("GET", 14.0)
    assert looked(writes, hook(), HOOK) == _Sends("GET", 14.0)
    assert looked(writes, hook(), left) == unchanged(left)
    writes.add(UPDATE, hook(), Effect.SET, succeeded({**CONFIG, "secret": "********"}, note="So."), 10.0)
    assert looked(writes, hook(), left) == _Sends("GET", 14.0)
    shown = {**left, "config": {**CONFIG, "secret": "********"}}
    assert looked(writes, hook(), shown) == _Sends("PATCH", 0.0)  # its secret is to be dropped
    writes.add(UPDATE, hook(), Effect.SET, succeeded(left), 10.0)
    writes.add(UPDATE, hook(), Effect.SET, failed(ErrorCode.NOT_FOUND, "It is gone."), 10.0)
    assert looked(writes, hook(active=False), left) == _Sends("PATCH", 0.0)
    assert looked(writes, hook(hook_id=2), {**was, "id": 2}) == _Sends("PATCH", 0.0)
    assert next(writes.steps(UPDATE, hook(), 25.0)) == _Sends("GET", 0.0)
    assert writes.until(UPDATE, hook()) == 25.0


def test_items_that_share_a_call_look_late() -> None:
    """Where one of them is about what was just changed."""
    assign = operation.find("team-organization.assign")
    assert isinstance(assign, Combinable)
    team = {"enterprise": "acme", "enterprise-team": "ent:a"}
    one, two = (msgspec.convert({**team, "org": org}, assign.Item) for org in ("one", "two"))
    writes = RecentWrites(SETTLE_S)
    writes.add(assign, one, Effect.SET, succeeded({"login": "one"}), 10.0)
    assert next(writes.steps_combined(assign, [two], 11.0)) == _Sends("GET", 0.0)
    assert next(writes.steps_combined(assign, [two, one], 11.0)) == _Sends("GET", 14.0)


class _Sends:
    """Equals a request with that method that waits for that time before (seconds)."""

    def __init__(self, method: str, pause_s: float) -> None:
        self._is = method, pause_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and (other.method, other.pause_s) == self._is

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("name", [name for name in operation.names() if isinstance(operation.find(name), Undoable)])
def test_what_can_be_taken_back_is_not_looked_at_too_early(name: str) -> None:
    """Else what is kept of it may be what was there before an earlier item: it says what it changes, or creates."""
    assert isinstance(operation.find(name), ComparesState | ChangesThings | CreatesNames)
