"""What an enterprise's code security settings are, as they are given and as they are shown, in forms to compare."""

from collections.abc import Mapping
from typing import Any

from bulk_jobs.shared import normal_forms

LINK = "secret_scanning_push_protection_custom_link"
UNREADABLE = "advanced_security_enabled_new_user_namespace_repos"
"""The setting that can be set but not read."""


def is_so(given: dict[str, Any], shown: Any) -> bool:
    """Return whether all settings that can be read are as given; a null switch is off, and a switch that is not shown
    is neither on nor off."""
    return all(
        form(name, shown.get(name)) == form(name, value) and (name in shown or name == LINK)
        for name, value in given.items()
        if name != UNREADABLE
    )


def is_left(given: Mapping[str, Any], shown: Any) -> bool:
    """Return whether all settings that can be read are as a run has left them; the platform may have given the link a
    slash at its end, or taken it away."""
    others = {name: value for name, value in given.items() if name != LINK}
    return is_so(others, shown) and (LINK not in given or _loosely(shown.get(LINK)) == _loosely(given[LINK]))


def not_left(given: Mapping[str, Any], shown: Any) -> list[str]:
    """Return the settings that are not as a run has left them."""
    return [name for name, value in given.items() if not is_left({name: value}, shown)]


def has_become(given: dict[str, Any], before: Mapping[str, Any], shown: Any) -> bool:
    """Return whether a change of these settings shows. A slash at the end of the link counts only where nothing else of
    it was to be changed."""
    is_more = LINK in given and LINK in before and _loosely(before[LINK]) != _loosely(given[LINK])
    return is_left(given, shown) if is_more else is_so(given, shown)


def part(given: dict[str, Any], before: Mapping[str, Any], shown: Any) -> dict[str, Any]:
    """Return the settings that are as given, and were not before."""
    asked = [{name: value} for name, value in given.items() if name in before]
    return {name: each[name] for each in asked if is_so(each, shown) and not is_so(each, before) for name in each}


def is_third(wanted: Any, before: Any, found: Any) -> bool:
    """Return whether a link is neither as before nor as asked for."""
    return _loosely(found) not in (_loosely(before), _loosely(wanted))


def _loosely(link: Any) -> Any:
    return normal_forms.url(link or "")


def form(name: str, value: Any) -> Any:
    """Return a setting in the form in which it is compared; a link may be shown in another form than it was sent, and
    an empty one is none."""
    return normal_forms.exact_url(value or "") if name == LINK else plain(name, value)


def plain(name: str, value: Any) -> Any:
    """Return a setting in the form in which it is sent. A null switch is off; a switch that is shown as
    something else than on or off stays as it is, and equals neither."""
    if name == LINK:
        return value or None
    form = normal_forms.switch(False if value is None else value)
    return form == "1" if form in ("0", "1") else value


def is_told(name: str, value: Any) -> bool:
    """Return whether a shown setting is one that an item can have."""
    return name == LINK or isinstance(plain(name, value), bool)
