"""A random small migration: jobs that need each other, items that can be taken back, in part, or not at all.

Two items that change one thing are in one job, or one job needs the other's: nothing else has an order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.migrations.platform_state import (
    CONFIGURATIONS,
    FIRST_HOOK,
    FLAGS,
    HOOKS,
    LABS,
    LINK,
    ORGANIZATIONS,
    PATHS,
    REPOSITORIES,
    TEAMS,
    Key,
    url_of,
)
from tests.simulation.schedules import content, mixed_case, snapshot

NUMBERS: Final = {"acme-eng": "101", "acme-ops": "102", LABS: "103"}
RENAMED: Final = "acme-research"
MOST_JOBS = 5
MOST_ITEMS = 4
EVENTS: Final = (["push"], ["push", "fork"], ["*"], ["watch"])


@dataclass(slots=True)
class Migration:
    """What a run is asked to do.

    Attributes:
        jobs: as `World.write` takes them.
        things: what each item changes: the beginnings of its keys, by job and index.
    """

    dice: random.Random
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    things: dict[tuple[str, int], tuple[Key, ...]] = field(default_factory=dict)
    _behind: dict[str, set[str]] = field(default_factory=dict)
    _users: dict[Key, list[str]] = field(default_factory=dict)
    _labs: str = LABS
    _made: int = 0

    @classmethod
    def of(cls, dice: random.Random, *, is_each_once: bool = False) -> "Migration":
        """Some jobs of some items each; `is_each_once`: no two items change one thing."""
        made = cls(dice)
        for number in range(dice.randrange(1, MOST_JOBS + 1)):
            make = dice.choice(_KINDS)
            name = f"job-{number}"
            needs = [other for other in made.jobs if dice.random() < 0.6]
            behind = {name, *needs, *(far for need in needs for far in made._behind[need])}
            made._behind[name] = behind
            items: list[dict[str, Any]] = []
            for _ in range(dice.randrange(1, MOST_ITEMS + 1)):
                found = make(made)
                is_of_job = name not in made.jobs or (found is not None and found[0] == made.jobs[name]["operation"])
                if found is None or not is_of_job or (is_each_once and any(map(made._is_touched, found[2]))):
                    continue
                if not made._may_touch(name, found[2]):
                    continue
                made.jobs.setdefault(name, {"operation": found[0], "items": items})
                made.things[name, len(items)] = found[2]
                items.append(found[1])
            if name in made.jobs:
                about = made.jobs[name]
                about |= {"needs": needs, "needs_policy": dice.choice(("all", "any-outcome"))} if needs else {}
                about |= {"allow_overwrites": True} if about["operation"] in _OVERWRITING else {}
                if about["operation"] == "organization.rename":
                    made._labs = RENAMED
            else:
                del made._behind[name]
        return made

    def is_touched_once(self, thing: Key) -> bool:
        """Whether only one item changes a thing."""
        return sum(thing in things for things in self.things.values()) == 1

    def may_be_doubled(self, thing: Key) -> bool:
        """Whether there may be a second one beside it, as a webhook with the same URL."""
        number = thing[2].split("/")[-2] if thing[0] == "hook" else "0"
        is_made = any(
            self.jobs[job]["operation"] == "webhook.create" and thing in things
            for (job, _), things in self.things.items()
        )
        return is_made and int(number) < FIRST_HOOK + HOOKS

    def _is_touched(self, thing: Key) -> bool:
        return any(thing in things for things in self.things.values())

    def _may_touch(self, job: str, things: tuple[Key, ...]) -> bool:
        """Whether an item of this job may change these, and it is noted that it does."""
        locks = {lock for thing in things for lock in _locks(thing)}
        if any(not self._behind[job].issuperset(self._users.get(lock, ())) for lock in locks):
            return False
        for lock in locks:
            self._users.setdefault(lock, []).append(job)
        return True

    # -- items: the operation, the item, what it changes

    def put(self) -> "Made":
        """A file is written."""
        item, thing = self._file()
        more = {"mode": "create"} if self.dice.random() < 0.2 else {}
        return "contents.put", {**item, **more, "content": content(self._text())}, (thing,)

    def delete(self) -> "Made":
        """A file is deleted."""
        item, thing = self._file()
        return "contents.delete", item, (thing,)

    def _file(self) -> tuple[dict[str, Any], Key]:
        repo = self.dice.choice(list(REPOSITORIES))
        owner = self._labs if REPOSITORIES[repo] == LABS else REPOSITORIES[repo]
        place = {"owner": mixed_case(owner, self.dice), "repo": mixed_case(repo, self.dice)}
        path = self.dice.choice(PATHS)
        more = {"branch": "main"} if self.dice.random() < 0.3 else {}
        return {**place, "path": path, "message": "Migrate", **more}, ("file", repo, path)

    def _text(self) -> str:
        self._made += 1
        return f"text {self.dice.randrange(4)}\n" if self.dice.random() < 0.5 else f"new {self._made}\n"

    def hook(self) -> "Made":
        """A webhook is created."""
        self._made += 1
        number = self._hook_number() if self.dice.random() < 0.2 else FIRST_HOOK + 100 + self._made
        config = {"url": url_of(number), "content_type": self.dice.choice(("json", "form"))}
        item = {"org": "acme-eng", "config": config, "active": False, "events": self.dice.choice(EVENTS)}
        return "webhook.create", item, (_hook_thing(number),)

    def _hook_number(self) -> int:
        return FIRST_HOOK + self.dice.randrange(HOOKS)

    def hook_update(self) -> "Made":
        """A webhook is changed, also where its events go."""
        number = self._hook_number()
        item: dict[str, Any] = {"org": "acme-eng", "hook_id": number, "drop_secret": True}
        if self.dice.random() < 0.7:
            item["events"] = self.dice.choice(EVENTS)
        if "events" not in item or self.dice.random() < 0.5:
            item["config"] = {"url": self._url(number), "content_type": self.dice.choice(("json", "form"))}
        return "webhook.update", item, (_hook_thing(number),)

    def _url(self, number: int) -> str:
        self._made += 1
        return f"{url_of(number)}?v={self._made}"

    def hook_config(self) -> "Made":
        """The configuration of a webhook is changed."""
        number = self._hook_number()
        what = self.dice.choice(({"url": self._url(number)}, {"content_type": self.dice.choice(("json", "form"))}))
        item = {"org": "acme-eng", "hook_id": number, "drop_secret": True, **what}
        return "webhook.update-config", item, (_hook_thing(number),)

    def hook_delete(self) -> "Made":
        """A webhook is removed."""
        number = self._hook_number()
        return "webhook.delete", {"org": "acme-eng", "hook_id": number}, (_hook_thing(number),)

    def assignment(self) -> "Made":
        """A team gets one organization, or loses it."""
        team, org = self.dice.choice(TEAMS), self.dice.choice(ORGANIZATIONS)
        item = {"enterprise": "acme", "enterprise-team": team, "org": self._labs if org == LABS else org}
        return self.dice.choice(_ONE), item, (("assignment", team, NUMBERS[org]),)

    def assignments(self) -> "Made":
        """A team gets several organizations, or loses them."""
        team, orgs = self.dice.choice(TEAMS), self.dice.sample(ORGANIZATIONS, self.dice.randrange(1, 4))
        slugs = [self._labs if org == LABS else org for org in orgs]
        item = {"enterprise": "acme", "enterprise-team": team, "organization_slugs": slugs}
        return self.dice.choice(_SEVERAL), item, tuple(("assignment", team, NUMBERS[org]) for org in orgs)

    def configuration(self) -> "Made":
        """A configuration is changed."""
        number = self.dice.choice(CONFIGURATIONS)
        self._made += 1
        values: dict[str, Any] = {
            "description": f"new {self._made}",
            "secret_scanning": self.dice.choice(("enabled", "disabled", "not_set")),
            "name": f"Renamed {self._made}",
        }
        fields = self.dice.sample(list(values), self.dice.randrange(1, 4))
        item = {"org": "acme-eng", "configuration_id": number, **{field: values[field] for field in fields}}
        return "organization-configuration.update", item, (("configuration", str(number)),)

    def security(self) -> "Made":
        """Settings of the enterprise are changed."""
        self._made += 1
        values: dict[str, Any] = {flag: self.dice.random() < 0.5 for flag in FLAGS}
        values[LINK] = f"https://new-{self._made}.example.com" if self.dice.random() < 0.8 else None
        fields = self.dice.sample(list(values), self.dice.randrange(1, 4))
        item = {"enterprise": "acme", "wait": self.dice.random() < 0.5, **{field: values[field] for field in fields}}
        return "enterprise-security.update", item, (("security",),)

    def rename(self) -> "Made | None":
        """An organization gets another name, once."""
        if any(("login", "103") in things for things in self.things.values()):
            return None
        item = {"org": LABS, "login": RENAMED, "wait": self.dice.random() < 0.7}
        return "organization.rename", item, (("login", "103"),)

    def never(self) -> "Made":
        """Something that can't be taken back."""
        self._made += 1
        match self.dice.randrange(6):
            case 0:
                item: dict[str, Any] = {"login": f"new-{self._made}", "admin": "octoadmin"}
                return "organization.create", item, (("login",),)
            case 1:
                return "organization-ruleset.create", _ruleset(f"Rule {self._made}"), (("ruleset",),)
            case 2:
                item = snapshot("hello-world", f"build {self._made}", owner="acme-eng")
                return "snapshot.create", item, (("snapshot",),)
            case 3:
                item = {"org": "acme-eng", "configuration_id": 2003, "scope": "selected", "wait": True}
                return _ATTACH, {**item, "selected_repository_ids": [1001]}, (("attached",),)
            case 4:
                item = {"org": "acme-eng", "configuration_id": 2003}
                return "organization-configuration.delete", item, (("configuration", "2003"), ("attached",))
        return "thread.mark-read", {"thread_id": 2}, (("thread",),)


Made = tuple[str, dict[str, Any], tuple[Key, ...]]
_ATTACH = "organization-configuration.attach"
_ONE = ("team-organization.assign", "team-organization.unassign")
_SEVERAL = ("team-organization.add", "team-organization.remove")
_OVERWRITING = ("contents.put", "contents.delete", "enterprise-security.update")
_KINDS: tuple[Callable[[Migration], Made | None], ...] = (
    *(Migration.put,) * 3,
    *(Migration.delete,) * 2,
    Migration.hook,
    Migration.hook_update,
    Migration.hook_config,
    Migration.hook_delete,
    Migration.assignment,
    Migration.assignments,
    Migration.configuration,
    Migration.security,
    Migration.rename,
    Migration.never,
)


def _locks(thing: Key) -> tuple[Key, ...]:
    """What two items may not change without an order: a directory goes with its last file."""
    match thing:
        case ("file", repo, _):
            return (("file", repo), ("login", "103")) if REPOSITORIES[repo] == LABS else (("file", repo),)
        case ("assignment", _, "103"):
            return (thing, ("login", "103"))
    return (thing,)


def _hook_thing(number: int) -> Key:
    return ("hook", "101", url_of(number))


def _ruleset(name: str) -> dict[str, Any]:
    return {
        "org": "acme-eng",
        "name": name,
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"]}, "repository_name": {"include": ["~ALL"]}},
        "rules": [{"type": "deletion"}],
    }
