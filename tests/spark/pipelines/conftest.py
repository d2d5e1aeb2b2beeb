"""The declared pipeline in a folder of the test's own."""

from pathlib import Path

import pytest

from tests.spark.pipelines.declared import project_with_journals


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the pipeline, as a user makes one, with two clusters' journals in the folder `journals`."""
    return project_with_journals(tmp_path / "project")
