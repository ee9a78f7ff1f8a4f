"""What the answers to the writes of a run have shown that no second answer can show, such as the commit of a deletion.

A cache may give an answer once more, to a write that it does not pass on. Where nothing else in the answer names the
item, only this tells. Pure.
"""

from collections import OrderedDict

from bulk.model import Reply, Request

MOST = 10_000
"""At most this many marks are remembered, the newest ones (count)."""


class ShownOnce:
    """The marks that answers of success have shown (`Proof.mark`), the newest last."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, None] = OrderedDict()

    def is_again(self, request: Request, reply: Reply) -> bool:
        """Return whether the accepted answer to a write shows what an earlier one has shown; remember what it shows."""
        proof = request.proof
        if proof is None or proof.mark is None or reply.status >= 300:
            return False
        mark = proof.mark(reply)
        if mark in self._shown:
            return True
        self._shown[mark] = None
        if len(self._shown) > MOST:
            self._shown.popitem(last=False)
        return False
