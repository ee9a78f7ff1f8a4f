"""A bill of materials, whatever the form of its file: packages, their dependencies, and the bill's subject. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


class BillFlaw(ValueError):
    """A file is not a bill of materials, or one that can't be used; the message says why."""


@dataclass(slots=True)
class Bill:
    """One bill of materials.

    Attributes:
        name: the name of its subject; empty where the bill does not tell.
        created: when the bill was made (ISO 8601), as it says; empty where it does not tell.
        packages: reference of a component -> its package URL, for components that have one.
        development: references of components that are not needed at run time.
        depends_on: reference -> the references that it depends on.
        roots: references of the subjects of the bill: their dependencies are direct.
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
        """Add components: the reference and package URL of each, and whether it is not needed at run time.

        A component without a package URL is only counted. A component without a reference, or with a reference that
        another component has taken, goes by its URL. The one root of a bill is left out, even if the bill lists it;
        several roots are kept.
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
        """Add dependencies of a component to those that are known already."""
        self.depends_on.setdefault(reference, []).extend(children)


@dataclass(frozen=True, slots=True)
class Graph:
    """The packages of a bill and their dependencies, by package URL; test oracles give the same form.

    Attributes:
        edges: package URL -> package URLs of its children, sorted.
    """

    edges: Mapping[str, list[str]]


def graph_of(bill: Bill) -> Graph:
    """Return the packages and edges of a bill; components without a package URL are left out, with their edges."""
    url_of = bill.packages.get
    edges: dict[str, list[str]] = {url: [] for url in bill.packages.values()}
    for reference, children in bill.depends_on.items():
        if children and (url := url_of(reference)):
            edges[url] += [found for child in children if (found := url_of(child)) and found != url]
    for url, several in edges.items():
        if len(several) > 1:
            edges[url] = sorted(set(several))
    return Graph(edges)
