"""The platform and the limits of a run: command line beats environment beats manifest (interface.md §4).

Values of the command line and the environment are checked like those of the manifest; a flaw names the option or the
variable.
"""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TypeVar

from bulk import quantities
from bulk.errors import UsageError
from bulk.flaws import Flaws, name_shown, unknown_name
from bulk.manifest import credentials_section, platform_section
from bulk.manifest.credential_specs import TokenSpec, kind_of, spec_of
from bulk.manifest.fields import Fields, one_of
from bulk.manifest.hours import hours_of
from bulk.manifest.manifest import Limits, Platform
from bulk.manifest.wave_settings import waves_of

VENDORS = ("service", "github")
PACES = ("even", "burst")
CONFIRMS = ("auto", "always")
DEFAULT_SOURCE = "env:BULK_TOKEN"
MOST_CONCURRENCY = 10_000
_API_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Overrides:
    """The options of the command line, as texts; None: the option was not given.

    Attributes:
        credentials: source by name, such as `env:NAME`; `file:` paths are relative to the current folder.
        named: names of those that the manifest, or the file of credentials, must have too.
        ca_bundle: path, relative to the current folder; trust_env: only the library gives these two.
        exact: `--exact`. credentials_file: `--credentials`: a file that holds the part `credentials`.
        variables: `--var`, by name. jobs: `--job`; none: all. with_needs: also the jobs that those need.
    """

    base_url: str | None = None
    vendor: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    concurrency: str | int | None = None
    reserve: str | int | None = None
    failures: str | int | None = None
    max_duration: str | int | None = None
    limit: str | int | None = None
    ca_bundle: str | None = None
    trust_env: bool | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    credentials_file: str | Path | None = None
    exact: bool = False
    jobs: tuple[str, ...] = ()
    with_needs: bool = False


def read_platform(overrides: Overrides, environ: Mapping[str, str]) -> Platform:
    """Return the platform that command line and environment name, without a manifest.

    Raises:
        UsageError: they name no platform, or one that can't be used.
    """
    platform = platform_of(
        Fields("", None, "platform", Flaws()), Path(), replace(overrides, named=frozenset()), environ
    )
    if platform is None:
        raise UsageError("no platform is named: give --base-url https://HOST/api/v3, or set BULK_BASE_URL")
    return platform


def platform_of(part: Fields, folder: Path, overrides: Overrides, environ: Mapping[str, str]) -> Platform | None:
    """Return the platform of a run; None, with a flaw noted, where none is named.

    Args:
        part: the manifest's `platform`.
        folder: folder of the manifest, to which its paths are relative.

    Raises:
        UsageError: a value of the command line or the environment can't be used.
    """
    is_insecure = part.flag("allow_insecure_http")

    def url(text: str) -> str:
        return platform_section.base_url(text, allow_insecure_http=is_insecure)

    base_url = _first(part.text("base_url", "", url), "--base-url", overrides.base_url, "BULK_BASE_URL", environ, url)
    vendor = part.choice("vendor", VENDORS[0], VENDORS)
    vendor = _first(vendor, "--vendor", overrides.vendor, "BULK_VENDOR", environ, lambda text: one_of(text, VENDORS))
    ca_bundle = part.scalar("ca_bundle", None, lambda given: _file(given, folder))
    trust_env = part.flag("trust_env")
    credentials, replaced = _credentials(part, folder, overrides, environ)
    found = Platform(
        base_url=base_url,
        vendor=vendor,
        api_version=part.text("api_version", None, _api_version),
        ca_bundle=_given("ca_bundle", overrides.ca_bundle, lambda given: _file(given, Path.cwd()), ca_bundle),
        credentials=credentials,
        trust_env=trust_env if overrides.trust_env is None else overrides.trust_env,
        is_exact=overrides.exact,
        replaced=replaced,
    )
    part.finish()
    if not base_url:
        if "base_url" not in part:
            part.flaw("base_url", "is missing: name the platform here, with --base-url or in BULK_BASE_URL")
        return None
    return found


def limits_of(part: Fields, overrides: Overrides) -> Limits:
    """Return the limits of a run; `part` is the manifest's `limits`.

    Raises:
        UsageError: a value of the command line can't be used.
    """
    usual = Limits()
    found = Limits(
        concurrency=part.scalar("concurrency", usual.concurrency, _concurrency),
        reserve=part.scalar("reserve", usual.reserve, quantities.reserve),
        failures=part.scalar("failures", None, quantities.share),
        request_timeout_s=part.scalar("request_timeout", usual.request_timeout_s, quantities.duration_s),
        unreachable_s=part.scalar("unreachable", usual.unreachable_s, quantities.duration_s),
        max_duration_s=part.scalar("max_duration", None, quantities.duration_s),
        settle_s=part.scalar("settle", usual.settle_s, quantities.duration_s),
        pace=part.choice("pace", PACES[0], PACES),
        confirm=part.choice("confirm", CONFIRMS[0], CONFIRMS),
        hours=hours_of(part),
        **waves_of(part),
    )
    part.finish()
    return replace(
        found,
        concurrency=_given("--concurrency", overrides.concurrency, _concurrency, found.concurrency),
        reserve=_given("--reserve", overrides.reserve, quantities.reserve, found.reserve),
        hours=found.hours if overrides.reserve is None else (),
        failures=_given("--failures", overrides.failures, quantities.share, found.failures),
        max_duration_s=_given("--max-duration", overrides.max_duration, quantities.duration_s, found.max_duration_s),
    )


def gentle_section(limits: Limits) -> dict[str, object]:
    """Return a section `limits` with the settings that spare the platform and its other users, or say how long to wait,
    as far as they are not the defaults. Limits that end or divide a run concern its own items, and are left out."""
    usual = _gentle(Limits())
    return {name: value for name, value in _gentle(limits).items() if value != usual[name]}


def _gentle(limits: Limits) -> dict[str, object]:
    return {
        "concurrency": limits.concurrency,
        "reserve": limits.reserve.given,
        "hours": {each.text: {"reserve": each.reserve.given} for each in limits.hours},
        "pace": limits.pace,
        "request_timeout": quantities.duration_text(limits.request_timeout_s),
        "unreachable": quantities.duration_text(limits.unreachable_s),
        "settle": quantities.duration_text(limits.settle_s),
    }


def refuse_values(overrides: Overrides) -> None:
    """Refuse options that no run could use, where there is nothing left to run that would refuse them.

    Raises:
        UsageError: the value of an option can't be used.
    """
    limits_of(Fields("", None, "limits", Flaws()), overrides)
    item_limit(overrides)
    _given(
        "--base-url", overrides.base_url, lambda text: platform_section.base_url(text, allow_insecure_http=True), ""
    )  # whether http is allowed is the manifest's to say
    _sources(overrides)


def item_limit(overrides: Overrides) -> int | None:
    """Return the value of `--limit`; None: it was not given.

    Raises:
        UsageError: the value is not a count.
    """
    return _given("--limit", overrides.limit, lambda given: quantities.count(given, 1, 10**12), None)


def _concurrency(given: object) -> int:
    return quantities.count(given, 1, MOST_CONCURRENCY)


def _api_version(text: str) -> str:
    with suppress(ValueError):
        if _API_VERSION.fullmatch(text):
            return date.fromisoformat(text).isoformat()
    raise ValueError('expected a date in quotes, such as "2026-03-10"')


def _file(given: object, folder: Path) -> Path | None:
    if not isinstance(given, str) or not given:
        raise ValueError(f"expected the path of a file, got {quantities.kind_of(given)}")
    path = platform_section.absolute(given, folder)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises where a name is too long
        raise ValueError("there is no such file")
    if not path.is_file():
        raise ValueError(f"is {'a folder' if path.is_dir() else 'not a regular file'}; name a file")
    return path


def _credentials(
    part: Fields, folder: Path, overrides: Overrides, environ: Mapping[str, str]
) -> tuple[Mapping[str, str], str]:
    """Return the credentials, and what of another kind than a token BULK_TOKEN has replaced; see `Platform`."""
    replaced, found = "", {"default": DEFAULT_SOURCE}
    found.update(credentials_section.credentials_of(part.inner("credentials"), folder))
    if overrides.credentials_file is not None:
        found.update(credentials_section.credentials_in(Path(overrides.credentials_file), part.flaws, found))
        part.flaws.raise_if_any()  # a job that names a credential of the file would add a second flaw
    named = spec_of(found["default"], TokenSpec)  # a map with this very variable also says whose the token is
    if environ.get("BULK_TOKEN") and (named is None or named.source != DEFAULT_SOURCE):
        if "default" not in overrides.credentials and named is None:
            replaced = kind_of(found["default"])
        found["default"] = DEFAULT_SOURCE
    for name in sorted(overrides.named - found.keys()):
        raise UsageError(f"--credential {name_shown(name)}: {unknown_name(name, found, 'credential')}")
    return found | _sources(overrides), replaced


def _sources(overrides: Overrides) -> dict[str, str]:
    """Return the sources of `--credential`, by name."""
    found: dict[str, str] = {}
    for name, source in overrides.credentials.items():
        try:
            is_map = bool(kind_of(source))  # from a run directory; the command line can't give a map
            found[name] = source if is_map else platform_section.credential_source(source, Path.cwd())
        except ValueError as error:
            raise UsageError(f"--credential {name_shown(name)}: {error}") from None
    return found


def _first(
    of_manifest: str,
    option: str,
    given: str | None,
    variable: str,
    environ: Mapping[str, str],
    read: Callable[[str], str],
) -> str:
    """Return the value that counts: of the command line, or else of the environment, or else of the manifest."""
    if given is None and environ.get(variable):
        option, given = variable, environ[variable]
    return _given(option, given, read, of_manifest)


def _given(option: str, given: "str | int | None", read: Callable[..., T], otherwise: T) -> T:
    if given is None:
        return otherwise
    try:
        return read(given)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
