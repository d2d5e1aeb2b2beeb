"""The status of a KafkaCluster."""

from dataclasses import replace

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.resources.conditions import Condition, ConditionType, Reason
from tests.unit.operator.clusters import assign, lead, topic, view
from tests.unit.operator.plans.test_cluster_news import show

LOST = view(topic((assign([1, 2]), lead(-1, [1]))), brokers=(1, 2))


def ready(cluster: Snapshot) -> Condition:
    return next(found for found in show(cluster).conditions if found.type == ConditionType.READY)


def test_a_broker_under_the_controller_s_id_is_named_before_all_that_follows_from_it() -> None:
    said = ready(replace(LOST, is_controller_id_taken=True, unsupported_brokers=(BrokerId(2),)))
    assert (said.status, said.reason) == ("False", Reason.CONTROLLER_ID_TAKEN)
    assert "is registered under the controller's id 1, and is ignored: give the controller another --id" in said.message


def test_brokers_that_the_controller_cannot_lead_are_named_before_what_follows_from_them() -> None:
    said = ready(replace(LOST, unsupported_brokers=tuple(map(BrokerId, range(1, 13)))))
    assert (said.status, said.reason) == ("False", Reason.BROKERS_UNSUPPORTED)
    assert said.message.startswith("controller 1 cannot lead 12 brokers because of their release")
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10;" in said.message
    assert ready(LOST).reason is Reason.PARTITIONS_OFFLINE
