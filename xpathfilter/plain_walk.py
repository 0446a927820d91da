"""The plain walk: a flat document filled through lxml's own interface.

    root ──node()──▶ text, element, comment … ──▶ rows in lists ──▶ the arrays of a FlatDocument
                              └──node()──▶ …

It assumes nothing about anybody's memory, so it is what the C walk in `flatten` is proved against, and what
is used where the proof fails. It takes a hundred times as long.
"""

from typing import Any

from lxml import etree

from xpathfilter.document import DEEPEST
from xpathfilter.flat_document import COUNTED_ARRAYS, ELEMENT, N_LEVELS, NONE, FlatDocument, grown, too_deep

__all__ = ["flatten_slowly"]

_CHILD_NODES: Any = etree.XPath("node()", smart_strings=False)


class _PlainWalk:
    """The same rows, gathered through lxml in lists that grow by themselves."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.elements: list[dict[str, int]] = []
        self.text_nodes: list[dict[str, int]] = []
        self.attributes: list[dict[str, int]] = []
        self.names: list[dict[str, int]] = []
        self.name_numbers: dict[str, int] = {}
        self.text, self.attribute_text, self.name_text = bytearray(), bytearray(), bytearray()

    def walk(self, root: Any) -> None:
        open_elements = [(self.open_element(root, NONE, NONE), iter(_CHILD_NODES(root)))]
        previous = NONE
        while open_elements:
            element, children = open_elements[-1]
            child = next(children, None)
            if child is None:
                self.elements[element]["text_end"] = len(self.text)
                previous, _ = open_elements.pop()
            elif isinstance(child, str):
                self.add_text_node(child, self.elements[element])
            elif isinstance(child.tag, str):
                number = self.open_element(child, element, previous)
                open_elements.append((number, iter(_CHILD_NODES(child))))
                previous = NONE

    def open_element(self, element: Any, parent: int, previous: int) -> int:
        number, depth = len(self.elements), self.elements[parent]["depth"] + 1 if parent != NONE else 0
        if depth >= self.max_depth:
            raise too_deep(self.max_depth)
        if previous != NONE:
            self.elements[previous]["next_sibling"] = number
        elif parent != NONE:
            self.elements[parent]["first_child"] = number
        row = dict.fromkeys(ELEMENT.names or (), NONE)
        row |= {"parent": parent, "name": self.number_of(element.tag), "depth": depth}
        row |= {"first_attribute": len(self.attributes), "n_attributes": len(element.attrib)}
        self.elements.append(row | {"text_start": len(self.text)})
        for name, value in element.attrib.items():
            start, end = _appended(value, self.attribute_text)
            self.attributes.append({"name": self.number_of(name), "start": start, "end": end})
        return number

    def add_text_node(self, text: str, parent: dict[str, int]) -> None:
        start, end = _appended(text, self.text)
        number, last = len(self.text_nodes), parent["last_text"]
        if last == NONE:
            parent["first_text"] = number
        else:
            self.text_nodes[last]["next"] = number
        parent["last_text"] = number
        self.text_nodes.append({"next": NONE, "start": start, "end": end})

    def number_of(self, tag: str) -> int:
        if tag not in self.name_numbers:
            self.name_numbers[tag] = len(self.names)
            name = etree.QName(tag)
            start, middle = _appended(name.namespace or "", self.name_text)
            _, end = _appended(name.localname, self.name_text)
            ranges = {"uri_start": start, "uri_end": middle, "local_start": middle, "local_end": end}
            self.names.append(ranges)
        return self.name_numbers[tag]

    def cells(self, array: str) -> bytearray | list[tuple[int, ...]]:
        """What is to be written to an array of a flat document: its bytes, or its rows as tuples."""
        rows = getattr(self, array)
        return rows if isinstance(rows, bytearray) else [tuple(row.values()) for row in rows]


def _appended(text: str, target: bytearray) -> tuple[int, int]:
    start = len(target)
    target += text.encode()
    return start, len(target)


def flatten_slowly(root: Any, flat: FlatDocument, max_depth: int = DEEPEST) -> FlatDocument:
    """Fill `flat` as `flatten` does, by asking lxml."""
    plain = _PlainWalk(max_depth)
    plain.walk(root)
    for cell, array in COUNTED_ARRAYS.items():
        rows = plain.cells(array)
        while len(rows) > getattr(flat, array).size:
            flat = grown(flat, cell)
        getattr(flat, array)[: len(rows)] = rows
        flat.counts[cell] = len(rows)
    flat.counts[N_LEVELS] = max(element["depth"] for element in plain.elements) + 1
    return flat
