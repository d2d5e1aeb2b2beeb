"""The audit of custom resources: who wrote them, what the operator did, and by which id a controller knows the object."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from controller_core.audit.record import AuditRecord, Outcome
from controller_core.audit.trail import AuditTrail
from controller_core.client.transport.request_client import Address
from controller_operator.kafka.actions import MarkTopicForDeletion
from controller_operator.kafka.controller_reach import ControllerReach
from controller_operator.kubernetes.audited_objects import make_client_id, record_question, record_step
from controller_operator.kubernetes.object_store import Raw, StoredObject
from controller_operator.settings import OperatorSettings
from tests.unit.operator.clusters import ORDERS, ORDERS_ID, raw

ALICE = {"username": "alice@example.com", "groups": ["system:authenticated"]}
UID = "5a3f"


@pytest.fixture
def seen() -> list[AuditRecord]:
    return []


@pytest.fixture
def trail(seen: list[AuditRecord]) -> AuditTrail:
    return AuditTrail(source="operator", journal=seen.append)


def topic(partitions: int = 1, **metadata: Any) -> Raw:
    made = raw("KafkaTopic", {"clusterRef": {"name": "demo"}, "partitions": partitions, "replicationFactor": 1})
    return {**made, "metadata": {**made["metadata"], "uid": UID, "generation": 3, **metadata}}


def ask(trail: AuditTrail, operation: str, before: Raw | None, after: Raw | None, refusal: str | None = None) -> None:
    record_question(trail, operation=operation, user=ALICE, before=before, after=after, refusal=refusal)


def test_a_write_names_the_user_the_object_and_what_changed(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    ask(trail, "UPDATE", topic(1), topic(3))
    (record,) = seen
    assert (record.api, record.outcome, record.principal) == (
        "UPDATE KafkaTopic", Outcome.ADMITTED, "Kubernetes:alice@example.com",
    )  # fmt: skip
    (resource,) = record.resources
    assert resource.name.endswith(f"/{topic()['metadata']['name']}")
    assert resource.before == {"spec.partitions": "1"}
    assert resource.after == {"uid": UID, "generation": 3, "spec.partitions": "3"}


def test_values_of_configurations_that_may_be_secrets_are_hidden(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    def configure(**config: str) -> Raw:
        made = topic()
        return {**made, "spec": {**made["spec"], "config": {"retention.ms": "1000", **config}}}

    ask(trail, "UPDATE", configure(password="hunter1"), configure(password="hunter2"))
    (record,) = seen
    assert record.resources[0].after["spec.config"] == '{"password": "<not shown>", "retention.ms": "1000"}'
    assert "hunter" not in str(record.make_json())


def test_a_change_at_the_end_of_a_long_field_is_recorded(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    before, after = (topic(annotations={"example.com/owners": "a" * 1_000 + end}) for end in "xy")
    ask(trail, "UPDATE", before, after)
    assert "annotations.example.com/owners" in seen[0].resources[0].after


def test_a_deletion_and_a_refusal_are_recorded(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    ask(trail, "DELETE", topic(), None)
    ask(trail, "CREATE", None, topic(), refusal="NamespaceNotAllowed: ...")
    assert [(record.api, record.outcome, record.message) for record in seen] == [
        ("DELETE KafkaTopic", Outcome.ADMITTED, ""),
        ("CREATE KafkaTopic", Outcome.REFUSED, "NamespaceNotAllowed: ..."),
    ]


def test_an_approval_is_recorded_and_a_finalizer_is_not(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    ask(trail, "UPDATE", topic(), topic(finalizers=["kontroller.dev/hold"]))
    assert seen == []
    ask(trail, "UPDATE", topic(), topic(annotations={"kontroller.dev/approved": "true"}))
    assert seen[0].resources[0].after["annotations.kontroller.dev/approved"] == '"true"'


def test_a_step_leads_to_the_object_by_its_uid(trail: AuditTrail, seen: list[AuditRecord]) -> None:
    stored, step = StoredObject(topic()), MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID)
    record_step(trail, stored, step, is_done=False)
    record_step(trail, stored, step, is_done=True)
    (record,) = seen
    assert (record.api, record.client_id) == ("MarkTopicForDeletion", make_client_id(stored))
    assert [(each.type, each.name) for each in record.resources][1:] == [("topic", ORDERS)]
    assert record.resources[0].after == {"uid": UID, "generation": 3}


def test_requests_to_a_controller_are_sent_under_the_uid_of_their_object() -> None:
    opened: list[str] = []

    def open_client(bootstrap: Sequence[Address], *, security: object = None, client_id: str = "") -> Any:
        opened.append(client_id)

    stored = StoredObject(topic())
    ControllerReach(open_client).client((Address("here", 1),), client_id=make_client_id(stored))
    assert opened[0].startswith(f"kontroller-operator/{UID}/KafkaTopic/")


def test_the_operator_has_the_settings_of_the_audit(tmp_path: Path) -> None:
    settings = OperatorSettings(
        all_namespaces=True, audit_file=tmp_path / "audit.jsonl", audit_syslog="udp://127.0.0.1:514"
    )
    assert [sink.name for sink in settings.open_audit_sinks()] == ["file", "syslog"]
