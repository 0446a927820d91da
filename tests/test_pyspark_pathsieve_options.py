"""Options: names, kinds, who may use them, where defaults come from; and the table in the documents."""

import pickle
import re
from pathlib import Path

import pytest

from pyspark_pathsieve import errors
from pyspark_pathsieve.connection import Connection
from pyspark_pathsieve.errors import ConnectorError, OptionError
from pyspark_pathsieve.options import READ, SINK, TABLE, WRITE, WRITE_STREAM, Options

HERE = {"endpoint": "a:7443, b:7443"}


def test_names_may_be_written_in_any_case_of_letters() -> None:
    options = Options({**HERE, "BATCHDOCS": "8", "deliveryguarantee": "AT-LEAST-ONCE", "timeout": "500ms"}, WRITE)
    assert (options["batchDocs"], options["deliveryGuarantee"], options["timeout"]) == (8, "at-least-once", 0.5)
    assert options["endpoint"] == ("a:7443", "b:7443")


def test_what_is_given_wins_over_the_session_and_that_over_defaults() -> None:
    session = {"batchDocs": "8", "token": "theirs", "endpoint": "c:1"}
    options = Options({"batchDocs": "9", "endpoint": "d:1"}, WRITE, session)
    assert (options["batchDocs"], options["token"], options["endpoint"]) == (9, "theirs", ("d:1",))
    assert options["bodyColumn"] == "body"


def test_the_session_may_have_options_for_other_uses() -> None:
    assert "batchDocs" not in Options({**HERE, "subscription": "ibm"}, READ, {"batchDocs": "8"})


WRONG = {
    "a_typo": ({**HERE, "bodyColum": "x"}, WRITE, "unknown option bodyColum; did you mean bodyColumn"),
    "nothing_like_it": ({**HERE, "zzz": "x"}, WRITE, "unknown option zzz; there are attributesColumn, "),
    "a_path": ({**HERE, "path": "x"}, WRITE, "a server has no path"),
    "no_endpoint": ({}, WRITE, "expected .option.*endpoint"),
    "a_url": ({"endpoint": "http://a:7443"}, WRITE, "option endpoint: expected host:port"),
    "no_port": ({"endpoint": "a"}, WRITE, "option endpoint: expected host:port"),
    "a_word": ({**HERE, "onMalformed": "ignore"}, WRITE, "expected fail or drop or deadLetter, found 'ignore'"),
    "a_flag": ({**HERE, "tls": "yes"}, WRITE, "option tls: expected true or false, found 'yes'"),
    "a_time": ({**HERE, "timeout": "soon"}, WRITE, "option timeout: expected a time such as 500ms"),
    "too_few": ({**HERE, "batchDocs": "0"}, WRITE, "expected a whole number, 1 or more"),
    "not_for_a_stream": ({**HERE, "batchId": "1"}, WRITE_STREAM, "batchId is for write, not for writeStream"),
    "an_empty_token": ({**HERE, "token": " "}, WRITE, "option token: expected a text$"),
}


@pytest.mark.parametrize("given, operation, words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(given: dict[str, str], operation: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Options(given, operation)


def test_what_spark_adds_by_itself_is_no_error() -> None:
    assert Options({**HERE, "checkpointlocation": "/c", "queryname": "q"}, WRITE_STREAM)["batchDocs"] == 1024


TLS = {
    "a_missing_file": ({"tlsCa": "/nowhere.pem"}, "option tlsCa: no file /nowhere.pem"),
    "a_certificate_without_key": ({"tlsCert": __file__}, "tlsCert and tlsKey go together"),
    "switched_off": ({"tls": "false", "tlsCa": __file__}, "option tls is false, but"),
}


@pytest.mark.parametrize("given, words", TLS.values(), ids=TLS)
def test_certificates_are_looked_at_in_the_driver(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Connection.of(Options({**HERE, **given}, WRITE))


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted([*drawn, "ConnectorError"]) == sorted(errors.__all__)


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_survives_pickling_with_its_facts(name: str) -> None:
    kind: type[ConnectorError] = getattr(errors, name)
    error = pickle.loads(pickle.dumps(kind("what and why", {"option": "x"})))
    assert (type(error), str(error), error.facts) == (kind, "what and why", {"option": "x"})


def test_the_table_in_the_documents_has_all_options_of_the_sink(repository: Path) -> None:
    written = re.findall(r"^\| `(\w+)` \|.*?\| (.+?) \|$", (repository / "docs/spark.md").read_text(), re.MULTILINE)
    told = dict(written)
    for option in TABLE:
        if option.used_for & SINK:
            assert told[option.name].startswith(option.doc)
