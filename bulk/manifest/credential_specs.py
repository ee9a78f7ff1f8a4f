"""Credentials that are more than the place of a token: an App, a token with its user, a login, a pool.

A manifest writes them as maps. Everywhere else they are texts like other sources: the kind, a colon, and JSON with
sorted names (`app:{"client_id":…}`), which the run directory remembers. None holds a secret: keys and tokens are named
by their places. Source: interface.md §2.
"""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec

MAP_KINDS = ("app", "token", "login", "pool")
CANNOT_SIGN = "signing as an App needs pyjwt and cryptography: pip install 'bulkops[app]', or let a program sign (sign)"


class AppSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An App.

    Attributes:
        client_id: client id or App id of the App: the issuer of its JWTs.
        keys: sources of its private keys, tried in their order. sign: the program that signs instead (`command:…`).
        installation: number of the installation that is used for everything; None: that of each item's owner.
        permissions: `least`: those that the operations of the run need; `all`: all that the installation has.
    """

    client_id: str
    keys: tuple[str, ...] = ()
    sign: str = ""
    installation: int | None = None
    permissions: str = "least"


class TokenSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A token and its identity.

    Attributes:
        source: the place of the token.
        identity: a name that the user chose, under which answers are kept, whichever token brought them.
    """

    source: str
    identity: str


class LoginSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A login that `bulk login NAME` stored."""

    name: str


class PoolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Several credentials that are used in turn. `writes`: also for operations that write."""

    members: tuple[str, ...]
    writes: bool = False


Spec = AppSpec | TokenSpec | LoginSpec | PoolSpec
_KINDS: dict[str, type[Spec]] = {"app": AppSpec, "token": TokenSpec, "login": LoginSpec, "pool": PoolSpec}
SpecT = TypeVar("SpecT", AppSpec, TokenSpec, LoginSpec, PoolSpec)


def can_sign() -> bool:
    """Return whether the packages that sign with a private key are installed, without importing them."""
    return find_spec("jwt") is not None and find_spec("cryptography") is not None


def text_of(kind: str, spec: Spec) -> str:
    """Return a spec as the text of a source."""
    return f"{kind}:{msgspec.json.encode(spec, order='sorted').decode()}"


def kind_of(source: str) -> str:
    """Return which of `MAP_KINDS` a source is; empty: the plain place of a token."""
    kind, _, rest = source.partition(":")
    return kind if kind in MAP_KINDS and rest.startswith("{") else ""


def written(source: str, folder: Path | None = None) -> object:
    """Return a source as a manifest writes it: a map if it is more than the place of a token.

    Args:
        folder: the folder in which its programs run; None: the folder of the manifest.
    """
    kind = kind_of(source)
    if not kind:
        return _running_in(source, folder)
    match msgspec.json.decode(source.partition(":")[2], type=_KINDS[kind]):
        case AppSpec() as app:
            keys = [_running_in(key, folder) for key in app.keys]
            signing = {"sign": _running_in(app.sign, folder)} if app.sign else {"private_key": keys}
            fixed = {} if app.installation is None else {"installation": app.installation}
            everything = {} if app.permissions == "least" else {"permissions": app.permissions}
            return {"app": {"client_id": app.client_id, **signing, **fixed, **everything}}
        case TokenSpec() as token:
            return {"token": _running_in(token.source, folder), "identity": token.identity}
        case PoolSpec() as pool:
            return {"pool": pool.members, "writes": pool.writes}
        case LoginSpec() as login:
            return {"login": login.name}


def _running_in(source: str, folder: Path | None) -> str:
    kind, _, program = source.partition(":")
    if folder is None or kind != "command":
        return source
    return f"""command:sh -c 'cd "$0" && exec "$@"' {shlex.quote(str(folder))} {program}"""


def spec_of(source: str, kind: type[SpecT]) -> SpecT | None:
    """Return the spec in a source; None: the source is of another kind."""
    name, _, rest = source.partition(":")
    return msgspec.json.decode(rest, type=kind) if _KINDS.get(name) is kind and rest.startswith("{") else None
