"""Layers and archives are reproducible from the same files, and hold the changes of a step."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.images.archive import image_config, write_archive
from devcluster.images.containerfile import ImageSettings
from devcluster.images.layers import (
    ChangedBelow,
    Layer,
    find_changes,
    link_tree,
    read_layer,
    snapshot,
    unpack,
    write_layer,
)


def file(root: Path, path: str, content: str = "content") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    return target


def layer_of(tmp_path: Path, name: str, root: Path, paths: list[str] | None = None) -> Layer:
    folder = tmp_path / name
    folder.mkdir()
    write_layer(folder, root, paths)
    return read_layer(folder)


def names(layer: Layer) -> list[str]:
    with tarfile.open(layer.path) as archive:
        return archive.getnames()


def test_the_same_files_make_the_same_layer_whenever_and_in_whatever_order_they_were_written(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in ("a", "b/c"):
        file(one, path)
    for path in ("b/c", "a"):
        os.utime(file(other, path), (7, 7))
    first, second = layer_of(tmp_path, "first", one), layer_of(tmp_path, "second", other)
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.diff_id == second.diff_id


def test_the_diff_id_is_the_digest_of_the_uncompressed_archive(tmp_path: Path) -> None:
    file(tmp_path / "root", "a")
    layer = layer_of(tmp_path, "layer", tmp_path / "root")
    assert hashlib.sha256(gzip.decompress(layer.path.read_bytes())).hexdigest() == layer.diff_id


def test_a_layer_holds_what_is_new_or_replaced(tmp_path: Path) -> None:
    root = tmp_path / "root"
    file(root, "usr/kept")
    replaced = file(root, "usr/replaced")
    before = snapshot(root)
    file(root, "opt/new", "other content").rename(replaced)
    assert sorted(find_changes(root, before)) == ["opt", "usr", "usr/replaced"]


def test_a_step_that_removes_files_of_the_layers_below_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    gone = file(root, "usr/gone")
    before = snapshot(root)
    gone.unlink()
    with pytest.raises(ChangedBelow, match="usr/gone"):
        find_changes(root, before)


@pytest.mark.parametrize("change", [lambda path: path.write_text("longer content"), lambda path: path.chmod(0o755)])
def test_a_step_that_writes_into_files_of_the_layers_below_is_refused(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    root = tmp_path / "root"
    path = file(root, "usr/shared")
    before = snapshot(root)
    change(path)
    with pytest.raises(ChangedBelow, match="usr/shared"):
        find_changes(root, before)


def test_other_builds_in_links_to_the_same_files_change_nothing(tmp_path: Path) -> None:
    unpacked, one, other = tmp_path / "unpacked", tmp_path / "one", tmp_path / "other"
    file(unpacked, "usr/shared")
    link_tree(unpacked, one)
    before = snapshot(one)
    link_tree(unpacked, other)
    file(other, "usr/new")
    assert find_changes(one, before) == []
    assert snapshot(unpacked).keys() == {"usr", "usr/shared"}


def test_what_belongs_to_the_machine_that_runs_an_image_is_left_out_but_for_its_folders(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("dev/null", "proc/1/stat", "tmp/x", "run/lock", "mnt/steps/step", "etc/tmp/kept"):
        file(root, path)
    layer = layer_of(tmp_path, "layer", root)
    assert names(layer) == ["dev", "etc", "etc/tmp", "etc/tmp/kept", "mnt", "proc", "run", "tmp"]


def test_links_and_modes_come_back_when_layers_are_unpacked(tmp_path: Path) -> None:
    root = tmp_path / "root"
    program = file(root, "usr/program")
    program.chmod(0o750)
    (root / "usr" / "link").symlink_to("program")
    os.link(program, root / "usr" / "twin")
    unpacked = tmp_path / "unpacked"
    unpack([layer_of(tmp_path, "layer", root)], unpacked)
    assert (unpacked / "usr/program").stat().st_mode & 0o777 == 0o750
    assert (unpacked / "usr/link").readlink() == Path("program")
    assert (unpacked / "usr/twin").samefile(unpacked / "usr/program")


def test_an_archive_names_its_image_and_its_layers_from_the_lowest_up(tmp_path: Path) -> None:
    roots = tmp_path / "lower-root", tmp_path / "upper-root"
    for root in roots:
        file(root, root.name)
    layers = [layer_of(tmp_path, root.name.removesuffix("-root"), root) for root in roots]
    config = image_config(ImageSettings(user="1:1"), layers)
    for name in ("first.tar", "second.tar"):
        write_archive(tmp_path / name, "example:1", config, layers)
    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
    with tarfile.open(tmp_path / "first.tar") as archive:
        contents = {entry.name: archive.extractfile(entry) for entry in archive}
        (manifest,) = json.load(contents["manifest.json"] or io.BytesIO())
        written = json.load(contents[manifest["Config"]] or io.BytesIO())
        digests = [_diff_id((contents[name] or io.BytesIO()).read()) for name in manifest["Layers"]]
    assert manifest["RepoTags"] == ["example:1"]
    assert manifest["Config"] == hashlib.sha256(config).hexdigest() + ".json"
    assert written["config"]["User"] == "1:1"
    assert written["rootfs"]["diff_ids"] == digests == [f"sha256:{layer.diff_id}" for layer in layers]


def _diff_id(compressed: bytes) -> str:
    return "sha256:" + hashlib.sha256(gzip.decompress(compressed)).hexdigest()
