"""Values and documents travel there and back, and importing the client costs little."""

import subprocess
import sys

import pytest

from pathsieve import Document, Interval, Point
from pathsieve.documents import from_document, to_document
from pathsieve.values import from_value, to_value

VALUES = {
    "text": "IBM",
    "integer": -7,
    "double": 1.5,
    "truth": True,
    "point": Point(1.0, 2.0),
    "interval": Interval(3.0, 4.0),
    "several": ["a", 1, 2.5, False, Point(0.0, 0.0)],
    "none_of_several": [],
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    found = from_value(to_value(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", [None, b"bytes", {"a": 1}, [["nested"]], 1j])
def test_what_is_no_value_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"expected text|several values"):
        to_value(value)


def test_an_error_names_the_attribute() -> None:
    with pytest.raises(TypeError, match="attribute 'price': expected text, a number"):
        to_document(Document("<a/>", attributes={"price": None}))  # type: ignore[dict-item]


ENCODINGS = {
    "nothing_said": ("<a>é</a>", "<a>é</a>".encode()),
    "latin_1": ("<?xml version='1.0' encoding='latin-1'?><a>é</a>", None),
    "bytes_stay": (b"<a>\xe9</a>", b"<a>\xe9</a>"),
}


@pytest.mark.parametrize("xml, expected", ENCODINGS.values(), ids=ENCODINGS)
def test_text_is_encoded_as_it_says(xml: bytes | str, expected: bytes | None) -> None:
    assert Document(xml).xml == (expected or xml.encode("latin-1"))  # type: ignore[union-attr]


def test_a_document_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes or str, found int"):
        Document(7)  # type: ignore[arg-type]


def test_a_document_comes_back_as_it_was() -> None:
    document = Document("<a/>", id="d", source="s", attributes={"n": 1}, headers={"h": "v"})
    assert from_document(to_document(document)) == document


def test_importing_the_client_imports_no_engine() -> None:
    script = "import sys, pathsieve; print(sorted({'numba', 'numpy', 'lxml', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
