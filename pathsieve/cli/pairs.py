"""Options that come as key=value, and values as one types them."""

import json
from collections.abc import Sequence
from typing import Any

import typer

from pathsieve.values import Interval, Point

__all__ = ["read_attributes", "read_pairs"]


_SHAPES: dict[frozenset[str], type[Point] | type[Interval]] = {
    frozenset({"x", "y"}): Point,
    frozenset({"low", "high"}): Interval,
}


def read_pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    """Each pair, as a dict.

    >>> read_pairs("--label", ["team=rates", "note=a=b"])
    {'team': 'rates', 'note': 'a=b'}
    """
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise typer.BadParameter(f"expected key=value, found {pair!r}", param_hint=option)
        found[key] = value
    return found


def read_attributes(option: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Attributes with their types: what is JSON is read as JSON, all else is text.

    >>> read_attributes("--attribute", ["price=120", "symbol=IBM", "tags=[1, 2]", 'place={"x": 1, "y": 2}'])
    {'price': 120, 'symbol': 'IBM', 'tags': [1, 2], 'place': Point(x=1, y=2)}
    """
    return {key: _read_value(text) for key, text in read_pairs(option, pairs).items()}


def _read_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        return _SHAPES[frozenset(value)](**value) if frozenset(value) in _SHAPES else text
    return text if value is None else value
