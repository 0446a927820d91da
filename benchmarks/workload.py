"""Subscriptions and documents to measure with: random, but the same for everybody.

    schema ─▶ random walk from the root ─▶ //story/*/quote//person[@born=7]        expressions()
          └─▶ random expansion          ─▶ <dispatch id="3"><story>…               documents()

The conventions are those of the XPath filtering literature (YFilter's generators), with its usual numbers.
A walk goes at most ten levels down and ends at a leaf. Each step is `//` with probability .6, and then skips
some of the levels that are left; it is `*` with probability .2, and asks for a value of an attribute, 1 to
20, with .2. Expressions are distinct, and the first n are the same whatever comes after them. A document has
at most ten levels, repeats at most three times, and the same name at most three times on a path; an attribute
is there with probability .25. That gives documents of 135 elements in 4.5 KB, of which one matches 5% of a
hundred thousand subscriptions and 2% of a million.

    python -m benchmarks.workload 1000         prints the first thousand expressions
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from benchmarks.schema import DISPATCH, TEXT, Element, Particle, Schema

__all__ = ["LARGE", "SELECTIVE", "USUAL", "DocumentShape", "QueryShape", "documents", "expressions"]

N_VALUES = 20


@dataclass(frozen=True)
class QueryShape:
    depth: int = 10
    descendant: float = 0.6
    star: float = 0.2
    predicate: float = 0.2


USUAL = QueryShape()
SELECTIVE = QueryShape(descendant=0.1, star=0.0, predicate=1.0)
"""Of a hundred thousand of these, a document matches about fifty."""


@dataclass(frozen=True)
class DocumentShape:
    """How far a document may grow; from `enough` elements on, only what the schema demands is added."""

    levels: int = 10
    repeats: int = 3
    recursion: int = 3
    attribute: float = 0.25
    enough: int = 160


LARGE = DocumentShape(repeats=60, enough=6000)
"""A document of more than five thousand elements, as deep as the small ones."""


def expressions(seed: int = 1, shape: QueryShape = QueryShape()) -> Iterator[str]:
    """Distinct expressions, one after the other, without end."""
    random = Random(seed).random
    seen: set[str] = set()
    while True:
        expression = _walk(random, shape, DISPATCH)
        if expression not in seen:
            seen.add(expression)
            yield expression


def _walk(random: Callable[[], float], shape: QueryShape, schema: Schema) -> str:
    steps: list[str] = []
    element, level = schema.elements[schema.root], 0
    while level < shape.depth:
        axis = "/"
        if random() < shape.descendant:
            axis = "//"
            n_skipped = int(random() * (shape.depth - level))
            while n_skipped and element.children:
                element, level, n_skipped = _child(random, element, schema), level + 1, n_skipped - 1
        steps += axis, _test(random, element, shape)
        if not element.children:
            break
        element, level = _child(random, element, schema), level + 1
    return "".join(steps)


def _child(random: Callable[[], float], element: Element, schema: Schema) -> Element:
    return schema.elements[element.children[int(random() * len(element.children))]]


def _test(random: Callable[[], float], element: Element, shape: QueryShape) -> str:
    name = "*" if random() < shape.star else element.name
    if random() >= shape.predicate:
        return name
    attribute = element.attributes[int(random() * len(element.attributes))]
    return f"{name}[@{attribute}={1 + int(random() * N_VALUES)}]"


def documents(seed: int = 7, shape: DocumentShape = DocumentShape()) -> Iterator[bytes]:
    """Documents, one after the other, without end."""
    random = Random(seed)
    while True:
        growth = _Growth(random, shape, DISPATCH)
        growth.grow(DISPATCH.elements[DISPATCH.root])
        yield "".join(growth.text).encode()


@dataclass
class _Growth:
    """One document while it grows: its text so far, its open path and how many elements it has."""

    random: Random
    shape: DocumentShape
    schema: Schema
    text: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    n_elements: int = 0

    def grow(self, element: Element) -> None:
        self.n_elements += 1
        self.path.append(element.name)
        self.text.append(f"<{element.name}{self._attributes(element)}>")
        for particle in element.content:
            self._expand(particle)
        self.text.append(f"</{element.name}>\n")
        self.path.pop()

    def _attributes(self, element: Element) -> str:
        present = [name for name in element.attributes if self.random.random() < self.shape.attribute]
        return "".join(f' {name}="{self._value()}"' for name in present)

    def _value(self) -> int:
        return self.random.randint(1, N_VALUES)

    def _expand(self, particle: Particle) -> None:
        full = self.n_elements >= self.shape.enough
        most = particle.least if full else min(particle.most, self.shape.repeats)
        for _ in range(self.random.randint(particle.least, most)):
            name = self.random.choice(particle.names)
            if name == TEXT:
                self.text.append(f"{self._value()} ")
            elif self._has_room(name):
                self.grow(self.schema.elements[name])

    def _has_room(self, name: str) -> bool:
        return len(self.path) < self.shape.levels and self.path.count(name) < self.shape.recursion


if __name__ == "__main__":
    sys.stdout.writelines(f"{expression}\n" for expression in islice(expressions(), int(sys.argv[1])))
