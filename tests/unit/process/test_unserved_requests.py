"""A broker that sends a version that is not served is logged with the change to make, not too often, and counted."""

import struct

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.controller.operations.alter_partition import make_refusal
from controller_core.process.unserved_requests import UnservedRequests
from controller_core.wire.codecs.frames import RequestHead, read_client_id
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.owned_api import OwnedApi, VersionNotServed
from controller_core.wire.messages import AlterPartitionRequest, AlterPartitionResponse, ErrorCode

ALTER_PARTITION = 56


def header(version: int, client_id: bytes | None) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", ALTER_PARTITION, version, 7, length) + (client_id or b"") + b"\0"


async def answer(_: AlterPartitionRequest) -> AlterPartitionResponse:
    return make_refusal(ErrorCode.stale_broker_epoch)


async def ask(unserved: UnservedRequests, version: int, client_id: bytes | None) -> None:
    api = OwnedApi(Versions(AlterPartitionRequest), answer, report_unserved=unserved.report)
    head = RequestHead(api_key=ALTER_PARTITION, api_version=version, correlation_id=7)
    with pytest.raises(VersionNotServed, match="brokers must run with"):
        await api.respond(head, header(version, client_id))


async def test_each_broker_is_named_once_and_each_request_counted() -> None:
    registry = CollectorRegistry()
    unserved = UnservedRequests(registry)
    with capture_logs() as logs:
        for _ in range(50):
            await ask(unserved, 2, b"3")
            await ask(unserved, 1, b"4")
    assert [(line["client_id"], line["api"], line["version"], line["served"]) for line in logs] == [
        ("3", "AlterPartition", 2, "3 to 3"),
        ("4", "AlterPartition", 1, "3 to 3"),
    ]
    assert all("inter.broker.protocol.version" in line["event"] for line in logs)
    assert registry.get_sample_value("kontroller_unserved_requests_total", {"api": "AlterPartition"}) == 100


async def test_it_is_named_again_after_a_while() -> None:
    unserved = UnservedRequests(CollectorRegistry(), interval_s=0)
    with capture_logs() as logs:
        await ask(unserved, 2, b"3")
        await ask(unserved, 2, b"3")
    assert len(logs) == 2


@pytest.mark.parametrize("client_id", [None, b"", b"\xff\xfe"])
async def test_a_sender_without_a_readable_name_is_reported_too(client_id: bytes | None) -> None:
    with capture_logs() as logs:
        await ask(UnservedRequests(CollectorRegistry()), 2, client_id)
    assert [line["client_id"] for line in logs] == [None]


@pytest.mark.parametrize("cut", range(12))
def test_the_client_id_of_a_request_that_is_cut_is_none_or_a_part(cut: int) -> None:
    assert read_client_id(header(3, b"broker")[:cut]) in (None, "", "b", "br")
