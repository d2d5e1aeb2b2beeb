"""Checks that an API server serves every kind of kontroller.dev, accepts a valid object and refuses an invalid one.

Nothing is created, because both KafkaTopics are dry runs."""

from typing import Any, Final, Protocol

from controller_operator.kubernetes.object_api import ApiError, ApiForbidden, ApiRefused, ObjectChanged, ObjectGone
from controller_operator.resources import KINDS
from controller_operator.resources.common import API_VERSION
from kontroller.checks.waiting import NotWell

# A policy may want approval for every object (`approvalPolicy.required` of the chart), so only such a topic is valid.
_RIGHT: Final = {
    "clusterRef": {"name": "kontroller-check"},
    "partitions": 1,
    "replicationFactor": 1,
    "approval": "Required",
}
_WRONG: Final = {**_RIGHT, "partitions": 0}


class CheckedApi(Protocol):
    """The seam: the calls to the API server."""

    async def read_served_kinds(self) -> frozenset[str]: ...

    async def dry_run(self, raw: dict[str, Any]) -> None: ...


async def look_at_api(api: CheckedApi, namespace: str) -> str:
    """Return one line that says what was found. Raises `NotWell`."""
    wanted = [kind.definition.kind for kind in KINDS]
    served = await _list_served_kinds(api)
    missing = [kind for kind in wanted if kind not in served]
    if missing:
        raise NotWell(f"the API server does not know {', '.join(missing)} of {API_VERSION}: install the chart's CRDs")
    await _expect_taken(api, namespace)
    await _expect_refused(api, namespace)
    return f"{API_VERSION}: {', '.join(wanted)} are served, and their schema is enforced in namespace {namespace}"


async def _list_served_kinds(api: CheckedApi) -> frozenset[str]:
    try:
        return await api.read_served_kinds()
    except ObjectGone:
        return frozenset()
    except ApiError as error:
        raise NotWell(f"the API server cannot be asked: {error}") from error


async def _expect_taken(api: CheckedApi, namespace: str) -> None:
    try:
        await api.dry_run(_make_topic(namespace, _RIGHT))
    except ObjectChanged:
        return  # a topic of that name exists, so it was accepted once
    except ObjectGone as error:
        raise NotWell(f"namespace {namespace} does not exist: name another with --namespace ({error})") from error
    except ApiForbidden as error:
        raise NotWell(f"allow this service account to create kafkatopics in namespace {namespace}: {error}") from error
    except ApiError as error:
        raise NotWell(f"the API server does not accept a valid KafkaTopic: {error}") from error


async def _expect_refused(api: CheckedApi, namespace: str) -> None:
    try:
        await api.dry_run(_make_topic(namespace, _WRONG))
    except ApiRefused:
        return
    except ApiError as error:
        raise NotWell(f"the API server gives no verdict on an invalid KafkaTopic: {error}") from error
    raise NotWell("the API server accepts a KafkaTopic with 0 partitions: install this version's CRDs")


def _make_topic(namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "kontroller-check", "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "KafkaTopic", "metadata": metadata, "spec": spec}
