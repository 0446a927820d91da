"""PathSieve inside Spark: documents out to its servers, notifications in from them, and matching without any server.

df.write, df.writeStream     ──▶ format("pathsieve") ──▶ server ──▶ subscribers
spark.read, spark.readStream ◀── format("pathsieve") ◀── server
match_documents(df, subscriptions)   the engines themselves, in the executors
"""

__all__: list[str] = []
