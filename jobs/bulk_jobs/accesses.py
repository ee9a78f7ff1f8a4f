"""The rights that a token must have for the operations of each resource. Source: specification, Authentication (per
group)."""

from typing import Final

from bulk.operation import Access

ENTERPRISE_TEAMS_READ: Final = Access(
    ("read:enterprise",), ("enterprise_teams", "read"), apps=False, is_for_classic=True
)
ENTERPRISE_TEAMS_WRITE: Final = Access(
    ("admin:enterprise",), ("enterprise_teams", "write"), apps=False, is_for_classic=True
)
CONTENTS_READ: Final = Access(("repo",), ("contents", "read"))
CONTENTS_WRITE: Final = Access(("repo",), ("contents", "write"))
ENTERPRISE_READ: Final = Access(("read:enterprise",), apps=False)
"""Code security configurations and rulesets of an enterprise: tokens with scopes only."""
ENTERPRISE_WRITE: Final = Access(("admin:enterprise",), apps=False)
LEGACY_READ: Final = Access(("read:enterprise",), apps=False, is_for_classic=True)
"""Legacy settings of an enterprise: classic tokens only."""
LEGACY_WRITE: Final = Access(("admin:enterprise",), apps=False, is_for_classic=True)
ORGANIZATION_READ: Final = Access(("read:org",), ("organization_administration", "read"))
ORGANIZATION_WRITE: Final = Access(("write:org",), ("organization_administration", "write"))
RULESETS_READ: Final = Access(("read:org",), ("organization_administration", "write"))
RULESETS_WRITE: Final = Access(("write:org",), ("organization_administration", "write"))
LICENSE: Final = Access(apps=False)
COMMITTERS: Final = Access(("read:enterprise",), ("enterprise_administration", "write"), apps=False)
SITE: Final = Access(("site_admin",), apps=False, is_for_site_admins=True, is_for_classic=True)
HOOKS_READ: Final = Access(("admin:org_hook",), ("organization_hooks", "read"))
HOOKS_WRITE: Final = Access(("admin:org_hook",), ("organization_hooks", "write"))
NOTIFICATIONS: Final = Access(("notifications", "repo"), apps=False, is_for_classic=True)
ANY: Final = Access(permission=("metadata", "read"))
