"""The container images of images/, built without a registry and without a container engine.

`image_archive` returns an archive, which `docker load`, `podman load` and `ctr images import` read. `python -m
devcluster.images` builds all or some, and prints their paths. It needs root and Debian's mmdebstrap; without these,
build the same images from the Containerfiles with podman, buildah or docker.
"""

from devcluster.images.archive import ImageArchive
from devcluster.images.build import Image, image_archive
from devcluster.images.chroot import NeedsRoot

__all__ = ["Image", "ImageArchive", "NeedsRoot", "image_archive"]
