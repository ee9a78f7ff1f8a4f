"""What the command line's texts become, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bulk.sandbox import DEFAULT_RATE_LIMITS, RateLimit, SettingError, Settings


def test_texts_become_settings() -> None:
    """Every option's documented form is understood."""
    found = Settings.from_options(
        host="127.0.0.2",
        port=80,
        state="state",
        vendor="github",
        seed_data="seed.yaml",
        rate_limit=["core=1000/5", "search=1/60"],
        token=["my-token=alice", "other=bob:1.5"],
        latency="12.5",
        fault=["drop-after=0.05", "slow=1%", "rate_limit:html=0.5"],
        fault_seed=7,
        journal="journal.jsonl",
    )
    assert (found.host, found.port, found.vendor, found.fault_seed) == ("127.0.0.2", 80, "github", 7)
    assert (found.state, found.seed_data, found.journal) == (Path("state"), Path("seed.yaml"), Path("journal.jsonl"))
    assert found.rate_limits["core"] == RateLimit(1000, 5)
    assert found.rate_limits["scim"] == DEFAULT_RATE_LIMITS["scim"]
    assert [(token.token, token.user, token.seconds) for token in found.tokens] == [
        ("my-token", "alice", None),
        ("other", "bob", 1.5),
    ]
    assert found.latency_ms == 12.5
    assert found.faults == {"drop-after": 0.05, "slow": 0.01, "rate_limit:html": 0.5}


def test_limits_off() -> None:
    """`--rate-limit off` turns all limits off."""
    assert Settings.from_options(rate_limit=["off"]).rate_limit_off


def test_the_twelve_categories() -> None:
    """The specification's twelve categories have default limits, core 5,000 an hour."""
    assert len(DEFAULT_RATE_LIMITS) == 12
    assert DEFAULT_RATE_LIMITS["core"] == RateLimit(5000, 3600)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vendor": "gitlab"}, "use service or github"),
        ({"port": 70000}, "between 0 and 65535"),
        ({"latency": "fast"}, "write --latency 25"),
        ({"latency": "-1"}, "milliseconds from 0 to 3,600,000"),
        ({"latency": "nan"}, "milliseconds from 0 to 3,600,000"),
        ({"latency": "1e99"}, "milliseconds from 0 to 3,600,000"),
        ({"mint_lag": "inf"}, "seconds from 0 to 3,600"),
        ({"mint_lag": "1e99"}, "seconds from 0 to 3,600"),
        ({"mint_lag": "nan"}, "seconds from 0 to 3,600"),
        ({"token": [f"name=alice:{'9' * 30}"]}, "after 0 to 31,622,400 seconds"),
        ({"rate_limit": ["core=5"]}, "as in core=1000/5"),
        ({"rate_limit": ["core=0/5"]}, "whole numbers from 1 on"),
        ({"rate_limit": ["core=5/0"]}, "whole numbers from 1 on"),
        ({"rate_limit": ["corn=5/5"]}, "the categories are core"),
        ({"rate_limit": ["off", "core=5/5"]}, "stands alone"),
        ({"token": ["justname"]}, "NAME=USER"),
        ({"token": ["a b=alice"]}, "no spaces"),
        ({"token": ["name=alice:soon"]}, "NAME=USER:SECONDS"),
        ({"fault": ["slow"]}, "write KIND=SHARE"),
        ({"fault": ["slow=often"]}, "not a number"),
        ({"fault": ["slow=1.5"]}, "between 0 and 1"),
        ({"fault": ["fast=0.5"]}, "the kinds are drop-before"),
        ({"fault": ["slow=0.6", "html=0.6"]}, "must not exceed 1"),
    ],
)
def test_wrong_texts(options: dict[str, Any], said: str) -> None:
    """A wrong option is a SettingError that says how it is written right."""
    with pytest.raises(SettingError, match=said):
        Settings.from_options(**options)


def test_tokens_are_not_shown() -> None:
    """Neither the repr nor an error message holds the text of a token."""
    settings = Settings.from_options(token=["very-secret=alice"])
    assert "very-secret" not in repr(settings)
    with pytest.raises(SettingError) as caught:
        Settings.from_options(token=["very-secret=alice:soon"])
    assert "very-secret" not in str(caught.value)
