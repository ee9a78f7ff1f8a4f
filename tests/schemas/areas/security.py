"""Code security: configurations of enterprises and organizations, the legacy settings, licenses and committers."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from tests.schemas.areas.repositories import Repository
from tests.schemas.words import Count, Date, Id, Shape, Text, Timestamp, Url

Enablement = Literal["enabled", "disabled", "not_set"]


class AutosubmitOptions(Shape, kw_only=True):
    """Of dependency_graph_autosubmit_action."""

    labeled_runners: bool


class DefaultSetupOptions(Shape, kw_only=True):
    """Of code_scanning_default_setup."""

    runner_type: Literal["standard", "labeled", "not_set"]
    runner_label: str | None


class ScanningOptions(Shape, kw_only=True):
    """Of code scanning."""

    allow_advanced: bool | None


class BypassReviewer(Shape, kw_only=True):
    """Who reviews requests to pass push protection by."""

    security_configuration_id: Id
    reviewer_id: Id
    reviewer_type: Literal["TEAM", "ROLE"]
    mode: Literal["ALWAYS", "EXEMPT"]


class BypassOptions(Shape, kw_only=True):
    """Of secret_scanning_delegated_bypass."""

    reviewers: list[BypassReviewer]


class Configuration(Shape, kw_only=True):
    """A code security configuration."""

    id: Id
    target_type: Literal["global", "enterprise", "organization"]
    name: Text
    description: str
    advanced_security: Literal["enabled", "disabled", "code_security", "secret_protection"]
    code_security: Enablement
    secret_protection: Enablement
    dependency_graph: Enablement
    dependency_graph_autosubmit_action: Enablement
    dependency_graph_autosubmit_action_options: AutosubmitOptions
    dependabot_alerts: Enablement
    dependabot_security_updates: Enablement
    dependabot_delegated_alert_dismissal: Enablement
    code_scanning_options: ScanningOptions | None
    code_scanning_default_setup: Enablement
    code_scanning_default_setup_options: DefaultSetupOptions | None
    code_scanning_delegated_alert_dismissal: Enablement
    secret_scanning: Enablement
    secret_scanning_push_protection: Enablement
    secret_scanning_delegated_bypass: Enablement
    secret_scanning_delegated_bypass_options: BypassOptions
    secret_scanning_validity_checks: Enablement
    secret_scanning_non_provider_patterns: Enablement
    secret_scanning_generic_secrets: Enablement
    secret_scanning_delegated_alert_dismissal: Enablement
    secret_scanning_extended_metadata: Enablement
    private_vulnerability_reporting: Enablement
    enforcement: Literal["enforced", "unenforced"]
    url: Url
    html_url: Url
    created_at: Timestamp
    updated_at: Timestamp


class Default(Shape, kw_only=True):
    """Which configuration new repositories get."""

    default_for_new_repos: Literal["all", "none", "private_and_internal", "public"]
    configuration: Configuration


class ConfiguredRepository(Shape, kw_only=True):
    """A repository that has a configuration."""

    status: Literal[
        "attached", "attaching", "detached", "removed", "enforced", "failed", "updating", "removed_by_enterprise"
    ]
    repository: Repository


class LegacySettings(Shape, kw_only=True):
    """What new repositories of an enterprise get."""

    advanced_security_enabled_for_new_repositories: bool
    dependabot_alerts_enabled_for_new_repositories: bool
    secret_scanning_enabled_for_new_repositories: bool
    secret_scanning_push_protection_enabled_for_new_repositories: bool
    secret_scanning_push_protection_custom_link: Url | None
    secret_scanning_non_provider_patterns_enabled_for_new_repositories: bool


class License(Shape, kw_only=True):
    """Seats, and how long they are good."""

    seats: Count
    seats_used: Count
    seats_available: Count
    kind: Text
    days_until_expiration: int
    expire_at: Timestamp


class Committer(Shape, kw_only=True):
    """Who takes a seat."""

    user_login: Text
    last_pushed_date: Date
    last_pushed_email: Text


class CommittedRepository(Shape, kw_only=True):
    """A repository with its committers."""

    name: Text
    advanced_security_committers: Count
    advanced_security_committers_breakdown: list[Committer]

    def __post_init__(self) -> None:
        """Each committer of a repository is counted once."""
        if self.advanced_security_committers != len(
            {each.user_login for each in self.advanced_security_committers_breakdown}
        ):
            raise ValueError("advanced_security_committers must be the number of distinct logins")


class Committers(Shape, kw_only=True):
    """Who commits to repositories with advanced security."""

    total_advanced_security_committers: Count
    total_count: Count
    maximum_advanced_security_committers: Count
    purchased_advanced_security_committers: Count
    repositories: list[CommittedRepository]


class Attached(Shape, kw_only=True):
    """An attachment was accepted; the specification shows no body, the vendor an empty object."""

    message: Text | UnsetType = UNSET
