"""PathSieve inside Spark: documents out to its servers, notifications in from them, and matching without any server.

    df.write, df.writeStream     ──▶ format("pathsieve") ──▶ server ──▶ subscribers
    spark.read, spark.readStream ◀── format("pathsieve") ◀── server
    match_documents(df, subscriptions)   the engines themselves, in the executors

Spark finds the format by itself wherever this package is installed: it looks for packages called pyspark_…
"""

from pyspark_pathsieve.data_source import DefaultSource, register

__all__ = ["DefaultSource", "register"]
