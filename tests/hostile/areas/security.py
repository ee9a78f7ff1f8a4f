"""The legacy settings of an enterprise. Keys: ("security", enterprise), ("product", enterprise, product)."""

from tests.hostile.http.messages import Answer, nothing, refused, shown
from tests.hostile.http.turn import Turn

PRODUCTS = (
    "advanced_security",
    "advanced_security_user_namespace",
    "dependabot_alerts",
    "secret_scanning",
    "secret_scanning_push_protection",
    "secret_scanning_non_provider_patterns",
)
STARTS_S = 0.7
"""How long a change takes in the background (seconds)."""


def get(turn: Turn) -> Answer:
    """The settings. The one for user namespaces is in requests only."""
    found = turn.get("security", turn.names["enterprise"])
    if found is None:
        return refused(404, "no such enterprise")
    return shown(200, turn.normal.options({key: value for key, value in found.items() if "user_namespace" not in key}))


def update(turn: Turn) -> Answer:
    """Change the settings that are sent, in the background."""
    key = ("security", turn.names["enterprise"])
    found = turn.get(*key)
    if found is None:
        return refused(404, "no such enterprise")
    sent = turn.ask.json()
    link = "secret_scanning_push_protection_custom_link"
    if link in sent:
        sent = {**sent, link: turn.normal.url(sent[link])}
    latest = turn.coming(*key)
    changed = {**latest, **sent}
    if changed != latest:
        turn.change("settings", key, changed, STARTS_S)
    return nothing(204)


def enable(turn: Turn) -> Answer:
    """Switch a product on or off in all repositories."""
    enterprise, product, wish = (turn.names[name] for name in ("enterprise", "product", "enablement"))
    if turn.get("security", enterprise) is None or product not in PRODUCTS:
        return refused(404, "no such enterprise or product")
    if wish not in ("enable_all", "disable_all"):
        return refused(404, "neither enable_all nor disable_all")
    if turn.get("product", enterprise, product) != wish:
        turn.change("product", ("product", enterprise, product), wish)
    return nothing(204)
