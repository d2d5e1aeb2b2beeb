"""The images, built layer by layer; each layer is cached by its inputs.

A change of the project's sources rebuilds only the topmost layer of `kontroller`, which takes seconds. The images'
definitions are in images/: the Containerfiles have the packages and settings, the steps are scripts.
"""

import os
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from devcluster.building import progress
from devcluster.building.cache import build_cached, cache_folder
from devcluster.building.java import KAFKA_FOLDER, KRAFT_FOLDER, KRAFT_VERSION, kafka_home, other_kafka
from devcluster.building.spark_jars import kafka_jar_files
from devcluster.images import containerfile
from devcluster.images.archive import ImageArchive, image_config, write_archive
from devcluster.images.chroot import RECIPE, debian, require_root, run_step
from devcluster.images.containerfile import ImageSettings
from devcluster.images.layers import Layer, find_changes, link_tree, read_layer, snapshot, unpack, write_layer
from devcluster.images.wheels import (
    PROJECT,
    dependency_wheels,
    pipeline_wheels,
    project_version,
    project_wheel,
)

_IMAGES = PROJECT / "images"
_STEPS = _IMAGES / "steps"
_KONTROLLER = _IMAGES / "kontroller" / "Containerfile"
_KAFKA = KAFKA_FOLDER / "Containerfile"
_HISTORY_FOLDER = _IMAGES / "kontroller-history"
_HISTORY = _HISTORY_FOLDER / "Containerfile"
_KEPT_ARCHIVES = 5


class Image(StrEnum):
    """An image, by the name of its repository."""

    KONTROLLER = "kontroller"
    """The controller, the operator and the commands."""
    KAFKA = "kontroller-kafka"
    """Brokers and ZooKeeper."""
    KAFKA_4 = "kontroller-kafka-4"
    """Brokers and controllers without ZooKeeper."""
    HISTORY = "kontroller-history"
    """Spark; large, and only a history needs it."""


def name_image(name: str) -> str:
    """Return the full name of an image. The chart's `kontroller:0.1.0` is short for it."""
    return f"docker.io/library/{name}:{project_version()}"


def image_archive(image: Image) -> ImageArchive:
    """Return the archive of an image; build it first if an input changed.

    Raises NeedsRoot if a build is needed and this process is not root, and the errors of `build_cached` and `require`.
    """
    match image:
        case Image.KONTROLLER:
            return _archive(image, containerfile.settings(_KONTROLLER), _kontroller_layers())
        case Image.KAFKA:
            return _kafka_archive(KAFKA_FOLDER, kafka_home())
        case Image.KAFKA_4:
            return _kafka_archive(KRAFT_FOLDER, other_kafka(KRAFT_VERSION).folder())
        case Image.HISTORY:
            return _history_archive()


def _history_archive() -> ImageArchive:
    settings = containerfile.settings(_HISTORY, containerfile.settings(_KONTROLLER))
    layers = _kontroller_layers()
    wheels = pipeline_wheels()
    spark = _wheels_layer("spark", layers[:2], wheels)
    return _archive(
        Image.HISTORY,
        settings,
        [*layers, _java_layer(), spark, _spark_home_layer(), _sbom_layer(_HISTORY_FOLDER.name)],
    )


def _kafka_archive(folder: Path, home: Path) -> ImageArchive:
    settings = containerfile.settings(folder / "Containerfile", containerfile.settings(_KONTROLLER))
    layers = [*_kontroller_layers(), _java_layer(), _kafka_layer(folder, home), _sbom_layer(folder.name)]
    return _archive(folder.name, settings, layers)


def _kontroller_layers() -> list[Layer]:
    system = _system_layer()
    wheels = dependency_wheels()
    above = _wheels_layer("dependencies", [system], wheels)
    project = _wheels_layer("project", [system, above], wheels, project_wheel())
    return [system, above, project, _sbom_layer("kontroller")]


def _system_layer() -> Layer:
    """Return the layer with Debian and Python."""
    packages = containerfile.packages(_KONTROLLER)

    def build(folder: Path, root: Path) -> None:
        with progress.step("Making the layer with Debian and Python"):
            debian(root, packages, documentation=False)
            run_step(root, "steps/finish-system.sh", mounts={"steps": _STEPS})
            write_layer(folder, root)

    return _layer("system", *RECIPE, *packages, _text("finish-system.sh"), build=build)


def _wheels_layer(name: str, below: list[Layer], *wheels: Path) -> Layer:
    """Return the layer that the installation of the wheels in some folders adds to the layers below."""

    def build(folder: Path, root: Path) -> None:
        with progress.step(f"Making the layer with the {name}"):
            together = folder / "wheels"
            together.mkdir()
            for wheel in (path for source in wheels for path in source.iterdir()):
                os.link(wheel, together / wheel.name)
            _enter_layers(below, root)
            before = snapshot(root)
            run_step(root, "steps/install-wheels.sh", mounts={"steps": _STEPS, "wheels": together})
            write_layer(folder, root, find_changes(root, before))
            shutil.rmtree(together)

    inputs = [layer.diff_id for layer in below] + [source.name for source in wheels]
    return _layer(name, *inputs, _text("install-wheels.sh"), build=build)


def _java_layer() -> Layer:
    """Return the layer with /opt/java, made from a JDK in a Debian that is thrown away."""
    packages = containerfile.packages(_KAFKA)

    def build(folder: Path, root: Path) -> None:
        with progress.step("Making the layer with Java"):
            debian(root, packages, documentation=True)
            run_step(root, "steps/make-java.sh", mounts={"steps": _STEPS})
            _keep_only(root, "java")
            write_layer(folder, root)

    return _layer("java", *packages, _text("make-java.sh"), build=build)


def _kafka_layer(folder: Path, home: Path) -> Layer:
    """Return the layer with /opt/kafka: the jars that the development cluster also uses, and the scripts that start
    their classes.
    """

    def build(layer: Path, root: Path) -> None:
        with progress.step(f"Making the layer with Kafka of {folder.name}"):
            _enter_layers([_system_layer()], root)
            mounts = {"steps": _STEPS, "scripts": KAFKA_FOLDER, "kafka": folder}
            run_step(root, "steps/make-kafka.sh", "/mnt/scripts", "/mnt/kafka/commands", mounts=mounts)
            _keep_only(root, "kafka")
            shutil.copytree(home / "libs", root / "opt" / "kafka" / "libs")
            for jar in (root / "opt" / "kafka" / "libs").iterdir():
                jar.chmod(0o644)
            write_layer(layer, root)

    return _layer("kafka", home.name, *_texts(KAFKA_FOLDER), *_texts(folder), _text("make-kafka.sh"), build=build)


def _spark_home_layer() -> Layer:
    """Return the layer with /opt/spark: links to Spark, the container's entry point, and the jars for Kafka."""
    jars = kafka_jar_files()

    def build(folder: Path, root: Path) -> None:
        with progress.step("Making the layer with Spark's home"):
            mounts = {"steps": _STEPS, "history": _HISTORY_FOLDER, "jars": jars[0].parent}
            _enter_layers([_system_layer()], root)
            before = snapshot(root)
            run_step(root, "steps/make-spark.sh", "/mnt/history", "/mnt/jars", mounts=mounts)
            write_layer(folder, root, find_changes(root, before))

    return _layer("spark-home", *_texts(_HISTORY_FOLDER), _text("make-spark.sh"), build=build)


def _sbom_layer(image: str) -> Layer:
    """Return the layer with the image's software bill of materials, which lists what it adds to the layers below."""
    source = _IMAGES / image / "sbom.cdx.json"

    def build(folder: Path, root: Path) -> None:
        target = root / "usr" / "share" / "sbom"
        target.mkdir(parents=True)
        shutil.copyfile(source, target / f"{image}.cdx.json")
        write_layer(folder, root)

    return _layer(f"sbom-{image}", source.read_text(), build=build)


def _enter_layers(layers: list[Layer], root: Path) -> None:
    """Fill `root` with the files of the layers; this is quick except for the first time."""

    def build(folder: Path) -> None:
        unpack(layers, folder / "root")

    link_tree(build_cached("image-root", *(layer.diff_id for layer in layers), build=build) / "root", root)


def _keep_only(root: Path, name: str) -> None:
    """Remove everything but /opt/`name`, because the layers below have the rest already."""
    kept = root / "opt" / name
    aside = root.with_name("kept")
    kept.rename(aside)
    shutil.rmtree(root)
    kept.parent.mkdir(parents=True)
    aside.rename(kept)


def _layer(name: str, *inputs: str, build: Callable[[Path, Path], None]) -> Layer:
    """Return the cached layer; `build` gets its folder and a root file system that is removed afterwards."""

    def build_and_clean(folder: Path) -> None:
        require_root()
        root = folder / "root"
        # Whatever the umask, programs of another user must be able to enter the root file system.
        root.mkdir()
        root.chmod(0o755)
        build(folder, root)
        shutil.rmtree(root)

    return read_layer(build_cached(f"image-layer-{name}", *inputs, build=build_and_clean))


def _archive(name: str, settings: ImageSettings, layers: list[Layer]) -> ImageArchive:
    reference = name_image(name)
    config = image_config(settings, layers)

    def build(folder: Path) -> None:
        with progress.step(f"Writing the image {name}:{project_version()}"):
            write_archive(folder / f"{name}.tar", reference, config, layers)

    entry = build_cached(f"image-{name}", reference, config.decode(), build=build)
    os.utime(entry)
    _forget_old_archives(name)
    return ImageArchive(reference=reference, path=entry / f"{name}.tar")


def _forget_old_archives(name: str) -> None:
    """Remove old archives, because each change of a source makes a new one. A running test may load one of the newest."""
    entries = cache_folder().glob(f"image-{name}-" + "[0-9a-f]" * 12)
    for old in sorted(entries, key=lambda entry: entry.stat().st_mtime, reverse=True)[_KEPT_ARCHIVES:]:
        shutil.rmtree(old, ignore_errors=True)


def _text(step: str) -> str:
    return (_STEPS / step).read_text()


def _texts(folder: Path) -> list[str]:
    """Return the names and texts of the files in a layer's folder."""
    others = {"Containerfile", "sbom.cdx.json"}
    sources = sorted(path for path in folder.iterdir() if path.name not in others)
    return [f"{path.name}\n{path.read_text()}" for path in sources]
