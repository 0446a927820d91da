"""Named arrays and a little metadata in one file, written all or nothing and mapped, not read.

    0            64                 data_start (multiple of 64)                    total length
    │ header     │ directory, JSON   │ array │·│ array        │·│ array            │
      magic        kind, version       each begins at a multiple of 64 bytes,
      lengths      metadata            gaps (·) are zero
      checksums    name, dtype, shape and offset of each array

    >>> import numpy as np, tempfile
    >>> path = tempfile.mkdtemp() + "/squares.sieve"
    >>> save_arrays(path, "example.squares", 1, {"squares": np.arange(4) ** 2}, {"made_by": "hand"})
    >>> arrays, metadata = load_arrays(path, "example.squares", 1)
    >>> arrays["squares"], metadata["made_by"]
    (array([0, 1, 4, 9]), 'hand')

Every byte is covered by one of three checksums (header, directory, data), so a file that was cut short,
grew, or had a bit flipped is refused with a `StorageError`; nothing wrong is ever handed out. A crash
while saving leaves the old file or the new one. Arrays that were mapped may be written to: the pages
become private copies, the file and other processes never see it; pages nobody writes to are shared.
A file in use can be replaced by `save_arrays`, but must not be changed in place by other means.

All numbers are little-endian. Checksums are CRC-32: they find accidents, not forgers, so load only what
you would trust.
"""

import json
import mmap as memory_map
import os
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sievecore.errors import StorageError

__all__ = ["load_arrays", "save_arrays"]

Array = NDArray[Any]

MAGIC = b"\x93SIEVE\r\n"  # not text, and a transfer that rewrites line ends breaks it
FORMAT = 1
ALIGNMENT = 64
COPY_AGAIN = "copy it again from its origin, or build and save it anew"


class Header(NamedTuple):
    """The first 64 bytes; the checksum of these fields follows them."""

    magic: bytes
    format: int
    directory_checksum: int
    data_checksum: int
    data_start: int
    total_length: int


FIELDS = struct.Struct("<8sIIIQQ")
CHECKSUM = struct.Struct("<I")
HEADER_LENGTH = 64


def save_arrays(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    arrays: Mapping[str, Array],
    metadata: Mapping[str, Any],
) -> None:
    """Write `arrays` and `metadata` to `path`, replacing what is there in one step.

    `kind` and `version` say what the arrays mean; `load_arrays` must ask for the same. Metadata comes
    back as JSON does: tuples as lists, keys as strings. An array that is not little-endian, or holds
    Python objects, is a TypeError.
    """
    contiguous = {name: _storable(name, array) for name, array in arrays.items()}
    directory = _directory(kind, version, contiguous, metadata)
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            _write(file, directory, contiguous)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def load_arrays(
    path: str | os.PathLike[str], kind: str, version: int, mmap: bool = True, verify: bool = True
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the metadata that were saved under this `kind` and `version`.

    With `mmap` the arrays are views of the mapped file, loaded page by page when touched; without it
    they are read into memory at once. `verify=False` leaves out the checksum of the data (not that of
    header and directory), for files too large to be read through at every start.
    """
    content = _content(path, mmap)
    header = _checked_header(path, content)
    directory = _checked_directory(path, content[HEADER_LENGTH : header.data_start], header)
    _require_kind(path, directory, kind, version)
    data = content[header.data_start :]
    if verify and zlib.crc32(data) != header.data_checksum:
        raise StorageError(path, f"its data fail their checksum, so some of it has changed: {COPY_AGAIN}")
    return {entry["name"]: _view(data, entry) for entry in directory["arrays"]}, directory["metadata"]


# Saving


def _storable(name: str, array: Array) -> Array:
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        raise TypeError(f"array {name!r} must be a numpy array of plain values, not of Python objects")
    if array.dtype != array.dtype.newbyteorder("<"):
        raise TypeError(f"array {name!r} must be little-endian, not {array.dtype.str}: use array.astype")
    return np.asarray(array, order="C")


def _directory(kind: str, version: int, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> bytes:
    entries = [
        {"name": name, "dtype": _description(array.dtype), "shape": array.shape, "offset": offset}
        for (name, array), offset in zip(arrays.items(), _offsets(arrays), strict=True)
    ]
    facts = {"kind": kind, "version": version, "arrays": entries, "metadata": dict(metadata)}
    return _padded(json.dumps(facts, allow_nan=False).encode())


def _offsets(arrays: Mapping[str, Array]) -> Iterator[int]:
    offset = 0
    for array in arrays.values():
        yield offset
        offset += _aligned(array.nbytes)


def _write(file: BinaryIO, directory: bytes, arrays: Mapping[str, Array]) -> None:
    """Write directory and data first and the header last, when the checksums are known."""
    file.write(bytes(HEADER_LENGTH))
    file.write(directory)
    checksum = 0
    for array in arrays.values():
        for part in (array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % ALIGNMENT)):
            file.write(part)
            checksum = zlib.crc32(part, checksum)
    data_start = HEADER_LENGTH + len(directory)
    header = Header(MAGIC, FORMAT, zlib.crc32(directory), checksum, data_start, file.tell())
    file.seek(0)
    file.write(_packed(header))


def _packed(header: Header) -> bytes:
    fields = FIELDS.pack(*header)
    return (fields + CHECKSUM.pack(zlib.crc32(fields))).ljust(HEADER_LENGTH, b"\0")


def _padded(content: bytes) -> bytes:
    return content.ljust(_aligned(len(content)), b"\0")


def _aligned(length: int) -> int:
    return length + -length % ALIGNMENT


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Loading


def _content(path: str | os.PathLike[str], mmap: bool) -> memoryview:
    if Path(path).exists() and not Path(path).is_file():
        raise StorageError(path, "expected a file, found a directory or device: name the file itself")
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        if length == 0:
            raise StorageError(path, f"expected stored arrays, found an empty file: {COPY_AGAIN}")
        if mmap:
            return memoryview(memory_map.mmap(file.fileno(), length, access=memory_map.ACCESS_COPY))
        memory = memoryview(memory_map.mmap(-1, length))  # like the mapped file it begins at a page
        return memory[: file.readinto(memory)]


def _checked_header(path: str | os.PathLike[str], content: memoryview) -> Header:
    start = bytes(content[:HEADER_LENGTH])
    if not start.startswith(MAGIC[: len(start)]):
        reason = f"expected a file of stored arrays, found one that begins with {start[:8]!r}: check its name"
        raise StorageError(path, reason)
    if len(start) < HEADER_LENGTH:
        raise _wrong_length(path, f"at least {HEADER_LENGTH}", len(content))
    header = Header(*FIELDS.unpack_from(start))
    if header.format != FORMAT:
        reason = f"expected storage format {FORMAT}, found {header.format}: save it anew with this release"
        raise StorageError(path, reason)
    if start != _packed(header):
        raise StorageError(path, f"its header fails its checksum: {COPY_AGAIN}")
    if header.total_length != len(content):
        raise _wrong_length(path, str(header.total_length), len(content))
    return header


def _wrong_length(path: str | os.PathLike[str], expected: str, found: int) -> StorageError:
    return StorageError(path, f"expected {expected} bytes, found {found}: {COPY_AGAIN}")


def _checked_directory(path: str | os.PathLike[str], content: memoryview, header: Header) -> dict[str, Any]:
    if zlib.crc32(content) != header.directory_checksum:
        raise StorageError(path, f"its directory fails its checksum: {COPY_AGAIN}")
    directory: dict[str, Any] = json.loads(bytes(content).rstrip(b"\0"))
    return directory


def _require_kind(path: str | os.PathLike[str], directory: dict[str, Any], kind: str, version: int) -> None:
    if directory["kind"] != kind:
        reason = f"expected a file of kind {kind!r}, found {directory['kind']!r}: check its name"
        raise StorageError(path, reason)
    if directory["version"] != version:
        found = directory["version"]
        reason = f"expected version {version} of {kind!r}, found {found}: build and save it anew"
        raise StorageError(path, reason)


def _view(data: memoryview, entry: dict[str, Any]) -> Array:
    return np.ndarray(entry["shape"], _dtype(entry["dtype"]), buffer=data, offset=entry["offset"])


# Types of cells: numpy's own `dtype.descr` forgets alignment, and kernels are compiled for one alignment


def _description(dtype: Any) -> Any:
    if dtype.subdtype is not None:
        cell, shape = dtype.subdtype
        return {"cell": _description(cell), "shape": shape}
    if dtype.fields is None:
        return dtype.str
    return {
        "names": dtype.names,
        "formats": [_description(dtype.fields[name][0]) for name in dtype.names],
        "offsets": [dtype.fields[name][1] for name in dtype.names],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def _dtype(description: Any) -> Any:
    if isinstance(description, str):
        return np.dtype(description)
    if "cell" in description:
        return np.dtype((_dtype(description["cell"]), tuple(description["shape"])))
    layout: Any = {key: description[key] for key in ("names", "offsets", "itemsize")}
    layout["formats"] = [_dtype(inner) for inner in description["formats"]]
    return np.dtype(layout, align=description["aligned"])
