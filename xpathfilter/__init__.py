"""XPath subscriptions, millions of them, matched against XML documents.

    subscription text ─▶ parser ─▶ expression ─▶ compiler ─▶ plan ─▶ draft ─▶ segment (frozen arrays) ─┐
                                                                                                     ├─▶ ids
    document bytes ────▶ document ─▶ flatten ─▶ records (phase 1) ─▶ suffix or delta (phase 2) ────────┘

`XPathIndex` is the friendly side; `overlay` and `snapshots` in `sievecore` keep it changeable while it is used.
"""

from xpathfilter.document import DocumentLimits
from xpathfilter.errors import (
    AddManyError,
    DocumentError,
    NamespaceError,
    UnknownSubscription,
    XPathFilterError,
    XPathSyntaxError,
)
from xpathfilter.explanation import Explanation
from xpathfilter.index import XPathIndex
from xpathfilter.warmup import warm_up

__all__ = [
    "AddManyError",
    "DocumentError",
    "DocumentLimits",
    "Explanation",
    "NamespaceError",
    "UnknownSubscription",
    "XPathFilterError",
    "XPathIndex",
    "XPathSyntaxError",
    "warm_up",
]
