"""Shapes: a step bound to the template of its shape is the step that the parser reads."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMESPACES, document, drawn, native_step

from xpathfilter import XPathIndex
from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.bulk import BulkReader
from xpathfilter.compiler import compile_expression
from xpathfilter.draft import Draft
from xpathfilter.expression import Number
from xpathfilter.parser import parse
from xpathfilter.plan import LinearPath
from xpathfilter.shapes import Shapes
from xpathfilter.words import read_record

pytestmark = pytest.mark.kernels


def steps_read(texts: list[str]) -> list[Any]:
    """The step each text is read as, and whether it is a descendant; None for those that are odd."""
    draft = Draft(ALGORITHMS["suffix"])
    rows, plain = BulkReader(draft, NAMESPACES).read(texts)
    words, record_of = draft.vocabulary.freeze(np.zeros(draft.vocabulary.n_records, np.int64))
    steps: list[Any] = [None] * len(texts)
    for row, place in enumerate(plain.tolist()):
        codes = rows.values[rows.start[row] : rows.start[row + 1]].tolist()
        steps[place] = [(read_record(words, int(record_of[code >> 1])), code & 1) for code in codes]
    return steps


def steps_parsed(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The same, each piece by the parser."""
    with monkeypatch.context() as patch:
        patch.setattr(Shapes, "_new_template", lambda shapes, shape: -1)
        return steps_read(texts)


def n_templates(*texts: str) -> int:
    reader = BulkReader(Draft(ALGORITHMS["suffix"]), NAMESPACES)
    reader.read(list(texts))
    return len(reader._shapes._templates)


ONE_TEMPLATE = {
    "texts_and_numbers": ("//a[@x='1' and b > 17]", "//a[@x='it' and b > 1.5]", '//a[@x="1" and b > 0]'),
    "numbers_with_a_sign": ("//a[b > -17]", "//a[b > -1.50]", "//a[b > -0]"),
    "the_constant_in_front": ("/a[5 < @x]", "/a[7. < @x]"),
    "parts_of_texts": ("/a[contains(., 'x')]", "/a[contains(., 'é/]\"')]"),
    "a_value_at_the_end": ("/a[b='x']/@y", "/a[b='z']/@y"),
    "a_name_with_digits": ("/a1[b2='x']", "/a1[b2='z']"),
}


@pytest.mark.parametrize("texts", ONE_TEMPLATE.values(), ids=ONE_TEMPLATE)
def test_one_template_serves(texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert n_templates(*texts) == 1
    assert None not in steps_read(list(texts))
    assert steps_read(list(texts)) == steps_parsed(list(texts), monkeypatch)


NO_TEMPLATE = {
    "no_constant": "//a[@x]",
    "a_position": "//a[1]",
    "an_order_with_a_text": "//a[@x > '1']",
    "arithmetic": "//a[@x + 1 = 2]",
    "an_instruction": "//a[processing-instruction('x')]",
    "a_character_that_xml_lacks": "//a[@x='\ufffe']",
    "a_control_character": "//a[@x='\x01']",
    "half_a_surrogate": "//a[@x='\ud800']",
    "a_quote_that_is_not_closed": "//a[@x='1]",
    "an_empty_text": "//a[contains(@x, '')]",
    "a_number_that_runs_into_a_name": "//a[@x = 3mod 2]",
    "an_exponent": "//a[@x = 1e3]",
    "two_points": "//a[@x = 1.2.3]",
    "nothing_but_a_constant": "'1'",
}


@pytest.mark.parametrize("text", NO_TEMPLATE.values(), ids=NO_TEMPLATE)
def test_there_is_no_template_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert n_templates(text) == 0
    assert steps_read([text]) == steps_parsed([text], monkeypatch)


ALPHABET = [*"[]()'\"=<>!-.,/@*| \t019ae_:é", "\x01", "\x02", " and ", " or ", "contains(", "@x", "//a[", "'1'", " 17"]
TEXTS = st.lists(st.sampled_from(ALPHABET), max_size=12).map("".join)


@given(st.lists(TEXTS | drawn(native_step).map("//{}".format), min_size=1, max_size=12))
def test_any_text_is_read_as_the_parser_reads_it(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert steps_read(texts) == steps_parsed(texts, patch)


@given(st.from_regex(r"[0-9]{1,30}(\.[0-9]{0,30})?", fullmatch=True))
def test_a_number_is_bound_with_all_its_bits(spelling: str) -> None:
    [[(step, _)]] = steps_read([f"//a[@x > {spelling}]"])
    assert step.condition.constant == Number.read(spelling).value


def test_many_constants_agree_with_lxml() -> None:
    random = Random(5)
    texts = [f"//a[@x = '{n % 7}' and b > {n / 8}]" for n in range(300)]
    texts += [f"//a[b > {n / 4}][@x = {n % 5}]//b" for n in range(300)]
    texts += [f"//b[contains(., '{n}') and @y != '{n % 3}']/.." for n in range(40)]
    texts += [f"//p:a[@x = '{n}'] | //a[. < {n}]" for n in range(100)]
    index = XPathIndex()
    subscriptions = dict(zip(index.add_many(texts, NAMESPACES).tolist(), texts, strict=True))
    subscriptions |= {index.add(text, NAMESPACES): text for text in texts[::9]}
    for n_elements in (5, 20, 60):
        text = document(random.choice, n_elements)
        for _ in range(2):
            assert oracle.disagreements(index.match(text), subscriptions, text, NAMESPACES) == {}
            index.merge()


def test_constants_like_those_of_a_shape_are_bound_as_any_other() -> None:
    text = "//a[@x = '\ue0000' and @y = 987650001]"
    formula = compile_expression(parse(text)).formula
    assert isinstance(formula, LinearPath)
    assert steps_read([text]) == [[(replace(formula.steps[0], descendant=False), 1)]]
