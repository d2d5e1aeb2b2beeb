"""Pause, resume and cancel: the changed objects, and the refusals."""

from typing import Any

import pytest

from controller_operator.kubernetes.object_api import ObjectGone
from controller_operator.kubernetes.object_store import Key, Raw
from kontroller.plugin.changes import NotDone, approve, cancel, pause, resume
from kontroller.plugin.objects import Named, NoSuchKind, Seen
from tests.unit.plugin.seen import make_seen

PAUSED: dict[str, Any] = {"annotations": {"kontroller.dev/pause": "true"}}
BEGUN: dict[str, Any] = {"phase": "Suspended", "startTime": "2026-01-01T00:00:00Z"}


class OneObject:
    """An API server with one object."""

    def __init__(self, held: Seen) -> None:
        self.held = held
        self.done: list[Any] = []

    async def get(self, key: Key) -> Raw:
        if key != self.held.key:
            raise ObjectGone("no")
        return self.held.raw

    async def annotate(self, key: Key, annotations: dict[str, str | None]) -> Raw:
        self.done.append((key.name, annotations))
        return self.held.raw

    async def patch_spec(self, key: Key, spec: Raw) -> Raw:
        self.done.append((key.name, spec))
        return self.held.raw

    async def delete(self, raw: Raw) -> None:
        self.done.append(("deleted", raw["metadata"]["uid"]))


TOPIC = Named(kind="KafkaTopic", name="orders")
MOVE = Named(kind="PartitionReassignment", name="orders")
ELECTION = Named(kind="PreferredElection", name="orders")


@pytest.mark.parametrize(
    "text", ["kt/orders", "kafkatopic/orders", "KafkaTopics/orders", "kafkatopics.kontroller.dev/orders"]
)
def test_an_object_is_named_as_for_kubectl(text: str) -> None:
    assert Named.parse(text) == TOPIC


@pytest.mark.parametrize("text", ["orders", "kt/", "/orders", "pod/orders", "", "kt"])
def test_what_names_no_object_is_refused(text: str) -> None:
    with pytest.raises(NoSuchKind, match="KIND/NAME"):
        Named.parse(text)


async def test_a_pause_is_an_annotation_and_its_end_takes_it_away() -> None:
    api = OneObject(make_seen("KafkaTopic"))
    assert await pause(api, TOPIC, "shop") == "kt/orders is paused."
    assert await resume(api, TOPIC, "shop") == "kt/orders is not paused"
    paused = OneObject(make_seen("KafkaTopic", **PAUSED))
    assert await resume(paused, TOPIC, "shop") == "kt/orders is resumed"
    assert await pause(paused, TOPIC, "shop") == "kt/orders is paused already"
    assert [api.done, paused.done] == [
        [("orders", {"kontroller.dev/pause": "true"})],
        [("orders", {"kontroller.dev/pause": None})],
    ]


async def test_a_pause_says_that_a_running_move_goes_on() -> None:
    for status in ({"phase": "Running"}, BEGUN):
        assert "finishes its current work" in await pause(
            OneObject(make_seen("PartitionReassignment", **status)), MOVE, "shop"
        )


@pytest.mark.parametrize(
    ("phase", "told"), [("Running", "goes back"), ("Pending", "nothing had begun"), (None, "nothing")]
)
async def test_a_move_is_cancelled_by_its_deletion(phase: str | None, told: str) -> None:
    api = OneObject(make_seen("PartitionReassignment", phase=phase))
    assert told in await cancel(api, MOVE, "shop")
    assert api.done == [("deleted", "uid-1")]


async def test_a_move_that_is_suspended_goes_back_where_it_has_begun() -> None:
    assert "goes back" in await cancel(OneObject(make_seen("PartitionReassignment", **BEGUN)), MOVE, "shop")
    never_begun = OneObject(make_seen("PartitionReassignment", phase="Suspended", **PAUSED))
    assert "nothing had begun" in await cancel(never_begun, MOVE, "shop")


async def test_what_is_over_is_not_deleted() -> None:
    api = OneObject(make_seen("PartitionReassignment", phase="Completed"))
    assert await cancel(api, MOVE, "shop") == "kpr/orders is over: Completed"
    assert api.done == []


@pytest.mark.parametrize(
    ("held", "named", "told"),
    [
        (make_seen("KafkaTopic"), TOPIC, "cannot be cancelled"),
        (make_seen("PartitionReassignment", phase="Running", **PAUSED), MOVE, "resume it first"),
        (make_seen("PartitionReassignment", **BEGUN, **PAUSED), MOVE, "resume it first"),
        (make_seen("PreferredElection", phase="Running"), ELECTION, "elections cannot be cancelled"),
        (make_seen("PreferredElection", phase="Running", **PAUSED), ELECTION, "elections cannot be cancelled"),
        (make_seen("KafkaTopic"), MOVE, "there is no PartitionReassignment shop/orders"),
    ],
)
async def test_what_would_not_do_what_it_says_is_refused(held: Seen, named: Named, told: str) -> None:
    api = OneObject(held)
    with pytest.raises(NotDone, match=told):
        await cancel(api, named, "shop")
    assert api.done == []


WAITING: dict[str, Any] = {"phase": "AwaitingApproval", "planHash": "0123456789abcdef"}


async def test_the_plan_that_waits_is_approved_and_no_other() -> None:
    api = OneObject(make_seen("PartitionReassignment", **WAITING))
    assert "is approved" in await approve(api, MOVE, "shop", "0123456789abcdef")
    assert api.done == [("orders", {"approvedPlan": "0123456789abcdef"})]
    with pytest.raises(NotDone, match="read the plan again"):
        await approve(api, MOVE, "shop", "fedcba9876543210")
    assert len(api.done) == 1


AWAITING: dict[str, Any] = {
    "planHash": "0123456789abcdef",
    "conditions": {"Ready": ("False", "AwaitingApproval", "it waits")},
}


@pytest.mark.parametrize(
    ("kind", "named"), [("KafkaTopic", TOPIC), ("PreferredElection", ELECTION)], ids=["a deletion", "an election"]
)
async def test_deletions_of_topics_and_unclean_elections_are_approved_as_well(kind: str, named: Named) -> None:
    api = OneObject(make_seen(kind, **AWAITING))
    assert "is approved" in await approve(api, named, "shop", "0123456789abcdef")
    assert api.done == [("orders", {"approvedPlan": "0123456789abcdef"})]


@pytest.mark.parametrize(
    ("named", "held", "why"),
    [
        (Named(kind="FeatureSet", name="orders"), make_seen("FeatureSet"), "needs no approval"),
        (TOPIC, make_seen("KafkaTopic"), "no operator has seen it"),
        (MOVE, make_seen("PartitionReassignment", phase="Running", planHash="0123456789abcdef"), "does not wait"),
        (MOVE, make_seen("PartitionReassignment"), "no operator has seen it"),
    ],
)
async def test_what_does_not_wait_for_approval_is_not_approved(named: Named, held: Seen, why: str) -> None:
    api = OneObject(held)
    with pytest.raises(NotDone, match=why):
        await approve(api, named, "shop", "0123456789abcdef")
    assert api.done == []
