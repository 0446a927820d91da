"""Stored arrays come back as they were, and a file that is not as it was written is refused."""

import json
import multiprocessing
import os
import string
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sievecore import StorageError
from sievecore.storage import ALIGNMENT, load_arrays, save_arrays

KIND, VERSION = "example.index", 3

PACKED = np.dtype([("id", "<i4"), ("weight", "<f8"), ("corner", "<i2", (2, 3))])
ALIGNED = np.dtype([("flag", "u1"), ("inner", np.dtype([("x", "<i8"), ("y", "u1")], align=True))], align=True)

ARRAYS = {
    "none": np.zeros(0, np.int32),
    "no_rows": np.zeros((0, 3)),
    "scalar": np.array(7, np.uint64),
    "bytes": np.frombuffer(b"some text", np.uint8),
    "table": np.arange(12, dtype=np.int16).reshape(3, 4),
    "columns_first": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every_second": np.arange(10)[::2],
    "truth": np.array([True, False]),
    "words": np.array(["a", "né"]),
    "packed_records": np.ones(3, PACKED),
    "aligned_records": np.ones(3, ALIGNED),
}
METADATA = {"subscriptions": 12, "names": ["a", None, "ß"], "ratio": 0.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_arrays(tmp_path / "index.sieve", KIND, VERSION, ARRAYS, METADATA)
    return tmp_path / "index.sieve"


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("verify", [True, False], ids=["verified", "unverified"])
def test_everything_comes_back(path: Path, mmap: bool, verify: bool) -> None:
    arrays, metadata = load_arrays(path, KIND, VERSION, mmap=mmap, verify=verify)
    assert metadata == METADATA
    assert list(arrays) == list(ARRAYS)
    for name, expected in ARRAYS.items():
        assert_same(arrays[name], expected)


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {"words"}))
def test_kernels_see_the_same_type_as_that_of_an_ordinary_array(path: Path, name: str, mmap: bool) -> None:
    array = load_arrays(path, KIND, VERSION, mmap=mmap)[0][name]
    assert numba.typeof(array) == numba.typeof(ARRAYS[name].copy(order="C"))
    assert array.flags.writeable
    assert array.ctypes.data % ALIGNMENT == 0


NUMBERS = hnp.integer_dtypes(endianness="<") | hnp.floating_dtypes(endianness="<") | hnp.boolean_dtypes()
ANY_ARRAY = hnp.arrays(NUMBERS, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))


@given(
    arrays=st.dictionaries(st.text(max_size=8), ANY_ARRAY, max_size=5),
    metadata=st.dictionaries(st.text(string.printable), st.none() | st.integers() | st.text(), max_size=3),
)
def test_any_arrays_come_back(tmp_path_factory: Any, arrays: dict[str, np.ndarray], metadata: Any) -> None:
    path = tmp_path_factory.mktemp("storage") / "any.sieve"
    save_arrays(path, KIND, VERSION, arrays, metadata)
    found, found_metadata = load_arrays(path, KIND, VERSION)
    assert (list(found), found_metadata) == (list(arrays), metadata)
    for name, expected in arrays.items():
        assert_same(found[name], expected)


# What is mapped


def test_writing_to_a_mapped_array_changes_neither_the_file_nor_other_views(path: Path) -> None:
    before = path.read_bytes()
    mine, _ = load_arrays(path, KIND, VERSION)
    theirs, _ = load_arrays(path, KIND, VERSION)
    mine["table"][:] = -1
    assert (mine["table"] == -1).all()
    assert_same(theirs["table"], ARRAYS["table"])
    assert path.read_bytes() == before


def test_mapped_arrays_outlive_the_replacement_of_their_file(path: Path) -> None:
    old, _ = load_arrays(path, KIND, VERSION)
    save_arrays(path, KIND, VERSION, {"table": np.zeros(2)}, {})
    assert_same(old["table"], ARRAYS["table"])
    assert load_arrays(path, KIND, VERSION)[0]["table"].tolist() == [0, 0]


def total_in_another_process(path: Path) -> int:
    return int(load_arrays(path, KIND, VERSION)[0]["table"].sum())


def test_another_process_reads_the_same(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(total_in_another_process, [path]) == ARRAYS["table"].sum()


# What is refused


def zip_file(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(change(path.read_bytes())) and None


def directory_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


REFUSALS = {
    "empty": (rewritten(lambda content: b""), "found an empty file"),
    "xml": (rewritten(lambda content: b'<?xml version="1.0"?><a/>'), r"begins with b'<\?xml"),
    "zip": (zip_file, r"begins with b'PK"),
    "line_ends_rewritten": (rewritten(lambda c: c.replace(b"\r\n", b"\n")), "begins with b'.*SIEVE"),
    "cut_in_the_magic": (rewritten(lambda c: c[:5]), "expected at least 64 bytes, found 5"),
    "cut_in_the_header": (rewritten(lambda c: c[:40]), "expected at least 64 bytes, found 40"),
    "cut_in_the_data": (rewritten(lambda c: c[:-1]), r"expected \d+ bytes, found \d+: copy it again"),
    "one_byte_too_many": (rewritten(lambda c: c + b"\n"), r"expected \d+ bytes, found \d+: copy it again"),
    "newer_format": (rewritten(lambda c: c[:8] + b"\2" + c[9:]), "expected storage format 1, found 2"),
    "changed_header": (rewritten(lambda c: c[:20] + b"?" + c[21:]), "header fails its checksum"),
    "changed_directory": (rewritten(lambda c: c.replace(b"table", b"tablf")), "directory fails its checksum"),
    "changed_data": (rewritten(lambda c: c.replace(b"some text", b"same text")), "data fail their checksum"),
    "a_directory": (directory_instead, "found a directory"),
}


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("spoil, reason", REFUSALS.values(), ids=REFUSALS)
def test_a_spoilt_file_is_refused_with_its_reason(path: Path, spoil: Any, reason: str, mmap: bool) -> None:
    spoil(path)
    with pytest.raises(StorageError, match=reason) as caught:
        load_arrays(path, KIND, VERSION, mmap=mmap)
    assert caught.value.path == str(path)


OTHERS = {
    "another_kind": ("other.index", VERSION, "kind 'other.index', found 'example.index'"),
    "a_newer_version": (KIND, VERSION + 1, "expected version 4 of 'example.index', found 3"),
    "an_older_version": (KIND, VERSION - 1, "expected version 2 of 'example.index', found 3"),
}


@pytest.mark.parametrize("kind, version, reason", OTHERS.values(), ids=OTHERS)
def test_another_kind_or_version_is_refused(path: Path, kind: str, version: int, reason: str) -> None:
    with pytest.raises(StorageError, match=reason):
        load_arrays(path, kind, version)


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_arrays(tmp_path / "none.sieve", KIND, VERSION)


def test_no_truncation_is_accepted(path: Path) -> None:
    content = path.read_bytes()
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        with pytest.raises(StorageError):
            load_arrays(path, KIND, VERSION)


def test_no_single_changed_byte_is_accepted(path: Path) -> None:
    content = path.read_bytes()
    for position, byte in enumerate(content):
        with open(path, "r+b") as file:
            file.seek(position)
            file.write(bytes([byte ^ 0x10]))
            file.flush()
            with pytest.raises(StorageError):
                load_arrays(path, KIND, VERSION)
            file.seek(position)
            file.write(bytes([byte]))
    load_arrays(path, KIND, VERSION)


@given(st.data())
def test_no_mixture_of_changes_is_accepted(tmp_path_factory: Any, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("storage") / "mixed.sieve"
    save_arrays(path, KIND, VERSION, ARRAYS, METADATA)
    content = path.read_bytes()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    mixed = content[:start] + data.draw(st.binary(max_size=80)) + content[end:]
    path.write_bytes(mixed)
    if mixed != content:
        with pytest.raises(StorageError):
            load_arrays(path, KIND, VERSION)


@given(st.binary(max_size=300))
def test_no_foreign_bytes_are_accepted(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("storage") / "foreign"
    path.write_bytes(content)
    with pytest.raises(StorageError):
        load_arrays(path, KIND, VERSION)


# What saving promises

UNSTORABLE = {
    "big_endian": np.zeros(2, ">i4"),
    "big_endian_field": np.zeros(2, [("a", "<i4"), ("b", ">f8")]),
    "objects": np.array([None, "a"]),
    "object_field": np.zeros(2, [("a", "O")]),
    "a_list": [1, 2],
}


@pytest.mark.parametrize("array", UNSTORABLE.values(), ids=UNSTORABLE)
def test_what_cannot_be_mapped_is_refused_and_the_old_file_stays(path: Path, array: Any) -> None:
    before = path.read_bytes()
    with pytest.raises(TypeError, match="array 'culprit' must be"):
        save_arrays(path, KIND, VERSION, {"culprit": array}, {})
    assert path.read_bytes() == before


def test_metadata_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        save_arrays(tmp_path / "a.sieve", KIND, VERSION, {}, {"when": object()})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failure_while_saving_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        save_arrays(path, KIND, VERSION, {"table": np.zeros(2)}, {})
    assert_same(load_arrays(path, KIND, VERSION)[0]["table"], ARRAYS["table"])
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_on_disk_before_it_gets_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (steps.append(name), real(*a)))
    save_arrays(path, KIND, VERSION, ARRAYS, METADATA)
    assert steps == ["fsync", "replace", "fsync"]


def test_saving_through_a_link_replaces_what_it_points_to(path: Path) -> None:
    link = path.with_name("current")
    link.symlink_to(path)
    save_arrays(link, KIND, VERSION, {}, {"fresh": True})
    assert link.is_symlink()
    assert load_arrays(path, KIND, VERSION) == ({}, {"fresh": True})


def test_the_layout_is_the_documented_one(path: Path) -> None:
    content = path.read_bytes()
    data_start, total_length = np.frombuffer(content, "<u8", 2, offset=20).tolist()
    directory = json.loads(content[64:data_start].rstrip(b"\0"))
    entry = next(entry for entry in directory["arrays"] if entry["name"] == "table")
    start = data_start + entry["offset"]
    assert total_length == len(content)
    assert zlib.crc32(content[data_start:]) == np.frombuffer(content, "<u4", 1, offset=16)[0]
    assert content[start : start + 24] == ARRAYS["table"].tobytes()
