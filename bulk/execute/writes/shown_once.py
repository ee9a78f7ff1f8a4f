"""Marks in answers to writes that no second answer can show, such as the commit of a deletion.

A cache may give an answer once more, to a write that it does not pass on. Where nothing else in the answer names the
item, only this tells. Pure.
"""

from collections import OrderedDict

MOST = 10_000
"""At most this many marks are remembered, the newest ones (count)."""


class ShownOnce:
    """The marks that answers of success have shown (`Proof.mark`), the newest last."""

    def __init__(self) -> None:
        self._shown: OrderedDict[str, None] = OrderedDict()

    def is_again(self, mark: str) -> bool:
        """Return whether an earlier answer has shown this mark; remember it."""
        if mark in self._shown:
            return True
        self._shown[mark] = None
        if len(self._shown) > MOST:
            self._shown.popitem(last=False)
        return False
