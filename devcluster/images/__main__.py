"""`make images`: builds the archives and prints how to load them."""

from typing import Annotated, Final

import typer

from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.images import Image, image_archive

_LOADERS: Final = (
    "docker load -i {path}",
    "podman load -i {path}",
    "ctr -n k8s.io images import {path}",
    "kind load image-archive {path}",
)


def main(images: Annotated[list[Image] | None, typer.Argument(help="Images to build. Default: all.")] = None) -> None:
    """Build the container images without a registry or an engine, and print how to load them."""
    try:
        archives = [image_archive(image) for image in images or tuple(Image)]
    except (BuildError, MissingToolError) as error:
        raise SystemExit(str(error)) from error
    for archive in archives:
        print(f"{archive.reference}  {archive.path.stat().st_size / 1_000_000:.0f} MB\n  {archive.path}")
    print("Load each with one of:")
    for loader in _LOADERS:
        print("  " + loader.format(path="ARCHIVE"))


if __name__ == "__main__":
    typer.run(main)
