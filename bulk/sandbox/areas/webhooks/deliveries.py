"""Events on their way to the receivers of webhooks: queued, sent once, recorded. No answer ever waits for one.

Each webhook has a queue of its own and at most one task, which ends when the queue is empty, so that a slow receiver
holds up only its own webhook. A receiver has `TIMEOUT_S` to answer. Where `MOST_WAITING` events wait already, a further
one is dropped, and recorded as dropped. Events that still wait when the server ends are not sent. Nothing is sent to an
address that is not allowed (`delivery_addresses.py`), no redirect is followed, and no delivery is repeated.

Source: specification, Events; open-points.md (signature header, delivery headers, delivery record, form payload).
"""

from __future__ import annotations

import base64
import hmac
import json
import uuid
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import orjson
from yarl import URL

from bulk.sandbox.areas.webhooks.delivery_addresses import Addresses, AddressRefused, LoopbackResolver

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from bulk.sandbox.http.context import Context

MOST_WAITING: Final = 1_000
TIMEOUT_S = 5.0
ENTERPRISE_VERSION: Final = "3.19.0"
ALL_EVENTS: Final = "*"
CONTENT_TYPES: Final = {"json": "application/json", "form": "application/x-www-form-urlencoded"}
NOT_SENT: Final = 0
"""The status code of a delivery that was never tried."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in an organization.

    Attributes:
        name: the kind of the event: `push`, `organization`, `ping`.
        payload: the JSON object that receivers get; `organization.url` in it tells the host of the platform.
        repository_id: the repository where it happened; None: it concerns the organization as a whole.
    """

    name: str
    payload: dict[str, Any]
    repository_id: int | None = None

    @property
    def action(self) -> str | None:
        """The action of the payload, for kinds of events that have several actions."""
        action = self.payload.get("action")
        return action if isinstance(action, str) else None


class Deliveries:
    """Takes events and brings them to their receivers (`Context.get(Deliveries)`). Used on the event loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._addresses = Addresses(context.settings.deliver_to)
        self._waiting: dict[int, deque[Event]] = {}

    def wanting(self, organization_id: int, name: str) -> list[int]:
        """Return ids of the active webhooks of an organization that asked for events of this kind."""
        rows = self._context.state.db.execute(
            "SELECT id, events_json FROM hooks WHERE organization_id = ? AND active ORDER BY id", (organization_id,)
        )
        return [row["id"] for row in rows if not {name, ALL_EVENTS}.isdisjoint(json.loads(row["events_json"]))]

    def post(self, hook_id: int, event: Event) -> None:
        """Send an event to one webhook, if it is still there and active when its turn comes."""
        waiting = self._waiting.get(hook_id)
        if waiting is None:
            waiting = self._waiting[hook_id] = deque()
            self._context.background.start("deliveries of a webhook", partial(self._work, hook_id))
        if len(waiting) >= MOST_WAITING:
            self._record(hook_id, str(uuid.uuid4()), event, 0.0, "dropped: too many deliveries are waiting", NOT_SENT)
            return
        waiting.append(event)

    async def _work(self, hook_id: int) -> None:
        waiting = self._waiting[hook_id]
        try:
            while waiting:
                async with self._session() as session:
                    while waiting:
                        await self._deliver(session, hook_id, waiting.popleft())
        finally:
            del self._waiting[hook_id]

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=LoopbackResolver(self._addresses), use_dns_cache=False),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            trust_env=False,
        )

    async def _deliver(self, session: aiohttp.ClientSession, hook_id: int, event: Event) -> None:
        hook = self._context.state.db.execute("SELECT * FROM hooks WHERE id = ? AND active", (hook_id,)).fetchone()
        if hook is None:
            return
        guid, clock = str(uuid.uuid4()), self._context.clock
        started_at = clock.now()
        code, status = await self._send(session, hook, event, guid)
        self._record(hook_id, guid, event, clock.now() - started_at, status, code)

    async def _send(
        self, session: aiohttp.ClientSession, hook: sqlite3.Row, event: Event, guid: str
    ) -> tuple[int, str]:
        """Return the receiver's status and its reason phrase, or a status and words of ours where it did not answer."""
        config = json.loads(hook["config_json"])
        body = body_of(event, config["content_type"])
        try:
            url = URL(config["url"])
            self._addresses.check(url.host or "")
            async with session.post(
                url,
                data=body,
                headers=self._headers(hook, event, guid, config, body),
                ssl=config["insecure_ssl"] != "1",
                allow_redirects=False,
            ) as response:
                return response.status, response.reason or "no reason given"
        except AddressRefused as refused:
            return NOT_SENT, f"not sent: {refused}"
        except TimeoutError:
            return 504, "timed out"
        except aiohttp.ClientConnectorCertificateError:
            return 502, "the receiver's certificate can't be verified"
        except (aiohttp.ClientError, OSError, ValueError):
            return 502, "failed to connect to host"

    def _headers(
        self, hook: sqlite3.Row, event: Event, guid: str, config: dict[str, str], body: bytes
    ) -> dict[str, str]:
        vendor = self._context.vendor
        headers = {
            "Accept": "*/*",
            "Content-Type": CONTENT_TYPES[config["content_type"]],
            "User-Agent": f"{vendor.title}-Hookshot/sandbox",
            vendor.header("Event"): event.name,
            vendor.header("Delivery"): guid,
            vendor.header("Hook-ID"): str(hook["id"]),
            vendor.header("Hook-Installation-Target-Type"): "organization",
            vendor.header("Hook-Installation-Target-ID"): str(hook["organization_id"]),
            vendor.header("Enterprise-Version"): ENTERPRISE_VERSION,
            vendor.header("Enterprise-Host"): urlsplit(event.payload["organization"]["url"]).netloc,
        }
        if "username" in config or "password" in config:
            pair = f"{config.get('username', '')}:{config.get('password', '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        if "secret" in config:
            headers |= signatures(config["secret"], body)
        return headers

    def _record(self, hook_id: int, guid: str, event: Event, duration_s: float, status: str, status_code: int) -> None:
        state = self._context.state
        with state.transaction() as db:
            db.execute(
                "INSERT INTO deliveries (id, hook_id, guid, delivered_at, duration, status, status_code, event, "
                "action, repository_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    state.allocate("delivery"),
                    hook_id,
                    guid,
                    self._context.clock.now(),
                    round(duration_s, 3),
                    status,
                    status_code,
                    event.name,
                    event.action,
                    event.repository_id,
                ),
            )


def announce(context: Context, organization_id: int, name: str, event: Callable[[], Event]) -> None:
    """Send an event to the webhooks of an organization; does nothing in a sandbox without webhooks.

    Args:
        context: the sandbox.
        organization_id: the organization where it happened.
        name: the kind of the event.
        event: makes the event; called only if a webhook has asked for its kind.
    """
    deliveries = context.find(Deliveries)
    hook_ids = deliveries.wanting(organization_id, name) if deliveries is not None else []
    if deliveries is not None and hook_ids:
        happened = event()
        for hook_id in hook_ids:
            deliveries.post(hook_id, happened)


def body_of(event: Event, content_type: str) -> bytes:
    """Return the body that is posted: the payload as JSON, or a form whose one field `payload` holds that JSON."""
    payload = orjson.dumps(event.payload)
    return payload if content_type == "json" else urlencode({"payload": payload}).encode("ascii")


def signatures(secret: str, body: bytes) -> dict[str, str]:
    """Return the signature headers of a body, with the secret as key."""
    key = secret.encode("utf-8", "surrogatepass")
    return {
        "X-Hub-Signature": f"sha1={hmac.new(key, body, 'sha1').hexdigest()}",
        "X-Hub-Signature-256": f"sha256={hmac.new(key, body, 'sha256').hexdigest()}",
    }
