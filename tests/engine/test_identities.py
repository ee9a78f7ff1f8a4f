"""Whose answers a token sees, which decides what it is shown of those that were kept."""

import pytest

from bulk.engine.credentials.kept_answers import identity_of

OLD = "0123456789abcdef0123456789abcdef01234567"


def test_tokens_with_the_same_scopes_see_the_same() -> None:
    """Another token of the same user and kind, whatever the order of its scopes; also one of an older platform."""
    assert identity_of("ghp_a", 5, "repo, read:org") == identity_of("ghp_b", 5, "read:org,repo") != ""
    assert identity_of(OLD, 5, "repo") == identity_of(OLD[::-1], 5, "repo") != ""
    assert identity_of("ghp_a", 5, "") == identity_of("ghp_b", 5, "") != ""


def test_other_users_scopes_and_kinds_see_something_else() -> None:
    """Whatever differs makes another identity."""
    others = [("ghp_a", 5, "repo"), ("ghp_a", 6, "repo"), ("ghp_a", 5, "repo, read:org"), ("gho_a", 5, "repo")]
    assert len({identity_of(*each) for each in others}) == len(others)


@pytest.mark.parametrize("told", ["", " ", "repo"])
@pytest.mark.parametrize("token", ["github_pat_11AAAAA_bbb", "ghu_a", "ghs_a"])
def test_of_tokens_with_permissions_nothing_is_known(token: str, told: str) -> None:
    """Two of them that belong to one user may see different things, whatever the header holds."""
    assert identity_of(token, 5, told) == ""


def test_a_token_that_tells_no_scopes_is_known_to_nobody() -> None:
    """No header says nothing, and an empty one is not a set of scopes."""
    assert identity_of(OLD, 5, "") == identity_of(OLD, 5, None) == identity_of("ghp_a", 5, None) == ""
