"""No wrong answer about limits lets `bulk rehearse` or `bulk plan` count without them and say nothing."""

import anyio
import pytest

from tests.hostile.commands.rehearsals import NOTHING, ONCE, RIGHT, UNREADABLE, said

BRIEF = ("404, answer 1", "ok, answer 5", "limits of 0, answer 5", "a limit as text", "{}")


async def holds(name: str) -> None:
    """One of five answers counts for nothing; where none tells the limit that the run needs, both say so."""
    if name in ONCE:
        assert await said(ONCE[name]) == (RIGHT, [])
    else:
        found, notes = await said(UNREADABLE[name])
        assert (found, len(notes)) == (NOTHING, 2), notes


@pytest.mark.parametrize("name", BRIEF)
def test_a_wrong_answer_about_limits_is_not_taken_for_no_limits(name: str) -> None:
    """failures.md row 108: it is a gateway's, cut off, of another category, not readable, or names limits of 0."""
    anyio.run(holds, name)


@pytest.mark.parametrize("name", [name for name in (*ONCE, *UNREADABLE) if name not in BRIEF])
def test_any_wrong_answer_about_limits(name: str) -> None:
    """The same with all others."""
    anyio.run(holds, name)
