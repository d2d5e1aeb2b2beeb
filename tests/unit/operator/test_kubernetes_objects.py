"""What is kept of an object that a real API server shows."""

from typing import Any

from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw

ORDERS = Key("KafkaTopic", "shop", "orders")
SHOWN = raw("KafkaTopic", {"partitions": 1}, managedFields=[{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}])
KEPT = raw("KafkaTopic", {"partitions": 1})


class _Answering:
    """Answers whatever it is asked."""

    async def ask(self, _method: str, path: str, **named: Any) -> Any:
        is_list = path.endswith("kafkatopics") and "limit" in (named.get("query") or {})
        return {"items": [SHOWN], "metadata": {"resourceVersion": "7"}} if is_list else SHOWN

    async def close(self) -> None:
        """Nothing is open."""


async def test_the_book_of_who_set_which_field_is_not_kept() -> None:
    api = KubernetesObjects(Configuration())
    await api.close()
    api._requests = _Answering()  # type: ignore[assignment]  # all of it that is used
    assert (await api.list_all("KafkaTopic", "shop")).items == [KEPT]
    assert await api.get(ORDERS) == KEPT
    assert await api.patch_status(KEPT, {"topicName": "orders"}) == KEPT
    assert await api.set_finalizers(KEPT, []) == KEPT
    assert await api.create(KEPT) == KEPT
