"""If the owner of a topic is deleted, any permitted object takes the topic over, in any namespace and with any spec."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_operator.kubernetes.object_store import Key
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

BORN = ("2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z", "2025-01-03T00:00:00Z")
FINALIZER = "kontroller.dev/finalizer"
OPEN = [{"namespace": "*"}]
TOPIC = {"topicName": "orders", "replicaAssignment": [[1, 2]], "deletionPolicy": "Delete"}


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    return await kafka_cluster("orders")


class Handing:
    """The claimants of the topic `orders`, and the fate of the topic."""

    def __init__(self, operated: Operated, zookeeper: SimulatedZooKeeper) -> None:
        self.operated = operated
        self._zookeeper = zookeeper
        self._age = 0

    async def add(self, name: str, cluster: str = "one", namespace: str = "shop", **about: Any) -> Key:
        """Adds an object that is younger than all before, and looks at it."""
        spec = {**TOPIC, "clusterRef": {"name": cluster, "namespace": "platform"}, **about.pop("spec", {})}
        metadata = {"finalizers": [FINALIZER], "creationTimestamp": BORN[self._age], **about}
        self._age += 1
        key = await self.operated.add("KafkaTopic", name, spec, namespace=namespace, **metadata)
        await self.operated.look(key)
        return key

    async def delete(self, key: Key) -> None:
        self.operated.api.deletion_timestamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await self.operated.api.remove(key)
        if (marked := self.operated.api.peek(key)) is not None:
            self.operated.store.put(marked)
        else:
            self.operated.store.remove(key)

    async def look(self, *keys: Key) -> None:
        """Look at the objects, and forget those that are gone, as a watch would."""
        for key in keys:
            await self.operated.look(key)
            if self.operated.api.peek(key) is None:
                self.operated.store.remove(key)

    def events(self, key: Key) -> list[tuple[str, str]]:
        about = [each for each in self.operated.api.events if each["involvedObject"]["name"] == key.name]
        return [(each["reason"], each["message"]) for each in about]

    @property
    def is_deleted(self) -> bool:
        """Return True if the deletion of the topic was asked for."""
        return self._zookeeper.tree.read(paths.delete_topic(TopicName("orders"))) is not None


@pytest.fixture
async def handing(zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]) -> Handing:
    """Two KafkaClusters for one Kafka cluster. The second one lets the namespace `tenant` have some topics only."""
    operated = operating({"zk-0:2181": zookeeper, "zk-1:2181": zookeeper})
    await operated.cluster("one", "zk-0:2181,zk-1:2181", [*OPEN, {"namespace": "tenant", "topicPrefix": "tenant."}])
    await operated.cluster("other", "zk-1:2181,zk-0:2181", OPEN)
    return Handing(operated, zookeeper)


@pytest.mark.parametrize(
    ("cluster", "namespace"), [("one", "shop"), ("one", "payments"), ("other", "payments")],
    ids=["beside it", "in another namespace", "by another KafkaCluster"],
)  # fmt: skip
async def test_the_topic_goes_to_an_heir(handing: Handing, cluster: str, namespace: str) -> None:
    owner = await handing.add("owner", spec={"adoptionPolicy": "Always"})
    heir = await handing.add("heir", cluster, namespace, spec={"adoptionPolicy": "Never"})
    topic_id = handing.operated.status(owner)["topicId"]
    await handing.delete(owner)
    await handing.look(owner, heir)
    assert handing.operated.api.peek(owner) is None
    assert handing.operated.status(heir)["topicId"] == topic_id
    assert not handing.is_deleted
    assert handing.events(owner)[-1] == (
        "TopicHandedOver",
        f"topic orders stays with its data: {namespace}/heir takes it over",
    )
    assert handing.events(heir)[-1] == (
        "TopicHandedOver",
        "took topic orders over from shop/owner, with all of its data",
    )


async def test_a_paused_heir_takes_the_topic_over_when_it_goes_on(handing: Handing) -> None:
    owner = await handing.add("owner")
    heir = await handing.add("heir", annotations={"kontroller.dev/pause": "true"})
    topic_id = handing.operated.status(owner)["topicId"]
    await handing.delete(owner)
    await handing.look(owner, heir)
    assert handing.operated.ready(heir)["reason"] == Reason.PAUSED
    await handing.operated.add("KafkaTopic", "heir", {**TOPIC, "clusterRef": {"name": "one", "namespace": "platform"}},
                               namespace="shop", creationTimestamp=BORN[1])  # fmt: skip
    await handing.look(heir)
    assert handing.operated.status(heir)["topicId"] == topic_id
    assert not handing.is_deleted


async def test_what_is_being_deleted_itself_or_may_not_have_the_topic_inherits_nothing(handing: Handing) -> None:
    owner = await handing.add("owner")
    going = await handing.add("going")
    stranger = await handing.add("stranger", namespace="tenant")
    assert handing.operated.ready(stranger)["reason"] == Reason.TOPIC_PREFIX_REQUIRED
    await handing.delete(going)
    await handing.delete(owner)
    await handing.look(owner)
    assert handing.is_deleted


async def test_of_three_the_oldest_that_remains_has_the_topic(handing: Handing) -> None:
    owner, second, third = [await handing.add(name) for name in ("owner", "second", "third")]
    topic_id = handing.operated.status(owner)["topicId"]
    await handing.delete(owner)
    await handing.look(owner, third, second, third)
    assert handing.operated.status(second)["topicId"] == topic_id
    assert "belongs to shop/second" in handing.operated.ready(third)["message"]
    await handing.delete(second)
    await handing.look(second, third)
    assert handing.operated.status(third)["topicId"] == topic_id
    await handing.delete(third)
    await handing.look(third)
    assert handing.is_deleted


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
async def test_of_two_that_are_deleted_at_once_the_last_one_decides(handing: Handing, policy: str) -> None:
    first = await handing.add("first")
    last = await handing.add("last", spec={"deletionPolicy": policy})
    await handing.delete(first)
    await handing.look(first)
    await handing.delete(last)
    await handing.look(last)
    assert handing.is_deleted is (policy == "Delete")


async def test_an_owner_that_another_finalizer_holds_has_left_the_topic(handing: Handing) -> None:
    owner = await handing.add("owner", finalizers=[FINALIZER, "example.com/foreign"])
    heir = await handing.add("heir")
    await handing.delete(owner)
    await handing.look(owner, heir)
    assert handing.operated.api.peek(owner) is not None
    assert handing.operated.ready(heir)["reason"] != Reason.RESOURCE_CONFLICT
