"""Documents that were refused, in Parquet files: the row as it was, and why.

    {deadLetterPath}/{query}-{batch}-{partition}.parquet
        body, id, …                          all columns of the row, so that it can be mended and written again
        _pathsieve_reason                    what the server, or the connector, said
        _pathsieve_query, _batch, …          where it was

An attempt that is repeated replaces the file that the one before has left, so no row is there twice. Until an attempt
is done its file has another name, which begins with "_": Spark does not read those.
"""

from pathlib import PurePosixPath
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from pyspark_pathsieve.errors import OptionError
from pyspark_pathsieve.options import Options
from pyspark_pathsieve.places import Place, new_attempt
from pyspark_pathsieve.rows import Row

__all__ = ["DeadLetters", "check_path", "delete_letters"]

REASONS = {
    "_pathsieve_reason": pa.string(),
    "_pathsieve_query": pa.string(),
    "_pathsieve_batch": pa.int64(),
    "_pathsieve_partition": pa.int32(),
    "_pathsieve_row": pa.int64(),
}
GROUP = 256
"""Rows that are written together."""


class DeadLetters:
    """Those of one attempt at a partition; `finish` gives the file its name."""

    def __init__(self, folder: str, place: Place) -> None:
        self.count = 0
        self._place = place
        self._files, root = _resolved(folder)
        self._root = PurePosixPath(root)
        self._name = f"{quote(place.query, safe='')}-{place.batch}-{place.partition}.parquet"
        self._unfinished = str(self._root / f"_{new_attempt()}-{self._name}")
        self._waiting: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None

    def take(self, row: Row, reason: Exception) -> None:
        self.count += 1
        self._waiting.append(self._letter(row, reason))
        if len(self._waiting) >= GROUP:
            self._write()

    def finish(self) -> str | None:
        """The file; none if there were no letters, and what an earlier attempt has left goes too."""
        final = str(self._root / self._name)
        self._write()
        if self._writer is None:
            _delete(self._files, final)
            return None
        self._writer.close()
        self._files.move(self._unfinished, final)
        return final

    def give_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            _delete(self._files, self._unfinished)

    def _write(self) -> None:
        if not self._waiting:
            return
        letters = pa.Table.from_batches(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._files.create_dir(str(self._root), recursive=True)
            self._writer = pq.ParquetWriter(self._unfinished, letters.schema, filesystem=self._files)
        self._writer.write_table(letters)

    def _letter(self, row: Row, reason: Exception) -> pa.RecordBatch:
        where = self._place
        told = [str(reason), where.query, where.batch, where.partition, row.number]
        own = row.batch.slice(row.place, 1)
        added = [pa.array([value], kind) for value, kind in zip(told, REASONS.values(), strict=True)]
        schema = pa.schema([*own.schema, *(pa.field(name, kind) for name, kind in REASONS.items())])
        return pa.RecordBatch.from_arrays([*own.columns, *added], schema=schema)


def check_path(options: Options) -> None:
    """The folder is named if there are to be dead letters, and can be made."""
    wanted, folder = options["onMalformed"] == "deadLetter", options["deadLetterPath"]
    if wanted and not folder:
        words = 'onMalformed = deadLetter needs a folder: .option("deadLetterPath", …)'
        raise OptionError(words, {"option": "deadLetterPath"})
    if wanted:
        try:
            files, root = _resolved(folder)
            files.create_dir(root, recursive=True)
        except (OSError, ValueError, pa.ArrowException) as error:
            facts = {"option": "deadLetterPath", "given": folder}
            words = f"option deadLetterPath: expected an absolute path, or a URI that pyarrow knows, found {folder}"
            raise OptionError(f"{words}: {error}", facts) from None


def delete_letters(folder: str, paths: list[str]) -> None:
    """Of a batch that comes to nothing."""
    files, _ = _resolved(folder)
    for path in paths:
        _delete(files, path)


def _delete(files: fs.FileSystem, path: str) -> None:
    if files.get_file_info(path).type == fs.FileType.File:
        files.delete_file(path)


def _resolved(folder: str) -> tuple[fs.FileSystem, str]:
    files, root = fs.FileSystem.from_uri(folder)
    return files, root
