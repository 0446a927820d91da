"""Errors carry their facts and read as sentences."""

import pickle

from sievecore import SieveError, StorageError


def test_a_storage_error_reads_as_path_and_reason() -> None:
    error = StorageError("a.sieve", "expected 3 bytes, found 2")
    assert str(error) == "a.sieve: expected 3 bytes, found 2"
    assert (error.path, error.reason) == ("a.sieve", "expected 3 bytes, found 2")


def test_a_storage_error_is_caught_as_either_of_its_parents() -> None:
    assert issubclass(StorageError, SieveError)
    assert issubclass(StorageError, ValueError)


def test_a_storage_error_survives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(StorageError("a.sieve", "empty")))
    assert (error.path, error.reason, str(error)) == ("a.sieve", "empty", "a.sieve: empty")
