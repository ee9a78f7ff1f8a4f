"""Every endpoint of the specification with every status that it may answer, and the schema of that answer.

What belongs to no single endpoint stands in `ANYWHERE`: an unknown version or malformed JSON (400), no or bad
credentials (401), missing permission and limits (403), what is not there or not to be known of (404), a body that is
too large (413). A combination that is not here is not an answer of the platform. Source: specification, Endpoints,
Errors and Authentication; docs/open-points.md for what these leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.schemas.areas import apps, files, hooks, notifications, organizations, others, rulesets, security
from tests.schemas.areas.errors import Error

if TYPE_CHECKING:
    from bulk.sandbox.http.observing import Observed

NEW_VERSION: Final = "2026-03-10"


@dataclass(frozen=True)
class Json:
    """A JSON body. `choose` gives its decoder, which may depend on the version and media type of the request."""

    choose: Callable[[Observed], msgspec.json.Decoder[Any]]


@dataclass(frozen=True)
class Nothing:
    """No body."""


@dataclass(frozen=True)
class Bytes:
    """A file as it is, or rendered: no JSON."""


@dataclass(frozen=True)
class Standing:
    """What stands in a repository: bytes for raw and html where it has any, else JSON."""


Answer = Json | Nothing | Bytes | Standing


def json(kind: Any) -> Json:
    """A JSON body that is always the same."""
    decoder = msgspec.json.Decoder(kind)
    return Json(lambda _: decoder)


def by_version(old: Any, new: Any) -> Json:
    """A JSON body that was another one before 2026-03-10."""
    before, after = msgspec.json.Decoder(old), msgspec.json.Decoder(new)
    return Json(lambda seen: after if seen.version >= NEW_VERSION else before)


NOTHING, ERROR = Nothing(), json(Error)
INVALID: Final = {422: ERROR}
ANYWHERE: Final[Mapping[int, Answer]] = dict.fromkeys((400, 401, 403, 404, 413), ERROR)
UNKNOWN_PATH: Final = ANYWHERE
"""What a path without an endpoint may answer."""

_ORGANIZATION, _CONFIGURATION = json(organizations.Organization), json(security.Configuration)
_TEAM = "/enterprises/{enterprise}/teams/{enterprise-team}/organizations"
_CONTENTS = "/repos/{owner}/{repo}/contents/{path}"
_ENTERPRISE_CONFIGURATIONS = "/enterprises/{enterprise}/code-security/configurations"
_CONFIGURATION_OF = "/orgs/{org}/code-security/configurations/{configuration_id}"
_LEGACY = "/enterprises/{enterprise}/code_security_and_analysis"
_HISTORY = "/enterprises/{enterprise}/rulesets/{ruleset_id}/history"
_HOOK = "/orgs/{org}/hooks/{hook_id}"
_HOOK_ANSWERS: Final = json(hooks.Hook)

ENDPOINTS: Final[Mapping[str, Mapping[int, Answer]]] = {
    # Enterprise team organization assignments
    f"GET {_TEAM}": {200: json(list[organizations.Organization])},
    f"POST {_TEAM}/add": {200: json(list[organizations.Organization]), **INVALID},
    f"POST {_TEAM}/remove": {204: NOTHING, **INVALID},
    f"GET {_TEAM}/{{org}}": {200: _ORGANIZATION},
    f"PUT {_TEAM}/{{org}}": {201: _ORGANIZATION},
    f"DELETE {_TEAM}/{{org}}": {204: NOTHING},
    # Repository contents
    f"GET {_CONTENTS}": {200: Standing(), 302: NOTHING},
    f"PUT {_CONTENTS}": {
        200: json(files.FileWritten),
        201: json(files.FileWritten),
        409: ERROR,
        **INVALID,
    },
    f"DELETE {_CONTENTS}": {200: json(files.FileDeleted), 409: ERROR, **INVALID, 503: ERROR},
    "GET /repos/{owner}/{repo}/readme": {200: Standing(), **INVALID},
    # Code security configurations, enterprise
    f"GET {_ENTERPRISE_CONFIGURATIONS}": {200: json(list[security.Configuration])},
    f"POST {_ENTERPRISE_CONFIGURATIONS}": {201: _CONFIGURATION},
    f"GET {_ENTERPRISE_CONFIGURATIONS}/defaults": {200: json(list[security.Default])},
    f"GET {_ENTERPRISE_CONFIGURATIONS}/{{configuration_id}}": {200: _CONFIGURATION},
    # Code security configurations, organization
    f"GET {_CONFIGURATION_OF}": {200: _CONFIGURATION},
    f"PATCH {_CONFIGURATION_OF}": {200: _CONFIGURATION, 204: NOTHING, **INVALID},
    f"DELETE {_CONFIGURATION_OF}": {204: NOTHING, 409: ERROR},
    f"POST {_CONFIGURATION_OF}/attach": {202: json(security.Attached), **INVALID},
    f"PUT {_CONFIGURATION_OF}/defaults": {200: json(security.Default), **INVALID},
    f"GET {_CONFIGURATION_OF}/repositories": {200: json(list[security.ConfiguredRepository])},
    # Legacy enterprise code security and analysis
    f"GET {_LEGACY}": {200: json(security.LegacySettings)},
    f"PATCH {_LEGACY}": {204: NOTHING, **INVALID},
    "POST /enterprises/{enterprise}/{security_product}/{enablement}": {204: NOTHING, **INVALID},
    # Rulesets
    f"GET {_HISTORY}": {200: json(list[rulesets.Version]), 500: ERROR},
    f"GET {_HISTORY}/{{version_id}}": {200: json(rulesets.VersionWithState), 500: ERROR},
    "GET /orgs/{org}/rulesets": {200: json(list[rulesets.Summary]), 500: ERROR},
    "POST /orgs/{org}/rulesets": {201: json(rulesets.RULESET), **INVALID, 500: ERROR},
    # Licensing and billing
    "GET /enterprise/settings/license": {200: json(security.License)},
    "GET /enterprises/{enterprise}/settings/billing/advanced-security": {200: json(security.Committers), **INVALID},
    # Enterprise organization administration
    "POST /admin/organizations": {201: _ORGANIZATION, **INVALID},
    "PATCH /admin/organizations/{org}": {202: json(organizations.Renaming), **INVALID},
    # Dependency snapshot
    "POST /repos/{owner}/{repo}/dependency-graph/snapshots": {201: json(others.SnapshotTaken), **INVALID},
    # Organization webhooks
    "GET /orgs/{org}/hooks": {200: json(list[hooks.Hook])},
    "POST /orgs/{org}/hooks": {201: _HOOK_ANSWERS, **INVALID},
    f"GET {_HOOK}": {200: _HOOK_ANSWERS},
    f"PATCH {_HOOK}": {200: _HOOK_ANSWERS, **INVALID},
    f"DELETE {_HOOK}": {204: NOTHING},
    f"GET {_HOOK}/config": {200: json(hooks.HookConfig)},
    f"PATCH {_HOOK}/config": {200: json(hooks.HookConfig), **INVALID},
    f"GET {_HOOK}/deliveries": {200: json(list[hooks.Delivery]), **INVALID},
    # Notifications
    "GET /notifications": {200: json(list[notifications.Thread]), **INVALID},
    "PUT /notifications": {202: json(notifications.Accepted), 205: NOTHING, 304: NOTHING, **INVALID},
    "GET /notifications/threads/{thread_id}": {200: json(notifications.Thread)},
    "PATCH /notifications/threads/{thread_id}": {205: NOTHING, 304: NOTHING},
    # Rate limit status
    "GET /rate_limit": {200: by_version(others.OldRateLimits, others.RateLimits)},
}
"""The specification's endpoints."""

BESIDE: Final[Mapping[str, Mapping[int, Answer]]] = {
    "GET /repos/{owner}/{repo}/contents": ENDPOINTS[f"GET {_CONTENTS}"],
    "GET /downloads/{owner}/{repo}/{sha}/{path}": {200: Bytes()},
    "GET /organizations/{organization_id}": {200: _ORGANIZATION},
    "GET /orgs/{org}/rulesets/{ruleset_id}": {200: json(rulesets.RULESET)},
    # Apps, and whom tokens act for: no part of the specification's tables, but of its Authentication
    "GET /app": {200: json(apps.App)},
    "GET /app/installations": {200: json(list[apps.Installation])},
    "GET /app/installations/{installation_id}": {200: json(apps.Installation)},
    "DELETE /app/installations/{installation_id}": {202: json(dict), 204: NOTHING},
    "POST /app/installations/{installation_id}/access_tokens": {201: json(apps.AccessToken), **INVALID},
    "PUT /app/installations/{installation_id}/suspended": {204: NOTHING},
    "DELETE /app/installations/{installation_id}/suspended": {204: NOTHING},
    "GET /orgs/{org}/installation": {200: json(apps.Installation)},
    "GET /repos/{owner}/{repo}/installation": {200: json(apps.Installation)},
    "GET /enterprises/{enterprise}/installation": {200: json(apps.Installation)},
    "GET /user": {200: json(apps.User)},
    "POST /applications/{client_id}/token": {200: json(apps.Authorization), **INVALID},
    "POST /login/device/code": {200: json(dict)},
    "POST /login/device": {204: NOTHING},
    "POST /login/oauth/access_token": {200: json(dict)},
}
"""Where links of answers lead: the root's contents, downloads, a renamed organization, a single ruleset; and Apps."""
