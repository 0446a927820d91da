"""Subscriptions, wherever they come from, as ids and filters.

    a list or mapping       ["//a", {"id": "ibm", "boolean": "price > 100"}], {"ibm": "//quote"}
    a DataFrame             id, expression, and if they are there kind and namespaces
    a file                  as `pathsieve sub import` reads it: .jsonl, .csv, .txt
    a Client                all subscriptions of its server that a tenant has, page by page
    a function              called, and what it returns is one of these

Without ids, a subscription's place is its id: its position in a list, its line in a file. What cannot be understood is
told with all the others that cannot be.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pathsieve import Client
from pathsieve import Filter as ClientFilter
from pathsieve import Subscription as ClientSubscription
from pathsieve.cli.wish_files import read_lines
from pyspark_pathsieve.match_errors import MatchSetupError, RefusedSubscription
from sievefilters import Filter

__all__ = ["Id", "SubscriptionSet", "read_subscriptions"]

Id = str | int
KINDS = ("xpath", "boolean")


@dataclass
class SubscriptionSet:
    """Ids and filters, side by side, and what was refused on the way."""

    ids: list[Id] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    refused: list[RefusedSubscription] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


def read_subscriptions(given: Any) -> SubscriptionSet:
    """The subscriptions that are given, in any of the forms above."""
    if isinstance(given, SubscriptionSet):
        return given
    if isinstance(given, Client):
        return _collected((one.id, one) for one in given.list())
    if isinstance(given, str | os.PathLike):
        return _from_file(os.fspath(given))
    if isinstance(given, Mapping):
        return _collected(given.items())
    if hasattr(given, "toArrow"):
        return _from_frame(given)
    if callable(given):
        return read_subscriptions(given())
    if isinstance(given, Iterable):
        return _collected(enumerate(given))
    raise MatchSetupError(
        f"subscriptions: expected a list, a mapping, a DataFrame, a file, a Client or a function that returns one of"
        f" them, found {type(given).__name__}"
    )


def _from_file(path: str) -> SubscriptionSet:
    bad: list[RefusedSubscription] = []

    def items() -> Iterator[tuple[Id, Any]]:
        for line in read_lines(path, None, boolean=False):
            if line.wish is None:
                bad.append(RefusedSubscription(line.number, line.problem))
            else:
                yield line.number, line.wish

    try:
        found = _collected(items())
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise MatchSetupError(f"subscriptions: the file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MatchSetupError(f"subscriptions: the file {path} is no text in UTF-8: {error.reason}") from error
    found.refused += bad
    return found


def _from_frame(frame: Any) -> SubscriptionSet:
    """A DataFrame, collected as Arrow; what it lacks is told before anything runs."""
    from pyspark_pathsieve.match_schema import check_subscription_frame

    columns = check_subscription_frame(frame)
    rows = frame.select(*columns).toArrow().to_pylist()
    return _collected(enumerate({key: value for key, value in row.items() if value is not None} for row in rows))


def _collected(items: Iterable[tuple[Id, Any]]) -> SubscriptionSet:
    """Items with their places; an id of their own is better than a place."""
    found = SubscriptionSet()
    named: list[tuple[Id, Id | None]] = []
    for place, item in items:
        try:
            own, filter = _understood(item)
        except (TypeError, ValueError) as error:
            found.refused.append(RefusedSubscription(place, str(error)))
            continue
        named.append((place, own))
        found.filters.append(filter)
    found.ids = _ids(named)
    _refuse_repetitions(found)
    return found


def _ids(named: Sequence[tuple[Id, Id | None]]) -> list[Id]:
    nameless = [place for place, own in named if own is None]
    if len(nameless) == len(named):
        return [place for place, _ in named]
    if nameless:
        raise MatchSetupError(
            f"subscriptions: {len(nameless):,} have no id and {len(named) - len(nameless):,} have one; the first"
            f" without is at {nameless[0]}: give all of them an id, or none"
        )
    ids = [own for _, own in named if own is not None]
    kinds = {type(own) for own in ids}
    return [str(own) for own in ids] if len(kinds) > 1 else ids


def _refuse_repetitions(found: SubscriptionSet) -> None:
    """An id is one subscription's; the second with it is refused."""
    if len(set(found.ids)) == len(found.ids):
        return
    seen: set[Id] = set()
    kept = []
    for place, one in enumerate(found.ids):
        if one in seen:
            found.refused.append(RefusedSubscription(one, "another subscription has this id"))
        else:
            seen.add(one)
            kept.append(place)
    found.ids = [found.ids[place] for place in kept]
    found.filters = [found.filters[place] for place in kept]


def _understood(item: Any) -> tuple[Id | None, Filter]:
    match item:
        case str():
            return None, Filter("xpath", item)
        case Filter():
            return None, item
        case ClientFilter():
            return None, Filter(item.kind, item.expression, _pairs(item.namespaces))
        case ClientSubscription():
            return item.id, _understood(item.filter)[1]
        case Mapping():
            return _own_id(item.get("id")), _from_facts(item)
        case (own, inner) if isinstance(own, str | int):
            return _own_id(own), _understood(inner)[1]
    raise TypeError(
        f"expected an XPath expression, a mapping with an expression, or a pair of id and either,"
        f" found {type(item).__name__}"
    )


def _own_id(own: Any) -> Id | None:
    if own is None or (isinstance(own, str | int) and not isinstance(own, bool) and own != ""):
        return own
    raise TypeError(f"expected an id that is text or a whole number, found {own!r}")


def _from_facts(facts: Mapping[str, Any]) -> Filter:
    """A filter from {"xpath": …}, {"boolean": …}, or {"kind": …, "expression": …}."""
    namespaces = _pairs(facts.get("namespaces") or {})
    written = [(kind, facts[kind]) for kind in KINDS if facts.get(kind)]
    if facts.get("expression"):
        written.append((facts.get("kind", "xpath"), facts["expression"]))
    if len(written) != 1:
        raise ValueError(f"expected one expression (as expression, xpath or boolean), found {len(written)}")
    kind, expression = written[0]
    if kind not in KINDS:
        raise ValueError(f"expected the kind xpath or boolean, found {kind!r}")
    if not isinstance(expression, str):
        raise TypeError(f"expected an expression as text, found {type(expression).__name__}")
    return Filter(kind, expression, namespaces)


def _pairs(namespaces: Any) -> tuple[tuple[str, str], ...]:
    """Prefixes and URIs; Arrow has a map as a list of pairs."""
    pairs = namespaces.items() if isinstance(namespaces, Mapping) else namespaces
    return tuple(sorted((str(prefix), str(uri)) for prefix, uri in pairs))
