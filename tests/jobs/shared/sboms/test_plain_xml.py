"""XML that is taken from its text gives what a tree of it gives; what is written in another way is left to the tree."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk_jobs.shared.sboms.bill import BillFlaw
from bulk_jobs.shared.sboms.cyclonedx_xml import NAMESPACE, read_tree, read_xml
from bulk_jobs.shared.sboms.plain_xml import STEP_BYTES, Unplain, read_plain
from tests.jobs.shared.sboms.bills import cyclonedx_xml, graph

SPACE = f"{NAMESPACE}1.6"


def plainly(text):
    """What is taken from the text; both ways have to say the same."""
    data = text if isinstance(text, bytes) else text.encode()
    bill = read_plain(data, SPACE, lambda head: read_tree(head, SPACE))
    assert bill == read_tree(data, SPACE)
    return bill


def bom(components="", dependencies="", before="", after=""):
    """A bill as most tools write it."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<bom xmlns="{SPACE}" serialNumber="urn:uuid:1" version="1">{before}'
        f"<components>{components}</components><dependencies>{dependencies}</dependencies>{after}</bom>\n"
    )


def component(name, *children, scope="", url=True):
    """A component with its children, the package URL among them."""
    within = f"<components>{''.join(children)}</components>" if children else ""
    return (
        f'<component type="library" bom-ref="{name}"><supplier><name>s</name></supplier><name>{name}</name>'
        f"{f'<scope>{scope}</scope>' if scope else ''}<hashes><hash alg='x'>1</hash></hashes>"
        f"{f'<purl>pkg:npm/{name}?a=b&amp;c=d</purl>' if url else ''}<evidence><a/></evidence>{within}</component>"
    )


METADATA = (
    "<metadata><timestamp>2026-11-24T08:00:00Z</timestamp><tools><components><component><name>tool</name></component>"
    '</components></tools><component bom-ref="app"><name>app</name></component></metadata>'
)
PLAIN = {
    "components in each other": bom(component("a", component("b", component("c", url=False)), component("d"))),
    "a scope": bom(component("a", scope="optional") + component("b", scope="required", url=False)),
    "sections before and after": bom(component("a"), before=METADATA, after="<vulnerabilities><v/></vulnerabilities>"),
    "dependencies": bom(
        component("a"),
        '<dependency ref="a"><dependency ref="b"/>\n<dependency ref="c"></dependency></dependency>'
        '<dependency ref="b"/><dependency ref="c&lt;"></dependency>'
        '<dependency ref="a"><dependency ref="d"/></dependency>',
    ),
    "nothing": bom(),
    "white space": bom(component("a", component("b"))).replace("><", ">\r\n  <"),
    "another namespace": bom(component("a")).replace("<bom", '<bom xmlns:v="https://vendor.example.com"'),
    "one reference of two": bom(component("a") + component("a").replace("npm/a", "npm/b")),
}


@pytest.mark.parametrize("case", PLAIN)
def test_what_most_tools_write_is_taken_from_its_text(case):
    """It is plain, and read as by way of a tree."""
    plainly(PLAIN[case])


def test_a_large_bill_is_taken_in_pieces():
    """Pieces are cut before a component or a dependency, and nothing is lost between them."""
    text = cyclonedx_xml(graph(8_000, seed=3)).replace(b"/1.5", b"/1.6")
    assert len(text) > 6 * STEP_BYTES
    assert len(plainly(text).packages) > 7_000


UNPLAIN = {
    "a comment": bom(f"<!-- <component -->{component('a')}"),
    "an instruction": bom(component("a"), before="<?x <components?>"),
    "CDATA": bom(component("a").replace(">a<", "><![CDATA[<purl>]]><")),
    "another encoding": bom(component("a")).replace("UTF-8", "ISO-8859-1"),
    "a default namespace within": bom(component("a").replace("<purl>", '<purl xmlns="urn:x">')),
    "two names of the namespace": bom(component("a")).replace("<bom", f'<bom xmlns:c="{SPACE}"'),
    "a package URL that lies deeper": bom(
        component("a").replace("<purl>", "<x><purl>").replace("</purl>", "</purl></x>")
    ),
    "a scope that lies deeper": bom(component("a").replace("<hashes>", "<x><y/><scope>optional</scope></x><hashes>")),
    "an ancestor": bom(component("a").replace("<a/>", f"<pedigree><ancestors>{component('b')}</ancestors></pedigree>")),
    "a character by number": bom(component("a").replace("c=d", "c=&#100;")),
    "single quotes": bom(component("a").replace('bom-ref="a"', "bom-ref='a'")),
    "a reference in an attribute": bom(component("a").replace('type="library"', "type=' bom-ref=\"b\"'")),
    "text between components": bom(component("a") + "text" + component("b")),
    "how it was made": bom(
        component("a"), after=f"<formulation><components>{component('b')}</components></formulation>"
    ),
    "a component that is empty": bom('<component bom-ref="a"/>' + component("b")),
    "components that lie deeper": bom(
        component("a", component("b"))
        .replace("</evidence><components>", "</evidence><x><components>")
        .replace("</components></component>", "</components></x></component>")
    ),
    "what follows components within": bom(
        component("a", component("b")).replace("</components></component>", "</components><x/></component>")
    ),
    "dependencies of dependencies": bom(
        "", '<dependency ref="a"><dependency ref="b"><dependency ref="c"/></dependency></dependency>'
    ),
    "a line in a reference": bom("", '<dependency ref="a\nb"/>'),
    "a line in the reference of a component": bom(component("a").replace('ref="a"', 'ref="a\nb"')),
    "what it provides": bom("", '<dependency ref="a"><provides ref="b"/></dependency>'),
}


@pytest.mark.parametrize("case", UNPLAIN)
def test_what_is_written_in_another_way_is_left_to_the_tree(case):
    """It is well-formed, and what it says can't be taken from its text by few rules."""
    data = UNPLAIN[case].encode()
    with pytest.raises(Unplain):
        plainly(data)
    assert read_xml(data) == read_tree(data, SPACE)


NAMES = st.sampled_from(["component", "components", "purl", "scope", "name", "pedigree", "dependency", "dependencies"])
TEXTS = st.sampled_from(["", " ", "\n", "a", "pkg:npm/a", "optional", "/>", ">", "&lt;purl>", "&amp;", "&#9;"])
ATTRIBUTES = st.sampled_from(
    [
        "",
        ' bom-ref="a"',
        ' ref="a"',
        ' ref="b"',
        ' ref="a>" bom-ref="b"',
        " ref='\"'",
        ' x=">" ref="b/>"',
        "\nbom-ref = 'a'",
    ]
)
ELEMENTS = st.recursive(
    st.builds("<{0}{1}/>".format, NAMES, ATTRIBUTES) | TEXTS,
    lambda inner: st.builds(
        lambda name, attributes, parts: f"<{name}{attributes}>{''.join(parts)}</{name}>",
        NAMES,
        ATTRIBUTES,
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ELEMENTS, max_size=4), st.lists(ELEMENTS, max_size=4), st.sampled_from(["", METADATA]))
def test_whatever_is_well_formed_is_read_as_by_way_of_a_tree(components, dependencies, before):
    """Elements in each other in any way, with what could be taken for a tag in their texts and attributes."""
    with suppress(Unplain):
        plainly(bom("".join(components), "".join(dependencies), before))


DEPENDENCIES = (
    b'<dependency ref="a"><dependency ref="b"/> <dependency ref="c"></dependency></dependency>'
    b'\n<dependency ref="b"/><dependency ref="c"></dependency>'
)
PARTS = [bytes([each]) for each in b"\"<>/& \n\r\x0b\x01'x"] + [b"", b"/>", b"&amp;", b"&b;", b"&#9;", b"]]>"]
PARTS += [b'<dependency ref="', b"<dependency>", b"</dependency>", b"<dependencies>", b"</dependencies>"]
PARTS += ["\xa0".encode(), "\ufffe".encode(), b"\xff", b"\xed\xa0\x80", "\xe9".encode(), b'" ref="b', b"<!---->"]


@pytest.mark.parametrize("encoding", ["UTF-8", "US-ASCII"])
@pytest.mark.parametrize("left_out", [0, 1, len('<dependency ref="b"/>')])
def test_dependencies_that_are_not_well_formed_are_refused_without_the_parser(encoding, left_out):
    """It does not see them: what stands anywhere instead of a part of them is plain only where the tree reads it."""
    before, after = bom(component("a"), "HERE").replace("UTF-8", encoding).encode().split(b"HERE")
    for place in range(len(DEPENDENCIES) + 1):
        for part in PARTS:
            with suppress(Unplain):
                plainly(before + DEPENDENCIES[:place] + part + DEPENDENCIES[place + left_out :] + after)


@pytest.mark.parametrize(
    "dependencies",
    [
        '<dependency ref="a"/></dependency><dependency ref="b"/></dependency>',
        '<dependency ref="a"><dependency ref="b"><dependency ref="c"/><dependency ref="d"/>',
    ],
)
def test_tags_that_end_nothing_and_tags_that_do_not_end_are_refused(dependencies):
    """Two errors do not make up for each other."""
    data = bom(component("a"), dependencies).encode()
    with pytest.raises(Unplain):
        plainly(data)
    with pytest.raises(BillFlaw, match="mismatched tag"):
        read_xml(data)


def seconds_of(children):
    """What it takes to see that a component of `children` children is none that is plain (CPU time)."""
    text = bom(f'<component bom-ref="a"><x><y/></x>{"<z>1</z>" * children}<component/></component>')
    began = time.thread_time()
    read_xml(text.encode())
    return time.thread_time() - began


def test_what_is_not_plain_is_seen_in_a_time_that_grows_with_its_size_alone():
    """No rule is tried again and again."""
    small, large = (min(seconds_of(children) for _ in range(3)) for children in (2_000, 32_000))
    assert large < 40 * small
