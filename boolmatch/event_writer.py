"""From mappings of Python values to flat events: every value is checked, and what cannot be matched is refused.

{"price": 120, "symbol": "IBM", "tags": {"new", 7}, "place": Point(13, 52), "note": None}

None                                no value at all
str, bool, int, float               one value; numpy's scalars too
Interval(low, high), Point(x, y)    one value
list, tuple, set, frozenset         several of those; an empty one is no value
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from boolmatch.deciders import Deciders
from boolmatch.errors import EventError
from boolmatch.flat_events import BOOLEAN, NUMBER, OTHER, PAIR, STRING, FlatEvents
from boolmatch.names import AttributeNames
from boolmatch.values import EXACT_INTEGERS, Interval, Point, to_double

__all__ = ["Event", "write_events"]

Event = Mapping[str, Any]

SEVERAL = (list, tuple, set, frozenset)


def write_events(
    events: Sequence[Event], names: AttributeNames, deciders: Deciders, true_keys: Sequence[Iterable[int]]
) -> tuple[FlatEvents, dict[int, EventError]]:
    """The events as arrays, and those that were refused, which have no pairs; `true_keys` are of each event."""
    writer = _Writer(names, deciders)
    refused: dict[int, EventError] = {}
    for position, event in enumerate(events):
        try:
            writer.write(event, true_keys[position] if true_keys else ())
        except EventError as error:
            writer.undo()
            refused[position] = EventError(error.attribute, error.reason, error.hint, position)
        writer.close()
    return writer.flat(), refused


class _Writer:
    def __init__(self, names: AttributeNames, deciders: Deciders) -> None:
        self._numbers = names.numbers
        self._deciders = deciders
        self._polygons = deciders.attributes
        self._attributes: list[int] = []
        self._kinds: list[int] = []
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._texts: list[bytes] = []
        self._start = [0]

    def write(self, event: Event, true_keys: Iterable[int]) -> None:
        if not isinstance(event, Mapping):
            raise EventError("", f"expected a mapping of attributes to values, found {type(event).__name__}")
        for name, value in event.items():
            kind = type(value)
            if kind is float or (kind is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS):
                self._write_number(name, value)
            elif kind is str:
                self._write_text(name, value)
            else:
                self._write_other(name, value)
        for number, truth in self._deciders.paths(true_keys):
            self._append(number, BOOLEAN, truth, truth, b"")

    def _write_number(self, name: str, value: float) -> None:
        if value != value:
            to_double(value, name)
        number = self._numbers.get(name)
        if number is not None:
            self._append(number, NUMBER, value, value, b"")

    def _write_text(self, name: str, value: str) -> None:
        number = self._numbers.get(name)
        if number is not None:
            self._append(number, STRING, 0, 0, value.encode(errors="surrogatepass"))

    def _write_other(self, name: str, value: Any) -> None:
        values = [one for one in (value if isinstance(value, SEVERAL) else (value,)) if one is not None]
        number = self._numbers.get(name)
        for one in values:
            kind, low, high, text = _pair(name, one)
            if number is not None:
                self._append(number, kind, low, high, text)
        if name in self._polygons and values:
            for atom, truth in self._deciders.around(name, values):
                self._append(atom, BOOLEAN, truth, truth, b"")

    def _append(self, number: int, kind: int, low: float, high: float, text: bytes) -> None:
        self._attributes.append(number)
        self._kinds.append(kind)
        self._lows.append(low)
        self._highs.append(high)
        self._texts.append(text)

    def undo(self) -> None:
        """Forget what was written since the last `close`."""
        for column in (self._attributes, self._kinds, self._lows, self._highs, self._texts):
            del column[self._start[-1] :]

    def close(self) -> None:
        self._start.append(len(self._attributes))

    def flat(self) -> FlatEvents:
        pairs = np.empty(len(self._attributes), PAIR)
        pairs["attribute"], pairs["kind"] = self._attributes, self._kinds
        pairs["low"], pairs["high"] = self._lows, self._highs
        ends = np.cumsum(np.fromiter(map(len, self._texts), np.int64, len(pairs)))
        pairs["text_start"][1:], pairs["text_end"] = ends[:-1], ends
        pairs["text_start"][:1] = 0
        text = np.frombuffer(b"".join(self._texts) or b"\0", np.uint8)
        return FlatEvents(np.array(self._start, np.int64), pairs, text)


def _pair(name: str, value: Any) -> tuple[int, float, float, bytes]:
    """The kind of one value, its number or truth as low and high, and its text."""
    match value:
        case bool() | np.bool_():
            return BOOLEAN, float(value), float(value), b""
        case int() | float() | np.integer() | np.floating():
            number = to_double(value, name)  # type: ignore[arg-type]  # it knows numpy's numbers
            return NUMBER, number, number, b""
        case str():
            return STRING, 0.0, 0.0, value.encode(errors="surrogatepass")
        case Interval(low, high):
            return NUMBER, low, high, b""
        case Point():
            return OTHER, 0.0, 0.0, b""
    expected = "None, str, bool, int, float, Interval, Point, or a list, tuple or set of those"
    raise EventError(name, f"a value of type {type(value).__name__} cannot be matched", f"expected {expected}")
