"""The part `credentials` of a manifest: names, and for each the place of a token or a map (an App, a pool, …).

A map becomes the text of a source (`credential_specs.py`), so that it is kept wherever sources are kept. No message
repeats a value, which may be a secret that stands in the wrong place.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from bulk.flaws import Flaws, name_shown, unknown_name
from bulk.items.lines import SourceFlaw
from bulk.items.sources import open_source
from bulk.items.yaml_text import Node, read_document
from bulk.manifest import platform_section
from bulk.manifest.credential_specs import (
    CANNOT_SIGN,
    AppSpec,
    LoginSpec,
    PoolSpec,
    TokenSpec,
    can_sign,
    spec_of,
    text_of,
)
from bulk.manifest.fields import NAME, Fields, one_of
from bulk.quantities import kind_of

_CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
_KINDS = ("app", "token", "login", "pool")
_EXPECTED = "expected a place of a token (env:NAME, file:PATH or command:PROGRAM), or one of app, token, login and pool"


def credentials_in(path: Path, flaws: Flaws, known: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the sources by name in a file that holds only the part `credentials` (`--credentials FILE`).

    Args:
        known: the manifest's sources by name. Pools of the manifest may have members in the file, and the other way
            round.
    """
    shown = str(path)
    try:
        with open_source(path) as file:
            root, repeated = read_document(file.read)
    except SourceFlaw as error:
        flaws.add(shown, error.line, error.field, error.message)
        return {}
    except OSError as error:
        flaws.add(shown, 0, "", f"can't be read: {error.strerror}")
        return {}
    for line, flaw in repeated:
        flaws.add(shown, line, flaw.field, flaw.message)
    given = Fields(shown, root or Node({}, 1), "", flaws)
    part = given.node("credentials") if given.names() == ["credentials"] else None
    if part is not None and isinstance(part.value, dict) and part.value.keys().isdisjoint(_KINDS):
        given.flaw("credentials", "names of credentials stand at the top of this file: take this line out")
        return {}
    return credentials_of(given, path.parent, known)


def credentials_of(given: Fields, folder: Path, known: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the sources by name; note a flaw for each that can't be used.

    Args:
        given: the part `credentials`. folder: folder of the file, to which its paths are relative.
        known: as in `credentials_in`.
    """
    found: dict[str, str] = {}
    for name in given.names():
        if not NAME.fullmatch(name):
            given.node(name)
            given.flaw(name, "expected a name of letters, digits, hyphens, underscores and dots")
            continue
        node = given.node(name)
        if node is not None and isinstance(node.value, dict):
            source = _of_map(given.inner(name), folder)
        else:
            source = given.text(name, "", lambda text: platform_section.credential_source(text, folder))
        found[name] = source  # empty after a flaw, so that a job that names it adds no second flaw
    every = {**known, **found}
    for name, source in found.items():
        _check_pool(given, name, source, every)
    for name in known.keys() - found.keys():
        _check_members(given, name, every, found)
    given.finish()
    return found


def _of_map(given: Fields, folder: Path) -> str:
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1:
        given.flaw("", _EXPECTED if not kinds else f"expected one of {' and '.join(kinds)}, not both")
        for name in given.names():
            given.node(name)
        return ""
    match kinds[0]:
        case "app":
            source = _app(given.inner("app"), folder)
        case "token":
            place = given.text("token", "", lambda text: platform_section.credential_source(text, folder))
            identity = given.text("identity", "", _named)
            source = text_of("token", TokenSpec(place, identity)) if place and identity else place
        case "login":
            name = given.text("login", "", _named)
            source = text_of("login", LoginSpec(name)) if name else ""
        case _:
            members = tuple(_texts(given, "pool"))
            writes = given.flag("writes")
            source = text_of("pool", PoolSpec(members, writes)) if members else ""
    given.finish()
    return source


def _app(given: Fields, folder: Path) -> str:
    client_id = given.scalar("client_id", "", _client_id)
    app_id = given.scalar("app_id", "", _client_id)
    if bool(client_id) == bool(app_id):
        given.flaw("", "an App is named by client_id, or by app_id")
    keys = tuple(_texts(given, "private_key", folder=folder))
    sign = given.text("sign", "", lambda text: _signing(text, folder))
    if ("private_key" in given) == ("sign" in given):
        given.flaw("", "expected private_key (file:PATH, env:NAME or command:PROGRAM), or sign: command:PROGRAM")
    if "private_key" in given and not can_sign():
        given.flaw("private_key", CANNOT_SIGN)
    installation = given.scalar("installation", None, _installation)
    permissions = given.scalar("permissions", "least", lambda value: one_of(value, ("least", "all")))
    given.finish()
    return text_of("app", AppSpec(client_id or app_id, keys, sign, installation, permissions))


def _texts(given: Fields, field: str, *, folder: Path | None = None) -> list[str]:
    """Return one text or a list of them; with `folder`, each is a source."""
    node = given.node(field)
    if node is None:
        return []
    nodes = node.value if isinstance(node.value, list) else [node]
    found = []
    for place, each in enumerate(nodes):
        value, line = each.value, each.line
        if not isinstance(value, str) or not value:
            given.flaw(field, f"expected a string, got {kind_of(value)}", line)
            continue
        try:
            found.append(_named(value) if folder is None else platform_section.credential_source(value, folder))
        except ValueError as error:
            given.flaw(field, str(error) if len(nodes) == 1 else f"[{place}]: {error}", line)
    if not nodes:
        given.flaw(field, "expected at least one")
    return found


def _check_pool(given: Fields, name: str, source: str, every: Mapping[str, str]) -> None:
    pool = spec_of(source, PoolSpec)
    for member, times in Counter(pool.members if pool else ()).items():
        if times > 1:
            given.flaw(name, f"its member {name_shown(member)} is named {times} times; once is enough")
        if member not in every and member != "default":
            given.flaw(name, f"its member {name_shown(member)}: {unknown_name(member, every, 'credential')}")
        elif _is_several(every.get(member, "")):
            given.flaw(name, f"its member {name_shown(member)} is a pool or an App; expected one with a single token")


def _check_members(given: Fields, name: str, every: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Note a flaw if a file makes a member of the manifest's pool a pool or an App, which can't be a member."""
    pool = spec_of(every[name], PoolSpec)
    for member in dict.fromkeys(pool.members if pool else ()):
        if _is_several(found.get(member, "")):
            given.flaw(member, f"is a member of the pool {name_shown(name)}; expected one with a single token")


def _is_several(source: str) -> bool:
    return spec_of(source, PoolSpec) is not None or spec_of(source, AppSpec) is not None


def _named(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError("expected a name of letters, digits, hyphens, underscores and dots")
    return value


def _client_id(value: object) -> str:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _CLIENT_ID.fullmatch(text):
        raise ValueError("expected the App's client id (Iv23…) or its number, as its settings show it")
    return text


def _signing(text: str, folder: Path) -> str:
    if not text.startswith("command:"):
        raise ValueError("expected command:PROGRAM, which gets what is to be signed on its standard input")
    return platform_section.credential_source(text, folder)


def _installation(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("expected auto (by the item's owner), or the number of an installation")
    return value
