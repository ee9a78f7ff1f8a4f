"""What one answer alone can show."""

from bulk.execute.writes.shown_once import MOST, ShownOnce


def test_a_mark_is_shown_once():
    """A second answer with the same mark is not proof."""
    shown = ShownOnce()
    assert [shown.is_again(mark) for mark in "abab"] == [False, False, True, True]


def test_the_newest_marks_are_remembered():
    """A run of millions of deletions takes no more memory than one of thousands."""
    shown = ShownOnce()
    assert not any(shown.is_again(str(number)) for number in range(MOST + 1))
    assert (shown.is_again("0"), shown.is_again(str(MOST))) == (False, True)
