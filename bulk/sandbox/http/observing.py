"""An observer for tests, which sees every answer as it leaves. There is none unless a test asks for it.

`opened(..., observe=...)` takes a function. Without it, the environment variable `BULK_SANDBOX_OBSERVER` may name a
module with a function `observe`, so that a sandbox in a process of its own can be watched, too. An observer sees
answers without the effects of faults, which are not the platform's. It changes nothing and must not raise.
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
        method, path: those of the request, as sent; the path has no query.
        route: the endpoint; None: the request has no endpoint.
        version, media: the negotiated ones; the oldest version and `json` where the request was refused before.
        status, headers: those of the answer.
        body: the bytes of the answer; empty where there are none.
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
    """Return the observer that `BULK_SANDBOX_OBSERVER` names; None: the variable is not set.

    Raises:
        SettingError: there is no such module, or the module has no `observe`.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    try:
        return cast("Observe", importlib.import_module(name).observe)
    except (ImportError, AttributeError) as error:
        raise SettingError(f"{VARIABLE}={name}: {error}: name a module that has a function observe") from None
