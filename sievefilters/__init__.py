"""Filters over both engines: XPath, Boolean, and both in one expression.

    xpathfilter ──┐
                  ├──▶ filters ◀── atoms         XPATH '…' inside a Boolean filter, decided by the XPath engine
    boolmatch ────┘       ▲   ▲── extractors     attributes that are found in the XML
                          └────── files          all of it in one file, mapped by many processes

The server keeps one `StandingFilters` for each tenant; Spark's executors map one from a file.
"""

from sievefilters.errors import ExtractorError
from sievefilters.extractors import Extractors
from sievefilters.filters import Handle, Matched, Refused, StandingFilters
from sievefilters.given import AttributeValue, Document, Filter, Given

__all__ = [
    "AttributeValue",
    "Document",
    "ExtractorError",
    "Extractors",
    "Filter",
    "Given",
    "Handle",
    "Matched",
    "Refused",
    "StandingFilters",
]
