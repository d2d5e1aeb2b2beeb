"""The images, built from their Containerfiles by a container engine: Docker or Podman, which need no root."""

from pathlib import Path
from typing import Final

from devcluster.building import progress
from devcluster.building.toolchain import run
from devcluster.images.build import Image, name_image
from devcluster.images.wheels import PROJECT

BUILD_ENVIRONMENT: Final = {"DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
"""Old Docker has no BuildKit by default, and kind cannot load an image whose archive has attestations."""


def build_with_engine(engine: str, image: Image) -> None:
    """Build an image; the engine keeps its layers. All but the image `kontroller` need that one. Raises BuildError."""
    with progress.step(f"Building the image {image} with {engine}"):
        file = ("--file", f"images/{image}/Containerfile")
        base = ("--build-arg", f"KONTROLLER_IMAGE={name_image(Image.KONTROLLER)}")
        command = [engine, "build", *file, *base, "--tag", name_image(image), "."]
        run(command, what=f"building the image {image}", cwd=PROJECT, env=BUILD_ENVIRONMENT)


def save_image(engine: str, image: Image, archive: Path) -> None:
    """Write an image of the engine as an archive. Raises BuildError."""
    run([engine, "save", "--output", str(archive), name_image(image)], what=f"saving the image {image}")
