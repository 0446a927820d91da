"""Subscriptions in shards: each task holds one part of them, and every document meets all parts.

    df ─▶ each document × shards ─▶ partition p has shard p mod shards ─▶ mapInArrow
                                         output="rows"     that is all: a match is found in one shard
                                         output="arrays"   one more shuffle puts the matches of a document together

There are as many tasks as `spark.sql.shuffle.partitions` says, rounded up to a multiple of the shards. A malformed
document is told by the first shard alone.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from pyspark_pathsieve.match_batches import Matcher, matched, matched_rows
from pyspark_pathsieve.match_errors import MatchSetupError

__all__ = ["matched_in_shards"]

SHARD, DOCUMENT = "_pathsieve_shard", "_pathsieve_document"

Batches = Iterator[pa.RecordBatch]


def matched_in_shards(df: Any, matchers: Sequence[Matcher], kept: Sequence[str], output: str, schema: Any) -> Any:
    """The same answers as from one matcher that has all subscriptions."""
    if output == "rows":
        return _spread(df, matchers).mapInArrow(partial(_rows, list(matchers), list(kept)), schema)
    if df.isStreaming:
        raise MatchSetupError(
            "output: arrays of a streaming DataFrame cannot be put together from shards;"
            " use output='rows', or MatchStream"
        )
    numbered = df.withColumn(DOCUMENT, f.monotonically_increasing_id())
    found = _spread(numbered, matchers).mapInArrow(partial(_arrays, list(matchers), list(kept)), _parts_schema(schema))
    return _together(found, kept)


def _spread(df: Any, matchers: Sequence[Matcher]) -> Any:
    """Each document as often as there are shards, and each shard in partitions of its own."""
    n_shards = len(matchers)
    n_tasks = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    n_rounds = -(-n_tasks // n_shards)
    copies = df.withColumn(SHARD, f.explode(f.array(*(f.lit(shard) for shard in range(n_shards)))))
    which = f.pmod(f.xxhash64(f.col(f"`{matchers[0].body}`")), f.lit(n_rounds)).cast("int")
    return copies.repartitionById(n_shards * n_rounds, f.col(SHARD) + f.lit(n_shards) * which)


def _of_each_shard(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        shards = batch.column(SHARD)
        for shard in pc.unique(shards).to_pylist():
            yield shard, batch.filter(pc.equal(shards, shard))


def _rows(matchers: Sequence[Matcher], kept: Sequence[str], batches: Batches) -> Batches:
    for shard, batch in _of_each_shard(batches):
        yield from matched_rows(matchers[shard], kept, iter([batch]), tells_errors=shard == 0)


def _arrays(matchers: Sequence[Matcher], kept: Sequence[str], batches: Batches) -> Batches:
    """What is kept comes with the first shard only, so that it travels once."""
    for shard, whole in _of_each_shard(batches):
        for batch, found in matched(matchers[shard], [whole]):
            columns = [batch.column(name) for name in kept]
            if shard > 0:
                columns = [pa.nulls(len(batch), column.type) for column in columns]
            answers = [found.arrays(found.placed_ids()), found.error_column()]
            keys = [batch.column(DOCUMENT), batch.column(SHARD)]
            yield pa.RecordBatch.from_arrays([*columns, *answers, *keys], [*kept, "matches", "error", DOCUMENT, SHARD])


def _parts_schema(schema: Any) -> StructType:
    """Of what `_arrays` yields: each id has its place, each document its number."""
    *kept, answers, error = schema.fields
    placed = StructType([StructField("place", LongType()), StructField("id", answers.dataType.elementType)])
    keys = [StructField(DOCUMENT, LongType()), StructField(SHARD, IntegerType())]
    return StructType([*kept, StructField(answers.name, ArrayType(placed)), error, *keys])


def _together(found: Any, kept: Sequence[str]) -> Any:
    """The parts of each document as one row, its ids in the order of the subscriptions."""
    columns = [f.col(f"`{name}`") for name in kept]
    own = f.first(f.when(f.col(SHARD) == 0, f.struct(f.lit(0).alias(SHARD), *columns)), ignorenulls=True).alias("own")
    ids = f.transform(f.array_sort(f.flatten(f.collect_list("matches"))), lambda match: match["id"])
    merged = found.groupBy(DOCUMENT).agg(own, ids.alias("matches"), f.first("error", ignorenulls=True).alias("error"))
    matches = f.when(f.col("error").isNull(), f.col("matches")).alias("matches")
    return merged.select(*(f.col("own").getField(name).alias(name) for name in kept), matches, "error")
