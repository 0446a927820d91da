"""Why does a subscription want a document, or why not?

    //quote[@symbol = 'IBM']/price                 on  <quotes><quote symbol="SAP"><price>7</price></quote></quotes>

    does not match: //quote[@symbol = 'IBM']/price
      step 2, /price, found /quotes/quote/price
      step 1, //quote[@symbol = 'IBM'], found nothing above it

The walk is the matcher's own. Each path of the subscription is put, with all of its suffixes, into a small segment
of its own: the longest suffix that is found tells the first step (from the end) that is not. To name an element, the
walk is started from one node of the document at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sievecore.snapshots import Layer
from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.deep import match_suffix_at, new_deep_scratch
from xpathfilter.document import DocumentLimits, parse_document
from xpathfilter.draft import Draft
from xpathfilter.flatten import N_ELEMENTS, N_LEVELS, FlatDocument, element_at, flatten, new_flat_document
from xpathfilter.plan import (
    ANY_NAME,
    AllOf,
    AnyOf,
    Combination,
    ElementName,
    LinearPath,
    Not,
    Operation,
    PathStep,
    Plan,
    Subject,
    ValueTest,
)
from xpathfilter.programs import read_program
from xpathfilter.records import N_NODES
from xpathfilter.segment import Segment, Verified
from xpathfilter.terminals import forget_found
from xpathfilter.words import read_record

__all__ = ["Explanation", "explain"]

LANES = {
    "indexed": "decided by the index",
    "formula": "decided by the index, from several paths",
    "verified": "decided by lxml, once the index has found what must be there",
    "unindexed": "decided by lxml for every document: nothing in it can be indexed",
}
OPERATORS = {
    Operation.EQUAL_TEXT: "=",
    Operation.UNEQUAL_TEXT: "!=",
    Operation.EQUAL: "=",
    Operation.UNEQUAL: "!=",
    Operation.LESS: "<",
    Operation.LESS_EQUAL: "<=",
    Operation.GREATER: ">",
    Operation.GREATER_EQUAL: ">=",
}


@dataclass(frozen=True)
class Explanation:
    """Whether a subscription matched, in which lane it was decided, and what became of each of its paths."""

    matched: bool
    lane: str
    subscription: str
    findings: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "matches" if self.matched else "does not match"
        lines = [f"{verdict}: {self.subscription}", f"  {LANES[self.lane]}", *(f"  {line}" for line in self.findings)]
        return "\n".join(lines)


def explain(segment: Segment, slot: int, document: Any, limits: DocumentLimits) -> Explanation:
    """Explain the outcome for one subscription of a segment."""
    root = parse_document(document, limits)
    flat = flatten(root, new_flat_document(), limits.max_depth)
    alone = np.zeros(len(segment.ids) // 64 + 1, np.uint64)
    alone[slot >> 6] = np.uint64(1) << np.uint64(slot & 63)
    matched = len(segment.match(root, flat, alone)) > 0
    formula, verified = _read_formula(segment, slot)
    lane = next(lane for lane, n_slots in segment.lanes(np.array([slot])).items() if n_slots)
    findings = [line for path in _paths(formula) for line in _findings(path, root, flat)]
    if verified is not None and (matched or _holds(formula, root, flat)):
        findings.append(f"lxml was asked, and found it {str(matched).lower()}")
    return Explanation(matched, lane, verified.text if verified else formula_text(formula), tuple(findings))


def _holds(formula: Combination, root: Any, flat: FlatDocument) -> bool:
    """Whether a formula is true of the document."""
    draft = Draft(ALGORITHMS["suffix"])
    draft.add(1, Plan(formula, exact=True), Verified("", ()))
    segment = draft.build()
    return len(segment.match(root, flat, Layer.whole(segment).alive)) > 0


def _read_formula(segment: Segment, slot: int) -> tuple[Combination, Verified | None]:
    slot_terminal, slot_formula = segment.wants()
    if slot_terminal[slot] >= 0:
        return _read_path(segment, int(slot_terminal[slot])), None
    program, verified = segment.formula(int(slot_formula[slot]))
    return read_program(program, lambda terminal: _read_path(segment, terminal)), verified


def _read_path(segment: Segment, terminal: int) -> LinearPath:
    rows = segment.algorithm.rows(segment.families, np.array([terminal], np.int32))
    steps = [replace(read_record(segment.words, code >> 1), descendant=bool(code & 1)) for code in rows.values.tolist()]
    return LinearPath(tuple(reversed(steps)))


def _paths(formula: Combination) -> Iterator[LinearPath]:
    match formula:
        case LinearPath():
            yield formula
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _paths(part)
        case Not(part):
            yield from _paths(part)


def _findings(path: LinearPath, root: Any, flat: FlatDocument) -> Iterator[str]:
    """What the walk found for a path, step by step from the end, as far as it got."""
    n_steps = len(path.steps)
    segment = _suffix_segment(path)
    found = segment.match(root, flat, Layer.whole(segment).alive)
    longest = int(found[0]) if len(found) else n_steps
    if longest == 0:
        yield f"{path_text(path)} found {_witness(segment, 0, root, flat)}"
        return
    if longest < n_steps:
        suffix = "".join(step_text(step) for step in path.steps[longest:])
        yield f"{_numbers(longest, n_steps)}, {suffix}, found {_witness(segment, longest, root, flat)}"
    where = " above it" if longest < n_steps else ""
    yield f"step {longest}, {step_text(path.steps[longest - 1])}, found nothing{where}"


def _numbers(longest: int, n_steps: int) -> str:
    return f"step {n_steps}" if longest + 1 == n_steps else f"steps {longest + 1} to {n_steps}"


def _suffix_segment(path: LinearPath) -> Segment:
    """A segment with the path as subscription 0 and, as i, what is left of it without its first i steps."""
    draft = Draft(ALGORITHMS["suffix"])
    for i in range(len(path.steps)):
        first = path.steps[i] if i == 0 else replace(path.steps[i], descendant=True)
        plan = Plan(LinearPath((first, *path.steps[i + 1 :])), exact=True)
        draft.add(i, plan, Verified("", ()))
    return draft.build()


def _witness(segment: Segment, suffix: int, root: Any, flat: FlatDocument) -> str:
    """The path of the first element at which the walk for a suffix, which is found somewhere, succeeds."""
    slot_terminal, _ = segment.wants()
    terminal = int(slot_terminal[suffix])
    with segment.scratches.lend() as scratch:
        segment.prepare(flat, scratch)
        tree, walker = scratch.records.tree, scratch.walker
        deep = new_deep_scratch(segment.families, segment.words.n_records, int(flat.counts[N_LEVELS]))
        for node in range(tree.counts[N_NODES]):
            match_suffix_at(segment.families, tree, node, walker, deep)
            succeeded = terminal in walker.found[: walker.n_found[0]]
            forget_found(walker)
            if succeeded:
                element = int(np.flatnonzero(tree.node_of_element[: flat.counts[N_ELEMENTS]] == node)[0])
                found = element_at(root, element)
                return str(found.getroottree().getpath(found))
    raise AssertionError("a path that was found is found at some element")


def formula_text(formula: Combination) -> str:
    """The formula as an expression, names in {uri}local form."""
    match formula:
        case LinearPath():
            return path_text(formula)
        case Not(part):
            return f"not({formula_text(part)})"
        case AllOf(parts):
            return " and ".join(_operand(part) for part in parts) or "true()"
        case AnyOf(parts):
            return " or ".join(_operand(part) for part in parts) or "false()"
        case ValueTest():
            return _test_text(formula)


def _operand(part: Combination) -> str:
    return f"({formula_text(part)})" if isinstance(part, (AllOf, AnyOf)) else formula_text(part)


def path_text(path: LinearPath) -> str:
    """The path as an expression."""
    return "".join(step_text(step) for step in path.steps)


def step_text(step: PathStep) -> str:
    """A step with the slash or slashes before it."""
    condition = f"[{formula_text(step.condition)}]" if step.condition != AllOf(()) else ""
    return ("//" if step.descendant else "/") + _name_text(step.name) + condition


def _name_text(name: ElementName) -> str:
    return f"{{{name.uri}}}{name.local}" if name.uri and name != ANY_NAME else name.local


def _test_text(test: ValueTest) -> str:
    name = _name_text(test.name) if test.name else ""
    subject = {
        Subject.SELF: ".",
        Subject.TEXT: "text()",
        Subject.ATTRIBUTE: f"@{name}",
        Subject.CHILD: name,
    }[test.subject]
    if test.operation is Operation.EXISTS:
        return subject
    constant = f"{test.constant:g}" if isinstance(test.constant, float) else repr(test.constant)
    if test.operation in OPERATORS:
        return f"{subject} {OPERATORS[test.operation]} {constant}"
    function = "contains" if test.operation is Operation.CONTAINS else "starts-with"
    return f"{function}({subject}, {constant})"
