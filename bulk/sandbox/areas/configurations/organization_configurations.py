"""Code security configurations in an organization: get, update, delete, attach, set as default, its repositories.

Owners and security managers of the organization see its own configurations and those of its enterprise; all others get
404. A token that may only read gets 403 for the rest. An enterprise's configuration can be attached and made a default
here like any other, but not changed or deleted (403).

Deleting is 400 while the configuration is a default for new repositories and 409 while it is being attached. The
specification names both statuses and no cause; refusing a default is the stricter reading, so that a rehearsal finds
it. A second attachment of an organization is 422 while one is in progress.
"""

from __future__ import annotations

from bulk.sandbox.areas.configurations import attachments, configuration_settings, configurations
from bulk.sandbox.areas.configurations.configurations import Configuration
from bulk.sandbox.areas.shared import organization_repositories
from bulk.sandbox.areas.shared.repository_objects import repository_object
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.auth import rights
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import bad_request, conflict, forbidden, invalid, problem
from bulk.sandbox.http.routes import Area, Route
from bulk.sandbox.store.records import Organization

NAMED_EFFECTS = 20
"""The most repositories that the journal names by their ids (count)."""


async def get_configuration(call: Call) -> Answer:
    """Return one configuration that is available in the organization."""
    organization = rights.secured_organization(call)
    return Answer(body=configurations.shown(call, configurations.available(call, organization)))


async def update_configuration(call: Call) -> Answer:
    """200 with the configuration, 204 where it is as the body asks already.

    Raises:
        Refused: 403, it is the enterprise's; 422, the name is taken, or a field has a value that it can't have.
    """
    organization, former = _own(call)
    state, body = call.context.state, call.json_object()
    name, problems = configuration_settings.name_of(body, is_new=False)
    description, wrong = configuration_settings.description_of(body)
    given, flaws = configuration_settings.settings_of(body, is_new=False)
    problems += wrong + flaws
    settings = former.settings | given
    problems += configuration_settings.contradictions(settings)
    if name is not None:
        taken = configurations.name_problem(state, "organization", organization.id, name, besides=former.id)
        problems += [taken] if taken is not None else []
    if problems:
        raise invalid(*problems)
    asked = {
        "name": former.name if name is None else name,
        "description": former.description if description is None else description,
        **settings,
    }
    before = {"name": former.name, "description": former.description, **former.settings}
    changed = [field for field, value in asked.items() if value != before[field]]
    if not changed:
        return Answer(204)
    with state.transaction():
        made = configurations.change(
            state,
            former,
            name=asked["name"],
            description=asked["description"],
            settings=settings,
            updated_at=call.now,
        )
        if made.needs_licenses != former.needs_licenses:
            attachments.spread(state, organization.enterprise_id, made)
    effect = f"configuration {made.id} of {organization.login} changed: {', '.join(changed)}"
    return Answer(body=configurations.shown(call, made), effect=effect)


async def delete_configuration(call: Call) -> Answer:
    """204: the configuration is gone; its repositories keep their settings.

    Raises:
        Refused: 400, it is a default for new repositories; 403, it is the enterprise's; 409, it is being attached.
    """
    organization, gone = _own(call)
    state = call.context.state
    if attachments.is_being_attached(state, gone):
        raise conflict("The configuration is being attached to repositories")
    if configurations.is_default(state, gone):
        raise bad_request("The configuration is a default for new repositories. Choose another default first.")
    with state.transaction():
        configurations.remove(state, gone)
    return Answer(204, effect=f"configuration {gone.id} of {organization.login} deleted")


async def attach_configuration(call: Call) -> Answer:
    """202: the repositories that `scope` names will have the configuration soon, and no other.

    Raises:
        Refused: 422, the scope or the ids can't be used, or an attachment of the organization is in progress.
    """
    organization = rights.secured_organization(call)
    configuration = configurations.available(call, organization)
    context = call.context
    repositories = attachments.targets(context.state, organization, call.json_object())
    if attachments.is_under_way(context.state, organization):
        raise invalid(message="Another attachment in this organization is already in progress")
    is_change = attachments.accept(context, organization, configuration, repositories)
    names = f"{len(repositories)} repositories"
    if len(repositories) <= NAMED_EFFECTS:
        names = f"repositories {', '.join(map(str, repositories))}"
    effect = f"configuration {configuration.id} attached to {names} of {organization.login}"
    return Answer(202, {}, effect=effect if is_change else None)


async def set_default(call: Call) -> Answer:
    """PUT …/defaults: 200 with `default_for_new_repos` and the configuration.

    Raises:
        Refused: 422, `default_for_new_repos` is missing or unknown.
    """
    organization = rights.secured_organization(call)
    configuration = configurations.available(call, organization)
    kind = call.json_object().get("default_for_new_repos")
    if not isinstance(kind, str) or kind not in configurations.DEFAULT_FOR:
        field = "default_for_new_repos"
        expected = f"{field} must be one of {', '.join(configurations.DEFAULT_FOR)}"
        code = "missing_field" if kind is None else "invalid"
        raise invalid(problem(configuration_settings.RESOURCE, field, code, expected))
    state = call.context.state
    with state.transaction():
        is_new = configurations.set_default(state, organization, configuration, kind)
    effect = f"configuration {configuration.id} made default of {organization.login} for {kind} new repositories"
    return Answer(
        body={"default_for_new_repos": kind, "configuration": configurations.shown(call, configuration)},
        effect=effect if is_new else None,
    )


async def list_repositories(call: Call) -> Answer:
    """Return the organization's repositories that have the configuration, by cursors: `{status, repository}`.

    `status` (comma-separated, or an array) keeps only those with one of these states; `all`, the default, keeps all.
    """
    organization = rights.secured_organization(call)
    configuration = configurations.available(call, organization)
    state = call.context.state
    rows = state.db.execute(
        "SELECT repository_id, status FROM configuration_repositories WHERE configuration_id = ? "
        "ORDER BY repository_id",
        (configuration.id,),
    )
    is_known = organization_repositories.membership(state, organization.id)
    wanted = call.query.words("status") or {"all"}
    held = {
        row["repository_id"]: row["status"]
        for row in rows
        if is_known(row["repository_id"]) and ("all" in wanted or row["status"] in wanted)
    }
    page, headers = paging.cut_by_cursor(call, list(held), lambda number: number)
    found = organization_repositories.by_ids(state, organization.id, page)
    shown = [
        {"status": held[repository.id], "repository": repository_object(call, organization, repository)}
        for repository in found
    ]
    return Answer(body=shown, headers=headers)


def _own(call: Call) -> tuple[Organization, Configuration]:
    """Return the organization, and the configuration of its own that the path names.

    Raises:
        Refused: 404, the configuration does not exist; 403, it is the enterprise's.
    """
    organization = rights.secured_organization(call)
    found = configurations.available(call, organization)
    if found.target_type != "organization":
        raise forbidden("The configuration belongs to the enterprise and can't be changed in an organization")
    return organization, found


READ = Access(scopes=("read:org",), permission=("organization_administration", "read"), hidden=True)
WRITE = Access(scopes=("write:org",), permission=("organization_administration", "write"))
ONE = "/orgs/{org}/code-security/configurations/{configuration_id}"
AREA = Area(
    "Code security configurations, organization",
    (
        Route("GET", ONE, get_configuration, access=READ),
        Route("PATCH", ONE, update_configuration, access=WRITE),
        Route("DELETE", ONE, delete_configuration, access=WRITE),
        Route("POST", f"{ONE}/attach", attach_configuration, access=WRITE),
        Route("PUT", f"{ONE}/defaults", set_default, access=WRITE),
        Route("GET", f"{ONE}/repositories", list_repositories, access=READ),
    ),
    start=attachments.take_up,
)
