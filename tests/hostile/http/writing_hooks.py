"""The rows of operations that write rulesets, webhooks and notifications."""

from collections.abc import Callable
from typing import Any

from tests.hostile.http.reading import ACME, HOOK
from tests.hostile.http.writing import Item, changed_by_another, merged
from tests.hostile.platform import Platform
from tests.hostile.rows import Look, Row
from tests.hostile.store.seeds import ORGANIZATIONS
from tests.hostile.store.state import State

ORG = ORGANIZATIONS["acme"]
RULES = [
    {"type": "deletion"},
    {"type": "commit_message_pattern", "parameters": {"operator": "starts_with", "pattern": "T"}},
]


def _ruleset(**more: Any) -> Item:
    conditions = {
        "ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []},
        "repository_name": {"include": ["~ALL"], "exclude": []},
    }
    return {
        **ACME,
        "name": " Protect  trunk",
        "enforcement": "active",
        "conditions": conditions,
        "rules": RULES,
        **more,
    }


def _has_ruleset(look: Look, item: Item) -> bool:
    return any(" ".join(each["name"].split()) == "Protect trunk" for _, each in look.all("ruleset", ORG))


HOOK_KEY = ("hook", ORG, 1001)
HOOK_URL = "https://Hooks.Example.TEST:443/n%65w/%C3%A9t%C3%A9?to=a"


def _new_hook(**more: Any) -> Item:
    config = {"url": HOOK_URL, "content_type": "json", "secret": "hook-secret-1"}
    return {**ACME, "config": config, "events": ["push", "release"], **more}


def _has_hook(look: Look, item: Item) -> bool:
    return any(
        "/n%65w" in each["config"]["url"].lower() or "/new" in each["config"]["url"]
        for _, each in look.all("hook", ORG)
    )


def _hook_has(**wanted: Any) -> Callable[[Look, Item], bool]:
    def holds(look: Look, item: Item) -> bool:
        hook = look.get(*HOOK_KEY)
        return hook is not None and all(
            set(wanted["events"]) <= set(hook["events"])
            if name == "events"
            else hook["config"].get(name) == wanted[name]
            for name in wanted
        )

    return holds


def _news(platform: Platform, now: float) -> None:
    key = ("thread", "1101")
    changed_by_another(platform, now, key, {**platform.state.get(key, now), "unread": True, "updated_at": now + 2.0})


def _all_read(look: Look, item: Item) -> bool:
    return not any(thread["unread"] for _, thread in look.all("thread"))


def _in_background(state: State, at: float) -> None:
    state.set(("marks in the background",), True, at)


HOOK_ROWS = (
    Row(
        "organization-ruleset.create",
        [_ruleset()],
        holds=_has_ruleset,
        is_only_listed=True,
    ),
    Row(
        "organization-ruleset.create push",
        [{**ACME, "name": "No big files", "target": "push", "enforcement": "evaluate", "rules": []}],
        holds=lambda look, item: any(each["name"] == "No big files" for _, each in look.all("ruleset", ORG)),
        is_only_listed=True,
    ),
    Row("webhook.create", [_new_hook()], holds=_has_hook, is_only_listed=True),
    Row(
        "webhook.create plain",
        [{**ACME, "config": {"url": "https://hooks.example.test/new/"}}],
        holds=_has_hook,
        is_only_listed=True,
    ),
    Row(
        "webhook.create unchanged",
        [_new_hook(if_exists="unchanged")],
        holds=_has_hook,
        is_only_listed=True,
    ),
    Row(
        "webhook.update",
        [{**HOOK, "events": ["push", "fork"], "config": {"url": HOOK_URL, "secret": "hook-secret-2"}}],
        holds=_hook_has(events=["push", "fork"], secret="hook-secret-2"),
        is_blind=True,
        meddle=merged(HOOK_KEY, events=["star"]),
    ),
    Row(
        "webhook.update drop",
        [{**HOOK, "events": ["push", "fork"], "drop_secret": True}],
        holds=_hook_has(events=["push", "fork"]),
        meddle=merged(HOOK_KEY, events=["star"]),
    ),
    Row(
        "webhook.update-config",
        [{**HOOK, "content_type": "form", "secret": "hook-secret-3"}],
        names_itself=False,
        holds=_hook_has(content_type="form", secret="hook-secret-3"),
        is_blind=True,
        meddle=merged(HOOK_KEY, events=["star"]),
    ),
    Row(
        "webhook.update-config drop",
        [{**HOOK, "content_type": "form", "drop_secret": True}],
        names_itself=False,
        holds=_hook_has(content_type="form"),
        meddle=merged(HOOK_KEY, events=["star"]),
    ),
    Row(
        "webhook.delete",
        [HOOK],
        holds=lambda look, item: look.get(*HOOK_KEY) is None,
        proofs=(204,),
    ),
    Row("notification.mark-read", [{}], holds=_all_read, proofs=(205,), is_told=True, is_blind=True),
    Row(
        "notification.mark-read wait",
        [{"wait": True}],
        holds=_all_read,
        prepare=_in_background,
        names_itself=False,
        is_blind=True,
    ),
    Row(
        "thread.mark-read",
        [{"thread_id": 1101}],
        holds=lambda look, item: not look.get("thread", "1101")["unread"],
        meddle=_news,
        proofs=(205,),
    ),
)
