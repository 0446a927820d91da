"""What all tests share: where the common data are, and how many random examples to try.

    HYPOTHESIS_PROFILE=thorough make test      twenty times as many
    CI=true make test                          always the same ones

Use `shared` for data that are not ours: without them a test is skipped, visibly.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent

settings.register_profile("default", deadline=None, max_examples=100, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of documents, cases and generators that lies beside the checkout."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"the data folder {folder} is not beside this checkout")
    return folder
