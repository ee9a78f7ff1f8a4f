"""The second platform itself: it knows nothing of Bulk, and does what the specification says."""

import ast
import asyncio
import json
import sys
from pathlib import Path

import aiohttp

from tests.hostile.areas.contents import blob_sha
from tests.hostile.http.allowance import Allowance
from tests.hostile.http.messages import Ask
from tests.hostile.http.wire import MemoryConnector, Service, serve
from tests.hostile.platform import Platform
from tests.hostile.store.normal import Normal
from tests.hostile.store.seeds import FILES, seeded
from tests.hostile.wrong import Guest, Way
from tests.virtual_time import run_virtual

HERE = Path(__file__).parent
OF_THE_TABLE = {
    "virtual.py",
    "judging.py",
    "table.py",
    "__main__.py",
    "test_platform.py",
    "test_table.py",
    "test_words.py",
    "running.py",
    "test_apps.py",
    "test_pools.py",
}
OF_THE_BUDGETS = {"budgets.py", "budget_runs.py", "test_budgets.py"}
"""They put another, smaller platform on the simulation's network."""
NOW = 1_790_000_000.0


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_the_platform_knows_nothing_of_bulk():
    """The platform imports nothing but its own, the standard library, aiohttp, and what Apps' tokens are checked with;
    the table alone runs the engine.
    """
    for path in sorted(each for each in HERE.rglob("*.py") if each.name not in OF_THE_BUDGETS):
        imported = _imported(path)
        assert not {name for name in imported if name.startswith(("bulk.sandbox", "tests.simulation", "tests.e2e"))}, (
            path
        )
        if path.name not in OF_THE_TABLE and path.parent.name != "commands":
            own = ("tests.hostile.", "aiohttp", "jwt", "cryptography.")
            foreign = {
                name
                for name in imported
                if not name.startswith(own) and name.split(".")[0] not in sys.stdlib_module_names
            }
            assert not foreign, f"{path.name} imports {foreign}"
            assert "importlib" not in path.read_text()


def _platform(**more) -> Platform:
    return Platform(seeded(), Allowance(100, 60), **more)


def _json(platform: Platform, method: str, path: str, body: object = None, now: float = NOW):
    data = b"" if body is None else json.dumps(body).encode()
    answer = platform.answer(Ask.of(method, f"/api/v3{path}", {}, data), now)
    return answer.status, json.loads(answer.body) if answer.body else None


def test_blobs_are_named_as_git_names_them():
    """The sha of a file is git's own."""
    assert blob_sha(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_file_is_replaced_only_where_it_is_still_that_blob():
    """PUT needs the sha of what it replaces: none is 422, another is 409, the right one is 200 and one effect."""
    platform, path = _platform(), "/repos/Acme/API/contents/CODEOWNERS"
    body = {"message": "m", "content": "bmV3"}
    assert _json(platform, "PUT", path, body)[0] == 422
    assert _json(platform, "PUT", path, {**body, "sha": "0" * 40})[0] == 409
    status, written = _json(platform, "PUT", path, {**body, "sha": blob_sha(FILES[601]["CODEOWNERS"])})
    assert (status, written["content"]["sha"]) == (200, blob_sha(b"new"))
    assert [effect.value for effect in platform.effects.ours()] == [b"new"]


def test_stale_reads_show_what_was():
    """A read that lags by three seconds shows a hook three seconds after it was made, and not before."""
    platform = _platform(lag_s=3.0)
    made = _json(platform, "POST", "/orgs/acme/hooks", {"name": "web", "config": {"url": "https://a.test"}})[1]
    for after_s, hooks in ((1.0, 1), (2.9, 1), (3.0, 2)):
        assert len(_json(platform, "GET", "/orgs/acme/hooks", now=NOW + after_s)[1]) == hooks
    assert made["events"] == ["push"]


def test_a_platform_keeps_urls_in_its_own_form():
    """A hook's URL is kept with the host in lower case, without the default port, with a slash more."""
    platform = _platform(normal=Normal({"host in lower case", "no default port", "a slash more"}))
    body = {"name": "web", "config": {"url": "HTTPS://Hooks.Test:443/a?b=C"}}
    assert _json(platform, "POST", "/orgs/acme/hooks", body)[1]["config"]["url"] == "https://hooks.test/a/?b=C"


def test_renaming_happens_in_the_background():
    """A rename is accepted at once and shows later; the organization keeps its id and what it has."""
    platform = _platform()
    assert _json(platform, "PATCH", "/admin/organizations/acme", {"login": "acme-new"})[0] == 202
    assert _json(platform, "GET", "/orgs/acme-new/hooks", now=NOW + 0.5)[0] == 404
    assert [hook["id"] for hook in _json(platform, "GET", "/orgs/acme-new/hooks", now=NOW + 1)[1]] == [1001]


def test_requests_beyond_the_window_are_refused():
    """Of a limit of 100, the 101st request of a window is refused, in the next window none; `/rate_limit` is free."""
    platform = _platform()
    statuses = [_json(platform, "GET", "/orgs/acme/hooks")[0] for _ in range(101)]
    assert statuses == [200] * 100 + [429]
    assert _json(platform, "GET", "/rate_limit")[1]["resources"]["core"]["remaining"] == 0
    assert _json(platform, "GET", "/orgs/acme/hooks", now=NOW + 61)[0] == 200


async def _asked(session: aiohttp.ClientSession, base: str) -> tuple[int, object]:
    headers = {"Authorization": "token t"}
    async with session.get(f"{base}/api/v3/orgs/acme/hooks", headers=headers) as answer:
        first = await answer.read()
    async with session.get(f"{base}/api/v3/orgs/acme/hooks", headers=headers) as answer:
        assert await answer.read() == first  # the second one comes in chunks
        return answer.status, json.loads(first)


async def _in_memory():
    async with aiohttp.ClientSession(connector=MemoryConnector(_service())) as session:
        return await _asked(session, "https://git.example.test")


async def _on_a_port():
    server = await serve(_service())
    async with server, aiohttp.ClientSession() as session:
        host, port = server.sockets[0].getsockname()[:2]
        return await _asked(session, f"http://{host}:{port}")


def _service() -> Service:
    return Service({"t": Guest(_platform(), Way("plain"))}, lambda: NOW)


def test_it_answers_alike_in_memory_and_on_a_port():
    """The same protocol serves a connection in memory and a real one."""
    in_memory = run_virtual(_in_memory)
    assert in_memory[0] == 200
    assert asyncio.run(_on_a_port()) == in_memory
