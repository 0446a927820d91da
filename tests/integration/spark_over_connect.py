"""A client of Spark Connect: matches, in SQL too, writes to a server and reads back. Lines of JSON on stdout.

python -m tests.integration.spark_over_connect ENDPOINT
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from pyspark_pathsieve import match_documents, register_function
from tests.spark import SETTINGS

SUBSCRIPTIONS: Any = {"all": "//a", "deep": "/a/a"}


def main(endpoint: str) -> None:
    builder = SparkSession.Builder().remote("local[2]").appName("pathsieve tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        documents = spark.createDataFrame([(1, "<a><a/></a>"), (2, "<a/>"), (3, "<a>")], "id int, body string")
        for shards in (1, 2):
            matched = match_documents(documents, SUBSCRIPTIONS, output="arrays", keep=["id"], shards=shards)
            print(json.dumps({row.id: row.matches for row in matched.collect()}))
        register_function(spark, "wanted_by", SUBSCRIPTIONS)
        documents.createOrReplaceTempView("documents")
        wanted = spark.sql("SELECT id, wanted_by(body) AS matches FROM documents").collect()
        print(json.dumps({row.id: row.matches for row in wanted}))
        sink = documents.write.format("pathsieve").mode("append").options(endpoint=endpoint, idColumn="id")
        sink.options(onMalformed="drop").save()
        notifications = spark.read.format("pathsieve").options(endpoint=endpoint, subscription="all").load()
        print(json.dumps({row.id: [row.subscription] for row in notifications.select("id", "subscription").collect()}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
