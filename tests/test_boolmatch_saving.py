"""A saved Boolean index comes back the same, and a file that is not one is refused with a reason."""

from pathlib import Path
from random import Random

import pytest
from test_boolmatch_updates import some_event, some_text

from boolmatch import BooleanIndex, Point, UnknownSubscription
from boolmatch.algorithms import ALGORITHMS
from sievecore import StorageError
from xpathfilter import XPathIndex

pytestmark = pytest.mark.kernels

every_algorithm = pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
both_ways = pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.sieve"


def full_index(algorithm: str) -> BooleanIndex:
    """Comparisons, lists, patterns, polygons, programs, repetitions, and gaps."""
    random, index = Random(61), BooleanIndex(algorithm)
    index.add_many([some_text(random) for _ in range(300)])
    index.add_many(["e LIKE '%x_y%'", f"WITHIN(place, '{SQUARE}')", f"NOT WITHIN(place, '{SQUARE}')"] * 3)
    index.add(" AND ".join(f"(a = {number} OR b{number} = 1)" for number in range(12)))
    index.remove_many(range(3, 300, 9))
    return index


def answers(index: BooleanIndex) -> list[list[int]]:
    random = Random(62)
    happening = [some_event(random) for _ in range(20)]
    happening += [{"e": "axzyb"}, {"place": Point(1, 1)}, {"place": Point(9, 1)}, {f"b{n}": 1 for n in range(12)}]
    return [index.match(event).tolist() for event in happening]


@every_algorithm
@both_ways
def test_an_index_comes_back_the_same_and_lives_on(algorithm: str, mmap: bool, file: Path) -> None:
    index = full_index(algorithm)
    expected = answers(index)
    index.save(file)
    loaded = BooleanIndex.load(file, mmap=mmap)
    assert answers(loaded) == expected
    assert all(expected[-4:])
    assert (len(loaded), loaded.stats()["algorithm"]) == (len(index), algorithm)
    for changed in (index, loaded):
        changed.remove_many([1, 2])
        changed.add_many([f"new{number} = 1 OR a = {number % 8}" for number in range(100)])
        changed.merge()
    assert answers(loaded) == answers(index)
    with pytest.raises(UnknownSubscription):
        loaded.remove(3)


def test_ids_go_on_after_the_last_one_even_if_it_was_removed(file: Path) -> None:
    index = BooleanIndex()
    index.remove(index.add_many(["a = 1", "b = 1"]).tolist()[-1])
    index.save(file)
    assert BooleanIndex.load(file).add("c = 1") == 3


def test_a_file_of_the_other_engine_is_refused(file: Path) -> None:
    XPathIndex().save(file)
    with pytest.raises(StorageError, match=r"expected a file of kind 'boolmatch.index', found 'xpathfilter.index'"):
        BooleanIndex.load(file)


def test_a_truncated_file_is_refused(file: Path) -> None:
    full_index("auto").save(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(StorageError, match=r"expected .* bytes, found"):
        BooleanIndex.load(file)
