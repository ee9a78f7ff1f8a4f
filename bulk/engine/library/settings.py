"""Settings of the library's engine: the platform and the limits, named as the options of the command line are.

The settings are checked when the engine is made, and error messages name the argument.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from bulk.errors import UsageError
from bulk.flaws import Flaws, unknown_name
from bulk.manifest.fields import Fields
from bulk.manifest.settings import Overrides, limits_of, read_platform


class EngineSettings(TypedDict, total=False):
    """Keywords of `Engine`, `bulk.run` and `bulk.map`. One that is left out is as in the manifest, or else the default.

    Attributes:
        base_url: address of the API, `https://HOST/api/v3`; default: BULK_BASE_URL.
        credential: where the token is (`env:NAME`, `file:PATH`, `command:PROGRAM ARG…`), never the token itself;
            a mapping names the source of several credentials. Default: `env:BULK_TOKEN`.
        vendor: `service` (default) or `github`: the name inside headers and media types.
        concurrency: greatest number of requests in flight (count; default 64).
        reserve: part of every budget that is left to other users: requests (`500`) or a share (`"10%"`); default 0.
        failures: the run stops when more items fail: a count or a share; default: never.
        ca_bundle: file of the certificates that are trusted beside the system's (PEM).
        trust_env: use the proxies of the environment; default False.
        cache: folder of stored validators and bodies; default: none are kept.
        environ: environment variables, for `env:`, BULK_BASE_URL, BULK_TOKEN and BULK_VENDOR; default: those of the
            process.
    """

    base_url: str
    credential: str | Mapping[str, str]
    vendor: str
    concurrency: int
    reserve: int | str
    failures: int | str
    ca_bundle: str | Path
    trust_env: bool
    cache: str | Path | None
    environ: Mapping[str, str]


def overrides_from(settings: EngineSettings, environ: Mapping[str, str]) -> Overrides:
    """Return the settings in the form in which the stages of a run take them.

    Raises:
        UsageError: a setting can't be used, or no platform is named.
        TypeError: there is no setting of that name.
    """
    for name in settings:
        if name not in EngineSettings.__annotations__:
            raise TypeError(f"{name}: {unknown_name(name, EngineSettings.__annotations__, 'setting')}")
    credential = settings.get("credential")
    ca_bundle = settings.get("ca_bundle")
    found = Overrides(
        base_url=settings.get("base_url"),
        vendor=settings.get("vendor"),
        credentials={}
        if credential is None
        else {"default": credential}
        if isinstance(credential, str)
        else credential,
        concurrency=settings.get("concurrency"),
        reserve=settings.get("reserve"),
        failures=settings.get("failures"),
        ca_bundle=None if ca_bundle is None else str(ca_bundle),
        trust_env=settings.get("trust_env"),
    )
    try:
        read_platform(found, environ)
        limits_of(Fields("", None, "limits", Flaws()), found)
    except UsageError as error:
        raise UsageError(_as_argument(str(error))) from None
    return found


def _as_argument(message: str) -> str:
    """Return a message about a command-line option with the name of the matching argument in its place."""
    if message.startswith("no platform is named"):
        return "no platform is named: give base_url, or set BULK_BASE_URL"
    return re.sub(r"^--([a-z-]+)( \S+:)?", lambda found: found[1].replace("-", "_") + (found[2] or ""), message)
