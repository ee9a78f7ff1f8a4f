"""The kinds of events for which a webhook can ask, as far as they are public.

The specification names none (open-points.md), so an item may insist on a kind that is not in this list.
"""

import re
from collections.abc import Iterator, Sequence

from bulk.operation import ItemFlaw

ALL_EVENTS = "*"

_PUBLIC = """
branch_protection_configuration branch_protection_rule check_run check_suite code_scanning_alert commit_comment create
custom_property custom_property_values delete dependabot_alert deploy_key deployment deployment_protection_rule
deployment_review deployment_status discussion discussion_comment enterprise fork gollum installation
installation_repositories installation_target issue_comment issue_dependencies issues label member membership
merge_group meta milestone org_block organization package page_build personal_access_token_request ping project
project_card project_column projects_v2 projects_v2_item projects_v2_status_update public pull_request
pull_request_review pull_request_review_comment pull_request_review_thread push registry_package release repository
repository_advisory repository_dispatch repository_import repository_ruleset repository_vulnerability_alert
secret_scanning_alert secret_scanning_alert_location secret_scanning_scan security_advisory security_and_analysis
sponsorship star status sub_issues team team_add user watch workflow_dispatch workflow_job workflow_run
"""
KNOWN = frozenset(_PUBLIC.split())
"""The public names of events."""

_is_event = re.compile(r"[a-z][a-z0-9_]*|\*").fullmatch
_MOST_SHOWN = 100


def flaws_of_events(events: Sequence[str] | None, *, may_be_unknown: bool) -> Iterator[ItemFlaw]:
    """Yield what is wrong with kinds of events.

    Args:
        may_be_unknown: whether the item insists on names that are not public.
    """
    for number, event in enumerate(events or ()):
        if event == ALL_EVENTS or event in KNOWN or (may_be_unknown and _is_event(event)):
            continue
        insists = " (allow_unknown_events: true insists on it)" if _is_event(event) else ""
        yield ItemFlaw(f"events[{number}]", f"unknown event {event[:_MOST_SHOWN]!r}; {_expected(event)}{insists}")


def _expected(event: str) -> str:
    """Return a hint: the names that may have been meant, or the form of a name."""
    import difflib

    near = difflib.get_close_matches(event[:_MOST_SHOWN].lower(), sorted(KNOWN), n=2)
    return f"did you mean {' or '.join(near)}?" if near else "expected a name such as push, or *"
