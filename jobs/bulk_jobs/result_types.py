"""The types of the operations' results, for type checkers: an operation declares its type with `Returns`.

A result is decoded JSON. Not every answer has every field, and the platform may add some: a type names the fields that
a program can work with. A test converts the answers of a sandbox to these types.
"""

from typing import Any, TypedDict


class FileContent(TypedDict, total=False):
    """A file: `content` is Base64; for the media types raw and html there are `size` and `sha256` of it instead.
    `target`: where a symlink leads that leads to no file of the repository.
    """

    name: str
    path: str
    sha: str
    size: int
    type: str
    encoding: str
    content: str
    url: str
    html_url: str | None
    git_url: str | None
    download_url: str | None
    submodule_git_url: str | None
    target: str
    sha256: str


class ContentsEntry(TypedDict, total=False):
    """A file, a directory or a submodule in a listing."""

    name: str
    path: str
    sha: str
    size: int
    type: str
    url: str
    git_url: str | None
    submodule_git_url: str | None
    html_url: str | None
    download_url: str | None


class Contents(FileContent, total=False):
    """What `contents.get` finds at a path: a file, or a directory with its entries."""

    entries: list[ContentsEntry]
    maybe_truncated: bool


class Commit(TypedDict, total=False):
    """The commit that a write made, and the one before it."""

    sha: str
    html_url: str
    parent: str


class FileWritten(TypedDict, total=False):
    """A file that was written or deleted: no `commit` where nothing had to be done."""

    path: str
    sha: str
    size: int
    html_url: str
    commit: Commit


class Snapshot(TypedDict, total=False):
    """A dependency snapshot that was taken."""

    id: int
    created_at: str
    message: str
    result: str


class Organization(TypedDict, total=False):
    """An organization."""

    id: int
    login: str
    node_id: str
    url: str
    description: str | None


class Renaming(TypedDict, total=False):
    """`org` is the old name, `login` the new one; `message` is the platform's."""

    org: str
    login: str
    message: str


class TeamAdditions(TypedDict, total=False):
    """Names as given: assigned now, and before; `missing` in a failure."""

    added: list[str]
    present: list[str]
    missing: list[str]


class TeamRemovals(TypedDict, total=False):
    """Names as given: removed now, and not assigned before; `left` in a failure: still assigned."""

    removed: list[str]
    absent: list[str]
    left: list[str]


class Configuration(TypedDict, total=False):
    """A code security configuration; its settings are the platform's own words, as `enabled`."""

    id: int
    name: str
    target_type: str
    description: str
    enforcement: str
    advanced_security: str
    code_security: str
    secret_protection: str
    dependency_graph: str
    dependency_graph_autosubmit_action: str
    dependency_graph_autosubmit_action_options: dict[str, Any]
    dependabot_alerts: str
    dependabot_security_updates: str
    dependabot_delegated_alert_dismissal: str
    code_scanning_options: dict[str, Any] | None
    code_scanning_default_setup: str
    code_scanning_default_setup_options: dict[str, Any] | None
    code_scanning_delegated_alert_dismissal: str
    secret_scanning: str
    secret_scanning_push_protection: str
    secret_scanning_delegated_bypass: str
    secret_scanning_delegated_bypass_options: dict[str, Any]
    secret_scanning_validity_checks: str
    secret_scanning_non_provider_patterns: str
    secret_scanning_generic_secrets: str
    secret_scanning_delegated_alert_dismissal: str
    secret_scanning_extended_metadata: str
    private_vulnerability_reporting: str
    url: str
    html_url: str
    created_at: str
    updated_at: str


class DefaultConfiguration(TypedDict, total=False):
    """Says which new repositories get a configuration."""

    default_for_new_repos: str
    configuration: Configuration


class Attachment(TypedDict, total=False):
    """A configuration that was attached; `repositories` and `license` are there with `wait`."""

    configuration_id: int
    scope: str
    repositories: dict[str, int]
    license: dict[str, Any]


class AttachedRepository(TypedDict, total=False):
    """A repository that has a configuration."""

    status: str
    repository: "Repository"


class SecuritySettings(TypedDict, total=False):
    """Says what is switched on for new repositories of an enterprise."""

    advanced_security_enabled_for_new_repositories: bool
    dependabot_alerts_enabled_for_new_repositories: bool
    secret_scanning_enabled_for_new_repositories: bool
    secret_scanning_push_protection_enabled_for_new_repositories: bool
    secret_scanning_non_provider_patterns_enabled_for_new_repositories: bool
    secret_scanning_push_protection_custom_link: str | None


class ProductEnablement(TypedDict, total=False):
    """A security product that is being switched on or off."""

    security_product: str
    enablement: str
    note: str


class RulesetVersion(TypedDict, total=False):
    """A version of a ruleset; `state` is the ruleset as it was then."""

    version_id: int
    actor: dict[str, Any]
    updated_at: str
    state: dict[str, Any]


class Ruleset(TypedDict, total=False):
    """A ruleset in short."""

    id: int
    name: str
    target: str
    source_type: str
    source: str
    enforcement: str
    node_id: str
    created_at: str
    updated_at: str


class License(TypedDict, total=False):
    """Seats of a license; words instead of numbers where there is no bound."""

    seats: int | str
    seats_used: int
    seats_available: int | str
    kind: str
    days_until_expiration: int
    expire_at: str | None


class Committers(TypedDict, total=False):
    """Says who uses a license, by repository."""

    total_advanced_security_committers: int
    total_count: int
    maximum_advanced_security_committers: int
    purchased_advanced_security_committers: int
    repositories: list[dict[str, Any]]


class WebhookConfig(TypedDict, total=False):
    """The address of a webhook, with its secret masked."""

    url: str
    content_type: str
    insecure_ssl: str | int
    secret: str


class Webhook(TypedDict, total=False):
    """A webhook of an organization."""

    id: int
    name: str
    active: bool
    events: list[str]
    config: WebhookConfig
    type: str
    url: str
    ping_url: str
    deliveries_url: str
    created_at: str
    updated_at: str


class Delivery(TypedDict, total=False):
    """One delivery of a webhook; `duration` in seconds."""

    id: int
    guid: str
    delivered_at: str
    redelivery: bool
    duration: float
    status: str
    status_code: int
    event: str
    action: str | None
    throttled_at: str | None
    installation_id: int | None
    repository_id: int | None


class Account(TypedDict, total=False):
    """A user or an organization in short."""

    login: str
    id: int
    gravatar_id: str | None
    type: str
    site_admin: bool


class Repository(TypedDict, total=False):
    """A repository in short."""

    id: int
    name: str
    full_name: str
    owner: Account
    private: bool
    html_url: str
    description: str | None
    fork: bool


class Thread(TypedDict, total=False):
    """A thread of notifications."""

    id: str
    repository: Repository
    subject: dict[str, Any]
    reason: str
    unread: bool
    updated_at: str
    last_read_at: str | None
    url: str


class Marked(TypedDict, total=False):
    """Notifications that were marked as read; `message` where the platform goes on in the background."""

    last_read_at: str
    message: str


class Numbered(TypedDict, total=False):
    """Says what was deleted or changed, by its number."""

    id: int


class MarkedThread(TypedDict, total=False):
    """A thread that was marked as read."""

    id: str


class Limit(TypedDict, total=False):
    """One category of `GET /rate_limit` (counts); `reset` in UTC epoch seconds."""

    limit: int
    used: int
    remaining: int
    reset: int
