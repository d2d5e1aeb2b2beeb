"""Access to the API server, by the pod's service account or a kubeconfig."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from kubernetes.aio import config
from kubernetes.aio.client.configuration import Configuration
from yaml import YAMLError

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
    """There is neither a service account nor a usable kubeconfig."""


@asynccontextmanager
async def kubernetes_objects(context: str | None = None) -> AsyncIterator[KubernetesObjects]:
    """Yield the objects of the API server, by the pod's service account or `KUBECONFIG` (`context`: its context).

    Raises `NoKubernetes`."""
    objects = KubernetesObjects(await load_configuration(context))
    try:
        yield objects
    finally:
        await objects.close()


def current_namespace(context: str | None = None) -> str:
    """Return kubectl's default namespace: the pod's own, that of the context, or `default`."""
    try:
        if context is None and _NAMESPACE_OF_POD.exists():
            return _NAMESPACE_OF_POD.read_text().strip()
        contexts, active = config.list_kube_config_contexts()
    except _NO_KUBECONFIG:
        return "default"
    named = next((each for each in contexts or () if each["name"] == context), active)
    return str(((named or {}).get("context") or {}).get("namespace") or "default")


async def load_configuration(context: str | None = None, *, kubeconfig: Path | None = None) -> Configuration:
    """Return the access to the API server: the pod's service account, or a kubeconfig.

    A kubeconfig is used if there is no service account, or if a context or a path is given. The default path is that of
    `KUBECONFIG`, or the one in the home folder. Raises `NoKubernetes`."""
    configuration = Configuration()
    if context is None and kubeconfig is None:
        with suppress(config.ConfigException):
            config.load_incluster_config(client_configuration=configuration)
            return configuration
    try:
        await config.load_kube_config(
            str(kubeconfig) if kubeconfig else None, context=context, client_configuration=configuration
        )
    except _NO_KUBECONFIG as error:
        message = f"neither a service account nor a usable kubeconfig: set KUBECONFIG to one ({error})"
        raise NoKubernetes(message) from error
    return configuration
