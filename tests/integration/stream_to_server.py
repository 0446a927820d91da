"""A driver of its own, to be killed: text files, a line a document, into a server, until there are no more files.

python -m tests.integration.stream_to_server ENDPOINT FILES CHECKPOINT
"""

import sys

from tests.spark import running_spark

if __name__ == "__main__":
    endpoint, files, checkpoint = sys.argv[1:]
    with running_spark() as spark:
        lines = spark.readStream.option("maxFilesPerTrigger", 2).text(files)
        sink = lines.writeStream.format("pathsieve").options(endpoint=endpoint, bodyColumn="value", batchDocs="20")
        sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
