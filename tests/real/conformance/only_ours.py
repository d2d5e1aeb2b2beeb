"""The mark of tests that hold for our controller alone: where it does better than Kafka's, or otherwise on purpose."""

import pytest

ours_only = pytest.mark.parametrize("started_cluster", ["kontroller"], indirect=True, scope="session")
