"""Organizations of the enterprise: create and rename, for site administrators.

No endpoint of the specification reads one, so its rulesets are listed instead: 200 means that it exists, 404 that it
does not or that the credential may not see it. A name that is there although it should not be, or the other way round,
is a `conflict`. Source: specification, Enterprise organization administration; operations.md.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from bulk import urls
from bulk.capabilities import ChangesThings, Conflict, CreatesNames, DecidesState, Returns
from bulk.model import (
    Effect,
    ErrorCode,
    Lost,
    NotApplied,
    Outcome,
    Reply,
    Request,
    Undecided,
    failed,
    succeeded,
    unchanged,
    unknown,
)
from bulk.operation import Item, ItemFlaw, Settling, Steps
from bulk.undo import Irreversible, Undo, Undoable
from bulk_jobs import accesses
from bulk_jobs.result_types import Organization, Renaming
from bulk_jobs.shared import creations, names, proofs, refusals
from bulk_jobs.shared.presence import can_see, can_see_any

RENAME_MOST_S = 600.0
"""How long an accepted rename is followed before its outcome is `unknown` (seconds of pauses)."""

POLL_FIRST_S, POLL_GROWTH, POLL_MOST_S = 0.5, 1.6, 30.0
"""Pauses between two looks at an accepted rename: the first, the factor from one to the next, the longest (seconds)."""

_ANY = "any organization is shown, also one that nobody has"
_SHOWN = ("id", "login", "node_id", "url", "description")


class CreateOrganizationItem(Item, frozen=True, kw_only=True):
    """Names a new organization and its administrator."""

    login: names.NewLogin
    admin: Annotated[names.Owner, Meta(description="login of the user who will manage it", examples=["octoadmin"])]
    profile_name: Annotated[str, Meta(min_length=1, description="name for display", examples=["Acme Web"])] | None = (
        None
    )
    if_exists: Annotated[
        Literal["fail", "unchanged"],
        Meta(description="what one that exists already counts as; its admin and profile name can't be compared"),
    ] = "fail"


class CreateOrganization(
    ChangesThings[CreateOrganizationItem],
    DecidesState[CreateOrganizationItem],
    creations.RefusesItsLike[CreateOrganizationItem],
    Returns[Organization],
):
    """Create an organization. Nothing in the platform's interface deletes one.

    Requests:  2: a look whether it exists, then the creation; where it exists, a look whether one that nobody has does.
    Category:  core. Lane: the organization.
    Refused:   two items of a manifest that make one name, in any case. New names that look alike are told as a note.
    Result:    id, login, node_id, url.
    Lost answer: look again. It was not there before, so if it is now, it was created; if not, the request is repeated,
               which the platform refuses a second time.
    Source:    Enterprise organization administration, POST /admin/organizations.
    """

    name = "organization.create"
    access = accesses.SITE
    Item = CreateOrganizationItem
    is_read = False
    is_irreversible = True
    least_requests = 2
    most_requests = 2
    settled_by = (
        "Its rulesets are listed: the organization was not there before the request, so if it is there now, it was "
        "created. If it is not, the request is sent again; the login is unique, so at most one can be made. "
        "Where that is refused, and no code says why, it may be because the login is taken: the outcome is unknown."
    )
    example: ClassVar = {"login": "acme-web", "admin": "octoadmin", "profile_name": "Acme Web"}

    def check(self, item: CreateOrganizationItem) -> Iterator[ItemFlaw]:
        for field, flaw in (
            ("login", names.flaw_of_new_login(item.login)),
            ("admin", names.flaw_of_owner(item.admin)),
            ("profile_name", names.flaw_of_text(item.profile_name or "")),
        ):
            if flaw:
                yield ItemFlaw(field, flaw)

    def lanes(self, item: CreateOrganizationItem) -> tuple[str, ...]:
        return (item.login,)

    def identities(self, item: CreateOrganizationItem) -> tuple[str, ...]:
        return (item.login.casefold(),)

    def things(self, item: CreateOrganizationItem) -> tuple[str, ...]:
        return (urls.place("/orgs", item.login),)

    def conflict(self, earlier: object, later: CreateOrganizationItem) -> Conflict | None:
        return _conflict_of(earlier, later)

    def new_names(self, item: CreateOrganizationItem) -> tuple[str, ...]:
        return (item.login,)

    def steps(self, item: CreateOrganizationItem) -> Steps:
        if (yield from can_see(item.login)):
            if (yield from can_see_any(item.login)):
                return failed(ErrorCode.BAD_RESPONSE, _ANY)
            return _exists_already(item, None)
        body = {"login": item.login, "admin": item.admin}
        if item.profile_name is not None:
            body["profile_name"] = item.profile_name
        reply = yield Request(
            method="POST",
            path="/admin/organizations",
            body=body,
            effect=Effect.CREATE_UNIQUE,
            accept=frozenset((201, 422)),
            before=None,
            proof=proofs.entry({"login": str, "id": int}, proofs.naming(login=item.login)),
        )
        if reply.status == 422:
            if (yield from can_see(item.login)):
                return _exists_already(item, reply)
            return refusals.refused(reply)
        return succeeded(_shown(reply.body))

    def settle(self, item: CreateOrganizationItem, lost: Lost) -> Settling:
        if not (yield from can_see(item.login)):
            return NotApplied("the organization is not there")
        if lost.before is not None:
            return Undecided("the organization is there, but whether it was before is not known")
        if (yield from can_see_any(item.login)):
            return Undecided(_ANY, is_begun=True)
        return succeeded(
            {"login": item.login}, note="the answer was lost; the organization is there, and was not before"
        )


class RenameOrganizationItem(Item, frozen=True, kw_only=True):
    """Names an organization, and gives its new name."""

    org: names.Organization
    login: Annotated[names.NewLogin, Meta(description="new name", examples=["acme-research"])]
    wait: Annotated[
        bool, Meta(description="follow it until it is done, for up to 10 minutes; otherwise being accepted is enough")
    ] = False
    if_renamed: Annotated[
        Literal["fail", "unchanged"], Meta(description="what it counts as where only the new name is there")
    ] = "fail"


class RenameOrganization(
    ChangesThings[RenameOrganizationItem],
    DecidesState[RenameOrganizationItem],
    CreatesNames[RenameOrganizationItem],
    Undoable[RenameOrganizationItem],
    Returns[Renaming],
):
    """Rename an organization, which the platform does in the background.

    Requests:  3: a look at each name, then the rename; with `wait` as many more as it takes.
    Category:  core. Lane: both names.
    Refused:   two items of a manifest that make one name, in any case, or rename one organization; a chain of renames
               that does not begin at its free end; renames in a circle. New names that look alike are told as a note.
    Result:    org, login, and the platform's message.
    Lost answer: look at both names: only the new one means applied, only the old one, still after the settle time, not
               applied, both means that somebody took a name: the outcome is unknown.
    Source:    Enterprise organization administration, PATCH /admin/organizations/{org}.
    """

    name = "organization.rename"
    access = accesses.SITE
    Item = RenameOrganizationItem
    is_read = False
    least_requests = 3
    most_requests = 3
    settled_by = (
        "Both names are looked at. Where only the new one exists, it was renamed. Where only the old one does, and "
        "still does after the settle time, it was not, and the request is sent again. Anything else may stay unknown."
    )
    example: ClassVar = {"org": "acme-labs", "login": "acme-research", "wait": True}

    def check(self, item: RenameOrganizationItem) -> Iterator[ItemFlaw]:
        flaw = names.flaw_of_owner(item.org)
        if flaw:
            yield ItemFlaw("org", flaw)
        flaw = names.flaw_of_new_login(item.login)
        if flaw:
            yield ItemFlaw("login", flaw)
        elif item.login.casefold() == item.org.casefold():
            yield ItemFlaw(
                "login", "expected another name; case does not matter on the platform, so it can't be verified"
            )

    def lanes(self, item: RenameOrganizationItem) -> tuple[str, ...]:
        return (item.org, item.login)

    def identities(self, item: RenameOrganizationItem) -> tuple[str, ...]:
        return (item.org.casefold(), item.login.casefold())

    def things(self, item: RenameOrganizationItem) -> tuple[str, ...]:
        return (urls.place("/orgs", item.org), urls.place("/orgs", item.login))

    def conflict(self, earlier: object, later: RenameOrganizationItem) -> Conflict | None:
        return _conflict_of(earlier, later)

    def new_names(self, item: RenameOrganizationItem) -> tuple[str, ...]:
        return (item.login,)

    def steps(self, item: RenameOrganizationItem) -> Steps:
        has_new = yield from can_see(item.login)
        if not (yield from can_see(item.org)):
            if has_new and item.if_renamed == "unchanged":
                return unchanged({"org": item.org, "login": item.login})
            hint = (
                f"; {item.login} is, so it may have been renamed before"
                if has_new
                else ", or this credential can't see it"
            )
            return failed(ErrorCode.NOT_FOUND, f"organization {item.org} is not there{hint}", http_status=404)
        if has_new:
            return failed(ErrorCode.CONFLICT, f"an organization {item.login} exists already")
        reply = yield Request(
            method="PATCH",
            path=f"/admin/organizations/{urls.segment(item.org)}",
            body={"login": item.login},
            effect=Effect.MOVE,
            accept=frozenset((202,)),
            before={"org": item.org},
            proof=proofs.entry({"message": str, "url": str}, partial(_flaw_of_rename, item)),
        )
        result = {"org": item.org, "login": item.login, "message": reply.body["message"]}
        if not item.wait:
            return succeeded(result, note="accepted; the platform renames it in the background")
        return (yield from self._follow(item, result))

    def steps_to_look_back(self, item: RenameOrganizationItem) -> Steps:
        if (yield from can_see(item.login)) and not (yield from can_see(item.org)):
            return unchanged({"org": item.org, "login": item.login})
        return (yield from self.steps(item))

    def settle(self, item: RenameOrganizationItem, lost: Lost) -> Settling:
        has_new = yield from can_see(item.login)
        has_old = yield from can_see(item.org)
        match has_old, has_new:
            case False, True:
                result = {"org": item.org, "login": item.login, "message": None}
                return succeeded(result, note="the answer was lost; only the new name is there")
            case True, False:
                return NotApplied("only the old name is there")
            case True, True:
                both = f"both {item.org} and {item.login} are there: somebody took one of the names"
                return Undecided(both, is_begun=True)
        return Undecided(f"neither {item.org} nor {item.login} can be seen", is_begun=True)

    def undo(self, item: RenameOrganizationItem, before: Any, result: Any) -> Undo | Irreversible:
        back = {"org": item.login, "login": item.org, "wait": True, "if_renamed": "unchanged"}
        return Undo(operation=self.name, item=back, renamed=(item.org, item.login))

    def _follow(self, item: RenameOrganizationItem, result: dict[str, Any]) -> Steps:
        pause_s, waited_s = POLL_FIRST_S, 0.0
        while waited_s < RENAME_MOST_S:
            waited_s += pause_s
            if (yield from can_see(item.login, pause_s)) and not (yield from can_see(item.org)):
                return succeeded(result)
            pause_s = min(POLL_MOST_S, pause_s * POLL_GROWTH)
        return unknown(
            f"the platform accepted the rename to {item.login} and had not done it after {RENAME_MOST_S:.0f} seconds"
        )


def _exists_already(item: CreateOrganizationItem, refusal: Reply | None) -> Outcome:
    if item.if_exists == "unchanged":
        return unchanged({"login": item.login}, note="it exists; its admin and profile name can't be compared")
    status = refusal.status if refusal is not None else None
    return failed(ErrorCode.CONFLICT, f"an organization {item.login} exists already", http_status=status)


def _flaw_of_rename(item: RenameOrganizationItem, accepted: Mapping[str, Any]) -> str:
    """Return what is wrong with the `url` of an accepted rename; empty where it leads to the old or the new name, or
    has another form."""
    flaws = [proofs.of_kind("orgs", login)(accepted) for login in (item.org, item.login)]
    return flaws[0] if all(flaws) else ""


def _shown(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in _SHOWN if name in body}


def _conflict_of(earlier: object, later: object) -> Conflict | None:
    """Return the conflict of two creations or renames that use the same name. A rename that frees the name for a later
    item is not a conflict; the reverse is one.
    """
    made_before, made = _made(earlier), _made(later)
    left_before, left = getattr(earlier, "org", ""), getattr(later, "org", "")
    if made_before.casefold() == made.casefold():
        if made_before != made:
            return Conflict(f"{made!r} and {made_before!r} of {{other}} are one name: case does not matter")
        return Conflict(f"makes an organization {made!r}, as {{other}} does otherwise")
    if left and left_before.casefold() == left.casefold():
        return Conflict(f"renames {left!r}, which {{other}} renames to {made_before!r}")
    if left and left_before and made_before.casefold() == left.casefold():
        if left_before.casefold() == made.casefold():
            return Conflict(
                f"goes in a circle: {{other}} renames {made!r} to {left!r}, and this one renames it back; "
                "names are exchanged through a third name, in runs of their own"
            )
        return Conflict(
            f"renames {left!r}, the name that {{other}} gives to {left_before!r}: a chain of renames begins at its "
            "free end, so put this item before that one; names that go in a circle need a free one, in a run of its own"
        )
    return None


def _made(item: object) -> str:
    return str(getattr(item, "login", ""))
