"""Legacy code security and analysis of an enterprise. The platform is closing it down in favour of configurations.

Every change is an action that the platform starts (204) and does in the background; while one runs it refuses others as
in progress, which the engine waits out. The settings can be read afterwards; the result of an enablement in all
repositories can't, so that is never called verified. Source: specification, Legacy enterprise code security and
analysis; operations.md.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bulk import urls
from bulk.capabilities import ChangesThings, Conflict, DecidesState, LooksBack, Returns
from bulk.model import Effect, Lost, NotApplied, Reply, Request, Undecided, succeeded, unchanged, unknown
from bulk.operation import Item, ItemFlaw, Operation, Settling, Steps
from bulk.proof import Proof
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.configurations import security_states as states
from bulk_jobs.configurations.security_states import LINK, UNREADABLE
from bulk_jobs.result_types import ProductEnablement, SecuritySettings
from bulk_jobs.shared import enterprises, names, polling, refusals
from bulk_jobs.shared.undos import settings

_UNREADABLE_NOTE = f"{UNREADABLE} can't be read back"
_SLASH_NOTE = "the platform shows the link with a slash more or less at the end"
_LOST = "the answer was lost; the settings are as asked for"
_THIRD = (
    "the answer of the {method} was lost, and the link is neither as before nor as asked for: whether it was changed "
    "before somebody else changed it can't be told"
)
_UNVERIFIED = "started; nothing that can be read shows when it is done in all repositories"

Product = Literal[
    "advanced_security",
    "advanced_security_user_namespace",
    "dependabot_alerts",
    "secret_scanning",
    "secret_scanning_push_protection",
    "secret_scanning_non_provider_patterns",
]


class EnterpriseItem(Item, frozen=True, kw_only=True):
    """Names an enterprise."""

    enterprise: enterprises.Enterprise


class GetEnterpriseSecurity(Operation[EnterpriseItem], Returns[SecuritySettings]):
    """Read the code security settings that an enterprise gives new repositories.

    Requests:  1.
    Category:  core. Lane: none.
    Result:    the settings.
    Lost answer: a read is repeated.
    Source:    Legacy enterprise code security and analysis, GET /enterprises/{enterprise}/code_security_and_analysis.
    """

    name = "enterprise-security.get"
    access = accesses.LEGACY_READ
    Item = EnterpriseItem
    example: ClassVar = {"enterprise": "acme"}

    def check(self, item: EnterpriseItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def steps(self, item: EnterpriseItem) -> Steps:
        reply = yield _look(item)
        return unchanged(reply.body) if reply.is_unchanged else succeeded(reply.body)


class UpdateEnterpriseSecurityItem(EnterpriseItem, frozen=True, kw_only=True):
    """Names an enterprise, and gives the settings to change; what is not given stays as it is.

    Attributes:
        advanced_security_enabled_for_new_repositories: for new repositories.
        advanced_security_enabled_new_user_namespace_repos: for new repositories of users; can't be read back.
        dependabot_alerts_enabled_for_new_repositories: for new repositories.
        secret_scanning_enabled_for_new_repositories: for new repositories.
        secret_scanning_push_protection_enabled_for_new_repositories: for new repositories.
        secret_scanning_non_provider_patterns_enabled_for_new_repositories: for new repositories; null is off.
    """

    advanced_security_enabled_for_new_repositories: bool | UnsetType = UNSET
    advanced_security_enabled_new_user_namespace_repos: bool | UnsetType = UNSET
    dependabot_alerts_enabled_for_new_repositories: bool | UnsetType = UNSET
    secret_scanning_enabled_for_new_repositories: bool | UnsetType = UNSET
    secret_scanning_push_protection_enabled_for_new_repositories: bool | UnsetType = UNSET
    secret_scanning_non_provider_patterns_enabled_for_new_repositories: bool | UnsetType | None = UNSET
    secret_scanning_push_protection_custom_link: (
        Annotated[str, Meta(description="URL shown when a push is refused; null for none")] | UnsetType | None
    ) = UNSET
    wait: Annotated[
        bool, Meta(description="follow it until it shows, for up to 10 minutes; otherwise being started is enough")
    ] = False
    expect: refusals.Expect | None = None


SETTINGS = tuple(
    name
    for name in UpdateEnterpriseSecurityItem.__struct_fields__
    if name not in (*EnterpriseItem.__struct_fields__, "wait", "expect")
)


class UpdateEnterpriseSecurity(
    LooksBack[UpdateEnterpriseSecurityItem],
    ChangesThings[UpdateEnterpriseSecurityItem],
    DecidesState[UpdateEnterpriseSecurityItem],
    Undoable[UpdateEnterpriseSecurityItem],
    Returns[SecuritySettings],
):
    """Change the code security settings that an enterprise gives new repositories.

    Requests:  1 where they are so already, otherwise 2; with `wait` as many more as it takes.
    Category:  core. Lane: the enterprise.
    Refused:   two items of a manifest that give one setting different values, unless `allow_overwrites` is true on the
               later item's job, or that job needs the other's.
    Result:    the settings that were asked for.
    Lost answer: the settings are read and compared; where they differ, the request is repeated, unless the link is
               neither as before nor as asked for: then nobody knows.
    Source:    Legacy enterprise code security and analysis, PATCH /enterprises/{enterprise}/code_security_and_analysis.
    """

    name = "enterprise-security.update"
    access = accesses.LEGACY_WRITE
    Item = UpdateEnterpriseSecurityItem
    is_read = False
    most_requests = 2
    settled_by = (
        "The settings are read and compared with those asked for: where all are so, they were changed. Where not, the "
        "request is sent again; while the first is still in progress the platform refuses it, and that is waited out. "
        "Where the link is neither as before nor as asked for, once the settle time is over, it ends as unknown."
    )
    example: ClassVar = {
        "enterprise": "acme",
        "secret_scanning_enabled_for_new_repositories": True,
        "wait": True,
    }

    def check(self, item: UpdateEnterpriseSecurityItem) -> Iterator[ItemFlaw]:
        yield from enterprises.flaws_of_enterprise(item.enterprise)
        if not _given(item):
            yield ItemFlaw(SETTINGS[0], "expected this or another setting to change; none is given")
        link = item.secret_scanning_push_protection_custom_link
        if isinstance(link, str):
            flaw = names.flaw_of_text(link) or _flaw_of_url(link)
            if flaw:
                yield ItemFlaw(LINK, flaw)

    def lanes(self, item: UpdateEnterpriseSecurityItem) -> tuple[str, ...]:
        return (item.enterprise,)

    def identities(self, item: UpdateEnterpriseSecurityItem) -> tuple[str, ...]:
        enterprise = item.enterprise.casefold()
        return (enterprise, *(f"{enterprise} {name}" for name in _given(item)))

    def conflict(self, earlier: object, later: UpdateEnterpriseSecurityItem) -> Conflict | None:
        if not isinstance(earlier, UpdateEnterpriseSecurityItem):
            return None
        before, now = _given(earlier), _given(later)
        for name in before:
            if name in now and states.form(name, before[name]) != states.form(name, now[name]):
                return Conflict(f"sets {name} to another value than {{other}}; leave one of them out", may_insist=True)
        return None

    def things(self, item: UpdateEnterpriseSecurityItem) -> tuple[str, ...]:
        return tuple(urls.place(_path(item), name) for name in {**_given(item), **(item.expect or {})})

    def narrowed(self, item: UpdateEnterpriseSecurityItem, things: Collection[str]) -> UpdateEnterpriseSecurityItem:
        others = {name: UNSET for name in _given(item) if urls.place(_path(item), name) not in things}
        return msgspec.structs.replace(item, **others)

    def shows(self, result: Any, body: Any) -> bool:
        return isinstance(result, dict) and UNREADABLE not in result and states.is_so(result, body)

    def steps(self, item: UpdateEnterpriseSecurityItem) -> Steps:
        given = _given(item)
        found = (yield _look(item)).body
        if states.is_so(given, found) and UNREADABLE not in given:
            return unchanged(given)
        if item.expect is not None:
            differing = states.not_left(item.expect, found)
            as_wanted = [name for name in given if name != UNREADABLE and states.is_so({name: given[name]}, found)]
            conflict = refusals.unexpected(f"enterprise {item.enterprise}", differing, as_wanted)
            if conflict is not None:
                return conflict
        yield Request(
            method="PATCH",
            path=_path(item),
            body=given,
            effect=Effect.SET,
            accept=frozenset((204,)),
            before={name: found.get(name) for name in given if name != UNREADABLE},
        )
        if not item.wait:
            note = "started; the platform changes it in the background"
            return succeeded(given, note=f"{note}; {_UNREADABLE_NOTE}" if UNREADABLE in given else note)
        for pause_s in polling.pauses():
            looked = yield _look(item, is_fresh=True, pause_s=pause_s)
            if states.has_become(given, found, looked.body):
                return succeeded(given, note=_note(given, looked.body))
        return unknown(f"the platform accepted the change and did not show it after {polling.MOST_S:.0f} seconds")

    def steps_to_look_back(self, item: UpdateEnterpriseSecurityItem) -> Steps:
        given = _given(item)
        found = yield _look(item)
        differing = states.not_left(given, found.body)
        return refusals.not_as_left(f"enterprise {item.enterprise}", differing) if differing else unchanged(given)

    def settle(self, item: UpdateEnterpriseSecurityItem, lost: Lost) -> Settling:
        given = _given(item)
        found = yield _look(item, is_fresh=True)
        before = lost.before if isinstance(lost.before, dict) else {}
        if not states.has_become(given, before, found.body):
            if LINK in before and LINK in given and states.is_third(given[LINK], before[LINK], found.body.get(LINK)):
                told = {"wanted": given[LINK], "before": before[LINK], "found": found.body.get(LINK)}
                return Undecided(_THIRD.format(method=lost.method), found={LINK: told})
            if not all(states.is_told(name, found.body.get(name)) for name in given):
                return Undecided("a switch is shown as neither on nor off", is_unseen=True)
            return NotApplied("the settings are not as asked for", states.part(given, before, found.body) or None)
        if UNREADABLE in given:
            return Undecided(_UNREADABLE_NOTE)
        note = _note(given, found.body)
        return succeeded(given, note=f"{_LOST}; {note}" if note else _LOST)

    def undo(self, item: UpdateEnterpriseSecurityItem, before: Any, result: Any) -> Undo | Irreversible:
        if not isinstance(before, dict) or not before:
            return Irreversible("what was set before can't be read")
        given = _given(item)
        if not all(states.is_told(name, value) for name, value in before.items()):
            return Irreversible("a switch was shown as neither on nor off before")
        kept = {name: states.plain(name, value) for name, value in before.items()}
        fields = {"enterprise": item.enterprise, **kept, "wait": True, "expect": {name: given[name] for name in before}}
        return Undo(operation=self.name, item=fields, loses=UNREADABLE if UNREADABLE in given else "")

    def joined(self, way: Undo, later: Undo) -> Sequence[Undo]:
        return settings.of_items(way, later, states.not_left)

    def before_both(self, item: UpdateEnterpriseSecurityItem, first: Any, later: Any) -> Any:
        given = _given(item)
        return {**later, **{name: first[name] for name in first if states.is_so({name: given[name]}, later)}}


class EnableSecurityProductItem(EnterpriseItem, frozen=True, kw_only=True):
    """Names an enterprise, a product, and what is done with it in all repositories."""

    security_product: Annotated[Product, Meta(description="what is switched")]
    enablement: Annotated[Literal["enable_all", "disable_all"], Meta(description="on or off, in all repositories")]


class EnableSecurityProduct(DecidesState[EnableSecurityProductItem], Returns[ProductEnablement]):
    """Switch a security product on or off in all repositories of an enterprise.

    Requests:  1.
    Category:  core. Lane: the enterprise, because the platform does one such action at a time.
    Refused:   two items of a manifest that switch one product on and off, unless `allow_overwrites` is true on the
               later item's job, or that job needs the other's.
    Result:    security_product and enablement; the platform shows nowhere when it is done.
    Lost answer: nothing that can be read shows it, so the request is repeated, as long as nothing later of its lane was
               sent; doing it twice is doing it once.
    Source:    Legacy enterprise code security and analysis,
               POST /enterprises/{enterprise}/{security_product}/{enablement}.
    """

    name = "enterprise-security.enable"
    access = accesses.LEGACY_WRITE
    Item = EnableSecurityProductItem
    is_read = False
    settled_by = (
        "Nothing that can be read shows whether it was done. The request is sent again, which is harmless: nothing "
        "later of its lane has been sent, and while the first is still in progress the platform refuses the second, "
        "which is waited out. The result says that it is not verified."
    )
    example: ClassVar = {"enterprise": "acme", "security_product": "dependabot_alerts", "enablement": "enable_all"}

    def check(self, item: EnableSecurityProductItem) -> Iterator[ItemFlaw]:
        return enterprises.flaws_of_enterprise(item.enterprise)

    def lanes(self, item: EnableSecurityProductItem) -> tuple[str, ...]:
        return (item.enterprise, f"{item.enterprise}/{item.security_product}")

    def identities(self, item: EnableSecurityProductItem) -> tuple[str, ...]:
        return (f"{item.enterprise.casefold()}/{item.security_product}",)

    def conflict(self, earlier: object, later: EnableSecurityProductItem) -> Conflict | None:
        if not isinstance(earlier, EnableSecurityProductItem) or earlier.enablement == later.enablement:
            return None
        why = f"is {later.enablement} for {later.security_product}, and {{other}} the opposite; leave one of them out"
        return Conflict(why, may_insist=True)

    def steps(self, item: EnableSecurityProductItem) -> Steps:
        root = enterprises.enterprise_path(item.enterprise)
        yield Request(
            method="POST",
            path=f"{root}/{item.security_product}/{item.enablement}",
            effect=Effect.ORDERED,
            accept=frozenset((204,)),
        )
        result = {"security_product": item.security_product, "enablement": item.enablement}
        return succeeded(result, note=_UNVERIFIED)

    def settle(self, item: EnableSecurityProductItem, lost: Lost) -> Settling:
        yield from ()
        return Undecided("nothing that can be read shows whether it was done")


def _given(item: UpdateEnterpriseSecurityItem) -> dict[str, Any]:
    """Return the settings of an item, as they are sent."""
    found = msgspec.structs.asdict(item)
    return {name: found[name] for name in SETTINGS if found[name] is not UNSET}


def _note(given: dict[str, Any], shown: Any) -> str | None:
    """Return a note on settings that can't be read back, or are shown otherwise than they were given."""
    notes = [_UNREADABLE_NOTE] if UNREADABLE in given else []
    return "; ".join(notes if states.is_so(given, shown) else [*notes, _SLASH_NOTE]) or None


def _path(item: EnterpriseItem) -> str:
    return f"{enterprises.enterprise_path(item.enterprise)}/code_security_and_analysis"


def _look(item: EnterpriseItem, *, is_fresh: bool = False, pause_s: float = 0.0) -> Request:
    return Request(method="GET", path=_path(item), is_fresh=is_fresh, pause_s=pause_s, proof=Proof(_flaw))


def _flaw(reply: Reply) -> str:
    is_told = any(name in reply.body and states.is_told(name, reply.body[name]) for name in SETTINGS)
    return "" if is_told else "it holds none of the settings"


def _flaw_of_url(text: str) -> str:
    try:
        url = urlsplit(text)
        is_fine = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        is_fine = False
    return "" if is_fine else f"expected a URL that begins with https:// or http://; got {text!r}"
