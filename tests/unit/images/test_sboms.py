"""The software bills of materials in images list the parts from which the images are built."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

IMAGES = Path(__file__).resolve().parents[3] / "images"
LOCKS = IMAGES.parent / "locks"


def parts(image: str, kind: str) -> list[dict[str, Any]]:
    """The components of one kind of package, `pypi` or `maven`."""
    document = json.loads((IMAGES / image / "sbom.cdx.json").read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == image
    return [part for part in document["components"] if part["purl"].startswith(f"pkg:{kind}/")]


@pytest.mark.parametrize(("image", "lock"), [("kontroller", "image.txt"), ("kontroller-history", "history.txt")])
def test_distributions_are_those_of_the_lock_but_for_pip_which_stays_outside(image: str, lock: str) -> None:
    pinned = re.findall(r"^(?!pip=)([a-z0-9._-]+)==(\S+)", (LOCKS / lock).read_text(), re.MULTILINE)
    assert sorted((part["name"], part["version"]) for part in parts(image, "pypi")) == sorted(pinned), "make sbom"


@pytest.mark.parametrize("image", ["kontroller-kafka", "kontroller-kafka-4", "kontroller-history"])
def test_jars_are_those_whose_checksums_are_compared(image: str) -> None:
    checked = {line.split()[0] for line in (IMAGES / image / "jars.sha256").read_text().splitlines()}
    listed = [digest["content"] for part in parts(image, "maven") for digest in part["hashes"]]
    assert sorted(listed) == sorted(checked), "make sbom"


@pytest.mark.parametrize("image", ["kontroller", "kontroller-kafka", "kontroller-kafka-4", "kontroller-history"])
def test_every_image_carries_its_list(image: str) -> None:
    copied = f"COPY images/{image}/sbom.cdx.json /usr/share/sbom/{image}.cdx.json"
    assert copied in (IMAGES / image / "Containerfile").read_text()
