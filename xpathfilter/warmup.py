"""Compile every kernel now, so that nobody's first document waits for it.

    python -c "import xpathfilter; xpathfilter.warm_up()"        after installing

Later processes find the machine code on disk.

A process that finds it there needs well under two seconds to its first match; one that does not, because it
was never compiled or could not be written, compiles on first use unless `warm_up` was called before.
"""

from sievecore.settling import settle
from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.index import XPathIndex
from xpathfilter.scheduler import MODES

__all__ = ["warm_up"]

EXPRESSIONS = [
    "//a[@x='1']/b",
    "/a[@y > 2][not(contains(., 'z'))]//c[b = 'q']/text()",
    "//a or not(//p:b)",
    "//b[last()]",
]
DOCUMENT = "<a x='1' y='3'>t<b>q</b><c>v<b>q</b></c></a>"
LEVELS, MANY_CHILDREN = 70, 2000


def warm_up() -> None:
    """Run every kernel once on a small index, and take what is loaded by then out of the garbage collector's sight."""
    deep = "<a>" * LEVELS + "</a>" * LEVELS
    large = f"<a>{'<b/>' * MANY_CHILDREN}</a>"
    for algorithm in ALGORITHMS:
        index = XPathIndex(algorithm)
        ids = index.add_many(EXPRESSIONS, {"p": "urn:p"})
        for mode in MODES:
            index.match_many([DOCUMENT, deep], mode=mode, threads=2)
        index.match_many([DOCUMENT, deep], threads=1)
        for document in (DOCUMENT, large):
            index.match(document)
        index.explain(int(ids[0]), DOCUMENT)
        index.remove(index.add("//d"))
        index.merge()
    settle()
