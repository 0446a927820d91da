"""Subscriptions in files: which line says what, and which lines say nothing that can be understood.

.jsonl   {"id": "ibm", "xpath": "//quote[@symbol='IBM']"}      the keywords of Client.subscribe, or just "//quote"
.csv     id,xpath,labels.team                                  a header, then a row each
.txt     //quote[@symbol='IBM']                                an XPath expression each; # starts a comment
"""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pathsieve.cli.facts import read_wish
from pathsieve.wishes import Wish, wish_message

__all__ = ["Format", "Line", "read_lines"]

LABELS = "labels."


class Format(StrEnum):
    """How subscriptions are written."""

    JSONL = "jsonl"
    CSV = "csv"
    TXT = "txt"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, and the wish that it is, or the problem that it has."""

    number: int
    wish: Wish | None = None
    problem: str = ""


def read_lines(path: str, format: Format | None, boolean: bool) -> Iterator[Line]:
    """The lines of a file, or of stdin if it is "-". `boolean` says what plain expressions are."""
    if path == "-":
        yield from READERS[format or Format.TXT](sys.stdin, boolean)
        return
    with open(path, encoding="utf-8-sig", newline="") as lines:
        yield from READERS[format or _format_of(path)](lines, boolean)


def _format_of(path: str) -> Format:
    suffix = Path(path).suffix.lower().removeprefix(".")
    known = {"jsonl": Format.JSONL, "ndjson": Format.JSONL, "json": Format.JSONL, "csv": Format.CSV}
    return known.get(suffix, Format.TXT)


def _read_txt(lines: Iterable[str], boolean: bool) -> Iterator[Line]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield Line(number, {"boolean": text} if boolean else {"xpath": text})


def _read_jsonl(lines: Iterable[str], boolean: bool) -> Iterator[Line]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _checked(number, lambda line=line: _wish_of(json.loads(line), boolean))  # type: ignore[misc]


def _wish_of(facts: Any, boolean: bool) -> Wish:
    return {"boolean": facts} if boolean and isinstance(facts, str) else read_wish(facts)


def _read_csv(lines: Iterable[str], boolean: bool) -> Iterator[Line]:
    rows = csv.DictReader(lines)
    for row in rows:
        yield _checked(rows.line_num, lambda row=row: read_wish(_unflattened(row)))  # type: ignore[misc]


def _unflattened(row: dict[str | None, Any]) -> dict[str, Any]:
    """The cells that are not empty; labels.team is the key `team` of labels."""
    if None in row:
        raise ValueError("more cells than the header has columns")
    given = {str(key).strip(): cell for key, cell in row.items() if cell}
    facts: dict[str, Any] = {key: cell for key, cell in given.items() if not key.startswith(LABELS)}
    labels = {key.removeprefix(LABELS): cell for key, cell in given.items() if key.startswith(LABELS)}
    return facts | ({"labels": labels} if labels else {})


READERS: dict[Format, Callable[[Iterable[str], bool], Iterator[Line]]] = {
    Format.JSONL: _read_jsonl,
    Format.CSV: _read_csv,
    Format.TXT: _read_txt,
}


def _checked(number: int, read: Callable[[], Wish]) -> Line:
    """A line whose wish can be sent; what is wrong with it, otherwise."""
    try:
        wish = read()
        wish_message(wish)
    except json.JSONDecodeError as error:
        return Line(number, problem=f"not JSON: {error.msg} at column {error.colno}")
    except (TypeError, ValueError, AttributeError) as error:
        return Line(number, problem=str(error))
    return Line(number, wish)
