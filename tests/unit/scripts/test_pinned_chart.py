"""A published chart names its images by their digests, and is otherwise the chart of the repository."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.pinned_chart import CHART, NotPinned, main, pin

NAMES = ("kontroller", "kontroller-kafka", "kontroller-kafka-4", "kontroller-history")
DIGESTS = {name: f"sha256:{number:064x}" for number, name in enumerate(NAMES)}
IMAGES = "".join(f"ghcr.io/owner/{name}@{digest}\n" for name, digest in DIGESTS.items())
VALUES = (CHART / "values.yaml").read_text()


def test_the_digests_replace_the_tags_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "images").write_text(IMAGES)
    main(str(tmp_path / "images"), str(tmp_path / "chart"))
    expected: dict[str, Any] = copy.deepcopy(yaml.safe_load(VALUES))
    expected["image"] |= {"registry": "ghcr.io/owner", "digest": DIGESTS["kontroller"]}
    expected["kafka"]["image"]["digest"] = DIGESTS["kontroller-kafka"]
    expected["history"]["image"]["digest"] = DIGESTS["kontroller-history"]
    assert yaml.safe_load((tmp_path / "chart" / "values.yaml").read_text()) == expected
    names = {path.relative_to(CHART) for path in CHART.rglob("*")}
    assert {path.relative_to(tmp_path / "chart") for path in (tmp_path / "chart").rglob("*")} == names


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (IMAGES.replace("kontroller-kafka@", "other@"), "kontroller-kafka has no digest"),
        (IMAGES.replace("@sha256:", ":1.0#"), "is no reference"),
        (IMAGES.replace("owner/kontroller@", "another/kontroller@"), "2 registries"),
        ("", "0 registries"),
    ],
)
def test_what_would_leave_an_image_without_a_digest_is_refused(images: str, why: str) -> None:
    with pytest.raises(NotPinned, match=why):
        pin(VALUES, images)
