"""Access to the API server, by the kubeconfig that kubectl would use, or a pod's service account if there is none."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from kubernetes.aio import config
from kubernetes.aio.client.configuration import Configuration
from yaml import YAMLError, safe_load

from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects

_NAMESPACE_OF_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_NO_KUBECONFIG: Final = (
    config.ConfigException,
    YAMLError,
    TypeError,
    AttributeError,
    ValueError,
    LookupError,
    OSError,
)
"""The library fails with any of these errors if the file is no kubeconfig."""


class NoKubernetes(Exception):
    """There is no usable kubeconfig, and no service account in its place."""


@asynccontextmanager
async def kubernetes_objects(context: str | None = None) -> AsyncIterator[KubernetesObjects]:
    """Yield the objects of the API server that kubectl would use. `context`: one of the kubeconfig's.

    Raises `NoKubernetes`."""
    objects = KubernetesObjects(await load_configuration(context))
    try:
        yield objects
    finally:
        await objects.close()


def current_namespace(context: str | None = None) -> str:
    """Return kubectl's default namespace: that of the context, the pod's own, or `default`."""
    files = _find_kubeconfigs()
    with suppress(*_NO_KUBECONFIG):
        contexts, active = config.list_kube_config_contexts(os.pathsep.join(files)) if files else ((), {})
        wanted = context or _find_current_context(files)
        named = next((each for each in contexts if each["name"] == wanted), active)
        if namespace := named["context"].get("namespace"):
            return str(namespace)
    return _NAMESPACE_OF_POD.read_text().strip() if _NAMESPACE_OF_POD.exists() else "default"


async def load_configuration(context: str | None = None, *, kubeconfig: Path | None = None) -> Configuration:
    """Return the access to the API server: by this kubeconfig or kubectl's, or by the pod's service account.

    Like kubectl, use the service account only if there is no kubeconfig. Raises `NoKubernetes`."""
    configuration = Configuration()
    files = _find_kubeconfigs() if kubeconfig is None else [str(kubeconfig)]
    try:
        if not files and context is None:
            config.load_incluster_config(client_configuration=configuration)
        else:
            await config.load_kube_config(
                os.pathsep.join(files),
                context=context or _find_current_context(files),
                client_configuration=configuration,
            )
    except _NO_KUBECONFIG as error:
        message = f"no usable kubeconfig, and no service account in its place: set KUBECONFIG to one ({error})"
        raise NoKubernetes(message) from error
    return configuration


def _find_kubeconfigs() -> list[str]:
    """Return the files that kubectl merges: those of `KUBECONFIG`, or the one in the home folder."""
    paths = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    return [path for path in paths.split(os.pathsep) if os.path.exists(path)]


def _find_current_context(files: Sequence[str]) -> str | None:
    """Return the current context of the first of several files that names one. The library would take the last one's."""
    if len(files) < 2:
        return None
    contents = (safe_load(Path(file).read_text()) or {} for file in files)
    return next((named for each in contents if (named := each.get("current-context"))), None)
