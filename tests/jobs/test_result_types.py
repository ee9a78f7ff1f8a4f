"""What operations say of their results."""

import pytest

from bulk.capabilities import Returns, result_type
from bulk.operation import find, names


@pytest.mark.parametrize("name", names())
def test_every_operation_says_what_it_gives(name):
    """Tables and programs know the type of each result, and what of it changes by itself."""
    operation = find(name)
    assert isinstance(operation, Returns)
    assert result_type(operation) is not None
