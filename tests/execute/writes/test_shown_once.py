"""What one answer alone can show."""

from typing import Any

from bulk.execute.writes.shown_once import MOST, ShownOnce
from bulk.model import Effect, Reply, Request
from bulk.proof import Proof

PROOF = Proof(lambda reply: "", mark=lambda reply: str(reply.body))


def is_again(shown: ShownOnce, body: Any, *, status: int = 200, proof: Proof | None = PROOF) -> bool:
    """Whether the answer to a write comes a second time."""
    request = Request(method="DELETE", path="/x", effect=Effect.COMPARE_AND_SWAP, proof=proof)
    return shown.is_again(request, Reply(status=status, headers={}, body=body))


def test_a_mark_is_shown_once():
    """A second answer with the same mark is no proof; a refusal, and an answer without a mark, have none."""
    shown = ShownOnce()
    for more in ({"status": 404}, {"proof": None}, {"proof": Proof(lambda reply: "")}):
        assert [is_again(shown, "a", **more) for _ in range(2)] == [False, False]
    assert [is_again(shown, body) for body in "abab"] == [False, False, True, True]


def test_only_so_many_are_remembered():
    """A run of millions of deletions takes no more memory than one of thousands."""
    shown = ShownOnce()
    assert not any(is_again(shown, number) for number in range(MOST + 1))
    assert (is_again(shown, 0), is_again(shown, MOST)) == (False, True)
