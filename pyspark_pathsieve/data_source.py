"""The format "pathsieve": what Spark asks for, and which module answers.

    .read          ──▶ reader         ──▶ reading
    .readStream    ──▶ streamReader   ──▶ stream_reading
    .write         ──▶ writer         ──▶ writing
    .writeStream   ──▶ streamWriter   ──▶ writing

Modules are imported when they are needed: Spark imports this package whenever a session first looks for any source.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from pyspark_pathsieve.options import LOAD, READ, READ_STREAM, WRITE, WRITE_STREAM, Options

if TYPE_CHECKING:
    from pyspark_pathsieve.reading import BatchReader
    from pyspark_pathsieve.stream_reading import StreamReader

__all__ = ["CONF_PREFIX", "NAME", "DefaultSource", "register"]

NAME = "pathsieve"
CONF_PREFIX = "spark.pathsieve."


class DefaultSource(DataSource):
    """Found by Spark under this name, because its package is called pyspark_…"""

    session: ClassVar[Mapping[str, str]] = {}
    """What the configuration of the session says about options; `register` fills it."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """Asked for at once, when the user says `load()`: so what is wrong is said there."""
        from pyspark_pathsieve.notification_rows import SCHEMA
        from pyspark_pathsieve.reading import look

        look(self.options_for(LOAD))
        return SCHEMA

    def reader(self, schema: StructType) -> "BatchReader":
        from pyspark_pathsieve.reading import BatchReader

        return BatchReader(self.options_for(READ), schema)

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802
        from pyspark_pathsieve.stream_reading import StreamReader

        return StreamReader(self.options_for(READ_STREAM), schema)

    def options_for(self, operation: str) -> Options:
        """What was given, checked."""
        return Options(self.options, operation, self.session)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from pyspark_pathsieve.writing import BatchWriter

        return BatchWriter.planned(self.options_for(WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from pyspark_pathsieve.writing import StreamWriter

        return StreamWriter.planned(self.options_for(WRITE_STREAM), schema, overwrite)


def register(spark: SparkSession) -> None:
    """Have `spark.pathsieve.…` of the session's configuration supply options that a read or write does not give.

    Spark does not tell a Python source the configuration of the session. So what it says now is put into the source
    and registered with it; call this again after a change.
    """
    settings = spark.conf.getAll
    session = {
        name.removeprefix(CONF_PREFIX): value for name, value in settings.items() if name.startswith(CONF_PREFIX)
    }
    spark.dataSource.register(type("DefaultSource", (DefaultSource,), {"session": session}))
