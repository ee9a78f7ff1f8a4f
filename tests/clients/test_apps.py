"""Other people's clients authenticate as an App: they sign with its key and mint tokens of its installation."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import github
import pytest

from tests.clients.conftest import Connect
from tests.e2e.support.platform import Served

CLIENT_ID = "Iv1.fleet"


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
