"""The rules of a ruleset, with their parameters: the field `type` tells the rule.

Types refuse wrong values while an item is decoded. Source: specification, Rulesets; open-points.md (code_scanning).
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Text = Annotated[str, Meta(min_length=1)]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An object of a ruleset, of which only the fields that are given are sent."""


class _Rule(Part, frozen=True, kw_only=True, tag_field="type"):
    """One rule of a ruleset."""


class Creation(_Rule, frozen=True, kw_only=True, tag="creation"):
    """Only those who may pass the ruleset create matching refs."""


class Deletion(_Rule, frozen=True, kw_only=True, tag="deletion"):
    """Only those who may pass the ruleset delete matching refs."""


class RequiredLinearHistory(_Rule, frozen=True, kw_only=True, tag="required_linear_history"):
    """Matching branches take no merge commits."""


class RequiredSignatures(_Rule, frozen=True, kw_only=True, tag="required_signatures"):
    """Commits must have a verified signature."""


class NonFastForward(_Rule, frozen=True, kw_only=True, tag="non_fast_forward"):
    """Nobody may push by force."""


class UpdateParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `update`."""

    update_allows_fetch_and_merge: bool


class Update(_Rule, frozen=True, kw_only=True, tag="update"):
    """Only those who may pass the ruleset update matching refs."""

    parameters: UpdateParameters


class RequiredDeploymentsParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `required_deployments`."""

    required_deployment_environments: list[Text]


class RequiredDeployments(_Rule, frozen=True, kw_only=True, tag="required_deployments"):
    """A change must be deployed to these environments before it is merged."""

    parameters: RequiredDeploymentsParameters


class Reviewer(Part, frozen=True, kw_only=True):
    """A team that reviews changes."""

    id: int
    type: Literal["Team"]


class RequiredReviewer(Part, frozen=True, kw_only=True):
    """A team that must review changes of some files."""

    file_patterns: list[Text]
    minimum_approvals: Annotated[int, Meta(ge=0, description="0: asked for, not needed")]
    reviewer: Reviewer


class PullRequestParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `pull_request`."""

    dismiss_stale_reviews_on_push: bool
    require_code_owner_review: bool
    require_last_push_approval: bool
    required_approving_review_count: Annotated[int, Meta(ge=0)]
    required_review_thread_resolution: bool
    allowed_merge_methods: Annotated[list[Literal["merge", "squash", "rebase"]], Meta(min_length=1)] | UnsetType = UNSET
    required_reviewers: list[RequiredReviewer] | UnsetType = UNSET


class PullRequest(_Rule, frozen=True, kw_only=True, tag="pull_request"):
    """Changes must come by pull request."""

    parameters: PullRequestParameters


class StatusCheck(Part, frozen=True, kw_only=True):
    """One check that must pass."""

    context: Text
    integration_id: int | UnsetType = UNSET


class RequiredStatusChecksParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `required_status_checks`."""

    required_status_checks: list[StatusCheck]
    strict_required_status_checks_policy: bool
    do_not_enforce_on_create: bool | UnsetType = UNSET


class RequiredStatusChecks(_Rule, frozen=True, kw_only=True, tag="required_status_checks"):
    """Checks must pass before a change is merged."""

    parameters: RequiredStatusChecksParameters


class PatternParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rules whose names end in `_pattern`."""

    operator: Literal["starts_with", "ends_with", "contains", "regex"]
    pattern: Text
    name: str | UnsetType = UNSET
    negate: bool | UnsetType = UNSET


class CommitMessagePattern(_Rule, frozen=True, kw_only=True, tag="commit_message_pattern"):
    """Messages of commits must match a pattern."""

    parameters: PatternParameters


class CommitAuthorEmailPattern(_Rule, frozen=True, kw_only=True, tag="commit_author_email_pattern"):
    """Mail addresses of authors must match a pattern."""

    parameters: PatternParameters


class CommitterEmailPattern(_Rule, frozen=True, kw_only=True, tag="committer_email_pattern"):
    """Mail addresses of committers must match a pattern."""

    parameters: PatternParameters


class BranchNamePattern(_Rule, frozen=True, kw_only=True, tag="branch_name_pattern"):
    """Names of branches must match a pattern."""

    parameters: PatternParameters


class TagNamePattern(_Rule, frozen=True, kw_only=True, tag="tag_name_pattern"):
    """Names of tags must match a pattern."""

    parameters: PatternParameters


class FilePathParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `file_path_restriction`."""

    restricted_file_paths: list[Text]


class FilePathRestriction(_Rule, frozen=True, kw_only=True, tag="file_path_restriction"):
    """No push may hold files at these paths."""

    parameters: FilePathParameters


class FilePathLengthParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `max_file_path_length`."""

    max_file_path_length: Annotated[int, Meta(ge=1, description="characters")]


class MaxFilePathLength(_Rule, frozen=True, kw_only=True, tag="max_file_path_length"):
    """Paths in a push have a greatest length."""

    parameters: FilePathLengthParameters


class FileExtensionParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `file_extension_restriction`."""

    restricted_file_extensions: list[Text]


class FileExtensionRestriction(_Rule, frozen=True, kw_only=True, tag="file_extension_restriction"):
    """No push may hold files with these extensions."""

    parameters: FileExtensionParameters


class FileSizeParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `max_file_size`."""

    max_file_size: Annotated[int, Meta(ge=1, description="megabytes; not applied to large-file storage")]


class MaxFileSize(_Rule, frozen=True, kw_only=True, tag="max_file_size"):
    """Files in a push have a greatest size."""

    parameters: FileSizeParameters


class Workflow(Part, frozen=True, kw_only=True):
    """One workflow that must pass."""

    path: Text
    repository_id: int
    ref: str | UnsetType = UNSET
    sha: str | UnsetType = UNSET


class WorkflowsParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `workflows`."""

    workflows: list[Workflow]
    do_not_enforce_on_create: bool | UnsetType = UNSET


class Workflows(_Rule, frozen=True, kw_only=True, tag="workflows"):
    """Workflows must pass before a change is merged."""

    parameters: WorkflowsParameters


class CodeScanningTool(Part, frozen=True, kw_only=True):
    """One tool, and how severe its findings may be."""

    tool: Text
    alerts_threshold: Literal["none", "errors", "errors_and_warnings", "all"]
    security_alerts_threshold: Literal["none", "critical", "high_or_higher", "medium_or_higher", "all"]


class CodeScanningParameters(Part, frozen=True, kw_only=True):
    """The parameters of the rule `code_scanning`."""

    code_scanning_tools: list[CodeScanningTool]


class CodeScanning(_Rule, frozen=True, kw_only=True, tag="code_scanning"):
    """Code must be scanned before a change is merged."""

    parameters: CodeScanningParameters


Rule = (
    Creation
    | Update
    | Deletion
    | RequiredLinearHistory
    | RequiredDeployments
    | RequiredSignatures
    | PullRequest
    | RequiredStatusChecks
    | NonFastForward
    | CommitMessagePattern
    | CommitAuthorEmailPattern
    | CommitterEmailPattern
    | BranchNamePattern
    | TagNamePattern
    | FilePathRestriction
    | MaxFilePathLength
    | FileExtensionRestriction
    | MaxFileSize
    | Workflows
    | CodeScanning
)
