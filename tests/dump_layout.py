"""The arrays of one small index and one small document, as text: what docs/memory-layout.md shows.

    python -m tests.dump_layout             print the sections
    python -m tests.dump_layout --write     put them into the document, between its markers

`tests/test_docs.py` fails when the document and the code disagree.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.compiler import compile_expression
from xpathfilter.document import parse_document
from xpathfilter.draft import Draft
from xpathfilter.flatten import N_ELEMENTS, FlatDocument, flatten, new_flat_document
from xpathfilter.parser import parse
from xpathfilter.records import BLOCK_NODES, N_BLOCKS, N_NODES, N_PAIRS, RecordScratch
from xpathfilter.segment import Segment, SegmentScratch, Verified
from xpathfilter.suffix import DESCENDANT, LAST, LEAF, RECORD_SHIFT, TERMINAL

LAYOUT = Path(__file__).resolve().parent.parent / "docs" / "memory-layout.md"
MARKED = re.compile(r"(<!-- dump: (\w+) -->\n```text\n).*?(```\n<!-- end -->)", re.DOTALL)

SUBSCRIPTIONS = {
    7: "/feed/quote",
    8: "//quote[@symbol = 'IBM']/price",
    9: "/feed/price",
    10: "/feed/quote",
    11: "//price and not(//halted)",
}
DOCUMENT = (
    '<feed><quote symbol="IBM"><price>9</price></quote>'
    "<quote><price>4</price></quote><quote><price>5</price></quote></feed>"
)
FLAGS = {DESCENDANT: "DESCENDANT", TERMINAL: "TERMINAL", LEAF: "LEAF", LAST: "LAST"}


def sections() -> dict[str, str]:
    """Each section of the dump by name."""
    suffix, delta = _segment("suffix"), _segment("delta")
    flat = flatten(parse_document(DOCUMENT), new_flat_document(), 64)
    with suffix.scratches.lend() as scratch:
        suffix.prepare(flat, scratch)
        parts = {
            "subscriptions": _subscriptions(),
            "words": _words(suffix),
            "suffix": _suffix(suffix),
            "delta": _delta(delta),
            "subscribers": _subscribers(suffix),
            "elements": _elements(flat, scratch.records),
            "tree": _tree(scratch.records),
            "blocks": _blocks(scratch.records),
            "found": _found(suffix, flat, scratch),
        }
        return {name: "".join(f"{line.rstrip()}\n" for line in lines) for name, lines in parts.items()}


def _segment(algorithm: str) -> Segment:
    draft = Draft(ALGORITHMS[algorithm])
    for subscription_id, text in SUBSCRIPTIONS.items():
        draft.add(subscription_id, compile_expression(parse(text)), Verified(text, ()))
    return draft.build()


def _subscriptions() -> Iterator[str]:
    for subscription_id, text in SUBSCRIPTIONS.items():
        yield f"{subscription_id:4}  {text}"
    yield f"\n{DOCUMENT.replace('</quote>', '</quote>' + chr(10) + '      ')}"


def _table(name: str, rows: np.ndarray) -> Iterator[str]:
    """A structured array, a column of text for each field."""
    yield name
    fields = rows.dtype.names or ()
    cells = [[field, *(_number(value) for value in rows[field].tolist())] for field in fields]
    widths = [max(map(len, column)) for column in cells]
    numbers = ["", *map(str, range(len(rows)))]
    for i, number in enumerate(numbers):
        yield f"{number:>4}  " + "  ".join(f"{column[i]:>{w}}" for column, w in zip(cells, widths, strict=True))


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _array(name: str, values: np.ndarray) -> str:
    return f"{name:18}{' '.join(map(str, values.tolist()))}"


def _fields(arrays: object, *names: str) -> Iterator[str]:
    for name in names:
        yield _array(name, getattr(arrays, name))


def _words(segment: Segment) -> Iterator[str]:
    words = segment.words
    for table in ("names", "subjects", "groups"):
        yield from _table(table, getattr(words, table))
        yield ""
    yield f"name_text         {words.name_text.tobytes().decode()}"
    yield f"text              {words.text.tobytes().decode()}"
    yield from _fields(words, "text_start", "single_records", "woken_start", "record_start", "record_words")


def _suffix(segment: Segment) -> Iterator[str]:
    families: Any = segment.families
    yield "node  code  record  flags                                first_child  parent  target"
    for node, code in enumerate(families.codes.tolist()):
        flags = " ".join(name for flag, name in FLAGS.items() if code & flag)
        child = "" if code & LEAF else families.first_child[node]
        record = code >> RECORD_SHIFT if node else "-"
        yield (
            f"{node:4}  {code:4}  {record:>6}  {flags:35}  {child:>11}  {families.parents[node]:>6}"
            f"  {families.targets[node]:>6}"
        )
    yield ""
    yield from _fields(families, "roots")


def _delta(segment: Segment) -> Iterator[str]:
    return _fields(segment.families, *segment.families._fields)


def _subscribers(segment: Segment) -> Iterator[str]:
    return _fields(segment.subscribers, *segment.subscribers._fields)


def _elements(flat: FlatDocument, records: RecordScratch) -> Iterator[str]:
    rows = flat.elements[: flat.counts[N_ELEMENTS]]
    yield from _table("elements (some columns)", rows[["parent", "name", "depth", "text_start", "text_end"]])
    yield ""
    yield _array("node_of_element", records.tree.node_of_element[: len(rows)])


def _tree(records: RecordScratch) -> Iterator[str]:
    tree = records.tree
    nodes = tree.nodes[: tree.counts[N_NODES]]
    yield from _table("nodes", nodes)
    yield ""
    yield _array("records", tree.records[: nodes["record_end"].max()])


def _blocks(records: RecordScratch) -> Iterator[str]:
    blocks, n_nodes = records.blocks, int(records.tree.counts[N_NODES])
    assert blocks.counts[N_BLOCKS] == 1
    assert n_nodes < BLOCK_NODES
    yield "bit  parent  ancestors"
    for bit, (parent, ancestors) in enumerate(blocks.relatives[:n_nodes].tolist()):
        yield f"{bit:3}  {_bits(parent, n_nodes):>6}  {_bits(ancestors, n_nodes):>9}"
    yield f"\nfresh             {_bits(int(blocks.blocks[0]['fresh']), n_nodes)}"
    yield ""
    yield "pair  record  word"
    for number, (record, word) in enumerate(blocks.pairs[: blocks.counts[N_PAIRS]].tolist()):
        yield f"{number:4}  {record:6}  {_bits(word, n_nodes)}"


def _bits(word: int, n_bits: int) -> str:
    """Bit 0 is on the right."""
    return f"{word:0{n_bits}b}"


def _found(segment: Segment, flat: FlatDocument, scratch: SegmentScratch) -> Iterator[str]:
    segment.walk(flat, scratch)
    walker = scratch.walker
    found = walker.found[: walker.n_found[0]].copy()
    everything = np.full(1, ~np.uint64(0))
    yield _array("found", found)
    yield _array("targets of these", segment.families.targets[found])
    yield _array("ids", segment.results(parse_document(DOCUMENT), scratch, everything))


def refreshed(document: str) -> str:
    """The document with every marked section as the code has it now."""
    now = sections()
    return MARKED.sub(lambda match: f"{match[1]}{now[match[2]]}{match[3]}", document)


if __name__ == "__main__":
    if "--write" in sys.argv:
        LAYOUT.write_text(refreshed(LAYOUT.read_text()))
    else:
        for name, text in sections().items():
            print(f"── {name}\n{text}")
