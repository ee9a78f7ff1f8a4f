"""Limits that are right: counted in fixed windows, told in headers and by `/rate_limit` alike."""

from dataclasses import dataclass, field

from tests.hostile.http.messages import Answer, shown

CATEGORIES = (
    "core",
    "search",
    "code_search",
    "graphql",
    "integration_manifest",
    "dependency_snapshots",
    "dependency_sbom",
    "code_scanning_upload",
    "code_scanning_autofix",
    "actions_runner_registration",
    "scim",
    "source_import",
)


@dataclass(slots=True)
class Allowance:
    """A number of requests of each category in each window; a window begins with its first request.

    Attributes:
        limit: requests in a window. window_s: its length (whole seconds).
        used: requests of the window that began at `began`, by category. refused: how often there was no room.
    """

    limit: int
    window_s: int
    used: dict[str, int] = field(default_factory=dict)
    began: dict[str, float] = field(default_factory=dict)
    refused: int = 0

    def charge(self, now: float, category: str, token: str) -> bool:
        """Count a request; whether it is within its window."""
        self._turn_over(now, category)
        if self.used[category] >= self.limit:
            self.refused += 1
            return False
        self.used[category] += 1
        return True

    def headers(self, now: float, category: str) -> dict[str, str]:
        """What answers say."""
        told = self._told(now, category)
        return {f"x-ratelimit-{name}": str(value) for name, value in told.items()}

    def body(self, now: float) -> Answer:
        """What `GET /rate_limit` is answered."""
        resources = {category: self._told(now, category) for category in CATEGORIES}
        return shown(200, {"resources": resources, "rate": resources["core"]})

    def _turn_over(self, now: float, category: str) -> None:
        began = self.began.get(category)
        if began is None or now >= int(began) + self.window_s:
            self.began[category], self.used[category] = now, 0

    def _told(self, now: float, category: str) -> dict[str, int]:
        began, used = self.began.get(category, now), self.used.get(category, 0)
        if now >= int(began) + self.window_s:
            began, used = now, 0
        reset = int(began) + self.window_s
        return {"limit": self.limit, "used": used, "remaining": self.limit - used, "reset": reset}
