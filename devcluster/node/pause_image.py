"""The image of the first process of every pod."""

import shutil
from pathlib import Path

from devcluster.building.binaries import pause_binary
from devcluster.building.cache import build_cached
from devcluster.images.archive import image_config, write_archive
from devcluster.images.containerfile import ImageSettings
from devcluster.images.layers import read_layer, write_layer


def pause_image(reference: str) -> Path:
    """Return the archive of the image, with this name once it is loaded."""
    program = pause_binary()

    def build(folder: Path) -> None:
        root = folder / "root"
        root.mkdir()
        shutil.copy(program, root)
        write_layer(folder, root)
        layers = [read_layer(folder)]
        config = image_config(ImageSettings(entrypoint=["/pause"]), layers)
        write_archive(folder / "image.tar", reference, config, layers)

    return build_cached("pause-image", reference, str(program), build=build) / "image.tar"
