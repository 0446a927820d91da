"""The fast lane of `add_many`: a million expressions hold few distinct steps, or few but for their constants.

    /a/b[@x='1/2']//c        cut at slashes outside of quotes, brackets and parentheses

    /a | /b[@x='1/2'] | //c  ──▶ each piece parsed by the one real parser ──▶ a step ──▶ a code

A piece with constants is bound to the template of its shape (`shapes`), any other is parsed once for all that have
it. Expressions whose pieces are all single steps are rows at once. An expression with any other piece (`count(`,
`/a or `, `/..`, a syntax error) is *odd*: it goes the ordinary way, whole. Cutting can be careless because nothing
is believed that the parser has not confirmed: element steps in a row mean what they mean alone. A trailing attribute
or text() stays with the step before it, which it only restricts.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from sievecore.breathing import breathe, breathing
from sievecore.hashing import SEED, hash_bytes, new_slots, same_bytes
from sievecore.jit import kernel
from sievecore.rows import Rows, new_rows
from xpathfilter.compiler import compile_expression
from xpathfilter.draft import Draft
from xpathfilter.errors import XPathFilterError
from xpathfilter.expression import DESCENDANTS, KindTest, Path
from xpathfilter.parser import declare, parse
from xpathfilter.plan import LinearPath, PathStep
from xpathfilter.shapes import UNBOUND, Shapes

__all__ = ["BulkReader"]

CHUNK_EXPRESSIONS = 16_384
KEPT_STEPS = 4096
"""Steps that are not parsed again by the next call: many small calls have the same ones."""
SEPARATOR = "\0"
TEXT_TEST = np.frombuffer(b"text(", np.uint8)
ODD, ENDS = -1, 1  # a piece that is no step; a bit of the code of a step that must be the last


class BulkReader:
    """Reads many expressions with one mapping of prefixes into a draft's codes."""

    def __init__(self, draft: Draft, namespaces: Mapping[str, str] | None) -> None:
        self._draft = draft
        declare(namespaces)
        self._namespaces = tuple(sorted((namespaces or {}).items()))
        self._codes: dict[bytes, int] = {}
        self._shapes = Shapes(draft.vocabulary, self._read_step)

    def read(self, expressions: Sequence[str]) -> tuple[Rows, np.ndarray]:
        """The rows of the plain expressions, and which expressions those are."""
        parts, plain = [], []
        for first in range(0, len(expressions), CHUNK_EXPRESSIONS):
            rows, chosen = self._read_chunk(expressions[first : first + CHUNK_EXPRESSIONS])
            parts.append(rows)
            plain.append(chosen + first)
            breathe()
        steps = np.concatenate([np.zeros(0, np.int32), *(rows.values for rows in parts)])
        lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(rows.start) for rows in parts)])
        return new_rows(steps, lengths), np.concatenate([np.zeros(0, np.int64), *plain])

    def _read_chunk(self, expressions: Sequence[str]) -> tuple[Rows, np.ndarray]:
        joined = SEPARATOR.join([*expressions, ""]).encode(errors="surrogatepass")
        if joined.count(b"\0") != len(expressions):  # An expression has a NUL: the parser will say so.
            return new_rows([], []), np.zeros(0, np.int64)
        text = np.frombuffer(joined, np.uint8)
        capacity = len(expressions) + int(np.count_nonzero(text == ord("/")))
        pieces = np.empty(capacity, np.int32)
        bounds = np.empty((capacity, 2), np.int64)
        piece_start = np.zeros(len(expressions) + 1, np.int64)
        n_distinct = _cut(text, pieces, piece_start, bounds, new_slots(capacity))
        codes = self._shapes.bind(text, bounds[:n_distinct])
        for piece in breathing(np.flatnonzero(codes == UNBOUND).tolist()):
            start, end = bounds[piece].tolist()
            codes[piece] = self._code(joined[start:end])
        steps = np.empty(piece_start[-1], np.int32)
        lengths = np.empty(len(expressions), np.int64)
        n_steps = _assemble(pieces, piece_start, codes, steps, lengths)
        return new_rows(steps[:n_steps], lengths[lengths > 0]), np.flatnonzero(lengths > 0)

    def _code(self, piece: bytes) -> int:
        code = self._codes.get(piece)
        if code is None:
            code = self._codes[piece] = self._read_piece(piece.decode(errors="surrogatepass"))
        return code

    def _read_piece(self, piece: str) -> int:
        read = self._read_step(piece)
        if read is None:
            return ODD
        step, must_be_last = read
        return self._draft.step_code(step) * 2 + must_be_last

    def _read_step(self, piece: str) -> tuple[PathStep, bool] | None:
        return _step_of(piece, self._namespaces)


@lru_cache(KEPT_STEPS)
def _step_of(piece: str, namespaces: tuple[tuple[str, str], ...]) -> tuple[PathStep, bool] | None:
    """The step that a piece is, and whether nothing can come after it; None for anything else."""
    try:
        expression = parse(piece, dict(namespaces))
    except XPathFilterError:
        return None
    if not isinstance(expression, Path) or not _starts_with_element(expression):
        return None
    plan = compile_expression(expression)
    if plan.exact and isinstance(plan.formula, LinearPath) and len(plan.formula.steps) == 1:
        return plan.formula.steps[0], _ends_with_value(expression)
    return None


def _starts_with_element(path: Path) -> bool:
    """Whether a piece means the same after other steps: //@x or //text() also looks at the element it starts from."""
    first = next((step for step in path.steps if step != DESCENDANTS), None)
    return first is not None and first.axis == "child" and not isinstance(first.test, KindTest)


def _ends_with_value(path: Path) -> bool:
    """Whether nothing can come after a piece, because it ends with an attribute or a text."""
    return path.steps[-1].axis == "attribute" or isinstance(path.steps[-1].test, KindTest)


@kernel
def _cut(text, pieces, piece_start, bounds, slots):
    """Number the pieces of each expression by their text; return how many distinct ones there are."""
    n_pieces = n_distinct = n_expressions = 0
    start = depth = 0
    quote = np.uint8(0)
    for i in range(len(text)):
        letter = text[i]
        if letter == 0:
            n_distinct = _add_piece(text, start, i, pieces, n_pieces, bounds, n_distinct, slots)
            n_pieces += 1
            n_expressions += 1
            piece_start[n_expressions] = n_pieces
            start, depth, quote = i + 1, 0, np.uint8(0)
        elif quote:
            quote = np.uint8(0) if letter == quote else quote
        elif letter == ord("'") or letter == ord('"'):
            quote = letter
        elif letter == ord("[") or letter == ord("("):
            depth += 1
        elif letter == ord("]") or letter == ord(")"):
            depth -= 1
        elif letter == ord("/") and depth == 0 and _starts_piece(text, start, i):
            n_distinct = _add_piece(text, start, i, pieces, n_pieces, bounds, n_distinct, slots)
            n_pieces += 1
            start = i
    return n_distinct


@kernel
def _starts_piece(text, start, i):
    """Whether to cut before the slash at i: not at the very start, within //, or before an attribute or text()."""
    if i == start or text[i - 1] == ord("/"):
        return False
    after = i + 2 if text[i + 1] == ord("/") else i + 1
    if text[after] == ord("@"):
        return False
    for offset in range(len(TEXT_TEST)):
        if text[after + offset] != TEXT_TEST[offset]:
            return True
    return False


@kernel
def _add_piece(text, start, end, pieces, n_pieces, bounds, n_distinct, slots):
    mask = np.uint64(len(slots) - 1)
    place = hash_bytes(text, start, end, SEED) & mask
    while slots[place] >= 0:
        known = slots[place]
        if same_bytes(text, bounds[known, 0], bounds[known, 1], text, start, end):
            break
        place = (place + np.uint64(1)) & mask
    if slots[place] < 0:
        slots[place] = n_distinct
        bounds[n_distinct, 0], bounds[n_distinct, 1] = start, end
        n_distinct += 1
    pieces[n_pieces] = slots[place]
    return n_distinct


@kernel
def _assemble(pieces, piece_start, codes, steps, lengths):
    """Write the steps of each plain expression, last step first; an odd one has length 0."""
    n_steps = 0
    for expression in range(len(lengths)):
        first = n_steps
        for i in range(piece_start[expression + 1] - 1, piece_start[expression] - 1, -1):
            code = codes[pieces[i]]
            if code < 0 or (code & ENDS and n_steps > first):
                n_steps = first
                break
            steps[n_steps] = code >> 1
            n_steps += 1
        lengths[expression] = n_steps - first
    return n_steps
