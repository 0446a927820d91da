"""Why does a subscription want an event, or why not?

    symbol = 'IBM' AND price > 100        on  {"symbol": "IBM", "price": 99}

    does not match; filed by pst-bloom
      way 1: symbol = 'IBM' held; price > 100 failed first

The decisions are the matcher's own: the same table, the same `holds`, in the order in which it looks. A predicate that
does not hold is *unknown*, not failed, if the event has no value for it, or none of its type.
"""

from dataclasses import dataclass

import numpy as np

from boolmatch.coded_event import load_event, unload_event, with_room
from boolmatch.conjunctions import Conjunctions, holds
from boolmatch.flat_events import BOOLEAN, NUMBER, STRING, FlatEvents
from boolmatch.matching import Filed, Work
from boolmatch.names import AttributeNames
from boolmatch.predicates import Predicate
from boolmatch.ranges import ValueType
from boolmatch.reading import read_lists, slot_links, spaces_texts
from boolmatch.segment import Segment
from boolmatch.targets import is_true
from boolmatch.wording import read_predicate, worded
from sievecore.jit import kernel

__all__ = ["Explanation", "Finding", "explain"]

KINDS = {ValueType.BOOLEAN: BOOLEAN, ValueType.NUMBER: NUMBER, ValueType.STRING: STRING}
HELD, FAILED, UNKNOWN = "held", "failed", "unknown"


@dataclass(frozen=True)
class Finding:
    """What became of one predicate: `state` is held, failed or unknown."""

    predicate: str
    state: str

    def __str__(self) -> str:
        return f"{self.predicate} {'is unknown' if self.state == UNKNOWN else self.state}"


@dataclass(frozen=True)
class Explanation:
    """Whether a subscription matched, and what became of the predicates of each way in which it can."""

    matched: bool
    algorithm: str
    ways: tuple[tuple[Finding, ...], ...]
    verified: tuple[Finding, ...] = ()
    """All predicates of an expression whose normal form is too large: its ways are only necessary."""

    def __str__(self) -> str:
        lines = [f"{'matches' if self.matched else 'does not match'}; filed by {self.algorithm}"]
        lines += [f"  way {number}: {_joined(way)}" for number, way in enumerate(self.ways, start=1)]
        if not self.ways:
            lines.append("  it can never be true")
        if self.verified:
            lines.append("  too many ways: what must hold in any case is indexed, and the whole decides")
            lines.append(f"  in the whole: {_joined(self.verified)}")
        return "\n".join(lines)


def _joined(findings: tuple[Finding, ...]) -> str:
    first = next((number for number, finding in enumerate(findings) if finding.state != HELD), -1)
    words = [f"{finding}{' first' if number == first else ''}" for number, finding in enumerate(findings)]
    return "; ".join(words) or "nothing is required"


def explain(segment: Segment, slot: int, flat: FlatEvents, names: AttributeNames) -> Explanation:
    """What becomes of a subscription with the one event of `flat`."""
    filed = segment.filed
    links = slot_links(filed, np.array([slot]))
    with segment.scratches.lend() as work:
        work = work._replace(event=with_room(work.event, len(flat.pairs)))
        reader = _Reader(filed, work, flat, names)
        ways = tuple(reader.findings(filed.table, conjunction) for conjunction in links["conjunction"].tolist())
        programs = sorted({program for program in links["program"].tolist() if program >= 0})
        verified = tuple(finding for program in programs for finding in reader.findings(filed.leaves, program))
        matched = any(all(finding.state == HELD for finding in way) for way in ways)
        if programs:
            matched = matched and program_holds(filed, work, flat, programs[0])
    return Explanation(matched, segment.algorithm.name, ways, verified)


class _Reader:
    def __init__(self, filed: Filed, work: Work, flat: FlatEvents, names: AttributeNames) -> None:
        self._filed, self._work, self._flat, self._names = filed, work, flat, names
        self._texts = spaces_texts(filed.spaces)

    def findings(self, table: Conjunctions, number: int) -> tuple[Finding, ...]:
        """What becomes of each predicate of a conjunction or program, in order."""
        rows, _ = read_lists(self._filed.spaces, table, np.array([number]), self._texts)
        first = int(table.start[number])
        return tuple(
            self._finding(table, first + i, int(row["attribute"]), read_predicate(rows, i))
            for i, row in enumerate(rows.rows)
        )

    def _finding(self, table: Conjunctions, position: int, attribute: int, predicate: Predicate) -> Finding:
        words = worded(self._names.subjects[attribute], predicate)
        if self._holds(table, position, self._flat):
            return Finding(words, HELD)
        failed = self._is_false(table, position, attribute, predicate)
        return Finding(words, FAILED if failed else UNKNOWN)

    def _is_false(self, table: Conjunctions, position: int, attribute: int, predicate: Predicate) -> bool:
        """Whether a predicate that does not hold is false: one value of another type leaves it open."""
        kind = KINDS.get(predicate.ranges[0].type)
        own = self._flat.pairs["attribute"] == attribute
        right = own & (self._flat.pairs["kind"] == kind)
        if kind is None or (right.any() and (own == right).all()):
            return True
        pairs = self._flat.pairs[right]
        of_right = FlatEvents(np.array([0, len(pairs)]), pairs, self._flat.text)
        return predicate.every and len(pairs) > 0 and not self._holds(table, position, of_right)

    def _holds(self, table: Conjunctions, position: int, flat: FlatEvents) -> bool:
        return bool(predicate_holds(self._filed, table, position, self._work, flat))


@kernel
def predicate_holds(filed, table, position, work, flat):
    """Whether the only event of `flat` satisfies a predicate."""
    load_event(filed.spaces, flat, 0, work.event)
    outcome = holds(table, position, work.event, flat)
    unload_event(work.event)
    return outcome


@kernel
def program_holds(filed, work, flat, program):
    """Whether the only event of `flat` satisfies a program."""
    load_event(filed.spaces, flat, 0, work.event)
    outcome = is_true(filed.targets, filed.leaves, program, work.event, flat, work.stack)
    unload_event(work.event)
    return outcome
