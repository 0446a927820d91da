"""All options of the connector, in one table; and what was given, checked against it.

    .option("batchdocs", "512") ─┐
    spark.pathsieve.endpoint ────┼──▶ names, in any case of letters ──▶ kinds ──▶ Options: {"batchDocs": 512, …}
    defaults of the table ───────┘         unknown, not for this, wrong ──▶ OptionError

What is given with a read or a write wins over the configuration of the session, which is there after
`pyspark_pathsieve.register(spark)`; both win over the defaults.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_pathsieve.errors import OptionError
from pyspark_pathsieve.option_kinds import ADDRESSES, FLAG, POSITIVE, SECONDS, TEXT, WHOLE, Kind, choice
from pyspark_pathsieve.positions import EARLIEST, LATEST, POSITION, SUBSCRIPTIONS, UNTIL

__all__ = ["LOAD", "READ", "READ_STREAM", "TABLE", "WRITE", "WRITE_STREAM", "Option", "Options"]

WRITE, WRITE_STREAM, READ, READ_STREAM, LOAD = "write", "writeStream", "read", "readStream", "load"
SINK, SOURCE = frozenset({WRITE, WRITE_STREAM}), frozenset({READ, READ_STREAM, LOAD})
"""`LOAD` is a read of which Spark has not told yet whether it is a stream."""
ANY = SINK | SOURCE

SPARKS_OWN = {"checkpointlocation", "queryname"}
"""What Spark gives to every source or sink beside our options."""


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. `default` None: there is no value unless one is given."""

    name: str
    kind: Kind
    default: Any
    used_for: frozenset[str]
    doc: str
    is_required: bool = False


TABLE = [
    Option("endpoint", ADDRESSES, None, ANY, "Where the servers are; the next one is tried when one fails.", True),
    Option("token", TEXT, None, ANY, "Who you are, if the server asks."),
    Option("tls", FLAG, False, ANY, "Encrypted, with the system's certificates."),
    Option("tlsCa", TEXT, None, ANY, "File of the authority's certificate, on every machine. Implies `tls`."),
    Option("tlsCert", TEXT, None, ANY, "File of your certificate, on every machine, for mutual TLS."),
    Option("tlsKey", TEXT, None, ANY, "File of its key."),
    Option("timeout", SECONDS, 60.0, ANY, "How long an answer may take."),
    Option("patience", SECONDS, 120.0, ANY, "How long to go on while nobody answers."),
    Option("bodyColumn", TEXT, "body", SINK, "The documents: string or binary."),
    Option("idColumn", TEXT, None, SINK, "Their ids: string, or a number."),
    Option("sourceColumn", TEXT, None, SINK, "Who publishes them: string."),
    Option("headersColumn", TEXT, None, SINK, "Headers: a map from string to string."),
    Option("attributesColumn", TEXT, None, SINK, "Attributes: a struct, or a map from string."),
    Option("source", TEXT, None, SINK, "Who publishes them, where there is no column for it."),
    Option(
        "deliveryGuarantee",
        choice("exactly-once", "at-least-once"),
        "exactly-once",
        SINK,
        "What a repeated task or batch may do.",
    ),
    Option(
        "onMalformed",
        choice("fail", "drop", "deadLetter"),
        "fail",
        SINK,
        "What to do with a document that the server refuses.",
    ),
    Option("deadLetterPath", TEXT, None, SINK, "The folder for them, with `onMalformed` = deadLetter: Parquet files."),
    Option("batchDocs", POSITIVE, 1024, SINK, "How many documents are handed over at a time."),
    Option("transactionId", TEXT, None, frozenset({WRITE}), "The name of what is written, for a repetition to have."),
    Option("batchId", WHOLE, 0, frozenset({WRITE}), "Which batch of the transaction."),
    Option("subscription", SUBSCRIPTIONS, None, SOURCE, "What to read: one, several with commas, or - for all.", True),
    Option("startingPosition", POSITION, EARLIEST, SOURCE, "Where a new query begins."),
    Option("endingPosition", UNTIL, LATEST, frozenset({READ, LOAD}), "Where a batch ends: before this one."),
    Option(
        "maxDocsPerTrigger",
        POSITIVE,
        None,
        frozenset({READ_STREAM, LOAD}),
        "The most documents in a micro-batch.",
    ),
    Option("docsPerPartition", POSITIVE, 10_000, SOURCE, "How many documents a task reads."),
    Option("failOnDataLoss", FLAG, True, SOURCE, "Fail when retention has dropped what comes next, or pass over it."),
    Option("acknowledge", FLAG, False, frozenset({READ_STREAM, LOAD}), "Acknowledge at the server what is committed."),
]

BY_NAME = {option.name.lower(): option for option in TABLE}


class Options(Mapping[str, Any]):
    """The value of each option that `operation` has, by its name."""

    def __init__(self, given: Mapping[str, str], operation: str, session: Mapping[str, str] | None = None) -> None:
        self.operation = operation
        self._values = {option.name: option.default for option in TABLE if operation in option.used_for}
        self._given: set[str] = set()
        for name, text in (session or {}).items():
            self._set(name, text, is_session=True)
        for name, text in given.items():
            self._set(name, text)
        for option in TABLE:
            if option.is_required and operation in option.used_for and option.name not in self._given:
                raise OptionError(
                    f'expected .option("{option.name}", …): {option.kind.expected}', {"option": option.name}
                )

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_given(self, name: str) -> bool:
        """Whether somebody chose the value, be it the default."""
        return name in self._given

    def _set(self, name: str, text: str, is_session: bool = False) -> None:
        option = BY_NAME.get(name.lower())
        if option is None:
            if name.lower() not in SPARKS_OWN:
                raise _unknown(name, text, self.operation)
        elif self.operation in option.used_for:
            self._values[option.name] = _read(option, text)
            self._given.add(option.name)
        elif not is_session:
            uses = " and ".join(sorted(option.used_for - {LOAD}))
            facts = {"option": option.name, "given": text}
            raise OptionError(f"option {option.name} is for {uses}, not for {self.operation}", facts)


def _read(option: Option, text: str) -> Any:
    try:
        return option.kind.read(text)
    except (ValueError, KeyError):
        shown = "" if option.name == "token" else f", found {text!r}"
        facts = {"option": option.name, "given": text}
        raise OptionError(f"option {option.name}: expected {option.kind.expected}{shown}", facts) from None


def _unknown(name: str, text: str, operation: str) -> OptionError:
    if name.lower() == "path":
        hint = 'a server has no path: use .save() or .start() without one, and .option("endpoint", "host:port")'
        return OptionError(hint, {"option": name, "given": text})
    names = {option.name.lower(): option.name for option in TABLE if operation in option.used_for}
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {names[close[0]]}?" if close else f"there are {', '.join(sorted(names.values()))}"
    return OptionError(f"unknown option {name}; {hint}", {"option": name, "given": text})
