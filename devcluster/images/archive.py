"""An image as one file that every engine loads: the archive that `docker save` writes."""

import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass
from pathlib import Path

from devcluster.images.containerfile import ImageSettings
from devcluster.images.layers import Layer

_CREATED = "1980-01-01T00:00:00Z"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageArchive:
    """An image as a file; `reference` is the name of the image once it is loaded."""

    reference: str
    path: Path


def image_config(settings: ImageSettings, layers: list[Layer]) -> bytes:
    """Return the image's configuration; its SHA-256 is the image's id."""
    machine = platform.machine()
    config = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": _CREATED,
        "config": settings.make_config(),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.diff_id}" for layer in layers]},
        "history": [{"created": _CREATED, "created_by": "devcluster.images"} for _ in layers],
    }
    return json.dumps(config, sort_keys=True).encode()


def write_archive(path: Path, reference: str, config: bytes, layers: list[Layer]) -> None:
    """Write the archive; the same image makes the same bytes."""
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    layer_names = [f"{layer.diff_id}.tar.gz" for layer in layers]
    manifest = [{"Config": config_name, "RepoTags": [reference], "Layers": layer_names}]
    with tarfile.open(path, "w") as archive:
        _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
        _add_bytes(archive, config_name, config)
        for name, layer in zip(layer_names, layers, strict=True):
            entry = tarfile.TarInfo(name)
            entry.size = layer.path.stat().st_size
            with layer.path.open("rb") as content:
                archive.addfile(entry, content)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
