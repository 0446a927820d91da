"""PathSieve inside Spark: documents out to its servers, notifications in from them, and matching without any server.

    df.write, df.writeStream     ──▶ format("pathsieve") ──▶ server ──▶ subscribers
    spark.read, spark.readStream ◀── format("pathsieve") ◀── server
    match_documents(df, subscriptions)   the engines themselves, in the executors

Spark finds the format by itself wherever this package is installed: it looks for packages called pyspark_…

What matches is imported when it is asked for: who only reads or writes needs no engine.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pyspark_pathsieve.data_source import DefaultSource, register

if TYPE_CHECKING:
    from pyspark_pathsieve.compiled import CompiledSubscriptions, compile_subscriptions
    from pyspark_pathsieve.match_errors import BadSubscriptionsError, MatchSetupError
    from pyspark_pathsieve.match_function import register_function
    from pyspark_pathsieve.match_stream import MatchStream
    from pyspark_pathsieve.matching import match_documents

__all__ = [
    "BadSubscriptionsError",
    "CompiledSubscriptions",
    "DefaultSource",
    "MatchSetupError",
    "MatchStream",
    "compile_subscriptions",
    "match_documents",
    "register",
    "register_function",
]

LATER = {
    "BadSubscriptionsError": "match_errors",
    "CompiledSubscriptions": "compiled",
    "MatchSetupError": "match_errors",
    "MatchStream": "match_stream",
    "compile_subscriptions": "compiled",
    "match_documents": "matching",
    "register_function": "match_function",
}


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
