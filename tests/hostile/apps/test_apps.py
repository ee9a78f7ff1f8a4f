"""An App whose installations, tokens, lists or clock are wrong, one at a time: what is said is so, nothing is done
twice or sent beyond budgets, other installations go on, and no secret is in any file.

`python -m tests.hostile.apps` prints the whole table.
"""

from collections.abc import Callable

import pytest

from tests.hostile.apps.running import Work, told, try_way
from tests.hostile.apps.ways import WAYS, Way

NAMES = {way.name: way for way in WAYS}
BRIEF = (
    "mint 201 {}, once",
    "mint gives nova the token that orbit has, once",
    "acme's revoked at 1 s, and given again, once",
    "installed anew at 1 s",
    "selected at 70 s",
    "list: acme's id is orbit's",
    "echoes what logs in",
)
"""What is tried at each change; the others follow in the soak."""


def holds(way: Way, work: Work, figure: Callable[[str], None]) -> None:
    """What every way owes."""
    tried = try_way(way, work)
    figure(told(tried))
    assert tried.broken() == [], told(tried)


@pytest.mark.parametrize("name", BRIEF)
def test_an_app_writes_in_spite_of_one_lie(name: str, figure: Callable[[str], None]) -> None:
    """failures.md rows 99, 107: 24 files in each of three installations, of which one is wrong."""
    holds(NAMES[name], "files", figure)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_an_app_writes_in_every_way(way: Way, figure: Callable[[str], None]) -> None:
    """The same in every way."""
    holds(way, "files", figure)


@pytest.mark.soak
@pytest.mark.parametrize("way", [way for way in WAYS if not way.is_for_writes], ids=lambda way: way.name)
def test_an_app_reads_in_every_way(way: Way, figure: Callable[[str], None]) -> None:
    """48 reads in each."""
    holds(way, "reads", figure)
