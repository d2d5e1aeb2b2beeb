"""The parts of an object of a real API server that the operator keeps."""

from collections.abc import Iterable
from typing import Any

import pytest
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_client import make_error
from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_api import ConfigMap
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw

EVENT: dict[str, Any] = {
    "metadata": {"name": "orders.1", "namespace": "shop"},
    "reason": "DriftContested",
    "message": "put right 5 times",
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 5,
}
EVENTS = "/api/v1/namespaces/shop/events"
ORDERS = Key("KafkaTopic", "shop", "orders")
SHOWN = raw("KafkaTopic", {"partitions": 1}, managedFields=[{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}])
KEPT = raw("KafkaTopic", {"partitions": 1})


class _Answering:
    """Gives the same answer to all requests."""

    async def ask(self, _method: str, path: str, **named: Any) -> Any:
        is_list = path.endswith("kafkatopics") and "limit" in (named.get("query") or {})
        return {"items": [SHOWN], "metadata": {"resourceVersion": "7"}} if is_list else SHOWN

    async def close(self) -> None:
        """Do nothing: no connection is open."""


async def test_the_book_of_who_set_which_field_is_not_kept() -> None:
    api = KubernetesObjects(Configuration())
    await api.close()
    api._requests = _Answering()  # type: ignore[assignment]  # all of it that is used
    assert (await api.list_all("KafkaTopic", "shop")).items == [KEPT]
    assert await api.get(ORDERS) == KEPT
    assert await api.patch_status(KEPT, {"topicName": "orders"}) == KEPT
    assert await api.patch_known_spec(KEPT, {"partitions": 2}) == KEPT
    assert await api.set_finalizers(KEPT, []) == KEPT
    assert await api.create(KEPT) == KEPT


class _Refusing:
    """Notes the kind of each request, and answers with these HTTP statuses."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.asked: list[tuple[str, str, Any]] = []

    async def ask(self, method: str, path: str, *, body: Any, **_named: Any) -> Any:
        self.asked.append((method, path, body))
        status = self._statuses.pop(0)
        if status >= 400:
            raise make_error(status, str(status))
        return {}


@pytest.mark.parametrize("patched", [200, 404], ids=["there", "just expired"])
async def test_an_event_that_is_there_is_renewed_if_it_counts_more(patched: int) -> None:
    asked = await _post(EVENT, 409, patched)
    renewed = {"count": 5, "lastTimestamp": EVENT["lastTimestamp"], "message": "put right 5 times"}
    assert asked == [("POST", EVENTS, EVENT), ("PATCH", f"{EVENTS}/orders.1", renewed)]


async def test_an_event_that_happened_once_is_left_as_it_is() -> None:
    assert len(await _post({**EVENT, "count": 1}, 409)) == 1


MAPS = "/api/v1/namespaces/kafka/configmaps"


class _Keeping(_Refusing):
    """Answers each request with a ConfigMap of these entries, unless that is not there yet."""

    def __init__(self, entries: Iterable[str], *statuses: int) -> None:
        super().__init__(*statuses)
        self._entries = dict.fromkeys(entries, "text")

    async def ask(self, method: str, path: str, **named: Any) -> Any:
        await super().ask(method, path, body=named["body"])
        return {"data": self._entries}


async def _keep(requests: _Keeping) -> list[tuple[str, str, Any]]:
    api = KubernetesObjects(Configuration())
    await api.close()
    api._requests = requests  # type: ignore[assignment]  # all of it that is used
    await api.keep_leftover("kafka", "left", "101", "text")
    return requests.asked


async def test_the_first_leftover_makes_the_record() -> None:
    patched, created = await _keep(_Keeping(["101"], 404, 201))
    assert patched == ("PATCH", f"{MAPS}/left", {"data": {"101": "text"}})
    assert created[:2] == ("POST", MAPS)
    assert (created[2]["metadata"]["labels"], created[2]["data"]) == (
        {"kontroller.dev/leftovers": "true"},
        {"101": "text"},
    )


async def test_the_oldest_leftovers_give_way_to_new_ones() -> None:
    entries = [f"{number:03}" for number in range(102)]
    _, fewer = await _keep(_Keeping(entries, 200, 200))
    assert fewer == ("PATCH", f"{MAPS}/left", {"data": {"000": None, "001": None}})


async def _write(known: str | None, text: str | None = "text") -> tuple[str, str, Any]:
    api = KubernetesObjects(Configuration())
    await api.close()
    requests = _Keeping([], 200)
    api._requests = requests  # type: ignore[assignment]  # all of it that is used
    await api.write_entry("kafka", "kept", "an-entry", text, known)
    (asked,) = requests.asked
    return asked


async def test_an_entry_is_written_to_the_known_version_of_its_config_map() -> None:
    changed = {"metadata": {"resourceVersion": "7"}, "data": {"an-entry": "text"}}
    assert await _write("7") == ("PATCH", f"{MAPS}/kept", changed)
    assert (await _write("7", None))[2]["data"] == {"an-entry": None}
    created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"an-entry": "text"}}
    assert await _write(None) == ("POST", MAPS, created)


@pytest.mark.parametrize("status", [200, 404])
async def test_a_config_map_is_read_with_its_version_if_it_is_there(status: int) -> None:
    class Asked:
        async def ask(self, *asked: str) -> Any:
            assert asked == ("GET", f"{MAPS}/kept")
            if status >= 400:
                raise make_error(status, str(status))
            return {"metadata": {"resourceVersion": "7"}, "data": None}

    api = KubernetesObjects(Configuration())
    await api.close()
    api._requests = Asked()  # type: ignore[assignment]  # all of it that is used
    found = await api.read_config_map("kafka", "kept")
    assert found == (ConfigMap(version="7", entries={}) if status == 200 else None)


async def _post(event: dict[str, Any], *statuses: int) -> list[tuple[str, str, Any]]:
    api = KubernetesObjects(Configuration())
    await api.close()
    requests = _Refusing(*statuses)
    api._requests = requests  # type: ignore[assignment]  # all of it that is used
    await api.create_event("shop", event)
    return requests.asked
