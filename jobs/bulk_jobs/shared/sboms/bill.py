"""A bill of materials as all forms tell it: packages, who depends on whom, and what it is about. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


class BillFlaw(ValueError):
    """A file is no bill of materials that can be used; the message says why."""


@dataclass(slots=True)
class Bill:
    """One bill.

    Attributes:
        name: of what it is about; empty where it says nothing.
        created: when it was made (ISO 8601), as it says; empty where it says nothing.
        packages: package URL of each component that has one, by the component's own reference.
        development: references of components that are not needed when it runs.
        depends_on: references that each reference depends on.
        roots: references of what the bill is about: what they depend on is direct.
        without_url: components without a package URL (count).
    """

    name: str = ""
    created: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    development: set[str] = field(default_factory=set)
    depends_on: dict[str, list[str]] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    without_url: int = 0

    def add(self, components: Iterable[tuple[str | None, str, bool]]) -> None:
        """Take components: the reference and package URL of each, and whether it is not needed at run time.

        One without a package URL is counted, and one without a reference goes by its URL, as does one whose reference
        another one has taken. What the bill is about is no part of itself, also where it is listed; several roots are.
        """
        own, packages = (self.roots[0] if len(set(self.roots)) == 1 else None), self.packages
        for reference, url, is_development in components:
            key = reference or url
            if key == own:
                continue
            if not url:
                self.without_url += 1
                continue
            if packages.setdefault(key, url) != url:
                packages[key := url] = url
            if is_development:
                self.development.add(key)

    def link(self, reference: str, children: Iterable[str]) -> None:
        """Note what a component depends on, beside what was noted of it before."""
        self.depends_on.setdefault(reference, []).extend(children)


@dataclass(frozen=True, slots=True)
class Graph:
    """What a bill says of packages, by package URL, as oracles tell it too.

    Attributes:
        edges: package URLs of its children, sorted.
    """

    edges: Mapping[str, list[str]]


def graph_of(bill: Bill) -> Graph:
    """Return the packages and edges of a bill; what has no package URL is left out, and its edges with it."""
    url_of = bill.packages.get
    edges: dict[str, list[str]] = {url: [] for url in bill.packages.values()}
    for reference, children in bill.depends_on.items():
        if children and (url := url_of(reference)):
            edges[url] += [found for child in children if (found := url_of(child)) and found != url]
    for url, several in edges.items():
        if len(several) > 1:
            edges[url] = sorted(set(several))
    return Graph(edges)
