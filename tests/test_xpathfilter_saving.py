"""A saved index comes back the same, and a file that is not one is refused with a reason."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from strategies import NAMESPACES, document, native_expression, other_expression

from sievecore import StorageError
from sievecore.storage import save_arrays
from xpathfilter import DocumentError, DocumentLimits, UnknownSubscription, XPathIndex

pytestmark = pytest.mark.kernels

both_algorithms = pytest.mark.parametrize("algorithm", ["suffix", "delta"])
both_ways = pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.sieve"


def full_index(algorithm: str) -> XPathIndex:
    """Paths, formulas, expressions for lxml, namespaces, repetitions, and gaps."""
    random, index = Random(61), XPathIndex(algorithm=algorithm)
    index.add_many([native_expression(random.choice) for _ in range(300)], NAMESPACES)
    index.add_many(["//a", "//a or //b", "count(//a) > 1", "string-length(.) > 3"] * 5)
    for _ in range(80):
        index.add(other_expression(random.choice), NAMESPACES)
    index.add("//other:a", {"other": "urn:p"})
    index.add("//other:a[last()]", {"other": "urn:p"})
    index.remove_many(range(3, 380, 9))
    return index


def some_texts() -> list[str]:
    random = Random(62)
    return [document(random.choice, n_elements) for n_elements in (1, 5, 20, 80, 300)]


def answers(index: XPathIndex) -> list[list[int]]:
    return [index.match(text).tolist() for text in some_texts()]


@both_algorithms
@both_ways
def test_an_index_comes_back_the_same(algorithm: str, mmap: bool, file: Path) -> None:
    index = full_index(algorithm)
    expected, lanes = answers(index), index.stats()["lanes"]
    index.save(file)
    loaded = XPathIndex.load(file, mmap=mmap)
    assert answers(loaded) == answers(index) == expected
    assert sum(map(len, expected)) > 100
    assert (len(loaded), loaded.stats()["algorithm"]) == (len(index), algorithm)
    assert loaded.stats()["lanes"] == lanes
    assert min(lanes.values()) > 0


@both_algorithms
@both_ways
def test_a_loaded_index_lives_on(algorithm: str, mmap: bool, file: Path) -> None:
    index = full_index(algorithm)
    index.save(file)
    loaded = XPathIndex.load(file, mmap=mmap)
    for changed in (index, loaded):
        changed.remove_many([1, 2, 301])
        changed.add_many([f"//*[@x = {number}]" for number in range(200)])
        changed.add("count(//b) > 1")
        changed.wait_until_merged()
    assert answers(loaded) == answers(index)
    assert len(loaded) == len(index)
    with pytest.raises(UnknownSubscription):
        loaded.remove(3)


@both_ways
def test_ids_go_on_after_the_last_one_even_if_it_was_removed(mmap: bool, file: Path) -> None:
    index = XPathIndex()
    index.remove(index.add_many(["//a", "//b"]).tolist()[-1])
    index.save(file)
    assert XPathIndex.load(file, mmap=mmap).add("//c") == 3


@both_algorithms
@both_ways
def test_an_empty_index_comes_back_empty(algorithm: str, mmap: bool, file: Path) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.save(file)
    loaded = XPathIndex.load(file, mmap=mmap)
    assert (len(loaded), loaded.match("<a/>").tolist()) == (0, [])
    assert loaded.add("//a") == 1
    assert loaded.match("<a/>").tolist() == [1]


def test_saving_again_over_a_mapped_file_is_safe(file: Path) -> None:
    full_index("suffix").save(file)
    loaded = XPathIndex.load(file)
    expected = answers(loaded)
    loaded.add("/nowhere")
    loaded.save(file)
    assert answers(loaded) == expected
    assert answers(XPathIndex.load(file)) == expected


def test_another_process_gives_the_same_answers(file: Path, repository: Path) -> None:
    index = full_index("suffix")
    index.save(file)
    script = (
        "import json, sys; from xpathfilter import XPathIndex; index = XPathIndex.load(sys.argv[1]);"
        "print(json.dumps([index.match(text).tolist() for text in json.load(sys.stdin)]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(file)],
        input=json.dumps(some_texts()),
        capture_output=True,
        text=True,
        check=True,
        cwd=repository,
    )
    assert json.loads(ran.stdout) == answers(index)


@both_ways
def test_limits_are_given_when_loading(mmap: bool, file: Path) -> None:
    XPathIndex().save(file)
    loaded = XPathIndex.load(file, mmap=mmap, limits=DocumentLimits(max_depth=2))
    with pytest.raises(DocumentError, match="too deep"):
        loaded.match("<a><b><c/></b></a>")


def test_a_file_that_is_not_there(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        XPathIndex.load(file)


@both_ways
@pytest.mark.parametrize("part", [0, 0.01, 0.5, 0.999], ids="{:.1%}".format)
def test_a_truncated_file_is_refused(part: float, mmap: bool, file: Path) -> None:
    full_index("suffix").save(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(StorageError) as caught:
        XPathIndex.load(file, mmap=mmap)
    assert str(file) in str(caught.value)


FOREIGN = {
    "text": b"//a\n//b\n" * 1000,
    "xml": b"<?xml version='1.0'?><a/>",
    "zip": b"PK\x03\x04" + bytes(5000),
    "zeros": bytes(5000),
}


@both_ways
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_refused(content: bytes, mmap: bool, file: Path) -> None:
    file.write_bytes(content)
    with pytest.raises(StorageError):
        XPathIndex.load(file, mmap=mmap)


@both_ways
@pytest.mark.parametrize("kind, version", [("xpathfilter.index", 999), ("boolmatch.index", 1)])
def test_another_kind_or_version_is_refused(kind: str, version: int, mmap: bool, file: Path) -> None:
    save_arrays(file, kind, version, {"ids": np.arange(9)}, {"algorithm": "suffix", "next_id": 1, "verified": []})
    with pytest.raises(StorageError):
        XPathIndex.load(file, mmap=mmap)
