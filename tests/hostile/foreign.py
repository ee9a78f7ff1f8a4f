"""Answers that belong to another item: what the platform would have said to somebody who asked for the twin."""

import base64
import json
from dataclasses import replace
from typing import Any

from tests.hostile.areas.contents import blob_sha
from tests.hostile.http.messages import Answer, Ask
from tests.hostile.platform import Platform
from tests.hostile.store.seeds import FILES, REPOSITORIES, TWINS

OTHER_URL = "https://hooks.example.test/another"
OTHER_FILE = "made-for-another.txt"
FIELDS: dict[str, Any] = {
    "login": "zeta-made",
    "profile_name": "Zeta",
    "name": "Of another",
    "content": base64.b64encode(b"of another\n").decode(),
    "organization_slugs": ["zeta"],
    "default_for_new_repos": "public",
    "url": OTHER_URL,
    "last_read_at": None,
}
"""What another item has in the fields of bodies."""


def foreign_answer(platform: Platform, ask: Ask, now: float) -> Answer:
    """What the twin would be answered; nothing happens on the platform itself."""
    twin = ask.at("/".join(TWINS.get(part, part) for part in ask.path.split("/")))
    if not ask.is_read:
        twin = replace(twin, path=_other_file(ask, twin), body=_body(ask))
    return platform.scratch().act(twin, now)


def _other_file(ask: Ask, twin: Ask) -> str:
    if ask.method == "PUT" and "/contents/" in ask.path:
        return twin.path.partition("/contents/")[0] + f"/contents/{OTHER_FILE}"
    if ask.method == "DELETE" and "/contents/" in ask.path:
        return twin.path.partition("/contents/")[0] + "/contents/OWNERS"
    return twin.path


def _body(ask: Ask) -> bytes:
    if not ask.body:
        return b""
    body = ask.json()
    is_hook = "config" in body
    changed = {name: FIELDS[name] if name in FIELDS and not is_hook else value for name, value in body.items()}
    if is_hook:
        changed["config"] = {**body["config"], "url": OTHER_URL}
    if "/contents/" in ask.path:
        changed.pop("sha", None)
        if ask.method == "DELETE":
            changed["sha"] = blob_sha(FILES[REPOSITORIES["zeta", "web"]]["OWNERS"])
    return json.dumps(changed).encode()
