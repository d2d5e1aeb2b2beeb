"""The container images of images/, built without a registry and without a container engine.

`image_archives()` gives their archives, which `docker load`, `podman load` and `ctr images import` read.
`python -m devcluster.images` builds them and says so. It needs root and Debian's mmdebstrap; where those are not,
the Containerfiles make the same images with podman, buildah or docker.
"""

from devcluster.images.archive import ImageArchive
from devcluster.images.build import history_image_archive, image_archives, kafka_4_image_archive
from devcluster.images.chroot import NeedsRoot

__all__ = ["ImageArchive", "NeedsRoot", "history_image_archive", "image_archives", "kafka_4_image_archive"]
