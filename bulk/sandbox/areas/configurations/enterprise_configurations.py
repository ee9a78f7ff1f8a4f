"""Code security configurations of an enterprise: list, create, defaults, get; for its administrators.

Tokens of applications and fine-grained ones are refused (403). A body that can't be used is 400, the only refusal of
creation that the specification names; its `errors` say what is wrong with it.
"""

from __future__ import annotations

from bulk.sandbox.areas.configurations import configuration_settings, configurations
from bulk.sandbox.areas.shared import enterprise_rights
from bulk.sandbox.http import paging
from bulk.sandbox.http.access import Access
from bulk.sandbox.http.answers import Answer
from bulk.sandbox.http.call import Call
from bulk.sandbox.http.refusals import Refused, not_found
from bulk.sandbox.http.routes import Area, Route


async def list_configurations(call: Call) -> Answer:
    """Return the enterprise's configurations, oldest first, by cursors."""
    enterprise = enterprise_rights.administered(call)
    found = configurations.of_enterprise(call.context.state, enterprise.id)
    page, headers = paging.cut_by_cursor(call, found, lambda each: each.id)
    return Answer(body=[configurations.shown(call, each) for each in page], headers=headers)


async def create_configuration(call: Call) -> Answer:
    """201 with the configuration; what the body leaves out has its default.

    Raises:
        Refused: 400, the name is missing or taken, or a field has a value that it can't have.
    """
    enterprise = enterprise_rights.administered(call)
    state, body = call.context.state, call.json_object()
    name, problems = configuration_settings.name_of(body, is_new=True)
    description, wrong = configuration_settings.description_of(body)
    settings, flaws = configuration_settings.settings_of(body, is_new=True)
    problems += wrong + flaws
    taken = configurations.name_problem(state, "enterprise", enterprise.id, name) if name is not None else None
    if taken is not None:
        problems.append(taken)
    if problems or name is None:
        raise Refused(400, "Validation Failed", errors=problems)
    with state.transaction():
        made = configurations.add(state, enterprise.id, name, description or "", settings, call.now)
    effect = f"configuration {made.name} created in enterprise {enterprise.slug}"
    return Answer(201, configurations.shown(call, made), effect=effect)


async def list_defaults(call: Call) -> Answer:
    """Return which configurations new repositories of the enterprise get."""
    enterprise = enterprise_rights.administered(call)
    found = configurations.defaults(call.context.state, "enterprise", enterprise.id)
    return Answer(
        body=[
            {"default_for_new_repos": kind, "configuration": configurations.shown(call, configuration)}
            for kind, configuration in found
        ]
    )


async def get_configuration(call: Call) -> Answer:
    """Return one configuration of the enterprise; 404 for those of organizations."""
    enterprise = enterprise_rights.administered(call)
    found = configurations.find(call.context.state, call.params["configuration_id"])
    if found is None or (found.target_type, found.target_id) != ("enterprise", enterprise.id):
        raise not_found()
    return Answer(body=configurations.shown(call, found))


READ = Access(scopes=("read:enterprise",), app_tokens=False)
WRITE = Access(scopes=("admin:enterprise",), app_tokens=False)
ALL = "/enterprises/{enterprise}/code-security/configurations"
AREA = Area(
    "Code security configurations, enterprise",
    (
        Route("GET", ALL, list_configurations, access=READ),
        Route("POST", ALL, create_configuration, access=WRITE),
        Route("GET", f"{ALL}/defaults", list_defaults, access=READ),
        Route("GET", ALL + "/{configuration_id}", get_configuration, access=READ),
    ),
)
