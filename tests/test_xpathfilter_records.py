"""Phase 1: elements merged into nodes, nodes cut into blocks, and a position record for each of them."""

import numpy as np
import pytest

from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.compiler import compile_expression
from xpathfilter.document import parse_document
from xpathfilter.draft import Draft
from xpathfilter.explanation import step_text
from xpathfilter.flatten import flatten, new_flat_document
from xpathfilter.parser import parse
from xpathfilter.records import N_BLOCKS, N_NODES, N_PATH, RecordScratch
from xpathfilter.segment import Segment, Verified
from xpathfilter.words import read_record

pytestmark = pytest.mark.kernels


def segment_of(*expressions: str, algorithm: str = "suffix") -> Segment:
    draft = Draft(ALGORITHMS[algorithm])
    for number, text in enumerate(expressions):
        draft.add(number, compile_expression(parse(text)), Verified(text, ()))
    return draft.build()


def records_of(segment: Segment, text: str, first: int = 0, end: int | None = None) -> RecordScratch:
    """What phase 1 leaves in a scratch that has seen nothing else."""
    flat = flatten(parse_document(text), new_flat_document(), 1024)
    scratch = segment.scratches.take()
    segment.prepare(flat, scratch, first, end)
    return scratch.records


def position_records(segment: Segment, records: RecordScratch, block: int = 0) -> dict[str, str]:
    """The words of a block by the step each record stands for, bit 0 on the right."""
    pairs = records.blocks.pairs[slice(*records.blocks.blocks[block][["pair_start", "pair_end"]].tolist())]
    steps = [step_text(read_record(segment.words, record)).lstrip("/") for record in pairs["record"].tolist()]
    return dict(zip(steps, (f"{word:05b}" for word in pairs["word"].tolist()), strict=True))


PICTURE = "<a><b i='1'><c/></b><b i='1'><d/></b><b/></a>"
PATHS = ("//a", "//b", "//b[@i = 1]", "//c", "//d")


def test_a_block_has_a_bit_for_each_merged_node() -> None:
    segment = segment_of(*PATHS)
    records = records_of(segment, PICTURE)
    assert records.tree.counts[N_NODES] == 5
    assert records.blocks.counts[N_BLOCKS] == 1
    assert position_records(segment, records) == {
        "a": "00001",
        "b": "10010",
        "b[@i = 1]": "00010",
        "c": "00100",
        "d": "01000",
    }


def test_relatives_are_the_parent_and_all_ancestors() -> None:
    relatives = records_of(segment_of(*PATHS), PICTURE).blocks.relatives[:5]
    assert relatives["parent"].tolist() == [0, 0b00001, 0b00010, 0b00010, 0b00001]
    assert relatives["ancestors"].tolist() == [0, 0b00001, 0b00011, 0b00011, 0b00001]


def test_elements_that_no_record_tells_apart_are_one_node() -> None:
    table = "<t>" + "<row n='1'><cell/></row>" * 1000 + "<row n='2'/></t>"
    assert records_of(segment_of("/t/row/cell"), table).tree.counts[N_NODES] == 3
    assert records_of(segment_of("/t/row[@n = 2]/cell"), table).tree.counts[N_NODES] == 4


def test_without_merging_every_element_is_a_node() -> None:
    table = "<t>" + "<row/>" * 1000 + "</t>"
    assert records_of(segment_of("/t/row", algorithm="delta"), table).tree.counts[N_NODES] == 1001


def numbered(n_leaves: int) -> str:
    return "<t><u>" + "".join(f"<v n='{number}'/>" for number in range(n_leaves)) + "</u></t>"


@pytest.mark.parametrize("n_leaves, n_blocks", [(61, 1), (62, 1), (63, 2), (124, 2), (125, 3), (620, 10)])
def test_a_large_document_is_cut_and_each_block_starts_with_the_path_to_it(n_leaves: int, n_blocks: int) -> None:
    segment = segment_of("//t", "//u", *(f"//v[@n = {number}]" for number in range(n_leaves)))
    records = records_of(segment, numbered(n_leaves))
    blocks = records.blocks.blocks[: records.blocks.counts[N_BLOCKS]]
    assert len(blocks) == n_blocks
    assert int(np.bitwise_count(blocks["fresh"]).sum()) == n_leaves + 2
    for block in range(n_blocks):
        words = position_records(segment, records, block)
        assert (int(words["t"], 2), int(words["u"], 2)) == (1, 2)
    assert [int(fresh) & 3 for fresh in blocks["fresh"]] == [3] + [0] * (n_blocks - 1)


@pytest.mark.parametrize("first, end", [(0, 4), (3, 9), (8, 9), (40, 152)])
def test_a_part_starts_with_the_path_that_leads_to_it(first: int, end: int) -> None:
    segment = segment_of("//t", "//u", *(f"//v[@n = {number}]" for number in range(150)))
    records = records_of(segment, numbered(150), first, end)
    n_path, blocks = int(records.tree.counts[N_PATH]), records.blocks.blocks[: records.blocks.counts[N_BLOCKS]]
    assert n_path == min(first, 2)
    assert records.tree.counts[N_NODES] == n_path + end - first
    assert int(np.bitwise_count(blocks["fresh"]).sum()) == end - first
    words = position_records(segment, records)
    assert (int(words["t"], 2), int(words["u"], 2)) == (1, 2)


def test_an_element_like_one_of_the_path_is_that_node() -> None:
    segment = segment_of("//t", "//u", "//v")
    records = records_of(segment, "<t><u><v/><v/></u><u><v/><t/></u></t>", 3, 7)
    assert records.tree.nodes[: records.tree.counts[N_NODES]]["depth"].tolist() == [0, 1, 2, 2]
    assert int(records.blocks.blocks[0]["fresh"]) == 0b1100
