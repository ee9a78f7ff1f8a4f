"""What the reference libraries find in a bill of materials is what we find: `make soak`."""

import random

import pytest

from bulk_jobs.shared.sboms.bill import graph_of
from bulk_jobs.shared.sboms.reading import read_bill
from tests.jobs.shared.sboms.bills import FORMS, graph
from tests.jobs.shared.sboms.oracles import edges_of

pytestmark = pytest.mark.soak
BILLS = 200


def sizes():
    """From a few packages to some hundreds."""
    dice = random.Random(3)
    return [min(3_000, int(2 ** dice.uniform(1, 9))) for _ in range(BILLS)]


@pytest.mark.timeout(3_600)
def test_packages_and_edges_are_those_of_the_reference_libraries():
    """200 bills of every size in three forms: the same package URLs, the same edges."""
    for seed, packages in enumerate(sizes()):
        made = graph(packages, seed)
        for make in FORMS.values():
            text = make(made)
            assert graph_of(read_bill(text)).edges == edges_of(text)
