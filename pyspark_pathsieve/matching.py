"""match_documents: which subscriptions want each document of a DataFrame? Answered in the executors, without a server.

subscriptions ─▶ compiled once, in the driver ─▶ a file on every machine ─┐
                                                                         ├─▶ mapInArrow ─▶ rows, or arrays
df ─▶ batches of documents in Arrow ─▶ Python workers, which map the file ┘
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark_pathsieve.compiled import compile_subscriptions
from pyspark_pathsieve.match_batches import Matcher, matched_arrays, matched_rows
from pyspark_pathsieve.match_errors import MatchSetupError
from pyspark_pathsieve.match_schema import body_column, check_attributes, result_schema
from pyspark_pathsieve.match_shards import matched_in_shards
from pyspark_pathsieve.shipping import ExtractorSettings, ship
from sievefilters import ExtractorError
from xpathfilter import DocumentLimits

__all__ = ["BATCH_DOCUMENTS", "extractor_settings", "match_documents"]

BATCH_DOCUMENTS = 64


def match_documents(
    df: Any,
    subscriptions: Any,
    *,
    body: str = "body",
    attributes: str | None = None,
    output: str = "rows",
    keep: Sequence[str] | None = None,
    extractors: Mapping[str, str] | None = None,
    namespaces: Mapping[str, str] | None = None,
    limits: DocumentLimits | None = None,
    shards: int = 1,
    on_bad: str = "fail",
    batch_documents: int = BATCH_DOCUMENTS,
    threads: int = 1,
) -> Any:
    """The documents of a DataFrame and the subscriptions that want them.

    `output` is "rows": one row for each match, with its id in `subscription`; or "arrays": one row for each document,
    with all ids in `matches`, ascending by their place among the subscriptions. `keep` names the columns of `df` that
    the result has, by default all. A malformed document has its reason in `error`, and no ids.

    `subscriptions` may have many forms (`subscription_sets` lists them), or come from `compile_subscriptions`. Those
    that cannot be compiled are an error that names them, or with `on_bad="skip"` are left out.

    `extractors` find attributes in the XML, `attributes` is a column that brings them along and wins; `namespaces` are
    the prefixes of extractors.
    """
    body_column(df, body)
    if attributes is not None:
        check_attributes(df, attributes)
    kept = list(df.columns if keep is None else keep)
    settings = extractor_settings(extractors, namespaces, limits)
    _check_counts(batch_documents=batch_documents, threads=threads)
    result_schema(df, kept, output, "string", "error")
    compiled = compile_subscriptions(subscriptions, shards=shards, on_bad=on_bad)
    schema = result_schema(df, kept, output, compiled.id_type, "error")
    names = ship(df.sparkSession, compiled)
    matchers = [Matcher(name, body, attributes, settings, batch_documents, threads) for name in names]
    needed = df.select(*_quoted(dict.fromkeys([*kept, body, *([attributes] if attributes else [])])))
    if len(matchers) > 1:
        return matched_in_shards(needed, matchers, kept, output, schema)
    work = partial(matched_arrays if output == "arrays" else matched_rows, matchers[0], kept)
    return needed.mapInArrow(work, schema)


def extractor_settings(
    extractors: Mapping[str, str] | None, namespaces: Mapping[str, str] | None, limits: DocumentLimits | None
) -> ExtractorSettings:
    """What workers need beside the file; extractors are compiled here too, so that a bad one is told here."""
    settings = ExtractorSettings(
        tuple(sorted((extractors or {}).items())), tuple(sorted((namespaces or {}).items())), limits
    )
    try:
        settings.extractors()
    except ExtractorError as error:
        raise MatchSetupError(str(error)) from error
    return settings


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise MatchSetupError(f"{name}: expected a whole number from 1 on, found {count!r}")


def _quoted(names: Any) -> list[str]:
    """Names as columns: a dot in a name is no path."""
    return ["`" + name.replace("`", "``") + "`" for name in names]
