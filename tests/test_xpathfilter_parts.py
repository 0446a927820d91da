"""Parts: however a document is cut, its parts together find what the whole finds."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMESPACES, document, drawn, fewer, native_expression, other_expression

from xpathfilter import XPathIndex
from xpathfilter.document import parse_document
from xpathfilter.flatten import N_ELEMENTS, flatten, new_flat_document
from xpathfilter.parts import SMALLEST_PART, Parts, cut_parts, take_part, whole
from xpathfilter.segment import ALL_PARTS

pytestmark = pytest.mark.kernels


@given(st.integers(1, 100_000), st.integers(1, 64))
def test_parts_cover_the_document(n_elements: int, n_threads: int) -> None:
    bounds = cut_parts(n_elements, n_threads).bounds
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, n_elements)
    assert (sizes > 0).all()
    assert (sizes[:-1] >= SMALLEST_PART).all()
    assert (np.diff(sizes) <= 0).all()


def test_each_part_is_taken_once() -> None:
    parts = cut_parts(1000, 2)
    n_parts = len(parts.bounds) - 1
    assert [take_part(parts) for _ in range(n_parts + 2)] == [*range(n_parts), n_parts, n_parts]


def match_in_parts(index: XPathIndex, text: str, cuts: list[int], n_at_once: int) -> list[int]:
    """What two scratches find that take parts in turn, `n_at_once` at a time."""
    root = parse_document(text)
    flat = flatten(root, new_flat_document())
    n_elements = int(flat.counts[N_ELEMENTS])
    bounds = sorted({0, n_elements, *(cut % n_elements for cut in cuts)})
    parts = Parts(np.array(bounds, np.int64), np.zeros(1, np.int64))
    (layer,) = index._overlay.snapshot.layers
    segment = layer.segment
    with segment.scratches.lend() as first, segment.scratches.lend() as second:
        for number in range(len(bounds)):
            segment.match_parts(flat, (first, second)[number % 2], parts, n_at_once)
        found = [segment.results(root, scratch, layer.alive) for scratch in (first, second)]
    return sorted({int(number) for numbers in found for number in numbers})


# Denials are left out: what a part does not find, another may.
positive = drawn(native_expression, 0).filter(lambda text: "not(" not in text)


@pytest.mark.parametrize("algorithm", ["suffix", "delta"])
@pytest.mark.parametrize("max_depth", [6, 100], ids=["flat", "deep"])
@fewer(2)
@given(data=st.data())
def test_the_parts_of_a_document_find_what_the_whole_finds(algorithm: str, max_depth: int, data: st.DataObject) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.add_many(data.draw(st.lists(positive, min_size=30, max_size=30)), NAMESPACES)
    text = data.draw(st.integers(1, 120).flatmap(lambda n_elements: drawn(document, n_elements, max_depth)))
    cuts = data.draw(st.lists(st.integers(0, 200), max_size=8))
    n_at_once = data.draw(st.sampled_from([1, 2, ALL_PARTS]))
    assert match_in_parts(index, text, cuts, n_at_once) == index.match(text).tolist()


SHARED = {
    "a_table": "<t>" + "<row n='1'><a><b/></a></row>" * 3000 + "<row n='2'><a/></row></t>",
    "many_attributes": "<t>" + "".join(f"<a x='{n}'><b y='{n % 7}'/></a>" for n in range(3000)) + "</t>",
    "deep": "<a>" * 90 + "<b x='1'/>" * 900 + "</a>" * 90,
    "a_comb": "<a>" * 300 + "<b x='2'/></a>" * 300,
}


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("algorithm", ["suffix", "delta"])
def test_a_shared_document_has_the_result_it_has_alone(algorithm: str, text: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.add_many([f"//a[@x = '{n}']/b" for n in range(0, 3000, 3)])
    index.add_many(["//a//b", "/t/row[@n = 2]/a", "//row/a/b", "count(//b) > 5", "not(//c)", "/a/a//b[@x = 2]"])
    index.merge()
    alone = index.match(text).tolist()
    assert len(alone) > 2
    for mode in ("se-cp", "me-cp"):
        for threads in (2, 4):
            found = index.match_many([text, "<t/>", text], mode=mode, threads=threads)
            assert [result.tolist() for result in found[::2]] == [alone, alone]


def test_an_index_that_lxml_has_no_say_in_lets_the_tree_go_early() -> None:
    index = XPathIndex()
    index.add("//a")
    assert not index._overlay.snapshot.layers[0].segment.needs_lxml
    index.add("count(//a) > 1")
    index.merge()
    assert index._overlay.snapshot.layers[0].segment.needs_lxml
    assert whole(5).bounds.tolist() == [0, 5]


@pytest.mark.parametrize("seed", range(8))
def test_shared_documents_are_verified_as_any_other(seed: int) -> None:
    random, index = Random(seed), XPathIndex()
    index.add_many([other_expression(random.choice) for _ in range(40)], NAMESPACES)
    text = document(random.choice, 600)
    (found,) = index.match_many([text], mode="se-cp", threads=3)
    assert found.tolist() == index.match(text).tolist()
