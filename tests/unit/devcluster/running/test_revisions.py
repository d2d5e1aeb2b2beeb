"""Older revisions of the project as folders."""

from pathlib import Path

import pytest

from devcluster.building.revisions import NoSuchRevision, export_revision

pytestmark = pytest.mark.skipif(
    not (Path(__file__).parents[4] / ".git").exists(), reason="the source is not a clone, so it has no revisions"
)


def test_a_revision_has_all_packages_that_ship(tmp_path: Path) -> None:
    folder = export_revision("HEAD", tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        "controller_core",
        "controller_planner",
        "kontroller",
        "operator",
    }


def test_a_revision_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRevision, match="fetch all of the history"):
        export_revision("0" * 40, tmp_path)
