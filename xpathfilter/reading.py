"""From a document to its flat document, the shortest way there is.

document ─┬─ plain ────────────────▶ plain_reader ──▶ FlatDocument, and no tree
          └─ anything else ─▶ lxml ─▶ flatten ──────▶ FlatDocument, and the tree
"""

from typing import Any

from sievecore.scratch import ScratchPool
from xpathfilter.document import DocumentLimits, parse_document
from xpathfilter.flat_document import FlatDocument, new_flat_document
from xpathfilter.flatten import flatten
from xpathfilter.plain_reader import written_plainly

__all__ = ["flat_documents", "read_document"]

flat_documents: ScratchPool[FlatDocument] = ScratchPool(new_flat_document)
"""Where flat documents come from, and go back to."""


def read_document(document: Any, limits: DocumentLimits, with_tree: bool) -> tuple[Any, FlatDocument]:
    """The root element, which may be None unless a tree is asked for, and the flat document; or `DocumentError`."""
    flat = flat_documents.take()
    if not with_tree:
        plain = written_plainly(document, flat, limits.max_bytes, limits.max_depth)
        if plain is not None:
            return None, plain
    root = parse_document(document, limits)
    return root, flatten(root, flat, limits.max_depth)
