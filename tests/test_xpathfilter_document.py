"""Documents good and bad: what is read, what is refused with which words, and that nothing is fetched."""

import contextlib
import http.client
import http.server
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from xpathfilter.document import DocumentLimits, parse_document
from xpathfilter.errors import DocumentError

ENTITIES = DocumentLimits(allow_entities=True)


def nested(n_levels: int) -> bytes:
    return b"<a>" * n_levels + b"</a>" * n_levels


def declaring(n_times: int) -> bytes:
    """A document type in which each of ten entities stands for `n_times` the one before it."""
    larger = [b'<!ENTITY e%d "%s">' % (i, b"&e%d;" % (i - 1) * n_times) for i in range(1, 10)]
    return b'<!DOCTYPE a [<!ENTITY e0 "lol">' + b"".join(larger) + b"]>"


BILLION_LAUGHS = declaring(10) + b"<a>&e9;</a>"
BILLION_LAUGHS_IN_AN_ATTRIBUTE = declaring(10) + b"<a b='&e9;'/>"
QUADRATIC_BLOWUP = b'<!DOCTYPE a [<!ENTITY e "' + b"x" * 100_000 + b'">]><a>' + b"&e;" * 1000 + b"</a>"
IN_UTF_16 = "<?xml version='1.0' encoding='utf-16'?><!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>".encode("utf-16")
IN_UTF_32 = "<!DOCTYPE a [<!ENTITY e 'x'>]><a/>".encode("utf-32")
IN_UTF_7 = b"<?xml version='1.0' encoding='UTF-7'?><!DOCTYPE a [+ADwAIQ-ENTITY e 'x'>]><a>&e;</a>"


GOOD = {
    "bytes": (b"<a>\xc3\xa9</a>", "é"),
    "bytearray": (bytearray(b"<a>x</a>"), "x"),
    "memoryview": (memoryview(b"<a>x</a>"), "x"),
    "strided_memoryview": (memoryview(b"<.a.>.x.<./.a.>.")[::2], "x"),
    "str": ("<a>é🌍</a>", "é🌍"),
    "str_that_declares_latin_1": ("<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>", "é"),
    "str_that_declares_utf_16": ("<?xml version='1.0' encoding='utf-16'?><a>é</a>", "é"),
    "str_with_byte_order_mark": ("\ufeff<a>é</a>", "é"),
    "bytes_with_byte_order_mark": (b"\xef\xbb\xbf<a>x</a>", "x"),
    "latin_1": ("<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".encode("latin-1"), "é"),
    "utf_16": ("<a>é🌍</a>".encode("utf-16"), "é🌍"),
    "utf_7": (b"<?xml version='1.0' encoding='UTF-7'?><a>+AOk-</a>", "é"),
    "cdata_is_text": (b"<a>1<![CDATA[<2>]]>3</a>", "1<2>3"),
    "character_references": (b"<a>&#233;&amp;&lt;</a>", "é&<"),
    "an_unread_external_dtd": (b'<!DOCTYPE a SYSTEM "nowhere.dtd"><a>x</a>', "x"),
    "a_document_type_without_entities": (b"<!DOCTYPE a [<!ELEMENT a ANY>]><a>x</a>", "x"),
    "a_declaration_in_a_comment": (b"<!-- <!ENTITY e 'x'> --><a>x</a>", "x"),
    "a_declaration_in_cdata": (b"<a><![CDATA[<!ENTITY e 'x'>]]></a>", "<!ENTITY e 'x'>"),
    "a_comment_inside_a_document_type": (b"<!DOCTYPE a [<!-- <!ENTITY e 'x'> -->]><a>x</a>", "x"),
    "a_text_of_11_megabytes": (b"<a>" + b"x" * 11_000_000 + b"</a>", "x" * 11_000_000),
}


@pytest.mark.parametrize("data, text", GOOD.values(), ids=GOOD)
def test_a_good_document_is_read(data: bytes | str, text: str) -> None:
    assert parse_document(data).text == text


BAD = {
    "no_bytes": (b"", "empty document", None, None),
    "no_characters": ("", "empty document", None, None),
    "blanks_only": (b" \n\t ", "empty document", None, None),
    "a_lone_byte_order_mark": (b"\xef\xbb\xbf", "empty document", None, None),
    "a_lone_utf_16_byte_order_mark": (b"\xff\xfe", "empty document", None, None),
    "json": (b'{"a": [1]}', """not XML: expected '<', found '{"a": [1]}'""", 1, 1),
    "gzip": (b"\x1f\x8b\x08\x00\x00", "not XML: expected '<'", 1, 1),
    "a_comment_and_no_element": (b"<!-- x -->", "Start tag expected", 1, 11),
    "an_unknown_encoding": (b"<?xml version='1.0' encoding='klingon'?><a/>", "unknown encoding (", 1, 39),
    "a_nul": (b"<a>\n\0</a>", "Char 0x0 out of allowed range", 2, 1),
    "a_nul_in_a_str": ("<a>\n\0</a>", "Char 0x0 out of allowed range", 2, 1),
    "a_lone_surrogate": ("<a>\n  \ud800</a>", "half of a surrogate pair", 2, 3),
    "bytes_that_are_not_utf_8": (b"<a>\xff</a>", "Invalid bytes in character encoding", 1, 4),
    "an_end_inside_a_tag": (b"<a><b x='1", "AttValue: ' expected", 1, 11),
    "an_end_inside_a_character": (b"<a>\n\xe2\x82", "Incomplete UTF-8 sequence", 2, 1),
    "an_end_before_the_end_tag": (b"<a>\n<b/>", "Premature end of data in tag a", 2, 5),
    "an_end_inside_a_comment": (b"<a><!-- x", "Comment not terminated", 1, 10),
    "two_roots": (b"<a/>\n<b/>", "Extra content at the end of the document", 2, 1),
    "tags_that_cross": (b"<a>\n<b></a></b>", "Opening and ending tag mismatch: b of line 2 and a", 2, 8),
    "an_undeclared_prefix": (b"<p:a/>", "Namespace prefix p on a is not defined", 1, 5),
    "an_undeclared_entity": (b"<a>&e;</a>", "Entity 'e' not defined", 1, 7),
    "entities": (b"<!DOCTYPE a [\n<!ENTITY e 'x'>]><a/>", "declares entities", 2, 12),
    "entities_in_a_str": ("<!DOCTYPE a [\n<!ENTITY e 'x'>]><a/>", "declares entities", 2, 12),
    "a_parameter_entity": (b"<!DOCTYPE a [<!ENTITY % e 'x'>]><a/>", "declares entities", 1, 27),
    "an_external_entity": (b"<!DOCTYPE a [<!ENTITY e SYSTEM 'x'>]><a/>", "declares entities", 1, None),
    "an_unparsed_entity": (
        b"<!DOCTYPE a [<!NOTATION n SYSTEM 'n'><!ENTITY e SYSTEM 'x' NDATA n>]><a/>",
        "declares entities",
        1,
        None,
    ),
    "a_declaration_after_an_unread_one": (
        b"<!DOCTYPE a SYSTEM 'nowhere' [%unknown;<!ENTITY e 'x'>]><a>&e;</a>",
        "declares entities",
        None,
        None,
    ),
    "entities_and_a_syntax_error": (b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>", "declares entities", 1, 25),
    "entities_in_utf_16": (IN_UTF_16, "declares entities", 1, None),
    "entities_in_utf_32": (IN_UTF_32, "declares entities", None, None),
    "entities_in_utf_7": (IN_UTF_7, "declares entities", None, None),
    "billion_laughs": (BILLION_LAUGHS, "declares entities", 1, 26),
    "billion_laughs_in_an_attribute": (BILLION_LAUGHS_IN_AN_ATTRIBUTE, "declares entities", 1, 26),
    "quadratic_blowup": (QUADRATIC_BLOWUP, "declares entities", 1, 25),
    "entities_in_a_deep_document": (declaring(10) + nested(300), "declares entities", 1, 26),
}


@pytest.mark.parametrize("data, words, line, column", BAD.values(), ids=BAD)
def test_a_bad_document_is_refused_with_words_and_a_place(
    data: bytes | str, words: str, line: int | None, column: int | None
) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(data)
    assert words in caught.value.reason
    assert caught.value.line == line
    assert column is None or caught.value.column == column


MESSAGES = {
    "a_syntax_error": (b"<a>\n<b></a></b>", "ending tag mismatch: b of line 2 and a at line 2, column 8"),
    "an_end": (b"<a>\n<b/>", "Premature end of data in tag a of line 1 at line 2, column 5"),
    "no_xml": (b"hello", "not XML: expected '<', found 'hello' at line 1, column 1"),
    "a_surrogate": (
        "<a>\ud800</a>",
        "half of a surrogate pair is not a character of XML at line 1, column 4",
    ),
    "an_encoding": (
        b"<?xml version='1.0' encoding='x-no'?><a/>",
        ") at line 1, column 36; send UTF-8, or declare",
    ),
    "entities": (
        BILLION_LAUGHS,
        "the document declares entities at line 1, column 26; they are refused: write out",
    ),
    "depth": (
        nested(1025),
        "of 1024 levels is passed at line 1, column 3073; flatten it or raise the limit (to 2048",
    ),
    "nothing": (b"", "empty document: expected an XML element, found nothing"),
}


@pytest.mark.parametrize("data, words", MESSAGES.values(), ids=MESSAGES)
def test_the_message_says_what_is_wrong_then_where_then_what_to_do(data: bytes | str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(data)
    assert words in str(caught.value)


def test_every_prefix_of_a_document_is_refused() -> None:
    text = "<?xml version='1.0'?><!DOCTYPE a [<!ELEMENT a ANY>]><a b='é'><![CDATA[x]]>🌍<!-- --></a>"
    document = text.encode()
    for end in range(len(document)):
        with pytest.raises(DocumentError):
            parse_document(document[:end])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    with contextlib.suppress(DocumentError):
        assert isinstance(parse_document(data).tag, str)


@given(st.text("<>&;/!?-[]ab'\"= #x\n\0é", max_size=40))
def test_what_is_read_is_what_lxml_reads(text: str) -> None:
    try:
        expected = etree.tostring(etree.fromstring(text.encode()))
    except etree.XMLSyntaxError:
        with pytest.raises(DocumentError):
            parse_document(text)
    else:
        assert etree.tostring(parse_document(text)) == expected


@pytest.mark.parametrize("data", [None, 7, ["<a/>"], etree.Element("a")], ids=["none", "number", "list", "element"])
def test_what_is_no_text_is_a_type_error(data: object) -> None:
    with pytest.raises(TypeError, match="a document is bytes, bytearray, memoryview or str, not "):
        parse_document(data)  # type: ignore[arg-type]


def test_comments_and_processing_instructions_are_kept() -> None:
    root = parse_document(b"<?one?><a><!--two--><?three?></a>")
    assert root.xpath("count(/node() | /a/node())") == 4


# Size -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview, bytes.decode], ids=lambda f: f.__name__)
def test_a_document_may_have_just_the_largest_size(convert: type) -> None:
    data = "<a>é</a>".encode()
    assert parse_document(convert(data), DocumentLimits(max_bytes=len(data))).text == "é"
    with pytest.raises(DocumentError, match=r"too large: 9 bytes, and the limit max_bytes is 8;"):
        parse_document(convert(data), DocumentLimits(max_bytes=len(data) - 1))


def test_a_document_of_100_megabytes_is_refused_with_its_size() -> None:
    with pytest.raises(DocumentError, match=r"too large: 100,000,000 bytes, .* max_bytes is 67,108,864;"):
        parse_document(bytes(100_000_000))


LARGE_PARTS = {
    "attribute": b"<a b='%s'/>",
    "comment": b"<a><!--%s--></a>",
    "cdata": b"<a><![CDATA[%s]]></a>",
    "processing_instruction": b"<a><?p %s?></a>",
}


@pytest.mark.parametrize("template", LARGE_PARTS.values(), ids=LARGE_PARTS)
def test_a_part_of_11_megabytes_is_read(template: bytes) -> None:
    root = parse_document(template % (b"x" * 11_000_000))
    assert root.xpath("string-length(@b | node())") == 11_000_000


# Depth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_depth", [1, 3, 255, 256, 257, 1024, 2048])
def test_a_document_may_have_just_the_deepest_level(max_depth: int) -> None:
    limits = DocumentLimits(max_depth=max_depth)
    assert parse_document(nested(max_depth), limits).tag == "a"
    with pytest.raises(DocumentError, match=f"limit max_depth of {max_depth} levels is passed at") as caught:
        parse_document(nested(max_depth + 1), limits)
    assert (caught.value.line, caught.value.column) == (1, 3 * max_depth + 1)


def test_a_deep_document_in_an_encoding_that_expat_cannot_read_is_refused_without_a_place() -> None:
    document = b"<?xml version='1.0' encoding='gbk'?>" + nested(1025)
    with pytest.raises(DocumentError, match="too deep") as caught:
        parse_document(document)
    assert caught.value.line is None


@pytest.mark.parametrize(
    "setting, value",
    [("max_depth", 0), ("max_depth", 2049), ("max_bytes", 0), ("max_bytes", 10**9 + 1)],
)
def test_a_limit_that_cannot_be_kept_is_refused(setting: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be between 1 and .*, not {value}"):
        DocumentLimits(**{setting: value})


# Entities, where they are allowed ----------------------------------------------------------------


def test_internal_entities_are_replaced_where_they_are_allowed() -> None:
    root = parse_document(b"<!DOCTYPE a [<!ENTITY e 'x<b>y</b>'>]><a c='&#38;'>1&e;2</a>", ENTITIES)
    assert etree.tostring(root) == b'<a c="&amp;">1x<b>y</b>2</a>'


ATTACKS = {
    "billion_laughs": BILLION_LAUGHS,
    "billion_laughs_in_an_attribute": BILLION_LAUGHS_IN_AN_ATTRIBUTE,
    "quadratic_blowup": QUADRATIC_BLOWUP,
    "billion_laughs_behind_a_deep_path": declaring(10) + b"<a>" * 300 + b"&e9;" + b"</a>" * 300,
}


@pytest.mark.parametrize("document", ATTACKS.values(), ids=ATTACKS)
def test_entities_that_multiply_are_refused_even_where_entities_are_allowed(document: bytes) -> None:
    with pytest.raises(DocumentError, match="libxml2's limit"):
        parse_document(document, ENTITIES)


# Nothing is fetched -------------------------------------------------------------------------------

SECRET = "what-must-not-show-up"


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """The address of a web server on this machine, and the list of what was asked of it."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(SECRET.encode())

        def log_message(self, *arguments: object) -> None:
            """Stay silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/x", seen
        server.shutdown()
        thread.join()


EXTERNAL = {
    "dtd": '<!DOCTYPE a SYSTEM "{}"><a>x</a>',
    "dtd_and_a_reference": '<!DOCTYPE a SYSTEM "{}"><a>&e;</a>',
    "public_dtd": '<!DOCTYPE a PUBLIC "p" "{}"><a>x</a>',
    "entity": '<!DOCTYPE a [<!ENTITY e SYSTEM "{}">]><a>&e;</a>',
    "parameter_entity": '<!DOCTYPE a [<!ENTITY % p SYSTEM "{}"> %p;]><a>&e;</a>',
    "xinclude": '<a xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{}" parse="text"/></a>',
    "schema": '<a xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="{}"/>',
    "stylesheet": '<?xml-stylesheet type="text/xsl" href="{}"?><a/>',
}


def read_or_refused(document: str, limits: DocumentLimits) -> str:
    try:
        return etree.tostring(parse_document(document, limits), encoding="unicode")
    except DocumentError as error:
        return str(error)


@pytest.mark.parametrize("limits", [DocumentLimits(), ENTITIES], ids=["default", "entities_allowed"])
@pytest.mark.parametrize("template", EXTERNAL.values(), ids=EXTERNAL)
def test_nothing_is_fetched(
    template: str, limits: DocumentLimits, tmp_path: Path, requests: tuple[str, list[str]]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    address, seen = requests
    for place in (secret.as_uri(), str(secret), address):
        answer = read_or_refused(template.format(place), limits)
        assert SECRET not in answer
    assert seen == []


def test_a_careless_parser_would_have_read_the_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    document = EXTERNAL["entity"].format((tmp_path / "secret").as_uri())
    assert etree.fromstring(document, etree.XMLParser(resolve_entities=True)).text == SECRET


def test_a_request_would_have_been_seen(requests: tuple[str, list[str]]) -> None:
    address, seen = requests
    connection = http.client.HTTPConnection(address.split("/")[2])
    connection.request("GET", "/x")
    assert connection.getresponse().read() == SECRET.encode()
    connection.close()
    assert seen == ["/x"]


# Threads ------------------------------------------------------------------------------------------


def test_threads_parse_at_the_same_time() -> None:
    documents = [f"<a>{'<b/>' * n}</a>".encode() for n in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert [len(root) for root in pool.map(parse_document, documents)] == list(range(200))
