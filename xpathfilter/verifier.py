"""The last word on what position records cannot say: lxml evaluates the expression on the parsed document.

lxml starts relative paths from the root element. Here the context is the document node, so the expression becomes
a predicate of that node: `a/b` is asked as `boolean(/self::node()[boolean(a/b)])`.
"""

import functools
from typing import Any

from lxml import etree

__all__ = ["Namespaces", "holds"]

Namespaces = tuple[tuple[str, str], ...]

N_COMPILED = 1 << 16  # expressions kept compiled, about 2 KB each


def holds(text: str, namespaces: Namespaces, root: Any) -> bool:
    """Whether the expression is true of the document of `root`."""
    return bool(_compiled(text, namespaces)(root))


@functools.lru_cache(N_COMPILED)
def _compiled(text: str, namespaces: Namespaces) -> etree.XPath:
    question = f"boolean(/self::node()[boolean({text})])"
    return etree.XPath(question, namespaces=dict(namespaces), regexp=False, smart_strings=False)
