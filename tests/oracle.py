"""The obvious, slow way to match: lxml evaluates every expression on every document.

    subscriptions {7: "//a", 8: "a/b"}   document <a/>   ──▶   [7]

The context is the document node. lxml starts from the root element instead, so an expression becomes a
predicate of the document node: `a/b` is asked as `boolean(/self::node()[boolean(a/b)])`.

Nothing here comes from the packages under test.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lxml import etree

Namespaces = Mapping[str, str] | None


def read(document: bytes | str) -> Any:
    """The root element. Internal entities are replaced by their text; nothing is fetched."""
    data = document.encode() if isinstance(document, str) else document
    parser = etree.XMLParser(resolve_entities="internal", no_network=True, huge_tree=True)
    return etree.fromstring(data, parser)


def holds(expression: str, root: Any, namespaces: Namespaces = None) -> bool:
    """Whether the document of `root` matches."""
    return bool(_compiled(expression, tuple(sorted((namespaces or {}).items())))(root))


def outcomes(expressions: Sequence[str], document: bytes | str, namespaces: Namespaces = None) -> list[bool]:
    """Whether the document matches each expression."""
    root = read(document)
    return [holds(expression, root, namespaces) for expression in expressions]


def matching(subscriptions: Mapping[int, str], document: bytes | str, namespaces: Namespaces = None) -> list[int]:
    """The ids of the subscriptions that match, ascending."""
    root = read(document)
    return sorted(number for number, text in subscriptions.items() if holds(text, root, namespaces))


def disagreements(
    found: Iterable[int],
    subscriptions: Mapping[int, str],
    document: bytes | str,
    namespaces: Namespaces = None,
) -> dict[str, str]:
    """What is wrong about a result: the expressions that were missed, or found though they do not match."""
    given, right = set(map(int, found)), set(matching(subscriptions, document, namespaces))
    missed = {subscriptions[number]: "missed" for number in right - given}
    return missed | {subscriptions.get(number, str(number)): "wrong" for number in given - right}


@functools.lru_cache(1 << 14)
def _compiled(expression: str, namespaces: tuple[tuple[str, str], ...]) -> etree.XPath:
    question = f"boolean(/self::node()[boolean({expression})])"
    return etree.XPath(question, namespaces=dict(namespaces), smart_strings=False)
