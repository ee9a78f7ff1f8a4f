"""What the platform refuses becomes each client's own exception, with its own reading of the error's body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import gidgethub
import github
import pytest
from gidgethub.aiohttp import GitHubAPI

from tests.clients.conftest import Connect

HELLO = "acme-eng/hello-world"
OTHER = "0" * 40
BAD_HOOK = {"url": "ftp://127.0.0.1/hook"}


def ask_for_nothing(client: github.Github) -> object:
    """A file that is not there."""
    return client.get_repo(HELLO).get_contents("none")


def ask_for_rate_limit(client: github.Github) -> object:
    """What any good token may ask for."""
    return client.get_rate_limit()


def ask_for_notifications(client: github.Github) -> object:
    """What classic tokens may ask for."""
    return client.get_user().get_notifications()[0]


def ask_for_hooks(client: github.Github) -> object:
    """What owners may ask for."""
    return client.get_organization("acme-eng").get_hooks()[0]


def replace_another(client: github.Github) -> object:
    """A write over a blob that is not there."""
    return client.get_repo(HELLO).update_file("README.md", "m", "x", OTHER)


def create_again(client: github.Github) -> object:
    """A write over a file, as if it were not there."""
    return client.get_repo(HELLO).create_file("README.md", "m", "x")


@pytest.mark.parametrize(
    ("token", "ask", "status", "kind", "said"),
    [
        ("sbx-site-admin", ask_for_nothing, 404, github.UnknownObjectException, "Not Found"),
        ("sbx-wrong", ask_for_rate_limit, 401, github.BadCredentialsException, "Bad credentials"),
        ("sbx-fine-grained", ask_for_notifications, 403, github.GithubException, "Resource not accessible"),
        ("sbx-member", ask_for_hooks, 404, github.UnknownObjectException, "Not Found"),
        ("sbx-site-admin", replace_another, 409, github.GithubException, f"README.md does not match {OTHER}"),
        ("sbx-site-admin", create_again, 422, github.GithubException, 'Invalid request.\n\n"sha" wasn\'t supplied.'),
    ],
)
def test_pygithub_raises(
    pygithub: Connect,
    token: str,
    ask: Callable[[github.Github], object],
    status: int,
    kind: type[github.GithubException],
    said: str,
) -> None:
    """Each refusal is the exception that PyGithub has for it, with the status and the platform's message."""
    with pytest.raises(github.GithubException) as refused:
        ask(pygithub(token))
    assert (type(refused.value), refused.value.status) == (kind, status)
    assert isinstance(refused.value.data, dict)
    assert refused.value.data["message"].startswith(said)
    assert refused.value.data["status"] == str(status)


def test_pygithub_names_the_wrong_field(pygithub: Connect) -> None:
    """A 422 tells PyGithub's caller the resource, the field and the code."""
    with pytest.raises(github.GithubException) as refused:
        pygithub().get_organization("acme-eng").create_hook("web", BAD_HOOK, ["push"])
    assert refused.value.status == 422
    assert isinstance(refused.value.data, dict)
    (error,) = refused.value.data["errors"]
    assert (error["resource"], error["field"], error["code"]) == ("Hook", "config.url", "invalid")


async def kit_nothing(rest: Any) -> None:
    await rest.repos.async_get_content("acme-eng", "hello-world", "none")


async def kit_notifications(rest: Any) -> None:
    await rest.activity.async_list_notifications_for_authenticated_user()


async def kit_replace(rest: Any) -> None:
    await rest.repos.async_create_or_update_file_contents(
        "acme-eng", "hello-world", "README.md", message="m", content="", sha=OTHER
    )


async def kit_hook(rest: Any) -> None:
    await rest.orgs.async_create_webhook("acme-eng", name="web", config=BAD_HOOK)


@pytest.mark.parametrize(
    ("token", "ask", "status", "model"),
    [
        ("sbx-site-admin", kit_nothing, 404, "BasicError"),
        ("sbx-wrong", kit_notifications, 401, "BasicError"),
        ("sbx-fine-grained", kit_notifications, 403, "BasicError"),
        ("sbx-site-admin", kit_replace, 409, "BasicError"),
        ("sbx-site-admin", kit_hook, 422, "ValidationError"),
    ],
)
async def test_githubkit_raises(
    kit: Callable[..., Any],
    githubkit: Any,
    token: str,
    ask: Callable[[Any], Awaitable[None]],
    status: int,
    model: str,
) -> None:
    """Each refusal is githubkit's RequestFailed, and its body fits the model that githubkit has for that status."""
    client = await kit(token)
    with pytest.raises(githubkit.exception.RequestFailed) as refused:
        await ask(client.rest)
    body = refused.value.response.parsed_data
    assert (refused.value.response.status_code, type(body).__name__) == (status, model)
    assert body.message
    assert body.documentation_url.startswith("https://")


async def test_githubkit_names_the_wrong_field(kit: Callable[..., Any], githubkit: Any) -> None:
    """A 422 tells githubkit's caller the resource, the field and the code."""
    with pytest.raises(githubkit.exception.RequestFailed) as refused:
        await kit_hook((await kit()).rest)
    (error,) = refused.value.response.parsed_data.errors
    assert (error.resource, error.field, error.code) == ("Hook", "config.url", "invalid")


async def test_githubkit_is_told_of_an_unknown_version(kit: Callable[..., Any], githubkit: Any) -> None:
    """A version that the platform does not know is refused with 400."""
    with pytest.raises(githubkit.exception.RequestFailed) as refused:
        await (await kit()).arequest("GET", "/rate_limit", headers={"X-GitHub-Api-Version": "1999-12-31"})
    assert refused.value.response.status_code == 400


@pytest.mark.parametrize(
    ("token", "path", "status", "said"),
    [
        ("sbx-site-admin", f"/repos/{HELLO}/contents/none", 404, "Not Found"),
        ("sbx-wrong", "/notifications", 401, "Bad credentials"),
        ("sbx-fine-grained", "/notifications", 403, "Resource not accessible"),
    ],
)
async def test_gidgethub_raises(
    gidget: Callable[..., GitHubAPI], token: str, path: str, status: int, said: str
) -> None:
    """A refused read is gidgethub's BadRequest with the status, and with the platform's message as its text."""
    with pytest.raises(gidgethub.BadRequest, match=said) as refused:
        await gidget(token).getitem(path)
    assert refused.value.status_code == status


async def test_gidgethub_tells_a_conflict(gidget: Callable[..., GitHubAPI]) -> None:
    """A write over another blob is gidgethub's BadRequest with 409."""
    with pytest.raises(gidgethub.BadRequest, match=r"README\.md does not match") as refused:
        await gidget().put(f"/repos/{HELLO}/contents/README.md", data={"message": "m", "content": "", "sha": OTHER})
    assert refused.value.status_code == 409


async def test_gidgethub_names_the_wrong_field(gidget: Callable[..., GitHubAPI]) -> None:
    """A 422 with errors is gidgethub's InvalidField, whose text names the field."""
    with pytest.raises(gidgethub.InvalidField, match=r"Validation Failed for 'config\.url'") as refused:
        await gidget().post("/orgs/acme-eng/hooks", data={"name": "web", "config": BAD_HOOK})
    assert refused.value.errors[0]["code"] == "invalid"
