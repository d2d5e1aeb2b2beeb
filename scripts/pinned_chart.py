"""Copies the chart with the digests of published images in place of their tags.

    python -m scripts.pinned_chart IMAGES FOLDER

IMAGES is a file with a line REGISTRY/NAME@sha256:DIGEST for each published image. Images that the chart does not run are
ignored.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

CHART: Final = Path(__file__).resolve().parents[1] / "charts" / "kontroller"
_PUBLISHED: Final = re.compile(r"(?P<registry>.+)/(?P<name>[a-z0-9-]+)@(?P<digest>sha256:[0-9a-f]{64})")


class NotPinned(Exception):
    """An image of the chart has no digest, or a line is no reference. The message names it."""


def pin(values: str, images: str) -> str:
    """Return the chart's values with the registry and the digests of images. Raises `NotPinned`."""
    published: dict[str, str] = {}
    registries: set[str] = set()
    for line in images.split():
        if (found := _PUBLISHED.fullmatch(line)) is None:
            raise NotPinned(f"{line} is no reference: give REGISTRY/NAME@sha256:DIGEST")
        published[found["name"]] = found["digest"]
        registries.add(found["registry"])
    if len(registries) != 1:
        raise NotPinned(f"the images are in {len(registries)} registries: publish all in one")
    for name in re.findall(r"^ +repository: (kontroller[a-z0-9-]*)$", values, re.MULTILINE):
        if name not in published:
            raise NotPinned(f"{name} has no digest: publish the image, and add its line")
        place = re.compile(rf'(^ +repository: {name}$(?:\n(?! +digest:).*)*\n +digest: )""', re.MULTILINE)
        values = place.sub(rf"\g<1>{published[name]}", values, count=1)
    return values.replace('registry: ""', f"registry: {registries.pop()}", 1)


def main(images: str, folder: str) -> None:
    """Write the copy, or end with the reason why it cannot be written."""
    copy = Path(folder)
    shutil.copytree(CHART, copy)
    try:
        pinned = pin((copy / "values.yaml").read_text(), Path(images).read_text())
    except NotPinned as error:
        sys.exit(str(error))
    (copy / "values.yaml").write_text(pinned)


if __name__ == "__main__":
    main(*sys.argv[1:])
