"""Documents in files, folders and pipes.

    quote.xml          a file
    inbox/             all files in it and below whose names fit the pattern
    "feeds/*.xml"      a pattern that the shell has left alone
    -                  stdin: one document, or with --lines one on each line

A document's id is its file's name and a hash of what is in it. So publishing the same file again is harmless, and
publishing it after a change is not taken for a repetition.
"""

import glob
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["STDIN", "Source", "find_sources", "id_of", "read_xml"]

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document is: a path, or a line of stdin, whose text is there already."""

    name: str
    xml: bytes | None = None

    def read(self) -> bytes:
        """Its bytes; OSError if they cannot be had."""
        return Path(self.name).read_bytes() if self.xml is None else self.xml


def find_sources(paths: Iterable[str], pattern: str, lines: bool) -> Iterator[Source]:
    """The documents that are meant, in a stable order."""
    for path in paths:
        if path == STDIN:
            yield from _stdin(lines)
        elif Path(path).is_dir():
            yield from (Source(str(found)) for found in sorted(Path(path).rglob(pattern)) if found.is_file())
        elif Path(path).exists() or not glob.has_magic(path):
            yield Source(path)
        else:
            yield from (Source(found) for found in sorted(glob.glob(path, recursive=True)))


def _stdin(lines: bool) -> Iterator[Source]:
    if not lines:
        yield Source("stdin", sys.stdin.buffer.read())
        return
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if line.strip():
            yield Source(f"stdin, line {number}", line.strip())


def id_of(source: Source, xml: bytes) -> str:
    """The id of a document.

    >>> id_of(Source("inbox/quote.xml"), b"<quote/>")
    'quote.xml-e10a828bdecae1c7'
    """
    digest = hashlib.blake2b(xml, digest_size=8).hexdigest()
    return f"{Path(source.name).name}-{digest}" if source.xml is None else digest


def read_xml(path: str) -> bytes:
    """One document, from a file or from stdin."""
    return sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
