"""A window for tests: whoever asks for it sees every answer as it leaves. Off unless asked for.

`opened(..., observe=...)` takes a function. Where none is given, the environment variable `BULK_SANDBOX_OBSERVER` may
name a module that has one called `observe`, so that also a sandbox in a process of its own can be watched. What faults
make of an answer is not shown: it is not the platform's. An observer changes nothing and must not raise.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from bulk.sandbox.http.routes import Route
from bulk.sandbox.settings import SettingError

VARIABLE: Final = "BULK_SANDBOX_OBSERVER"


@dataclass(frozen=True, slots=True)
class Observed:
    """One answer as it leaves.

    Attributes:
        method, path: of the request, as sent; the path has no query.
        route: the endpoint; None: there is none.
        version, media: what was negotiated; the oldest version and `json` where the request was refused before.
        status, headers: of the answer.
        body: its bytes; empty where there are none.
    """

    method: str
    path: str
    route: Route | None
    version: str
    media: str
    status: int
    headers: Mapping[str, str]
    body: bytes


Observe: TypeAlias = Callable[[Observed], None]


def from_environment() -> Observe | None:
    """Return the observer that `BULK_SANDBOX_OBSERVER` names; None: it is not set.

    Raises:
        SettingError: there is no such module, or it has no `observe`.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    try:
        return cast("Observe", importlib.import_module(name).observe)
    except (ImportError, AttributeError) as error:
        raise SettingError(f"{VARIABLE}={name}: {error}: name a module that has a function observe") from None
