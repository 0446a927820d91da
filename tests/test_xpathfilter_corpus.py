"""Real documents: for expressions made from what stands in them, the index and lxml agree.

    <gpx xmlns="…/GPX/1/0"><trk><trkpt lat="46.43"/></trk></gpx>

    //n0:trkpt[@lat = '46.43']     /n0:gpx/*//n0:trkpt[@lat < 46.43]     /n0:gpx[not(n0:trk = 'x')]     …

Expressions are drawn with a seed, from some documents of a kind, and asked of others of the same kind too.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import oracle
import pytest
from lxml import etree

from xpathfilter import DocumentError, DocumentLimits, XPathIndex

pytestmark = pytest.mark.kernels

KINDS = (
    *("atom", "camel-routes", "cap", "docbook", "gpx", "maven-pom", "nitf-yfilter", "soap", "synapse-config"),
    *("tei", "xmark"),
)
N_DOCUMENTS = 12
N_EXPRESSIONS = 300
ENTITIES = DocumentLimits(allow_entities=True)


class Author:
    """Writes expressions about documents it has read."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.prefixes: dict[str, str] = {}

    @property
    def namespaces(self) -> dict[str, str]:
        return {prefix: uri for uri, prefix in self.prefixes.items()}

    def expression(self, element: Any) -> str:
        """Something about an element: a path to it, or several in a combination, or a count."""
        path = self.path(element)
        form = self.random.choice(
            ("{0}",) * 6 + ("not({0})", "{0} and {1}", "{0} or {1}", "{0} | {1}", "count({0}) > 2")
        )
        return form.format(path, self.path(self.random.choice(list(element.getroottree().getroot().iter("*")))))

    def path(self, element: Any) -> str:
        """A path to an element, with some of its ancestors left out and some unnamed."""
        steps = [*reversed(list(element.iterancestors())), element]
        text, skipped = "", False
        for step in steps:
            if step is not element and self.random.random() < 0.4:
                skipped = True
                continue
            text += ("//" if skipped or self.random.random() < 0.2 else "/") + self.step(step)
            skipped = False
        return text + self.random.choice(("", "", "", "/text()", *(f"/@{self.name(key)}" for key in element.attrib)))

    def step(self, element: Any) -> str:
        name = "*" if self.random.random() < 0.15 else self.name(element.tag)
        facts = list(self.facts(element))
        return name + "".join(f"[{self.random.choice(facts)}]" for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))))

    def facts(self, element: Any) -> Iterator[str]:
        """What may be asked of the element; not all of it is true."""
        for key, value in element.items():
            yield f"@{self.name(key)}"
            yield from self.about(f"@{self.name(key)}", value)
        for child in element.iterchildren("*"):
            yield self.name(child.tag)
            yield from self.about(self.name(child.tag), "".join(child.itertext()))
        yield from self.about("text()", element.text or "")
        yield from ("not(*)", "not(@id)", "*[2]", "last()", "position() = 2")

    def about(self, subject: str, value: str) -> Iterator[str]:
        word = value.split()[0] if value.split() else "x"
        for literal in filter(None, (quoted(value), quoted(word), quoted(word[:3]))):
            yield self.random.choice(
                (f"{subject} = {literal}", f"{subject} != {literal}", f"not({subject} = {literal})")
            )
            yield self.random.choice((f"contains({subject}, {literal})", f"starts-with({subject}, {literal})"))
        number = etree.XPath("number($value)")(etree.Element("x"), value=value)
        if number == number and abs(number) < 1e9:
            nearby = self.random.choice((0, 0, 1, -1, 0.5))
            yield f"{subject} {self.random.choice(('=', '!=', '<', '<=', '>', '>='))} {number + nearby:.9f}"
            yield f"{number:.9f} {self.random.choice(('<', '>='))} {subject}"

    def name(self, tag: str) -> str:
        name = etree.QName(tag)
        if name.namespace is None:
            return name.localname
        if name.namespace == "http://www.w3.org/XML/1998/namespace":
            return f"xml:{name.localname}"
        prefix = self.prefixes.setdefault(name.namespace, f"n{len(self.prefixes)}")
        return f"{prefix}:{'*' if self.random.random() < 0.05 else name.localname}"


def quoted(text: str) -> str | None:
    """The text as a literal; None if XPath has none for it, or only a very long one."""
    if len(text) > 200 or ("'" in text and '"' in text):
        return None
    return f'"{text}"' if "'" in text else f"'{text}'"


def some_documents(folder: Path, random: Random) -> list[bytes]:
    """Documents of a kind that lxml can read."""
    files = sorted(folder.glob("*.xml"))
    documents = [file.read_bytes() for file in random.sample(files, min(len(files), N_DOCUMENTS))]
    return [document for document in documents if is_readable(document)]


def is_readable(document: bytes) -> bool:
    try:
        oracle.read(document)
    except etree.XMLSyntaxError:
        return False
    return True


def declares_entities(document: bytes) -> bool:
    dtd = oracle.read(document).getroottree().docinfo.internalDTD
    return dtd is not None and len(dtd.entities()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_expressions_about_real_documents_agree_with_lxml(shared: Path, kind: str) -> None:
    random = Random(kind)
    documents = some_documents(shared / "data" / "corpus" / kind, random)
    author = Author(random)
    elements = [element for document in documents for element in oracle.read(document).iter("*")]
    expressions = [author.expression(random.choice(elements)) for _ in range(N_EXPRESSIONS)]
    indexes = [XPathIndex(algorithm=algorithm, limits=ENTITIES) for algorithm in ("suffix", "delta")]
    for index in indexes:
        index.add_many(expressions, author.namespaces)
    subscriptions = dict(enumerate(expressions, start=1))
    n_found = 0
    for document in documents:
        for index in indexes:
            found = index.match(document)
            assert oracle.disagreements(found, subscriptions, document, author.namespaces) == {}
        n_found += len(found)
    assert 0.02 < n_found / (len(documents) * N_EXPRESSIONS) < 0.98


def test_every_real_document_can_be_matched_unless_lxml_cannot_read_it(shared: Path) -> None:
    index = XPathIndex(limits=ENTITIES)
    index.add("/*")
    files = sorted((shared / "data" / "corpus").glob("*/*.xml"))
    documents = [file.read_bytes() for file in files]
    found = index.match_many(documents)
    refused = {file for file, result in zip(files, found, strict=True) if isinstance(result, DocumentError)}
    assert refused == {file for file, document in zip(files, documents, strict=True) if not is_readable(document)}
    assert all(result.tolist() == [1] for result in found if not isinstance(result, DocumentError))
    assert len(files) > 700
    assert len(refused) < 5


def test_documents_that_declare_entities_are_refused_by_default(shared: Path) -> None:
    index = XPathIndex()
    index.add("/*")
    documents = [file.read_bytes() for file in sorted((shared / "data" / "corpus").glob("*/*.xml"))]
    refusable = [not is_readable(document) or declares_entities(document) for document in documents]
    found = index.match_many(documents)
    assert [isinstance(result, DocumentError) for result in found] == refusable
    assert sum(refusable) > 10
