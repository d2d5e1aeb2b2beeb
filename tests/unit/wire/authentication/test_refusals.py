"""The counts of what a listener refused, by reason."""

import asyncio
import struct
from contextlib import suppress

import pytest
from kio.schema.errors import ErrorCode

from controller_core.wire.connections.connecting import CannotConnect
from controller_core.wire.connections.security import Login
from controller_core.wire.listener.refusals import Reason
from devcluster.clusters.certificates import CertificateFiles
from tests.unit.wire.authentication.secured_site import ALICE, DEADLINE_S, PASSWORD, SHUTDOWN, Site
from tests.unit.wire.authentication.test_tls import wait_until

ALICES = Login(mechanism="PLAIN", username=ALICE, password=PASSWORD)


def count_refusals(site: Site) -> dict[Reason, float]:
    """Return the counts that are not 0."""
    read = site.registry.get_sample_value
    counts = {each: read("kontroller_refused_total", {"port": "kafka", "reason": each}) for each in Reason}
    assert None not in counts.values(), "each reason has a count from the start"
    return {reason: count for reason, count in counts.items() if count}


async def send(port: int, sent: bytes) -> None:
    """Send something, and wait until the listener has closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    async with asyncio.timeout(DEADLINE_S):
        await reader.read()
    writer.close()


def allow_alice(site: Site) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    site.write(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": f'{module} required user_{ALICE}="{PASSWORD}";',
            "connection.failed.authentication.delay.ms": "0",
        }
    )


async def test_a_request_that_its_sender_may_not_send_is_counted_and_one_for_another_controller_is_not(
    site: Site,
) -> None:
    allow_alice(site)
    async with site.listen("SASL_PLAINTEXT") as listener:
        for refusal in (None, ErrorCode.not_controller):
            site.judge.refusal = refusal
            with suppress(asyncio.IncompleteReadError):  # this API has no response for a refusal
                await site.ask(listener, login=ALICES)
        assert len(site.judge.seen) == 2
        assert count_refusals(site) == {}
        site.judge.refusal = ErrorCode.cluster_authorization_failed
        with pytest.raises(asyncio.IncompleteReadError):
            await site.ask(listener, login=ALICES)
    assert count_refusals(site) == {Reason.RIGHT: 1}


async def test_failed_logins_and_bytes_that_are_no_request_are_counted(site: Site) -> None:
    allow_alice(site)
    async with site.listen("SASL_PLAINTEXT") as listener:
        for _ in range(2):
            with pytest.raises(CannotConnect):
                await site.ask(listener, login=Login(mechanism="PLAIN", username=ALICE, password="wrong"))
        await send(listener.port, SHUTDOWN)
        await send(listener.port, b"GET / HTTP/1.1\r\n\r\n")
        await send(listener.port, struct.pack(">ihhi", 64, 18, 0, 1))  # cut in the middle
        await send(listener.port, b"")
    assert count_refusals(site) == {Reason.LOGIN: 3, Reason.BYTES: 1}


async def test_failed_handshakes_are_counted_unless_the_client_only_left(site: Site, server: CertificateFiles) -> None:
    site.write({**site.tls(server), "ssl.client.auth": "required"})
    async with site.listen("SSL") as listener:
        await send(listener.port, b"")
        await send(listener.port, b"\x16\x03\x01")
        assert count_refusals(site) == {}
        await send(listener.port, SHUTDOWN)
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
        await wait_until(lambda: count_refusals(site) == {Reason.TLS: 2})


async def test_connections_without_a_place_are_counted(site: Site) -> None:
    allow_alice(site)
    async with site.listen("SASL_PLAINTEXT", max_unauthenticated_connections_per_address=1) as listener:
        _, first = await asyncio.open_connection("127.0.0.1", listener.port)
        await send(listener.port, b"")
        first.close()
    assert count_refusals(site) == {Reason.LIMIT: 1}
