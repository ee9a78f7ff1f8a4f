"""The second platform: what a request finds, changes and is answered, written from the specification alone.

`Platform.answer` decides everything from the state, the request and the moment; how answers go wrong is in `wrong.py`,
how they travel in `classification.py`.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Protocol

from tests.hostile.areas import (
    configurations,
    contents,
    hooks,
    notifications,
    organizations,
    rulesets,
    security,
    snapshots,
)
from tests.hostile.http.messages import Answer, Ask, refused, shown
from tests.hostile.http.turn import Turn
from tests.hostile.store.effects import Effects
from tests.hostile.store.normal import Normal
from tests.hostile.store.state import State

Handler = Callable[[Turn], Answer]


class Limits(Protocol):
    """Who counts requests, and what is told of it."""

    def charge(self, now: float, category: str, token: str) -> bool:
        """Count a request; whether it is within its window."""

    def headers(self, now: float, category: str) -> dict[str, str]:
        """What answers say of it."""

    def body(self, now: float) -> Answer | dict[str, Any] | int:
        """What `GET /rate_limit` is answered: all of it, its object, or the status of a refusal."""


_CONFIGURATIONS = "/code-security/configurations"
_CONFIGURATION = f"/orgs/{{org}}{_CONFIGURATIONS}/{{configuration_id}}"
_TEAM = "/enterprises/{enterprise}/teams/{team}/organizations"
_HOOK = "/orgs/{org}/hooks/{hook_id}"

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/repos/{owner}/{repo}/contents/{path...}", contents.read),
    ("GET", "/repos/{owner}/{repo}/contents", contents.read),
    ("PUT", "/repos/{owner}/{repo}/contents/{path...}", contents.write),
    ("DELETE", "/repos/{owner}/{repo}/contents/{path...}", contents.delete),
    ("GET", "/repos/{owner}/{repo}/readme", contents.readme),
    ("POST", "/repos/{owner}/{repo}/dependency-graph/snapshots", snapshots.submit),
    ("GET", _TEAM, organizations.assigned),
    ("POST", f"{_TEAM}/add", organizations.assign_many),
    ("POST", f"{_TEAM}/remove", organizations.unassign_many),
    ("GET", f"{_TEAM}/{{org}}", organizations.assigned_one),
    ("PUT", f"{_TEAM}/{{org}}", organizations.assign),
    ("DELETE", f"{_TEAM}/{{org}}", organizations.unassign),
    ("GET", f"/enterprises/{{enterprise}}{_CONFIGURATIONS}", configurations.of_enterprise),
    ("POST", f"/enterprises/{{enterprise}}{_CONFIGURATIONS}", configurations.create),
    ("GET", f"/enterprises/{{enterprise}}{_CONFIGURATIONS}/defaults", configurations.defaults),
    ("GET", f"/enterprises/{{enterprise}}{_CONFIGURATIONS}/{{configuration_id}}", configurations.get),
    ("GET", _CONFIGURATION, configurations.get),
    ("PATCH", _CONFIGURATION, configurations.update),
    ("DELETE", _CONFIGURATION, configurations.delete),
    ("POST", f"{_CONFIGURATION}/attach", configurations.attach),
    ("PUT", f"{_CONFIGURATION}/defaults", configurations.set_default),
    ("GET", f"{_CONFIGURATION}/repositories", configurations.repositories),
    ("GET", "/enterprises/{enterprise}/code_security_and_analysis", security.get),
    ("PATCH", "/enterprises/{enterprise}/code_security_and_analysis", security.update),
    ("GET", "/enterprises/{enterprise}/rulesets/{ruleset_id}/history", rulesets.history),
    ("GET", "/enterprises/{enterprise}/rulesets/{ruleset_id}/history/{version_id}", rulesets.version),
    ("GET", "/enterprises/{enterprise}/settings/billing/advanced-security", organizations.committers),
    ("POST", "/enterprises/{enterprise}/{product}/{enablement}", security.enable),
    ("GET", "/orgs/{org}/rulesets", rulesets.listed),
    ("POST", "/orgs/{org}/rulesets", rulesets.create),
    ("GET", "/enterprise/settings/license", organizations.license_),
    ("POST", "/admin/organizations", organizations.create),
    ("PATCH", "/admin/organizations/{org}", organizations.rename),
    ("GET", "/orgs/{org}/hooks", hooks.listed),
    ("POST", "/orgs/{org}/hooks", hooks.create),
    ("GET", _HOOK, hooks.get),
    ("PATCH", _HOOK, hooks.update),
    ("DELETE", _HOOK, hooks.delete),
    ("GET", f"{_HOOK}/config", hooks.get_config),
    ("PATCH", f"{_HOOK}/config", hooks.update_config),
    ("GET", f"{_HOOK}/deliveries", hooks.deliveries),
    ("GET", "/notifications", notifications.listed),
    ("PUT", "/notifications", notifications.mark_all),
    ("GET", "/notifications/threads/{thread_id}", notifications.get),
    ("PATCH", "/notifications/threads/{thread_id}", notifications.mark),
)


def _pattern(path: str) -> re.Pattern[str]:
    rest = re.sub(r"\\{(\w+)\\\.\\\.\\\.\\}", r"(?P<\1>.+)", re.escape(path))
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", rest))


_FOUND = tuple((method, _pattern(path), handler) for method, path, handler in ROUTES)
NUMBERS = ("configuration_id", "ruleset_id", "version_id", "hook_id", "thread_id")


def category(ask: Ask) -> str:
    """The rate-limit category that pays for a request."""
    return "dependency_snapshots" if ask.path.endswith("/dependency-graph/snapshots") else "core"


@dataclass(slots=True)
class Platform:
    """One platform of one credential.

    Attributes:
        normal: how it keeps what it is given. lag_s: how far behind its reads are (seconds).
    """

    state: State
    limits: Limits
    effects: Effects = field(default_factory=Effects)
    normal: Normal = field(default_factory=Normal)
    lag_s: float = 0.0

    def answer(self, ask: Ask, now: float) -> Answer:
        """Do what is asked, at `now` (seconds since 1970), and answer."""
        if ask.path == "/rate_limit" and ask.is_read:
            return _finished(_limits(self.limits.body(now)), now)
        paid_by = category(ask)
        if not self.limits.charge(now, paid_by, ""):
            answer = refused(429, "the window is used up")
        else:
            answer = _conditional(ask, self.act(ask, now))
        return _finished(answer.with_headers(*self.limits.headers(now, paid_by).items()), now)

    def act(self, ask: Ask, now: float) -> Answer:
        """Do what is asked; nobody counts it."""
        for method, pattern, handler in _FOUND:
            found = pattern.fullmatch(ask.path) if method == ask.method else None
            if found is not None:
                names = found.groupdict()
                if all(names[name].isdigit() for name in NUMBERS if name in names):
                    read_at = now - self.lag_s if ask.is_read else now
                    return handler(Turn(ask, self.state, self.effects, now, read_at, self.normal, names))
        return refused(404, "no such address")

    def scratch(self) -> "Platform":
        """The same platform once more: what happens to it happens to it alone."""
        return Platform(self.state.copy(), self.limits, Effects(), self.normal, self.lag_s)


def _conditional(ask: Ask, answer: Answer) -> Answer:
    """The answer to a read with its validator; 304 where the asker has just that. It is paid for all the same."""
    if not ask.is_read or answer.status != 200:
        return answer
    tag = f'"{hashlib.sha1(answer.body + repr(answer.headers).encode(), usedforsecurity=False).hexdigest()}"'
    if ask.headers.get("if-none-match") == tag:
        return Answer(304, b"", (("etag", tag),))
    return answer.with_headers(("etag", tag))


def _limits(told: Answer | dict[str, Any] | int) -> Answer:
    match told:
        case Answer():
            return told
        case int():
            return refused(told, "not here")
    return shown(200, told)


def _finished(answer: Answer, now: float) -> Answer:
    return answer.with_headers(("date", formatdate(now, usegmt=True)), ("x-service-request-id", f"h{now:.6f}"))
