"""The references of images: registry, repository, and tag or digest."""

import json
from collections.abc import Iterator
from typing import Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import EVERYTHING, Object, pods, render

pytestmark = pytest.mark.needs(Part.HELM)

DIGEST: Final = f"sha256:{'0f' * 32}"
OWNERS: Final = ("image", "kafka.image", "history.image")


def images(objects: list[Object]) -> Iterator[str]:
    for pod in pods(objects):
        yield from (each["image"] for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]))


def used(*values: str) -> set[str]:
    """Return the images of a release of everything, with the given values."""
    return set(images(render(*EVERYTHING, *values)))


def test_one_value_sets_the_registry_of_all_images() -> None:
    names = ("kontroller", "kontroller-kafka", "kontroller-history")
    assert used() == {f"{name}:0.1.0" for name in names}
    assert used("--set", "image.registry=r.example:5000") == {f"r.example:5000/{name}:0.1.0" for name in names}


def test_each_image_may_have_a_registry_a_tag_and_a_digest_of_its_own() -> None:
    own = "kafka.image.registry=mirror.example/k,kafka.image.tag=v1,history.image.repository=h/spark,image.tag=unused"
    assert used("--set", f"image.registry=r.example,{own},image.digest={DIGEST}") == {
        f"r.example/kontroller@{DIGEST}",
        "mirror.example/k/kontroller-kafka:v1",
        "r.example/h/spark:0.1.0",
    }


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("end", [f"@{DIGEST}", ":1"])
def test_a_repository_that_has_a_tag_or_a_digest_is_refused(owner: str, end: str) -> None:
    with pytest.raises(
        CommandError, match=rf"{owner}.repository is r:5000/k{end}.*: set {owner}.tag or {owner}.digest"
    ):
        render(*EVERYTHING, "--set", f"{owner}.repository=r:5000/k{end}")


@pytest.mark.parametrize("owner", OWNERS)
def test_a_digest_that_is_none_is_refused(owner: str) -> None:
    with pytest.raises(CommandError, match=json.dumps(f"/{owner.replace('.', '/')}/digest")[1:-1]):
        render(*EVERYTHING, "--set", f"{owner}.digest=sha256:1")
