"""What the plain reader takes, libxml2 takes and says the same of; everything else it leaves to libxml2."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xpathfilter.document import DocumentLimits, parse_document
from xpathfilter.flat_document import COUNTED_ARRAYS, MOST_BINDINGS, FlatDocument, new_flat_document
from xpathfilter.flatten import flatten
from xpathfilter.plain_names import PLAIN_NAME, PLAIN_NAMES
from xpathfilter.plain_reader import PLAIN_ATTRIBUTES, PLAIN_BYTES, PLAIN_DEPTH, written_plainly

pytestmark = pytest.mark.kernels

LIMITS = DocumentLimits()

PLAIN = {
    "one_element": "<a/>",
    "blanks_around": " \n\t<a />\n \t",
    "blanks_inside_tags": "<a\n i = \t'1'\n j=\"2\" ></a \n>",
    "mixed_content": "<a>1<b>2</b>3<c/>4</a>",
    "siblings_and_cousins": "<a><b><c/><c/></b><b><c><d/></c></b></a>",
    "attributes": "<a i='1' j=''><b j='2' i='3'/><b i='' i.='' i-='' i_=''/></a>",
    "quotes_in_each_other": """<a i='"' j="'">'"</a>""",
    "blanks_in_values": "<a i=' 1\t2\n3  '/>",
    "entities": "<a i='&lt;&gt;&amp;&quot;&apos;'>x&lt;y&gt;z&amp;&quot;&apos;&amp;lt;</a>",
    "characters_of_every_width": "<a i='é€🌍\x7f\x80\ud7ff\ue000\ufffd\U00010000\U0010ffff'>¢€🌍\ufeff\U0001fffe</a>",
    "brackets": "<a i=']]>'>]]] ]> ]x]]&gt;</a>",
    "greater": "<a i='>'>></a>",
    "declared": "<?xml version='1.0'?><a/>",
    "declared_with_encoding": '<?xml version="1.0" encoding="UTF-8"?>\n<a>é</a>',
    "declared_with_all": "<?xml version='1.0' encoding=\"utf-8\" standalone='no'?>\n\n<a>é</a>",
    "many_names": "<a>" + "".join(f"<n{i}/>" for i in range(1, PLAIN_NAMES)) + "</a>",
    "many_of_all": "<a>" + "<b c='d'>e</b>" * 3000 + "</a>",
    "a_long_text": "<a b='" + "y" * 40_000 + "'>" + "x" * 100_000 + "<b>y</b></a>",
    "deep": "<a>" * PLAIN_DEPTH + "x" + "</a>" * PLAIN_DEPTH,
    "many_attributes": "<a " + " ".join(f"i{i}=''" for i in range(PLAIN_ATTRIBUTES)) + "/>",
    "a_long_name": "<" + "a" * PLAIN_NAME + "/>",
    "xml_like_names": "<xmlns xml='' Xmlns='' xmlns1='' xmln=''/>",
    "comments": "<!-- a --><a>1<!-- é - b -->2<b/><!---->3</a>\n<!-- <c> & -->\n",
    "sections": "<a>1<![CDATA[2 < & é]] ]> ]]]>3<b><![CDATA[]]></b><![CDATA[\r\n\r]]></a>",
    "sections_beside_each_other": "<a><![CDATA[]]><![CDATA[]]><b/><![CDATA[1]]><![CDATA[2]]><!-- --><![CDATA[]]></a>",
    "numbers_of_characters": "<a>&#xe9;&#8364;&#x1F30D;&#x10FFFF;&#xD7FF;&#xFFFD;&#0065;</a>",
    "numbers_of_characters_in_values": "<a i='&#10;&#13;&#9;&#32;&#65;&#x42;&#38;&#60;&#39;'/>",
    "ends_of_lines": "<a\r\n i='1\r\n2\r3\n\r4'\r>1\r\n2\r3\r\r\n</a\r>\r\n",
    "a_namespace": "<a xmlns='urn:x' i='1'><b/><c xmlns=''><d/></c><e/></a>",
    "prefixes": "<p:a xmlns:p='urn:x' p:i='1' i='2'><p:b/><b p:i=''/></p:a>",
    "declared_behind_its_use": "<p:a p:i='1' q:i='2' xmlns:q='urn:y' xmlns:p='urn:x'/>",
    "declared_inside_again": "<p:a xmlns:p='urn:x'><p:a xmlns:p='urn:y'><p:a/></p:a><p:a/></p:a>",
    "two_prefixes_of_one_namespace": "<p:a xmlns:p='urn:x' xmlns:q='urn:x' xmlns='urn:x'><q:a/><a/></p:a>",
    "one_name_in_many_namespaces": "<a><a xmlns='urn:x'/><a xmlns='urn:y'/><a xmlns='urn:xy'/><a xmlns='urn:x'/></a>",
    "many_names_in_a_namespace": "<a xmlns='http://example.org/"
    + "x" * 90
    + "'>"
    + "<n%d/>" * 999 % tuple(range(999))
    + "</a>",
    "common_uris": "<a xmlns='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='urn:hl7-org:v3' xmlns:q='x:y/z'/>",
    "as_many_declarations_as_can_be": "<a xmlns='urn:x'>" * MOST_BINDINGS + "</a>" * MOST_BINDINGS,
}

NOT_PLAIN = {
    "nothing": "",
    "no_element": " ",
    "no_xml": "{}",
    "instruction": "<?x?><a/>",
    "type": "<!DOCTYPE a><a/>",
    "prefixed_by_xml": "<a xml:lang='de'/>",
    "xml_declared": "<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>",
    "odd_uri": "<a xmlns='http://example.org/?x=1'/>",
    "relative_uri": "<a xmlns='x'/>",
    "reference_in_a_uri": "<a xmlns='urn:x&amp;y'/>",
    "too_many_declarations": "<a xmlns='urn:x'>" * (MOST_BINDINGS + 1) + "</a>" * (MOST_BINDINGS + 1),
    "name_beyond_ascii": "<é/>",
    "other_version": "<?xml version='1.1'?><a/>",
    "other_encoding": "<?xml version='1.0' encoding='latin1'?><a/>",
    "quotes_that_differ": "<?xml version='1.0\"?><a/>",
    "byte_order_mark": "\ufeff<a/>",
    "declaration_behind_blank": " <?xml version='1.0'?><a/>",
    "too_deep": "<a>" * (PLAIN_DEPTH + 1) + "</a>" * (PLAIN_DEPTH + 1),
    "too_many_attributes": "<a " + " ".join(f"i{i}=''" for i in range(PLAIN_ATTRIBUTES + 1)) + "/>",
    "too_long_name": "<" + "a" * (PLAIN_NAME + 1) + "/>",
    "too_many_names": "<a>" + "".join(f"<n{i}/>" for i in range(PLAIN_NAMES)) + "</a>",
    "too_large": "<a>" + "x" * PLAIN_BYTES + "</a>",
    # What is wrong as well:
    "unclosed": "<a>",
    "cut_in_a_tag": "<a",
    "cut_in_a_value": "<a i='",
    "cut_in_an_end_tag": "<a></a",
    "cut_behind_less": "<a><",
    "cut_in_a_reference": "<a>&",
    "crossed": "<a><b></a></b>",
    "closed_by_a_longer_name": "<a></ab>",
    "closed_by_a_shorter_name": "<ab></a>",
    "only_an_end": "</a>",
    "two_roots": "<a/><b/>",
    "text_behind": "<a/>x",
    "twice_the_same": "<a i='1' i='2'/>",
    "no_blank_between": "<a i='1'j='2'/>",
    "no_value": "<a i/>",
    "no_quotes": "<a i=1/>",
    "less_in_a_value": "<a i='<'/>",
    "unknown_entity": "<a>&e;</a>",
    "unfinished_entity": "<a>&amp </a>",
    "end_of_cdata": "<a>]]></a>",
    "slash_and_blank": "<a/ >",
    "name_of_a_digit": "<1/>",
    "zero": "<a>\0</a>",
    "control": "<a>\x01</a>",
    "no_character": "<a>\uffff</a>",
    "half_a_pair": "<a>\ud800</a>",
    "hyphens_in_a_comment": "<a><!-- -- --></a>",
    "hyphen_before_the_end_of_a_comment": "<a><!-- ---></a>",
    "unclosed_comment": "<a><!-- </a>",
    "comment_before_the_declaration": "<!-- --><?xml version='1.0'?><a/>",
    "control_in_a_comment": "<a><!-- \x01 --></a>",
    "unclosed_section": "<a><![CDATA[</a>",
    "section_outside": "<a/><![CDATA[]]>",
    "control_in_a_section": "<a><![CDATA[\x01]]></a>",
    "number_of_no_character": "<a>&#0;</a>",
    "number_of_half_a_pair": "<a>&#xD800;</a>",
    "number_beyond_characters": "<a>&#x110000;</a>",
    "number_without_digits": "<a>&#;</a>",
    "number_of_wrong_digits": "<a>&#a;</a>",
    "number_without_end": "<a>&#65</a>",
    "prefix_without_declaration": "<p:a/>",
    "prefix_of_a_sibling": "<a><b xmlns:p='urn:x'/><p:c/></a>",
    "prefix_of_a_child": "<p:a><b xmlns:p='urn:x'/></p:a>",
    "prefix_closed_by_another_one": "<p:a xmlns:p='urn:x' xmlns:q='urn:x'></q:a>",
    "two_colons": "<p:q:a xmlns:p='urn:x'/>",
    "colon_first": "<:a/>",
    "colon_last": "<a:/>",
    "digit_behind_a_colon": "<p:1 xmlns:p='urn:x'/>",
    "declared_twice": "<a xmlns='urn:x' xmlns='urn:x'/>",
    "prefix_declared_twice": "<a xmlns:p='urn:x' xmlns:p='urn:y'/>",
    "same_attribute_by_two_prefixes": "<a xmlns:p='urn:x' xmlns:q='urn:x' p:i='' q:i=''/>",
    "prefix_of_nothing": "<a xmlns:p=''/>",
    "no_prefix": "<a xmlns:='urn:x'/>",
    "xmlns_declared": "<a xmlns:xmlns='urn:x'/>",
    "reserved_uri": "<a xmlns='http://www.w3.org/2000/xmlns/'/>",
    "bad_port": "<a xmlns='http://x:y/'/>",
    "no_host": "<a xmlns='http://'/>",
    "bad_uri": "<a xmlns='urn:[x]'/>",
}

BAD_BYTES = [b"\x80", b"\xc3", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80"]
BAD_BYTES += [b"\xf5\x80\x80\x80", b"\xff", b"\xe2\x82", b"\xf0\x9f\x8c", b"\xef\xbf\xbe", b"\xef\xbf\xbf"]


def read(document: Any, max_depth: int = LIMITS.max_depth) -> FlatDocument | None:
    return written_plainly(document, new_flat_document(), LIMITS.max_bytes, max_depth)


def rows_of(flat: FlatDocument) -> dict[str, list[Any]]:
    rows = {array: getattr(flat, array)[: flat.counts[cell]].tolist() for cell, array in COUNTED_ARRAYS.items()}
    return rows | {"counts": flat.counts.tolist()}


def check_against_libxml2(document: Any) -> bool:
    """Compare what was read; tell whether it was."""
    flat = read(document)
    if flat is not None:
        assert rows_of(flat) == rows_of(flatten(parse_document(document), new_flat_document()))
    return flat is not None


@pytest.mark.parametrize("document", PLAIN.values(), ids=PLAIN)
def test_plain_documents_are_read_as_libxml2_reads_them(document: str) -> None:
    assert check_against_libxml2(document)
    assert check_against_libxml2(document.encode())


@pytest.mark.parametrize("document", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_all_others_are_left_to_libxml2(document: str) -> None:
    assert read(document) is None
    assert read(document.encode(errors="surrogatepass")) is None


@pytest.mark.parametrize("character", BAD_BYTES, ids=repr)
def test_what_is_no_utf_8_is_left_to_libxml2(character: bytes) -> None:
    assert read(b"<a>" + character + b"</a>") is None
    assert read(b"<a i='" + character + b"'/>") is None
    assert read(b"<a>" + character) is None


@pytest.mark.parametrize("document", [bytearray(b"<a/>"), memoryview(b"<a/>"), None, 7], ids=type)
def test_what_is_neither_bytes_nor_text_is_left_to_libxml2(document: Any) -> None:
    assert read(document) is None


def test_limits_are_left_to_libxml2_to_tell() -> None:
    assert read("<a><b/></a>", max_depth=2) is not None
    assert read("<a><b/></a>", max_depth=1) is None
    assert written_plainly("<a/>", new_flat_document(), 3, 10) is None
    assert written_plainly("<a/>", new_flat_document(), 4, 10) is not None


def test_a_reader_used_again_forgets_what_it_read() -> None:
    flat: FlatDocument | None = new_flat_document()
    for document in ["<b c='d'>e</b>", "<c b='d'>e</c>", "<a><b i='1'/></a>"] * 3:
        assert flat is not None
        flat = written_plainly(document, flat, LIMITS.max_bytes, LIMITS.max_depth)
        assert flat is not None
        assert rows_of(flat) == rows_of(flatten(parse_document(document), new_flat_document()))


PIECES = ["<a>", "</a>", "<b ", "/>", ">", "i='", "'", '"', "j=", "=", " ", "\n", "\t", "\r", "x", "]", "]]>", "é"]
PIECES += ["🌍", "&lt;", "&amp;", "&", ";", "&#65;", "&#13;", "<!-- -->", "--", "<![CDATA[x]]>", "<?p?>", "<", "/"]
PIECES += ["xmlns", " xmlns='urn:x'", " xmlns:p='urn:y'", "p:", ":", "\0", "\x7f"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("<a>]]</a>")
def test_pieces_in_any_order(inside: str) -> None:
    for document in (f"<a>{inside}</a>", f"<b {inside}/>", f"<a i='{inside}'/>", inside):
        check_against_libxml2(document)


BASES = [document.encode() for name, document in PLAIN.items() if len(document) < 200]
WRONG = [b"", b"<!--", b"-->", b" xmlns='urn:x'", b"p:", b"&#1;"]
WRONG += [bytes([byte]) for byte in b"<>/'\"&]a=:-#\r \x80\xef\0"]


def damaged(base: bytes, chance: random.Random) -> bytes:
    """A document with a few pieces changed, left out and put in; most of them are wrong."""
    document = bytearray(base)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(document) + 1)
        document[place : place + chance.randint(0, 2)] = chance.choice(WRONG)
    return bytes(document)


@given(st.sampled_from(BASES), st.randoms(use_true_random=False))
def test_a_few_wrong_bytes(base: bytes, chance: random.Random) -> None:
    check_against_libxml2(damaged(base, chance))


def test_real_documents_whole_and_damaged(shared: Path) -> None:
    chance, taken = random.Random(1), 0
    files = [file for file in (shared / "data/corpus").rglob("*") if file.is_file()]
    for document in (file.read_bytes() for file in files):
        if document.lstrip().startswith(b"<") and check_against_libxml2(document):
            taken += 1
            for _ in range(100 if len(document) < 5000 else 5):
                check_against_libxml2(damaged(document, chance))
    assert taken > 500, "most documents are plain"
