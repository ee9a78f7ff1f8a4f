"""The settings of a sandbox, and how they are read from the texts of the command line.

A wrong setting is a `SettingError` that says what is wrong, why, and how it is written right. Nothing in this module
opens a file or a socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

VENDORS = ("service", "github")
ETAGS = ("token", "content")
FAULT_KINDS = (
    "drop-before",
    "drop-after",
    "error-after",
    "unavailable",
    "truncate",
    "slow",
    "html",
    "reset",
    "limited",
    "forbidden",
)
RATE_LIMIT_FAULT = "rate_limit:"
MOST_WAIT_S = 3_600
"""The longest latency, and the longest time for which a new token is not taken (seconds)."""
MOST_TOKEN_S = 366 * 86_400
"""The longest life of a token of the command line (seconds)."""
HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
BASE_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


class SettingError(ValueError):
    """The sandbox can't be started with these settings. The message says what is wrong, why, and gives an example."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One category's allowance.

    Attributes:
        limit: requests in a window (count, >= 1).
        seconds: length of a window (whole seconds, >= 1).
    """

    limit: int
    seconds: int

    def __post_init__(self) -> None:
        if self.limit < 1 or self.seconds < 1:
            raise SettingError(
                f"a rate limit of {self.limit}/{self.seconds}: both must be whole numbers from 1 on, as in core=1000/5"
            )


# The 12 categories of the specification; the numbers are the public ones of open-points.md.
DEFAULT_RATE_LIMITS: Mapping[str, RateLimit] = MappingProxyType(
    {
        "core": RateLimit(5000, 3600),
        "search": RateLimit(30, 60),
        "code_search": RateLimit(10, 60),
        "graphql": RateLimit(5000, 3600),
        "integration_manifest": RateLimit(5000, 3600),
        "dependency_snapshots": RateLimit(100, 60),
        "dependency_sbom": RateLimit(100, 60),
        "code_scanning_upload": RateLimit(1000, 3600),
        "code_scanning_autofix": RateLimit(10, 60),
        "actions_runner_registration": RateLimit(10000, 3600),
        "scim": RateLimit(15000, 3600),
        "source_import": RateLimit(100, 60),
    }
)


@dataclass(frozen=True, slots=True)
class ExtraToken:
    """A token of the command line: a classic one with every scope, of this start of the sandbox only.

    Attributes:
        token: its text.
        user: login of its user.
        seconds: how long after the start it ends; None: never.
    """

    token: str = field(repr=False)
    user: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a sandbox.

    Attributes:
        host: address to listen on.
        port: TCP port; 0: any free one.
        state: directory of the state; None: a temporary one, removed at the end.
        vendor: `service` or `github`: the name inside headers and media types.
        seed_data: a YAML or JSON file that adds to the standard data or replaces it (`seeds.py`).
        rate_limits: allowances by category; a category that is not named keeps its default.
        rate_limit_off: no limits at all, and `GET /rate_limit` is 404.
        tokens: tokens besides those of the data.
        latency_ms: how long every request takes besides its own work (milliseconds).
        faults: share (0 to 1) of requests hit by each kind; only `rate_limit:KIND` hits `GET /rate_limit`.
        fault_seed: the same seed and order of requests gives the same faults.
        journal: file that gets one JSON line for each request; None: none.
        deliver_to: names or addresses of hosts that webhooks may reach besides loopback.
        etag: `token`: validators depend on who asked, as the public platform's do; `content`: on the answer alone.
            The default is `token` for the vendor `github`.
        mint_lag_s: how long a new token of an installation is refused after it was made (seconds).
        base_path: the beginning of the path of every request; empty, as in a cloud edition.
    """

    host: str = "127.0.0.1"
    port: int = 0
    state: Path | None = None
    vendor: str = "service"
    seed_data: Path | None = None
    rate_limits: Mapping[str, RateLimit] = field(default_factory=lambda: DEFAULT_RATE_LIMITS)
    rate_limit_off: bool = False
    tokens: tuple[ExtraToken, ...] = ()
    latency_ms: float = 0.0
    faults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    fault_seed: int = 0
    journal: Path | None = None
    deliver_to: tuple[str, ...] = ()
    base_path: str = "/api/v3"
    etag: str = ""
    mint_lag_s: float = 0.0

    def __post_init__(self) -> None:
        if self.vendor not in VENDORS:
            raise SettingError(f"vendor {self.vendor!r} is unknown: use service or github")
        if not 0 <= self.port <= 65535:
            raise SettingError(f"port {self.port} is not between 0 and 65535 (0 takes any free port)")
        if not 0 <= self.latency_ms <= MOST_WAIT_S * 1000:  # not so for nan either
            most = f"from 0 to {MOST_WAIT_S * 1000:,}"
            raise SettingError(f"--latency {self.latency_ms:g} is not a number of milliseconds {most}, as in 25")
        if self.etag not in ("", *ETAGS):
            raise SettingError(f"--etag {self.etag!r} is unknown: use token or content")
        if not 0 <= self.mint_lag_s <= MOST_WAIT_S:
            raise SettingError(
                f"--mint-lag {self.mint_lag_s:g} is not a number of seconds from 0 to {MOST_WAIT_S:,}, as in 4"
            )
        if any(token.seconds is not None and not 0 <= token.seconds <= MOST_TOKEN_S for token in self.tokens):
            raise SettingError(f"--token: a token ends after 0 to {MOST_TOKEN_S:,} seconds, as in rehearsal=alice:90")
        for category in self.rate_limits:
            if category not in DEFAULT_RATE_LIMITS:
                raise SettingError(f"rate limit of {category!r}: the categories are {', '.join(DEFAULT_RATE_LIMITS)}")
        for host in self.deliver_to:
            if not HOST.fullmatch(host):
                raise SettingError(
                    f"--deliver-to {host!r}: write the name or address of a host alone, as in hooks.example.com"
                )
        if not BASE_PATH.fullmatch(self.base_path):
            raise SettingError(f"--base-path {self.base_path!r}: write a plain path, as in /api/v3, or / for none")
        object.__setattr__(self, "rate_limits", MappingProxyType({**DEFAULT_RATE_LIMITS, **self.rate_limits}))
        self._check_faults()

    @property
    def etag_is_of_token(self) -> bool:
        """Whether validators depend on who asked."""
        return (self.etag or ("token" if self.vendor == "github" else "content")) == "token"

    def _check_faults(self) -> None:
        for kind, share in self.faults.items():
            if kind.removeprefix(RATE_LIMIT_FAULT) not in FAULT_KINDS:
                raise SettingError(f"fault {kind!r} is unknown: the kinds are {', '.join(FAULT_KINDS)}")
            if not 0 <= share <= 1:
                raise SettingError(f"fault {kind}={share:g}: a share is between 0 and 1, as in {kind}=0.05")
        for spared in (False, True):
            total = sum(share for kind, share in self.faults.items() if kind.startswith(RATE_LIMIT_FAULT) == spared)
            if total > 1 + 1e-9:
                raise SettingError(f"the shares of all faults are {total:g} together: they must not exceed 1")

    @classmethod
    def from_options(
        cls,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        state: Path | str | None = None,
        vendor: str = "service",
        seed_data: Path | str | None = None,
        rate_limit: Sequence[str] = (),
        token: Sequence[str] = (),
        latency: float | str = 0.0,
        fault: Sequence[str] = (),
        fault_seed: int = 0,
        journal: Path | str | None = None,
        deliver_to: Sequence[str] = (),
        base_path: str = "/api/v3",
        etag: str | None = None,
        mint_lag: float | str = 0.0,
    ) -> Settings:
        """Return the settings for the options of `bulk sandbox`, each given as its text on the command line.

        Raises:
            SettingError: an option is wrong.
        """
        off = "off" in rate_limit
        if off and len(rate_limit) > 1:
            raise SettingError("--rate-limit off stands alone: without limits, a category has no number")
        return cls(
            host=host,
            port=port,
            state=None if state is None else Path(state),
            vendor=vendor,
            seed_data=None if seed_data is None else Path(seed_data),
            rate_limits={} if off else dict(_rate_limit(text) for text in rate_limit),
            rate_limit_off=off,
            tokens=tuple(_token(text) for text in token),
            latency_ms=_number("--latency ", str(latency), "25"),
            faults=dict(_fault(text) for text in fault),
            fault_seed=fault_seed,
            journal=None if journal is None else Path(journal),
            deliver_to=tuple(deliver_to),
            base_path=base_path.rstrip("/"),
            etag=etag or "",
            mint_lag_s=_number("--mint-lag ", str(mint_lag), "4"),
        )


def _number(option: str, text: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"{option}{text!r} is not a number: write {option}{example}") from None


def _rate_limit(text: str) -> tuple[str, RateLimit]:
    found = re.fullmatch(r"([a-z_]+)=([0-9]{1,12})/([0-9]{1,9})", text)
    if found is None:
        raise SettingError(f"--rate-limit {text!r}: write CATEGORY=LIMIT/SECONDS, as in core=1000/5, or off")
    return found[1], RateLimit(int(found[2]), int(found[3]))


def _token(text: str) -> ExtraToken:
    # The message leaves the text out, because it holds a token.
    found = re.fullmatch(r"([\x21-\x39\x3b-\x3c\x3e-\x7e]+)=([A-Za-z0-9-]+)(?::([0-9]+(?:\.[0-9]+)?))?", text)
    if found is None:
        raise SettingError("--token: write NAME=USER or NAME=USER:SECONDS, as in rehearsal=alice:90 (no spaces)")
    return ExtraToken(found[1], found[2], None if found[3] is None else float(found[3]))


def _fault(text: str) -> tuple[str, float]:
    kind, equals, share = text.partition("=")
    if not equals:
        raise SettingError(f"--fault {text!r}: write KIND=SHARE, as in drop-after=0.05 (or drop-after=5%)")
    if share.endswith("%"):
        return kind, _number(f"--fault {kind}=", share[:-1], "5%") / 100
    return kind, _number(f"--fault {kind}=", share, "0.05")
