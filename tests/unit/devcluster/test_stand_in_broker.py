"""A stand-in for a broker gives its prepared answers, and closes the connection if it has none."""

import struct

import pytest
from kio.schema.api_versions.v0 import ApiVersionsRequest
from kio.schema.describe_cluster.v0 import DescribeClusterRequest

from controller_core.wire.codecs.frames import RequestHead
from controller_core.wire.messages import ErrorCode
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.stand_ins.stand_in_broker import stand_in_broker


def test_it_says_that_it_is_there_and_nothing_else() -> None:
    with stand_in_broker() as port:
        for _ in range(2):
            assert send_request(("127.0.0.1", port), ApiVersionsRequest()).error_code is ErrorCode.none
        with pytest.raises(ConnectionClosed):
            send_request(("127.0.0.1", port), DescribeClusterRequest(include_cluster_authorized_operations=False))


def test_it_answers_as_it_is_told_and_its_port_is_free_afterwards() -> None:
    asked: list[int] = []

    def answer(head: RequestHead) -> bytes:
        asked.append(head.api_key)
        return struct.pack(">iihi", 10, head.correlation_id, ErrorCode.not_controller.value, 0)

    with stand_in_broker(answer) as port:
        assert send_request(("127.0.0.1", port), ApiVersionsRequest()).error_code is ErrorCode.not_controller
    assert asked == [18]
    with pytest.raises(ConnectionRefusedError):
        send_request(("127.0.0.1", port), ApiVersionsRequest())
