"""Layers of images: tar archives that depend only on their files.

Time stamps are fixed, owners are numbers and names are sorted. A rebuilt layer therefore keeps its digest, and a
registry or engine that has it need not load it again.

A step runs in hard links to the files of the layers below, which are unpacked only once. It may add files and replace
some with others; these are its layer. A step that removes files or writes into existing ones is refused.
"""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from devcluster.building.toolchain import run

_TIME_STAMP_S = 315_532_800  # 1980-01-01, the oldest that zip archives can hold
_NOT_IN_IMAGES = {"dev", "proc", "sys", "mnt", "tmp", "run"}  # their content; the folders are

Snapshot = dict[str, tuple[int, ...]]


class ChangedBelow(Exception):
    """A step removed or wrote files of the layers below, whose unpacked copies may be damaged now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer; `diff_id` is the SHA-256 in hexadecimal of the archive before compression."""

    path: Path
    diff_id: str


def snapshot(root: Path) -> Snapshot:
    """Return the state of every path below `root`, without the change time, because making links changes it."""
    return {
        path: (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns)
        for path, status in _walk(root)
    }


def find_changes(root: Path, before: Snapshot) -> list[str]:
    """Return the new and replaced paths, and the folders that contain them. Raises ChangedBelow."""
    now = snapshot(root)
    changed = [path for path, state in now.items() if before.get(path) != state]
    written = [path for path in changed if path in before and _is_written_file(before[path], now[path])]
    if spoilt := sorted(written + list(before.keys() - now.keys())):
        raise ChangedBelow(f"a step removed or wrote into {', '.join(spoilt[:5])} of the layers below")
    return changed


def write_layer(folder: Path, root: Path, paths: Iterable[str] | None = None) -> None:
    """Write the archive of `paths` below `root` (default: all) into `folder`, where `read_layer` finds it."""
    path = folder / "layer.tar.gz"
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(snapshot(root) if paths is None else paths):
            _add(archive, root, name)
    with gzip.open(path) as written:
        (folder / "diff_id").write_text(hashlib.file_digest(written, "sha256").hexdigest())


def read_layer(folder: Path) -> Layer:
    """Return the layer that `write_layer` wrote."""
    return Layer(path=folder / "layer.tar.gz", diff_id=(folder / "diff_id").read_text())


def unpack(layers: Iterable[Layer], root: Path) -> None:
    """Unpack the layers on top of each other into `root`, with their owners and modes."""
    root.mkdir()
    root.chmod(0o755)  # # even with a strict umask, programs of another user must be able to enter it
    for layer in layers:
        command = ["tar", "--extract", "--file", str(layer.path), "--directory", str(root)]
        run([*command, "--numeric-owner", "--preserve-permissions"], what="unpacking a layer")


def link_tree(source: Path, target: Path) -> None:
    """Make `target` a copy of the tree `source`, with hard links to its files."""
    run(["cp", "--archive", "--link", "--no-target-directory", str(source), str(target)], what="linking layers")


def _is_written_file(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    return before[0] == now[0] and not stat.S_ISDIR(now[1])


def _walk(root: Path, folder: str = "") -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(root / folder) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            yield path, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False) and path not in _NOT_IN_IMAGES:
                yield from _walk(root, path)


def _add(archive: tarfile.TarFile, root: Path, path: str) -> None:
    source = root / path
    mode = source.lstat().st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
        return
    entry = archive.gettarinfo(source, arcname=path)
    entry.mtime = _TIME_STAMP_S
    entry.uname = entry.gname = ""
    if entry.isreg():
        with source.open("rb") as content:
            archive.addfile(entry, content)
    else:
        archive.addfile(entry)
