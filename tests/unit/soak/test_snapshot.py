"""The directories on a broker's disk that are logs."""

from pathlib import Path

import pytest

from devcluster.soak.snapshot import is_abandoned


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    path.mkdir()
    return path


def test_a_directory_that_never_became_a_log_is_abandoned(directory: Path) -> None:
    assert is_abandoned(directory)
    (directory / "00000000000000000000.log").touch()
    (directory / "00000000000000000000.index").write_bytes(bytes(8))
    assert is_abandoned(directory)


def test_a_log_that_was_served_is_not_abandoned_however_empty(directory: Path) -> None:
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: Nrqt95oaR5O-4NY9ILRQVg\n")
    assert not is_abandoned(directory)


def test_records_make_a_log(directory: Path) -> None:
    (directory / "00000000000000000000.log").write_bytes(b"records")
    assert not is_abandoned(directory)
