"""Dependency snapshots. Keys: ("snapshot", repository id, correlator, detector) -> what was submitted last."""

from tests.hostile.areas.contents import repository
from tests.hostile.http.messages import Answer, refused, shown
from tests.hostile.http.turn import Turn

NEEDED = ("version", "job", "sha", "ref", "detector", "scanned")


def submit(turn: Turn) -> Answer:
    """Take a snapshot; of one correlator and detector only the latest is kept. The same again changes nothing."""
    repo, body = repository(turn), turn.ask.json()
    if repo is None:
        return refused(404, "no such repository")
    missing = [name for name in NEEDED if name not in body]
    if missing:
        return refused(422, f"{missing[0]} is needed")
    key = ("snapshot", repo["id"], body["job"]["correlator"], body["detector"]["name"])
    if turn.get(*key) != body:
        turn.change("snapshot", key, body)
    answer = {
        "id": turn.state.new_id(),
        "created_at": turn.stamp(),
        "message": "the dependencies were taken",
        "result": "SUCCESS",
    }
    return shown(201, answer)
