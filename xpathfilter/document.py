"""From the bytes of a document to an lxml tree, within limits.

    bytes or str ──▶ size? ──▶ libxml2, with its guards up ──▶ declares entities? ──▶ root element
                                      │ refused
                                      ├── a guard stopped it, no entities ──▶ once more, guards down
                                      └── anything else ──▶ DocumentError: why, line, column

A good document costs one length check, one call of lxml (which parses without the GIL) and one look at
its document type. Nothing is ever fetched: no external DTD, no external entity, no network.

libxml2's guards stop a document of more than 256 levels, a node of more than 10 MB, and entities that
multiply. Only the last is an attack by nature, and only a document that declares entities can do it; so
one without declarations is read again with the guards down, and our own limits decide.

By default a document that declares an entity of any kind is refused. The parsed tree tells exactly, in
every encoding and with no doubt about comments or CDATA, and it is quicker to ask than to search the
bytes: 0.2 µs against 1.5 µs for 4 KB. With `allow_entities` internal entities are replaced by their
text, within libxml2's own limits; a reference to any other entity is then an error.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from lxml import etree

from xpathfilter.errors import DocumentError

__all__ = ["DocumentLimits", "parse_document"]

LARGEST_MAX_BYTES = 10**9
"""Bytes that libxml2 takes in one node at the most, its guards down."""
DEEPEST = 2048
"""Levels of elements that libxml2 reads at the most, its guards down."""
GUARDED_DEPTH = 256
"""Levels of elements that libxml2 reads at the most, its guards up."""


@dataclass(frozen=True)
class DocumentLimits:
    """What a document may be: its size in bytes, its levels of elements, whether it may declare entities.

    >>> DocumentLimits(max_depth=5000)
    Traceback (most recent call last):
    ValueError: max_depth must be between 1 and 2048, not 5000
    """

    max_bytes: int = 64 * 2**20
    max_depth: int = 1024
    allow_entities: bool = False

    def __post_init__(self) -> None:
        for name, most in (("max_bytes", LARGEST_MAX_BYTES), ("max_depth", DEEPEST)):
            value = getattr(self, name)
            if not 1 <= value <= most:
                raise ValueError(f"{name} must be between 1 and {most}, not {value}")


DEFAULT_LIMITS = DocumentLimits()


def parse_document(
    data: bytes | bytearray | memoryview | str, limits: DocumentLimits = DEFAULT_LIMITS
) -> etree._Element:
    """Return the root element of a document, or raise `DocumentError`.

    The encoding declared inside a `str` is ignored, since it no longer is what it was.

    >>> parse_document("<?xml version='1.0' encoding='latin1'?><quote>é</quote>").text
    'é'
    >>> parse_document(b"<a>")
    Traceback (most recent call last):
    xpathfilter.errors.DocumentError: Premature end of data in tag a of line 1 at line 1, column 4
    """
    document, encoding = _as_bytes(data, limits)
    try:
        root = etree.fromstring(document, _readers.parser(encoding, limits.allow_entities))
    except etree.XMLSyntaxError as error:
        root = _parse_unguarded(document, encoding, limits, error)
    if not limits.allow_entities and _declares_entities(root):
        raise _entities_error(document, encoding)
    if limits.max_depth < GUARDED_DEPTH and _readers.is_deeper(root, limits.max_depth):
        raise _depth_error(document, encoding, limits)
    return root


def _as_bytes(data: Any, limits: DocumentLimits) -> tuple[bytes, str | None]:
    """Return the document as bytes, and the encoding to read them in if it is not theirs to say."""
    if isinstance(data, bytes):
        _check_size(len(data), limits)
        return data, None
    if isinstance(data, str):
        # Every character is at least one byte: this spares encoding what is much too large.
        _check_size(len(data), limits)
        document = _encoded(data)
        _check_size(len(document), limits)
        return document, "utf-8"
    if isinstance(data, bytearray | memoryview):
        _check_size(memoryview(data).nbytes, limits)
        return bytes(data), None
    raise TypeError(f"a document is bytes, bytearray, memoryview or str, not {type(data).__name__}")


def _check_size(n_bytes: int, limits: DocumentLimits) -> None:
    if n_bytes > limits.max_bytes:
        raise DocumentError(
            f"document too large: {n_bytes:,} bytes, and the limit max_bytes is {limits.max_bytes:,}",
            hint="send it in parts or raise the limit",
        )
    if n_bytes == 0:
        raise DocumentError("empty document: expected an XML element, found nothing")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line, column = before.count("\n") + 1, error.start - before.rfind("\n")
        raise DocumentError("half of a surrogate pair is not a character of XML", line, column) from error


class _Readers(threading.local):
    """The lxml parsers and depth tests of one thread; shared ones would make threads wait on their locks."""

    def __init__(self) -> None:
        self.parsers: dict[tuple[str | None, bool, bool], etree.XMLParser] = {}
        self.depth_tests: dict[int, etree.XPath] = {}

    def parser(self, encoding: str | None, allow_entities: bool, unguarded: bool = False) -> etree.XMLParser:
        key = (encoding, allow_entities, unguarded)
        if key not in self.parsers:
            which_entities: Any = "internal" if allow_entities else False
            self.parsers[key] = etree.XMLParser(
                encoding=encoding,
                resolve_entities=which_entities,
                huge_tree=unguarded,
                no_network=True,
                load_dtd=False,
            )
        return self.parsers[key]

    def is_deeper(self, root: etree._Element, max_depth: int) -> bool:
        """Tell whether the tree has more than `max_depth` levels, at the speed of libxml2."""
        if max_depth not in self.depth_tests:
            self.depth_tests[max_depth] = etree.XPath("boolean(" + "/*" * (max_depth + 1) + ")")
        return bool(self.depth_tests[max_depth](root))


_readers = _Readers()

# Codes of libxml2 that a document can provoke by being large: a guard was met, a name is too long, a comment,
# a processing instruction or a CDATA section is. The last three also say that one is never closed.
_RESOURCE_LIMIT = 114  # XML_ERR_RESOURCE_LIMIT, which lxml before 6.1 has no name for
_GUARD_CODES = {
    _RESOURCE_LIMIT,
    etree.ErrorTypes.ERR_NAME_TOO_LONG,
    etree.ErrorTypes.ERR_COMMENT_NOT_FINISHED,
    etree.ErrorTypes.ERR_PI_NOT_FINISHED,
    etree.ErrorTypes.ERR_CDATA_NOT_FINISHED,
}


def _parse_unguarded(document: bytes, encoding: str | None, limits: DocumentLimits, error: Any) -> etree._Element:
    """Read a document that libxml2 refused with `error` once more, if it was for a harmless reason."""
    declares_entities = _prolog_declares_entities(document, encoding)
    if declares_entities and not limits.allow_entities:
        raise _entities_error(document, encoding) from error
    if error.code not in _GUARD_CODES or declares_entities is not False:
        raise _syntax_error(document, error) from error
    try:
        root = etree.fromstring(document, _readers.parser(encoding, limits.allow_entities, unguarded=True))
    except etree.XMLSyntaxError as second:
        raise _unguarded_error(document, encoding, limits, second) from second
    if _readers.is_deeper(root, limits.max_depth):
        raise _depth_error(document, encoding, limits)
    return root


def _unguarded_error(document: bytes, encoding: str | None, limits: DocumentLimits, error: Any) -> DocumentError:
    if error.code == _RESOURCE_LIMIT:  # the one limit that is left
        return _depth_error(document, encoding, limits)
    return _syntax_error(document, error)


def _declares_entities(root: Any) -> bool:
    dtd = root.getroottree().docinfo.internalDTD
    return dtd is not None and next(dtd.iterentities(), None) is not None


PROLOG_CHUNK = 4096


def _prolog_declares_entities(document: bytes, encoding: str | None) -> bool | None:
    """Tell whether entities are declared before the root element; None if that cannot be known.

    libxml2 itself is asked, so that no second opinion on what a declaration is can be played against
    it. Only where it does not reach the root element may expat say yes, and never no.
    """
    parser = etree.XMLPullParser(["start"], encoding=encoding, resolve_entities=False, no_network=True)
    for start in range(0, len(document), PROLOG_CHUNK):
        error = _feed(parser, document[start : start + PROLOG_CHUNK])
        for _, root in parser.read_events():
            return _declares_entities(root)
        if error is not None:
            break
    return None if _place_of_entity(document, encoding) == NOWHERE else True


def _feed(parser: etree.XMLPullParser, chunk: bytes) -> Any:
    """Return the error instead of raising it: the events before it still count."""
    try:
        parser.feed(chunk)
    except etree.XMLSyntaxError as error:
        return error
    return None


def _syntax_error(document: bytes, error: Any) -> DocumentError:
    if _is_blank(document, error):
        return DocumentError("empty document: expected an XML element, found only blanks")
    line, column = error.position
    return DocumentError(
        _syntax_reason(document, error), line or None, column or None, _SYNTAX_HINTS.get(error.code, "")
    )


_UNKNOWN_ENCODING_CODES = (etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING, etree.ErrorTypes.ERR_UNKNOWN_ENCODING)
_SYNTAX_HINTS = {
    **dict.fromkeys(_UNKNOWN_ENCODING_CODES, "send UTF-8, or declare an encoding that libxml2 knows"),
    _RESOURCE_LIMIT: "more is read only of a document that declares no entities",
}
_BLANKS_AND_BYTE_ORDER_MARKS = b" \t\r\n\0\xef\xbb\xbf\xfe\xff"


def _is_blank(document: bytes, error: Any) -> bool:
    is_empty = error.code == etree.ErrorTypes.ERR_DOCUMENT_EMPTY
    return is_empty and not document.strip(_BLANKS_AND_BYTE_ORDER_MARKS)


def _syntax_reason(document: bytes, error: Any) -> str:
    """Keep libxml2's words where they are clear, and add what was found."""
    start = document[:PROLOG_CHUNK].lstrip(_BLANKS_AND_BYTE_ORDER_MARKS)[:20]
    if error.code == etree.ErrorTypes.ERR_DOCUMENT_EMPTY and not start.startswith(b"<"):
        return f"not XML: expected '<', found {start.decode('ascii', 'backslashreplace')!r}"
    reason = re.sub(r"\s*, line \d+, column \d+$", "", error.msg or "libxml2 gave no reason").strip()
    if error.code in _UNKNOWN_ENCODING_CODES:
        return f"unknown encoding ({reason})"
    if error.code == _RESOURCE_LIMIT:
        return f"libxml2's limit is met ({reason})"
    return re.sub(r" line (\d+)(?= and |$)", r" of line \1", reason)  # "tag a line 1": where it was opened


def _entities_error(document: bytes, encoding: str | None) -> DocumentError:
    return DocumentError(
        "the document declares entities",
        *_place_of_entity(document, encoding),
        "they are refused: write out what they stand for, or set allow_entities if its source is trusted",
    )


def _depth_error(document: bytes, encoding: str | None, limits: DocumentLimits) -> DocumentError:
    return DocumentError(
        f"document too deep: the limit max_depth of {limits.max_depth} levels is passed",
        *_place_of_depth(document, encoding, limits.max_depth),
        f"flatten it or raise the limit (to {DEEPEST} at the most)",
    )


# Where something stands: libxml2 does not tell to the column, expat does -------------------------

Place = tuple[int | None, int | None]
NOWHERE: Place = (None, None)


class _FoundError(Exception):
    """Carries a place out of expat."""


def _place_of_entity(document: bytes, encoding: str | None) -> Place:
    """Return line and column of the first declaration of an entity."""

    def watch(parser: expat.XMLParserType, found: Callable[[], None]) -> None:
        parser.EntityDeclHandler = lambda *declaration: found()

    return _place(document, encoding, watch)


def _place_of_depth(document: bytes, encoding: str | None, max_depth: int) -> Place:
    """Return line and column of the first element below `max_depth` levels."""

    def watch(parser: expat.XMLParserType, found: Callable[[], None]) -> None:
        open_elements: list[str] = []

        def open_element(name: str, attributes: object) -> None:
            open_elements.append(name)
            if len(open_elements) > max_depth:
                found()

        parser.StartElementHandler = open_element
        parser.EndElementHandler = lambda name: open_elements.pop()

    return _place(document, encoding, watch)


def _place(
    document: bytes, encoding: str | None, watch: Callable[[expat.XMLParserType, Callable[[], None]], None]
) -> Place:
    """Return where a handler set by `watch` calls `found`; what expat cannot read has no place."""
    parser = expat.ParserCreate(encoding)

    def found() -> None:
        raise _FoundError(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)

    watch(parser, found)
    try:
        parser.Parse(document, True)
    except _FoundError as place:
        return place.args[0], place.args[1]
    except (expat.ExpatError, LookupError, ValueError):  # malformed, or an encoding that expat does not know
        return NOWHERE
    return NOWHERE
