"""Names of one's own for each guest, so that the items of many guests stand in one manifest and have nothing in common.

Every guest's platform knows the same names; outside, each bears the guest's mark: `acme-x17`, and thread `11010017`.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile.http.messages import Answer, Ask

NAMES = ("acme-new", "nova-labs", "acme", "corp", "orbit", "nova")
THREAD = "1101"
_NAMES = re.compile(rf"(?<![\w-])({'|'.join(NAMES)})(?![\w-])", re.IGNORECASE)
_THREAD = re.compile(rf"(?<![\w-]){THREAD}(?![\w-])")


@dataclass(frozen=True, slots=True)
class Alias:
    """The mark of one guest."""

    number: int

    @property
    def mark(self) -> str:
        """What stands behind names."""
        return f"-x{self.number}"

    @property
    def thread(self) -> str:
        """The number of its thread."""
        return f"{THREAD}{self.number:04}"

    def outside(self, text: str) -> str:
        """A text as it is outside."""
        return _THREAD.sub(self.thread, _NAMES.sub(rf"\1{self.mark}", text))

    def inside(self, text: str) -> str:
        """A text as the platform has it."""
        return re.sub(rf"{self.mark}(?!\d)", "", text, flags=re.IGNORECASE).replace(self.thread, THREAD)

    def item(self, value: Any) -> Any:
        """An item as it stands in a manifest."""
        match value:
            case str():
                return self.outside(value)
            case dict():
                return {key: self.item(each) for key, each in value.items()}
            case list():
                return [self.item(each) for each in value]
            case int() if str(value) == THREAD:
                return int(self.thread)
        return value

    def arriving(self, ask: Ask) -> Ask:
        """A request as the platform gets it."""
        return replace(ask, path=self.inside(ask.path), body=self.inside(ask.body.decode()).encode())

    def leaving(self, answer: Answer) -> Answer:
        """An answer as it comes out."""
        headers = tuple((name, self.outside(value)) for name, value in answer.headers)
        return Answer(answer.status, self.outside(answer.body.decode()).encode(), headers)
