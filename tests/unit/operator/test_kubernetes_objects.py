"""What is kept of an object that a real API server shows."""

from typing import Any

from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw

ORDERS = Key("KafkaTopic", "shop", "orders")
SHOWN = raw("KafkaTopic", {"partitions": 1}, managedFields=[{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}])
KEPT = raw("KafkaTopic", {"partitions": 1})


class _Answering:
    """Answers whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        async def answer(*_arguments: object, **_named: object) -> Any:
            is_list = name.startswith("list_")
            return {"items": [SHOWN], "metadata": {"resourceVersion": "7"}} if is_list else SHOWN

        return answer


async def test_the_book_of_who_set_which_field_is_not_kept() -> None:
    api = KubernetesObjects()
    api._objects = _Answering()
    try:
        assert (await api.list_all("KafkaTopic", "shop")).items == [KEPT]
        assert await api.get(ORDERS) == KEPT
        assert await api.patch_status(KEPT, {"topicName": "orders"}) == KEPT
        assert await api.set_finalizers(KEPT, []) == KEPT
        assert await api.create(KEPT) == KEPT
    finally:
        await api.close()
