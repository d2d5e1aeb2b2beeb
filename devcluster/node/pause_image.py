"""The image of the first process of every pod."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from devcluster.binaries import pause_binary
from devcluster.cache import cached


def pause_image() -> Path:
    """A docker-archive."""
    program = pause_binary()

    def build(folder: Path) -> None:
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tar:
            info = tarfile.TarInfo("pause")
            info.mode, info.size = 0o755, program.stat().st_size
            tar.addfile(info, io.BytesIO(program.read_bytes()))
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Entrypoint": ["/pause"]},
                "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]},
            }
        )
        manifest = json.dumps(
            [{"Config": "config.json", "RepoTags": ["docker.io/library/pause:1"], "Layers": ["layer.tar"]}]
        )
        with tarfile.open(folder / "pause.tar", "w") as tar:
            for name, content in (
                ("config.json", config.encode()),
                ("layer.tar", layer.getvalue()),
                ("manifest.json", manifest.encode()),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    return cached("pause-image-1", str(program), build=build) / "pause.tar"
