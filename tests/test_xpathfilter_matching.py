"""The index gives lxml's answers: for any expression and any document, with either algorithm."""

from random import Random

import numpy as np
import oracle
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from strategies import (
    NAMESPACES,
    any_expressions,
    document,
    documents,
    drawn,
    fewer,
    native_expression,
    other_expression,
)

from xpathfilter import XPathIndex

pytestmark = pytest.mark.kernels

ALGORITHMS = ("suffix", "delta")
KINDS = {
    "native": drawn(native_expression),
    "other": drawn(other_expression),
    "any": any_expressions(),
}

BOOKS = "<s><book id='1'><title>Ada</title>5</book><book><title>Bob</title><book id='2'/></book></s>"
NUMBERS = "<n a='1e3' b=' 7 ' c='-0' d='NaN' e='' f='+1' g='.5'><m>3</m><m>x</m></n>"
SPACES = "<r xmlns='urn:p' xmlns:o='urn:o' k='0'><o:e o:k='1'/><e k='2'><f xmlns=''/></e></r>"
RECURSIVE = "<a i='1'><a i='2'><b><a i='3'><c/></a></b></a><a><c/></a></a>"
MIXED = "<t>one<!-- -->two<i>three</i>four<?p?><![CDATA[<5>]]></t>"

CASES = {
    "a_relative_path_starts_at_the_document_node": ("s/book", BOOKS, True),
    "and_not_at_the_root_element": ("book", BOOKS, False),
    "the_document_node_itself": ("/", BOOKS, True),
    "nothing_stands_above_it": ("..", BOOKS, False),
    "a_child_of_one_element": ("//book[title = 'Ada']/@id", BOOKS, True),
    "and_not_of_its_brother": ("//book[title = 'Bob']/@id", BOOKS, False),
    "conditions_about_one_element": ("//book[@id][title]", BOOKS, True),
    "conditions_met_only_by_two": ("//book[@id = '2'][title]", BOOKS, False),
    "the_string_value_joins_all_text": ("//book[. = 'Ada5']", BOOKS, True),
    "an_attribute_below": ("//book//@id = 2", BOOKS, True),
    "an_attribute_of_itself_after_two_slashes": ("/s/book[1]//@id = 1", BOOKS, True),
    "the_root_element_has_no_such_attribute": ("/s/@id", BOOKS, False),
    "an_element_without_an_attribute": ("//book[not(@id)]", BOOKS, True),
    "unequal_needs_a_value": ("//title[@id != 'x']", BOOKS, False),
    "any_child_may_be_unequal": ("/n[m != 3]", NUMBERS, True),
    "and_any_may_be_equal": ("/n[m = 3]", NUMBERS, True),
    "not_equal_is_not_unequal": ("/n[not(m = 3)]", NUMBERS, False),
    "an_exponent_is_read_as_libxml2_does": ("/n[@a = 1000]", NUMBERS, True),
    "but_not_in_text": ("/n[@a = '1000']", NUMBERS, False),
    "blanks_around_a_number": ("/n[@b = 7]", NUMBERS, True),
    "minus_zero_is_zero": ("/n[@c = 0 and @c >= 0 and not(@c < 0)]", NUMBERS, True),
    "no_number_is_less": ("/n[@d < 1 or @d >= 1 or @d = 1]", NUMBERS, False),
    "but_it_is_unequal": ("/n[@d != 1]", NUMBERS, True),
    "nothing_is_no_number": ("/n[@e <= 0 or @e >= 0]", NUMBERS, False),
    "a_plus_is_no_number": ("/n[@f = 1]", NUMBERS, False),
    "order_with_a_string_goes_by_number": ("/n[@a > '999']", NUMBERS, True),
    "order_with_a_word_is_false": ("/n[@a > 'x' or @a <= 'x']", NUMBERS, False),
    "the_constant_may_stand_in_front": ("/n[.4 < @g][1 > @g]", NUMBERS, True),
    "contains_looks_at_the_first_node": ("/n[contains(m, 'x')]", NUMBERS, False),
    "starts_with_does_too": ("/n[starts-with(m, '3')]", NUMBERS, True),
    "everything_contains_nothing": ("/n[contains(@none, '')]", NUMBERS, True),
    "a_name_without_a_prefix_is_in_no_namespace": ("//e", SPACES, False),
    "a_prefix_means_its_uri": ("/p:r/p:e", SPACES, True),
    "any_name_of_a_namespace": ("/p:*/q:*", SPACES, False),
    "any_name_at_all": ("/*/*/f", SPACES, True),
    "an_attribute_has_no_default_namespace": ("/p:r[@k = 0]/p:e/@k", SPACES, True),
    "an_attribute_in_a_namespace_is_another": ("//*[@k = 1]", SPACES, False),
    "the_default_namespace_can_be_undone": ("//f[not(@k)]", SPACES, True),
    "an_element_inside_its_like": ("//a/a//a/c", RECURSIVE, True),
    "the_steps_must_be_in_order": ("//a[@i = 3]//a", RECURSIVE, False),
    "a_step_may_be_skipped_over": ("/a//a[@i = 3]", RECURSIVE, True),
    "but_a_child_is_a_child": ("/a/a/a", RECURSIVE, False),
    "any_element_between": ("/a/a/*/a/c", RECURSIVE, True),
    "a_comment_parts_a_text": ("/t[text() = 'two']", MIXED, True),
    "and_the_string_value_does_not_see_it": ("/t[starts-with(., 'onetwothree')]", MIXED, True),
    "a_text_is_not_that_of_a_child": ("/t[text() = 'three']", MIXED, False),
    "a_cdata_section_is_text": ("contains(/t, '<5>')", MIXED, True),
    "two_paths_are_both_there": ("//i and //t", MIXED, True),
    "one_of_a_union": ("//none | //i", MIXED, True),
    "none_of_a_union": ("not(//none | //nil)", MIXED, True),
    "a_union_compared": ("(//none | //i) = 'three'", MIXED, True),
}


def assert_agrees(index: XPathIndex, subscriptions: dict[int, str], text: str) -> None:
    """The index finds just what lxml finds, in the promised form."""
    found = index.match(text)
    assert found.dtype == np.int64
    assert np.all(np.diff(found) > 0)
    assert oracle.disagreements(found, subscriptions, text, NAMESPACES) == {}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("expression, text, expected", CASES.values(), ids=CASES)
def test_a_document_matches(expression: str, text: str, expected: bool, algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    subscription = index.add(expression, NAMESPACES)
    assert oracle.outcomes([expression], text, NAMESPACES) == [expected]
    assert index.match(text).tolist() == [subscription] * expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("expressions", KINDS.values(), ids=KINDS)
@fewer(2)
@given(data=st.data())
def test_random_expressions_agree_with_lxml(
    expressions: st.SearchStrategy[str], algorithm: str, data: st.DataObject
) -> None:
    one_by_one = data.draw(st.lists(expressions, min_size=8, max_size=8))
    together = data.draw(st.lists(expressions, min_size=16, max_size=16))
    index = XPathIndex(algorithm=algorithm)
    subscriptions = {index.add(text, NAMESPACES): text for text in one_by_one}
    subscriptions |= zip(index.add_many(together, NAMESPACES).tolist(), together, strict=True)
    for text in data.draw(st.lists(documents, min_size=2, max_size=2)):
        assert_agrees(index, subscriptions, text)


def test_both_outcomes_are_frequent() -> None:
    seen: list[bool] = []

    @settings(max_examples=40, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.lists(KINDS["native"], min_size=10, max_size=10), documents)
    def collect(expressions: list[str], text: str) -> None:
        seen.extend(oracle.outcomes(expressions, text, NAMESPACES))

    collect()
    assert 0.1 < np.mean(seen) < 0.9


N_NATIVE, N_OTHER = 2_000, 600


@pytest.fixture(scope="module")
def crowd() -> list[str]:
    random = Random(11)
    native = [native_expression(random.choice) for _ in range(N_NATIVE)]
    return native + [other_expression(random.choice) for _ in range(N_OTHER)]


@pytest.fixture(scope="module")
def crowd_documents() -> list[str]:
    random = Random(12)
    sizes = [1, 2, 3, 5, 8, 13, 21, 34, 55, 64, 65, 89, 144, 233, 5, 377, 2, 610, 1, 30]
    return [document(random.choice, n_elements) for n_elements in sizes]


@pytest.fixture(scope="module")
def crowd_answers(crowd: list[str], crowd_documents: list[str]) -> list[list[bool]]:
    return [oracle.outcomes(crowd, text, NAMESPACES) for text in crowd_documents]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_thousands_of_subscriptions_at_once_agree_with_lxml(
    algorithm: str, crowd: list[str], crowd_documents: list[str], crowd_answers: list[list[bool]]
) -> None:
    index = XPathIndex(algorithm=algorithm)
    ids = index.add_many(crowd, NAMESPACES)
    for text, answers in zip(crowd_documents, crowd_answers, strict=True):
        found = set(index.match(text).tolist())
        wrong = [crowd[i] for i, answer in enumerate(answers) if (ids[i] in found) != answer]
        assert wrong == []
        assert len(found) == sum(answers)


def test_a_crowd_is_neither_deaf_nor_fooled(crowd_answers: list[list[bool]]) -> None:
    assert 0.1 < np.mean(crowd_answers) < 0.9
    by_expression = np.mean(crowd_answers, axis=0)
    assert np.mean((by_expression > 0) & (by_expression < 1)) > 0.3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_native_fragment_needs_no_lxml(algorithm: str, crowd: list[str]) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.add_many(crowd[:N_NATIVE], NAMESPACES)
    lanes = index.stats()["lanes"]
    assert sum(lanes.values()) == N_NATIVE
    assert lanes["indexed"] + lanes["formula"] > 0.9 * N_NATIVE
