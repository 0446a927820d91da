"""What integration tests share."""

import pytest

from tests.integration.clusters import skip_without_parts


@pytest.fixture
def cluster_parts() -> None:
    """Skips the test where a cluster cannot run."""
    skip_without_parts()
