"""Words decide as the table does, and where they do not fit there are none."""

import random

import numpy as np
import pytest

from boolmatch.index import BooleanIndex
from boolmatch.packed import CODE_BITS, N_PACKED, Packed

pytestmark = pytest.mark.kernels


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


def packed(index: BooleanIndex) -> Packed:
    return index._overlay.snapshot.layers[0].segment.filed.packed


def test_a_word_has_the_attribute_the_lowest_code_and_how_many_follow() -> None:
    words, layout = packed(filled("pst-bloom", ["a BETWEEN 1 AND 2 AND b = 1"]))
    # Of a the constants 1 and 2 are the codes 5 and 7, of b 1 is the code 5; b is the likelier one to fail.
    assert layout.tolist() == [1, 4]
    assert words.tolist() == [0, 1 << 8 | 5 << 4 | 0, 0 << 8 | 5 << 4 | 2]


WIDTHS = {
    "narrow": (100, 5, True),
    "all_32_bits_for_two_codes": (20_000, 1, True),
    "a_bit_too_many": (40_000, 2, False),
}


@pytest.mark.parametrize("n_constants, n_attributes, fits", WIDTHS.values(), ids=WIDTHS)
def test_answers_do_not_depend_on_whether_words_fit(n_constants: int, n_attributes: int, fits: bool) -> None:
    source = random.Random(n_constants)
    texts = [f"a{number % n_attributes} >= {number}" for number in range(n_constants)]
    for _ in range(2_000):
        low = source.randrange(n_constants)
        texts.append(f"a{source.randrange(n_attributes)} BETWEEN {low} AND {low + source.randrange(50)} AND a0 > {low}")
    events = [{f"a{name}": source.randrange(n_constants) for name in range(n_attributes)} for _ in range(20)]
    quick, scan = filled("pst-bloom", texts), filled("scan", texts)
    assert (packed(quick).layout[N_PACKED] > 0) == fits
    assert not fits or packed(quick).layout[CODE_BITS] * 2 + (n_attributes - 1).bit_length() <= 32
    assert all(map(np.array_equal, quick.match_many(events), scan.match_many(events)))


def test_conjunctions_with_flags_have_no_words() -> None:
    index = filled("pst-bloom", ["a = 1 AND b = 2", "a IN (1, 3) AND b = 2"])
    assert packed(index).layout[N_PACKED] == 1
    assert index.match({"a": 1, "b": 2}).tolist() == [1, 2]
    assert index.match({"a": 3, "b": 2}).tolist() == [2]


def test_a_scan_has_no_words() -> None:
    assert len(packed(filled("scan", ["a = 1"])).words) == 0
