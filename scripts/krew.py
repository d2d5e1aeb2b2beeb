"""Builds the archive that krew installs, and its manifest.

    python -m scripts.krew ARCHIVE

writes the archive, and the manifest with its hash into charts/krew. The same files always give the same archive.
"""

import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = ROOT / "charts/krew/kubectl-kontroller"
MANIFEST: Final = ROOT / "charts/krew/kontroller.yaml"
VERSION: Final = "0.1.0"
ARCHIVE: Final = f"kubectl-kontroller-{VERSION}.zip"
RELEASES: Final = "https://kontroller.dev/releases"

_FILES: Final = ((PLUGIN, 0o100755), (ROOT / "LICENSE", 0o100644))
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_HEADER: Final = (
    "# Written by `python -m scripts.krew ARCHIVE`, with the hash of that archive: change scripts/krew.py instead.\n"
)


def archive() -> bytes:
    """Return a zip file of the plugin's script and the licence, uncompressed, so that its bytes are always the same."""
    content = BytesIO()
    with ZipFile(content, "w", ZIP_STORED) as made:
        for path, mode in _FILES:
            entry = ZipInfo(path.name, _EPOCH)
            entry.external_attr = mode << 16
            entry.create_system = 3  # Unix, so that the mode counts
            made.writestr(entry, path.read_bytes())
    return content.getvalue()


def manifest() -> str:
    """Return the manifest of the archive."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
        "uri": f"{RELEASES}/v{VERSION}/{ARCHIVE}",
        "sha256": sha256(archive()).hexdigest(),
        "bin": PLUGIN.name,
        "files": [{"from": path.name, "to": "."} for path, _ in _FILES],
    }
    plugin = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "kontroller"},
        "spec": {
            "version": f"v{VERSION}",
            "homepage": "https://kontroller.dev",
            "shortDescription": "Health, moves and drift of Kafka clusters",
            "description": "Shows Kafka clusters, topics, moves and elections of kontroller.dev on one screen, with the"
            " operator's next steps, and pauses, resumes and cancels them.\n",
            "caveats": "Needs Python 3.11 with the distribution kafka-kontroller. If that is installed as a tool"
            " (uv, pipx), it includes the plugin.\n",
            "platforms": [platform],
        },
    }
    return _HEADER + yaml.safe_dump(plugin, sort_keys=False, width=110)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(archive())
    MANIFEST.write_text(manifest())
