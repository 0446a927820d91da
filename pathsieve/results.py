"""What a server has made of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pathsieve.errors import PathSieveError
from pathsieve.values import AttributeValue

__all__ = ["Committed", "Imported", "Published", "Staged", "Tested"]


@dataclass(frozen=True, slots=True)
class Published:
    """One document: how many want it, and whether it had been published before. In a batch, `error` if refused."""

    id: str
    matches: int = 0
    duplicate: bool = False
    error: PathSieveError | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """One subscription of an import, the `index`th: its name, or the `error` it was refused with."""

    index: int
    name: str = ""
    error: PathSieveError | None = None


@dataclass(frozen=True, slots=True)
class Tested:
    """Whether a filter wants a document, why or why not, and the attributes that it saw. True if it does."""

    matches: bool
    explanation: str = ""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.matches


@dataclass(frozen=True, slots=True)
class Staged:
    """A part of a batch: how many documents wait for the commit, and those refused, by their place in the part."""

    staged: int
    refused: Mapping[int, PathSieveError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch: `repeated` if it had been committed before, and this time nothing was done."""

    documents: int
    matches: int
    repeated: bool = False
