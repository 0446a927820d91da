"""Extractors find in XML what Boolean filters look at."""

import pytest

from sievefilters import ExtractorError, Extractors
from xpathfilter import DocumentError

XML = b"<quote symbol='IBM'><price>120</price><note>one<b> two</b></note><p:d xmlns:p='urn:d'>x</p:d></quote>"

CASES = {
    "a_number": ("number(//price)", 120.0),
    "a_relative_path_starts_at_the_document": ("quote/price = 120", True),
    "also_inside_a_function": ("number(quote/price)", 120.0),
    "the_context_of_a_function_is_the_document": ("string-length() > 5", True),
    "not_a_number_is_no_value": ("number(//note)", None),
    "infinity_is_no_value": ("1 div 0", None),
    "a_text": ("string(//@symbol)", "IBM"),
    "an_empty_text_is_no_value": ("string(//missing)", None),
    "nodes_are_texts": ("//note | //@symbol", ["IBM", "one two"]),
    "no_nodes_are_no_value": ("//missing", None),
    "each_text_once": ("//price | //price/text()", ["120"]),
    "a_boolean": ("boolean(//missing)", False),
    "a_path_from_a_path": ("string((quote/note)[1]/b)", " two"),
    "a_negation": ("-quote/price", -120.0),
    "a_prefix": ("string(//p:d)", "x"),
}


@pytest.mark.parametrize("expression, expected", CASES.values(), ids=CASES)
def test_extracting(expression: str, expected: object) -> None:
    found = Extractors({"value": expression}, {"p": "urn:d"}).extract(XML)
    assert found == ({} if expected is None else {"value": expected})


def test_a_bad_expression_is_refused_with_its_name_and_place() -> None:
    with pytest.raises(ExtractorError, match=r"extractors\.price: expected .* at column 3") as refused:
        Extractors({"price": "//["})
    assert (refused.value.field, refused.value.column) == ("extractors.price", 3)


def test_a_bad_document_is_refused() -> None:
    with pytest.raises(DocumentError):
        Extractors({"price": "number(//price)"}).extract(b"<quote>")


def test_a_prefix_that_cannot_be_bound_is_refused_with_its_name() -> None:
    with pytest.raises(ExtractorError) as refused:
        Extractors({"price": "number(//xml:price)"}, {"xml": "urn:other"})
    assert refused.value.field == "namespaces.xml"
