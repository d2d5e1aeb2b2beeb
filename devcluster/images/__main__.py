"""`make images`: builds the archives and prints how to load them."""

from devcluster.building.toolchain import BuildError, MissingToolError
from devcluster.images import history_image_archive, image_archives, kafka_4_image_archive

_LOADERS = (
    "docker load -i {path}",
    "podman load -i {path}",
    "ctr -n k8s.io images import {path}",
    "kind load image-archive {path}",
)


def main() -> None:
    try:
        archives = (*image_archives(), kafka_4_image_archive(), history_image_archive())
    except (BuildError, MissingToolError) as error:
        raise SystemExit(str(error)) from error
    for archive in archives:
        print(f"{archive.reference}  {archive.path.stat().st_size / 1_000_000:.0f} MB\n  {archive.path}")
    print("Load each with one of:")
    for loader in _LOADERS:
        print("  " + loader.format(path="ARCHIVE"))


if __name__ == "__main__":
    main()
