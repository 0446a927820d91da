"""Matching as a function of SQL:

    register_function(spark, "pathsieve_matches", subscriptions)
    SELECT id, pathsieve_matches(body) FROM documents                      an array of ids
    SELECT id, pathsieve_matches(body, map('price', 120.0)) FROM …         with attributes
    SELECT id, s FROM documents LATERAL VIEW explode(pathsieve_matches(body)) AS s

A malformed document gives null; `match_documents` tells why.
"""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from pyspark_pathsieve.compiled import compile_subscriptions
from pyspark_pathsieve.match_batches import Matcher
from pyspark_pathsieve.match_errors import MatchSetupError
from pyspark_pathsieve.matching import BATCH_DOCUMENTS, extractor_settings
from pyspark_pathsieve.shipping import ship
from xpathfilter import DocumentLimits

__all__ = ["register_function"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BODIES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def register_function(
    spark: Any,
    name: str,
    subscriptions: Any,
    *,
    extractors: Mapping[str, str] | None = None,
    namespaces: Mapping[str, str] | None = None,
    limits: DocumentLimits | None = None,
    on_bad: str = "fail",
) -> Any:
    """Have SQL call matching by a name; the function is also returned, for columns of DataFrames.

    It has the subscriptions of this moment. Registering the name again replaces it.
    """
    if not NAME.fullmatch(name):
        raise MatchSetupError(f"name: expected letters, digits and _, found {name!r}")
    settings = extractor_settings(extractors, namespaces, limits)
    compiled = compile_subscriptions(subscriptions, on_bad=on_bad)
    (file,) = ship(spark, compiled)
    function = _function(Matcher(file, "", None, settings), compiled.id_type)
    return spark.udf.register(name, function)


def _function(matcher: Matcher, id_type: str) -> Any:
    def matches(*columns: pa.Array) -> pa.Array:
        return _matches(matcher, columns)

    return arrow_udf(matches, f"array<{id_type}>", ArrowUDFType.SCALAR)


def _matches(matcher: Matcher, columns: tuple[pa.Array, ...]) -> pa.Array:
    if len(columns) not in (1, 2):
        raise MatchSetupError(f"expected a document, and perhaps its attributes, found {len(columns)} arguments")
    if not any(is_body(columns[0].type) for is_body in BODIES):
        raise MatchSetupError(f"expected a document as string or binary, found {columns[0].type}")
    answers = []
    for first in range(0, len(columns[0]), BATCH_DOCUMENTS):
        own = [column.slice(first, BATCH_DOCUMENTS) for column in columns]
        found = matcher.match(own[0], own[1] if len(own) > 1 else None)
        answers.append(found.arrays(found.ids()))
    return pa.concat_arrays(answers)
