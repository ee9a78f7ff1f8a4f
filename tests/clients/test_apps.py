"""Other people's clients authenticate as an App: they sign with its key and mint tokens of its installation."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import github
import pytest

from tests.clients.conftest import Connect
from tests.e2e.support.platform import Served, served

CLIENT_ID = "Iv1.fleet"
OTHER_ID = "Iv1.others"  # githubkit keeps what it has signed for a client id
SECRET = "secret-of-the-fleet-1a"
READS = {"contents": "read", "metadata": "read"}
FLEET = {
    "tokens": [
        {"token": "sbx-of-fleet", "user": "octoadmin", "kind": "oauth", "app": OTHER_ID},
        {"token": "sbx-other", "user": "alice"},
    ],
    "repositories": [
        {"organization": "acme-eng", "name": name, "private": True, "files": {"README.md": "# A"}}
        for name in ("closed", "other")
    ],
    "apps": [
        {
            "slug": "fleet",
            "client_id": OTHER_ID,
            "client_secret": SECRET,
            "permissions": {"contents": "write", "metadata": "read"},
            "installations": [{"organization": "acme-ops"}, {"organization": "acme-eng"}],
        }
    ],
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A sandbox whose App is suspended and taken away by the tests below."""
    with served(tmp_path_factory.mktemp("fleet"), "--vendor", "github", seed=FLEET) as it:
        yield it


@pytest.fixture
def fleet_key(fleet: Served) -> str:
    """The private key of its App."""
    return next(fleet.folder.glob("**/fleet.private-key.pem")).read_text()


@pytest.fixture
def key(platform: Served) -> str:
    """The private key that the sandbox has made for its App."""
    return next(platform.folder.glob("**/fleet.private-key.pem")).read_text()


def test_pygithub_acts_as_an_app(pygithub: Connect, key: str) -> None:
    """PyGithub finds the App's installation, mints a token of it, and reads with it."""
    app = github.Auth.AppAuth(CLIENT_ID, key)
    integration = github.GithubIntegration(auth=app, base_url=pygithub().requester.base_url)
    assert integration.get_app().slug == "fleet"
    installation = integration.get_org_installation("acme-ops")
    assert [each.id for each in integration.get_installations()] == [installation.id]
    client = pygithub(auth=app.get_installation_auth(installation.id, requester=integration.requester))
    assert client.get_repo("acme-ops/runbook").get_readme().decoded_content
    integration.close()


async def test_githubkit_acts_as_an_app(platform: Served, githubkit: ModuleType, key: str) -> None:
    """githubkit finds the App's installation, mints a token of it, and reads with it."""
    app = githubkit.AppAuthStrategy(CLIENT_ID, key)
    options: Any = {"base_url": platform.base_url, "auto_retry": False, "http_cache": False}
    async with githubkit.GitHub(app, **options) as client:
        found = (await client.rest.apps.async_get_org_installation("acme-ops")).parsed_data
        async with client.with_auth(app.as_installation(found.id)) as acting:
            readme = (await acting.rest.repos.async_get_readme("acme-ops", "runbook")).parsed_data
            assert readme.name == "README.md"


def test_pygithub_looks_installations_up(fleet: Served, fleet_key: str) -> None:
    """PyGithub finds an installation by organization, repository and number; of a user there is none."""
    integration = github.GithubIntegration(auth=github.Auth.AppAuth(OTHER_ID, fleet_key), base_url=fleet.base_url)
    found = integration.get_org_installation("acme-eng")
    assert integration.get_repo_installation("acme-eng", "closed").id == found.id
    assert integration.get_app_installation(found.id).raw_data["account"]["login"] == "acme-eng"
    with pytest.raises(github.UnknownObjectException):
        integration.get_user_installation("octoadmin")
    with pytest.raises(github.UnknownObjectException):
        integration.get_org_installation("acme-labs")
    less = integration.get_access_token(found.id, permissions=READS)
    assert less.permissions == READS
    with pytest.raises(github.GithubException) as refused:
        integration.get_access_token(found.id, permissions={"administration": "write"})
    assert refused.value.status == 422
    integration.close()


async def test_githubkit_scopes_a_token_down(fleet: Served, githubkit: ModuleType, fleet_key: str) -> None:
    """A token for one repository and to read reaches no private one beside it, and writes nothing."""
    options: Any = {"base_url": fleet.base_url, "auto_retry": False, "http_cache": False}
    app = githubkit.AppAuthStrategy(OTHER_ID, fleet_key)
    async with githubkit.GitHub(app, **options) as client:
        found = (await client.rest.apps.async_get_repo_installation("acme-eng", "closed")).parsed_data
        made = (
            await client.rest.apps.async_create_installation_access_token(
                found.id, data={"repositories": ["closed"], "permissions": {"contents": "read"}}
            )
        ).parsed_data
        assert (made.repository_selection, [each.name for each in made.repositories]) == ("selected", ["closed"])
        async with client.with_auth(githubkit.TokenAuthStrategy(made.token)) as acting:
            assert (await acting.rest.repos.async_get_readme("acme-eng", "closed")).parsed_data.name == "README.md"
            with pytest.raises(githubkit.exception.RequestFailed) as hidden:
                await acting.rest.repos.async_get_readme("acme-eng", "other")
            assert hidden.value.response.status_code == 404
            with pytest.raises(githubkit.exception.RequestFailed) as refused:
                await acting.rest.repos.async_create_or_update_file_contents(
                    "acme-eng", "closed", "a.txt", message="a", content="YQ=="
                )
            assert refused.value.response.status_code == 404


async def test_githubkit_checks_a_token(fleet: Served, githubkit: ModuleType) -> None:
    """With its secret an App learns whose a token of its own is, and of others' nothing."""
    options: Any = {"base_url": fleet.base_url, "auto_retry": False, "http_cache": False}
    async with githubkit.GitHub(githubkit.OAuthAppAuthStrategy(OTHER_ID, SECRET), **options) as client:
        told = (await client.rest.apps.async_check_token(OTHER_ID, access_token="sbx-of-fleet")).parsed_data
        assert told.user.login == "octoadmin"
        with pytest.raises(githubkit.exception.RequestFailed) as unknown:
            await client.rest.apps.async_check_token(OTHER_ID, access_token="sbx-other")
        assert unknown.value.response.status_code == 404


async def test_githubkit_suspends_and_takes_away(fleet: Served, githubkit: ModuleType, fleet_key: str) -> None:
    """While an installation is suspended its tokens get 403, and go on afterwards; when it is gone they get 401."""
    options: Any = {"base_url": fleet.base_url, "auto_retry": False, "http_cache": False}
    app = githubkit.AppAuthStrategy(OTHER_ID, fleet_key)

    async def status(acting: Any) -> int:
        try:
            return int((await acting.rest.repos.async_get_readme("acme-ops", "runbook")).status_code)
        except githubkit.exception.RequestFailed as refused:
            return int(refused.response.status_code)

    async with githubkit.GitHub(app, **options) as client:
        apps = client.rest.apps
        found = (await apps.async_get_org_installation("acme-ops")).parsed_data
        made = (await apps.async_create_installation_access_token(found.id)).parsed_data
        async with client.with_auth(githubkit.TokenAuthStrategy(made.token)) as acting:
            assert await status(acting) == 200
            await apps.async_suspend_installation(found.id)
            assert await status(acting) == 403
            with pytest.raises(githubkit.exception.RequestFailed) as refused:
                await apps.async_create_installation_access_token(found.id)
            assert refused.value.response.status_code == 403
            await apps.async_unsuspend_installation(found.id)
            assert await status(acting) == 200
            await apps.async_delete_installation(found.id)
            assert await status(acting) == 401
            with pytest.raises(githubkit.exception.RequestFailed) as gone:
                await apps.async_create_installation_access_token(found.id)
            assert gone.value.response.status_code == 404
