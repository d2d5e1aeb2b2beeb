"""Everything the cache holds, filled at once: what a first run waits for can be had beforehand."""

from devcluster.binaries import etcd_binary, helm_binary, kubernetes_binaries
from devcluster.health import health_binary
from devcluster.java import kafka_home
from devcluster.toolchain import require


def fill_cache() -> None:
    """Fetches and builds what is missing: minutes at first, nothing afterwards.

    Raises MissingToolError that says what to install, or BuildError with what the failed step printed.
    """
    require("openssl")
    for part in (kafka_home, etcd_binary, kubernetes_binaries, helm_binary, health_binary):
        part()
