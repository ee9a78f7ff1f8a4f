"""The device flow: how a user lets an App act for him without a browser on this machine, and how his tokens go on.

Synchronous, with nothing but the standard library: it happens rarely, and in a thread. No token is in any message.
Source: specification, Authentication (2); open-points.md (device flow).
"""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from bulk.errors import CredentialMissing
from bulk.platform.printable import printable

ASK_S = 30.0
"""How long a request may take (seconds)."""
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
MOST_INTERVAL_S = 600.0
"""A longer pause between two questions is a slip (seconds)."""
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Site:
    """Where people log in. `url` has no slash at its end."""

    url: str
    ca_bundle: Path | None = None

    @classmethod
    def of(cls, base_url: str, ca_bundle: Path | None = None) -> "Site":
        """Return the site of a base URL: the same host, of a cloud edition the one without `api.`."""
        parts = urlsplit(base_url)
        host = parts.netloc.removeprefix("api.") if not parts.path else parts.netloc
        return cls(f"{parts.scheme}://{host}", ca_bundle)

    def post(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """Send a form; return the JSON that comes back.

        Raises:
            CredentialMissing: the site can't be reached, or answers something else.
        """
        request = urllib.request.Request(
            self.url + path,
            data=urlencode(fields).encode(),
            headers={"Accept": "application/json", "User-Agent": "bulk"},
        )
        context = ssl.create_default_context(cafile=None if self.ca_bundle is None else str(self.ca_bundle))
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=ASK_S) as answer:
                body = json.loads(answer.read(MOST_BYTES))
        except (OSError, ValueError) as error:
            raise CredentialMissing(self._why(path, error)) from None
        if not isinstance(body, dict):
            raise CredentialMissing(f"{self.url}{path} gave no usable answer")
        return body

    def _why(self, path: str, error: OSError | ValueError) -> str:
        match error:
            case urllib.error.HTTPError(code=404):
                return (
                    f"{self.url}{path} is not there (404): look at the client id, whether the device flow of the App "
                    "is on, and at the base URL"
                )
            case urllib.error.HTTPError():
                return f"{self.url}{path} gave no usable answer (status {error.code})"
            case urllib.error.URLError():
                reason = error.reason
                told = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
                return f"{self.url} can't be reached: {told}"
            case _:
                return f"{self.url}{path} gave no usable answer ({type(error).__name__})"


def log_in(
    site: Site, client_id: str, tell: Callable[[str, str], None], sleep: Callable[[float], None]
) -> dict[str, Any]:
    """Return the tokens that the site gives once the user has confirmed.

    Args:
        tell: called with the page to open and the code to type there.
        sleep: waits so many seconds.

    Raises:
        CredentialMissing: he refused, or the code has ended.
    """
    code = site.post("/login/device/code", {"client_id": client_id})
    if any(not isinstance(code.get(field), str) for field in ("device_code", "user_code", "verification_uri")):
        raise CredentialMissing(
            f"{site.url} begins no login for {client_id}: {code.get('error_description', 'no reason')}"
        )
    tell(printable(code["verification_uri"]), printable(code["user_code"]))
    interval_s = _seconds(code, 5.0)
    fields = {"client_id": client_id, "device_code": str(code["device_code"]), "grant_type": GRANT}
    while True:
        sleep(interval_s)
        answer = site.post("/login/oauth/access_token", fields)
        if "access_token" in answer:
            return answer
        match answer.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                interval_s = _seconds(answer, interval_s + 5)
            case _:
                raise CredentialMissing(f"no login: {answer.get('error_description') or answer.get('error')}")


def _seconds(told: Mapping[str, Any], otherwise: float) -> float:
    found = told.get("interval")
    return float(found) if isinstance(found, int | float) and 0 < found < MOST_INTERVAL_S else otherwise


def refreshed(site: Site, client_id: str, refresh_token: str) -> dict[str, Any]:
    """Return new tokens for a refresh token, which is worth nothing from then on.

    Raises:
        CredentialMissing: the site takes it no more.
    """
    fields = {"client_id": client_id, "grant_type": "refresh_token", "refresh_token": refresh_token}
    answer = site.post("/login/oauth/access_token", fields)
    if "access_token" not in answer:
        raise CredentialMissing(f"the login has ended ({answer.get('error', 'no reason given')})")
    return answer
