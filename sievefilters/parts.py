"""The parts of standing filters, as arrays and metadata that one file can hold.

    xpath.…     arrays of the XPath engine          metadata: its own, and the version of its format
    boolean.…   arrays of the Boolean engine        metadata: likewise
    owners.…    who owns each id of either engine
                                                    metadata: key, users and text of each atom

One file is one mapping: processes that map it share all of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from boolmatch import BooleanIndex
from boolmatch import files as boolean_files
from sievefilters.atoms import Atoms
from sievefilters.number_array import NumberArray
from xpathfilter import DocumentLimits, XPathIndex
from xpathfilter import index as xpath_files

__all__ = ["FILE_VERSION", "Parts", "parts_from_stored", "stored_parts"]

FILE_VERSION = 10_000 + 100 * xpath_files.FILE_VERSION + boolean_files.FILE_VERSION
"""Two digits each: of this layout, and of the two that are inside."""

KINDS = ("xpath", "boolean")


class Parts(NamedTuple):
    """What standing filters consist of, but for extractors."""

    xpath: XPathIndex
    boolean: BooleanIndex
    owners: dict[str, NumberArray]
    atoms: Atoms


def stored_parts(
    xpath: XPathIndex, boolean: BooleanIndex, owners: Mapping[str, NumberArray], atoms: Atoms
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """All arrays by name, and all metadata."""
    arrays: dict[str, np.ndarray] = {}
    metadata: dict[str, Any] = {"atoms": atoms.stored()}
    for kind, (own, metadata[kind]) in zip(KINDS, (xpath.stored(), boolean.stored()), strict=True):
        arrays |= {f"{kind}.{name}": array for name, array in own.items()}
    arrays |= {f"owners.{kind}": owned.values for kind, owned in owners.items()}
    return arrays, metadata


def parts_from_stored(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], limits: DocumentLimits) -> Parts:
    """The parts that were stored; their arrays are those that are given, not copies."""
    xpath = XPathIndex.from_stored(_of(arrays, "xpath"), metadata["xpath"], limits)
    boolean = BooleanIndex.from_stored(_of(arrays, "boolean"), metadata["boolean"])
    owners = {kind: NumberArray(arrays[f"owners.{kind}"]) for kind in KINDS}
    return Parts(xpath, boolean, owners, Atoms.from_stored(xpath, metadata["atoms"]))


def _of(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")}
