"""A listener with TLS: the accepted and counted connections, and the log about bad certificates."""

import asyncio
import ssl
from typing import Any

import pytest

from controller_core.model.authorization.principal import ANONYMOUS, Principal
from controller_core.wire.codecs.frames import read_frame
from controller_core.wire.connections.connecting import CannotConnect, NotAdmitted
from controller_core.wire.listener.listener import Listener
from devcluster.clusters.certificates import Authority, CertificateFiles, make_certificate
from tests.unit.wire.authentication.secured_site import DEADLINE_S, SHUTDOWN, Site

TOO_MANY = "connection refused: too many"
PATIENT = {"tls_handshake_timeout_ms": 60_000, "unauthenticated_grace_ms": 60_000}


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is logged wakes nobody
            await asyncio.sleep(0.01)


def list_reasons(logged: list[Any], event: str = "connection closed: no TLS") -> list[str]:
    return [line["why"] for line in logged if line["event"] == event]


async def test_who_shows_no_certificate_is_anonymous_where_none_is_asked_for(
    site: Site, server: CertificateFiles, client: CertificateFiles
) -> None:
    site.write(site.tls(server))
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls(client)) == ANONYMOUS
        assert not site.judge.seen[-1].is_authenticated


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_who_shows_a_certificate_is_named_by_its_subject(
    site: Site, server: CertificateFiles, client: CertificateFiles, client_auth: str
) -> None:
    site.write({**site.tls(server), "ssl.client.auth": client_auth})
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls(client)) == Principal.user("CN=client")
        assert site.judge.seen[-1].is_authenticated


async def test_rules_say_what_a_subject_is_called_and_those_of_a_listener_go_before_those_of_all(
    site: Site, server: CertificateFiles, client: CertificateFiles
) -> None:
    site.write({
        **site.tls(server),
        "ssl.client.auth": "none",
        "listener.name.secure.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "DEFAULT",
        "listener.name.secure.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U, DEFAULT",
    })  # fmt: skip
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls(client)) == Principal.user("CLIENT")


async def test_a_certificate_that_no_rule_names_is_not_admitted(
    site: Site, server: CertificateFiles, client: CertificateFiles, logged: list[Any]
) -> None:
    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=other$/x/"}
    site.write({**site.tls(server), **rules})
    async with site.listen("SSL") as listener:
        with pytest.raises((CannotConnect, asyncio.IncompleteReadError, OSError)):
            await site.ask(listener, tls=site.client_tls(client))
        await wait_until(lambda: list_reasons(logged))
    assert list_reasons(logged) == [
        "its certificate has no usable name: no rule applies to the certificate of CN=client"
    ]


async def test_a_letter_that_only_unicode_counts_as_one_gives_nobody_the_name_of_another(
    site: Site, server: CertificateFiles, authority: Authority, logged: list[Any]
) -> None:
    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": r"RULE:^CN=(\\w+)$/$1/L"}
    site.write({**site.tls(server), **rules})
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls(authority.issue("Kafka"))) == Principal.user("kafka")
        with pytest.raises((CannotConnect, asyncio.IncompleteReadError, OSError)):
            await site.ask(listener, tls=site.client_tls(authority.issue("\u212aafka")))
        await wait_until(lambda: list_reasons(logged))
    assert list_reasons(logged) == [
        "its certificate has no usable name: no rule applies to the certificate of CN=\u212aafka"
    ]


async def test_where_one_is_requested_who_shows_none_is_anonymous(site: Site, server: CertificateFiles) -> None:
    site.write({**site.tls(server), "ssl.client.auth": "requested"})
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls()) == ANONYMOUS
        assert not site.judge.seen[-1].is_authenticated


async def test_where_one_is_required_who_shows_none_is_not_admitted(
    site: Site, server: CertificateFiles, logged: list[Any]
) -> None:
    site.write({**site.tls(server), "ssl.client.auth": "required"})
    async with site.listen("SSL") as listener:
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
        await wait_until(lambda: list_reasons(logged))
    assert list_reasons(logged) == ["it sent no certificate, and ssl.client.auth is required"]


@pytest.mark.parametrize("client_auth", ["requested", "required"])
async def test_a_certificate_of_another_authority_is_not_admitted(
    site: Site, server: CertificateFiles, logged: list[Any], client_auth: str
) -> None:
    stranger = make_certificate(site.folder, "localhost")
    site.write({**site.tls(server), "ssl.client.auth": client_auth})
    async with site.listen("SSL") as listener:
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls(stranger))
        await wait_until(lambda: list_reasons(logged))
    (why,) = list_reasons(logged)
    assert why.startswith("its certificate is not accepted: self")


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_who_is_not_admitted_is_told_why_by_tls(
    site: Site, server: CertificateFiles, newest: ssl.TLSVersion
) -> None:
    site.write({**site.tls(server), "ssl.client.auth": "required"})
    nobody = site.client_tls()
    nobody.maximum_version = newest
    stranger = site.client_tls(make_certificate(site.folder, "localhost"))
    stranger.maximum_version = newest
    async with site.listen("SSL") as listener:
        for context, words in ((nobody, "alert"), (stranger, "alert unknown ca")):
            with pytest.raises(NotAdmitted, match=words):
                await site.ask(listener, tls=context)


async def test_who_speaks_plaintext_to_it_is_told_apart_in_the_log(
    site: Site, server: CertificateFiles, logged: list[Any]
) -> None:
    site.write(site.tls(server))
    async with site.listen("SSL") as listener:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(SHUTDOWN)
            async with asyncio.timeout(DEADLINE_S):
                await reader.read()
            writer.close()
    assert list_reasons(logged) == ["it does not speak TLS: a client configured for PLAINTEXT, or not a Kafka client"]


async def test_who_speaks_tls_to_plaintext_is_told_apart_in_the_log(site: Site, logged: list[Any]) -> None:
    site.write({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    async with site.listen("SASL_PLAINTEXT") as listener:
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
    (error,) = (line["error"] for line in logged if line["event"] == "connection closed: bad request")
    assert "it looks like TLS, and this listener is PLAINTEXT" in error


async def test_half_open_handshakes_are_counted_and_end_in_time_and_disturb_nobody(
    site: Site, server: CertificateFiles, logged: list[Any]
) -> None:
    site.write(site.tls(server))
    async with site.listen("SSL", max_connections_per_address=3, tls_handshake_timeout_ms=2_000) as listener:
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(2)]
        assert await site.ask(listener, tls=site.client_tls()) == ANONYMOUS
        await wait_until(lambda: len(listener._connections) == 2)
        silent.append(await asyncio.open_connection("127.0.0.1", listener.port))
        await wait_until(lambda: len(listener._connections) == 3)
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
        async with asyncio.timeout(DEADLINE_S):
            for reader, writer in silent:
                assert await reader.read() == b""
                writer.close()
        await wait_until(lambda: not listener._connections)
        assert await site.ask(listener, tls=site.client_tls()) == ANONYMOUS
    assert list_reasons(logged) == ["it left during its handshake, or took too long"]


async def test_handshakes_of_one_address_have_so_many_places_and_give_them_back(
    site: Site, server: CertificateFiles, logged: list[Any]
) -> None:
    site.write(site.tls(server))
    limits = {"max_unauthenticated_connections_per_address": 2, **PATIENT}
    async with site.listen("SSL", **limits) as listener:
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(2)]
        await wait_until(lambda: len(listener._connections) == 2)
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
        assert list_reasons(logged, TOO_MANY) == ["the address has 2 connections before a login"]
        for _, writer in silent:
            writer.close()
        await wait_until(lambda: not listener._connections)
        assert await site.ask(listener, tls=site.client_tls()) == ANONYMOUS


async def test_all_handshakes_together_have_so_many_places(site: Site, server: CertificateFiles) -> None:
    site.write(site.tls(server))
    limits = {"max_unauthenticated_connections": 2, **PATIENT}
    async with site.listen("SSL", **limits) as listener:
        silent = [
            await asyncio.open_connection("127.0.0.1", listener.port, local_addr=(f"127.0.0.{number}", 0))
            for number in (2, 3)
        ]
        await wait_until(lambda: len(listener._connections) == 2)
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=site.client_tls())
        for _, writer in silent:
            writer.close()


async def test_who_is_done_with_the_handshake_takes_no_place_of_others(site: Site, server: CertificateFiles) -> None:
    site.write(site.tls(server))
    async with site.listen("SSL", max_unauthenticated_connections_per_address=1) as listener:
        served = []
        for _ in range(5):
            reader, writer = await asyncio.open_connection("localhost", listener.port, ssl=site.client_tls())
            writer.write(SHUTDOWN)
            async with asyncio.timeout(DEADLINE_S):
                assert await read_frame(reader) is not None
            served.append(writer)
        assert len(listener._connections) == 5
        for writer in served:
            writer.close()


async def test_what_arrives_with_the_last_of_a_handshake_is_not_lost(site: Site, server: CertificateFiles) -> None:
    """A client sends its first requests right after the handshake, and more than fits into one read."""
    site.write(site.tls(server))
    async with site.listen("SSL") as listener:
        reader, writer = await asyncio.open_connection("localhost", listener.port, ssl=site.client_tls())
        writer.write(SHUTDOWN * 2_000)
        async with asyncio.timeout(DEADLINE_S):
            answers = [await read_frame(reader) for _ in range(2_000)]
        assert None not in answers
        writer.close()


async def test_a_renewed_certificate_is_shown_to_the_next_who_connects(site: Site, authority: Authority) -> None:
    shown = authority.issue("renewed", "localhost")
    site.write(site.tls(shown))
    async with site.listen("SSL") as listener:
        before = await read_certificate(site, listener)
        authority.issue("renewed", "localhost").store()
        assert await read_certificate(site, listener) != before


async def test_a_broken_file_leaves_what_was_there_before_until_it_is_whole(
    site: Site, authority: Authority, logged: list[Any]
) -> None:
    shown = authority.issue("rotated", "localhost")
    site.write(site.tls(shown))
    async with site.listen("SSL") as listener:
        before = await read_certificate(site, listener)
        shown.store().write_text("half of a certifi")
        assert await read_certificate(site, listener) == before
        assert await read_certificate(site, listener) == before
        site.write({"nothing": "of use"})
        assert await read_certificate(site, listener) == before
        site.write(site.tls(authority.issue("rotated", "localhost")))
        assert await read_certificate(site, listener) != before
    kept = [line["error"] for line in logged if "keeps its former settings" in line["event"]]
    assert [error[:32] for error in kept] == ["the certificates of ssl.* cannot", "there is no certificate: set ssl"]


async def test_only_the_versions_of_tls_that_are_enabled_are_served(
    site: Site, server: CertificateFiles, logged: list[Any]
) -> None:
    site.write({**site.tls(server), "ssl.enabled.protocols": "TLSv1.3"})
    old = site.client_tls()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with site.listen("SSL") as listener:
        assert await site.ask(listener, tls=site.client_tls()) == ANONYMOUS
        with pytest.raises(CannotConnect):
            await site.ask(listener, tls=old)
        await wait_until(lambda: list_reasons(logged))
    assert list_reasons(logged) == ["it supports none of the enabled TLS versions"]


async def test_connections_are_closed_at_once_where_the_controller_resigns(
    site: Site, server: CertificateFiles
) -> None:
    site.write(site.tls(server))
    async with site.listen("SSL") as listener:
        idle = await asyncio.open_connection("localhost", listener.port, ssl=site.client_tls())
        half = await asyncio.open_connection("127.0.0.1", listener.port)
        await wait_until(lambda: len(listener._connections) == 2)
        async with asyncio.timeout(DEADLINE_S):
            await listener.close_connections()
            for reader, writer in (idle, half):
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
                writer.transport.abort()


async def read_certificate(site: Site, listener: Listener) -> bytes:
    _, writer = await asyncio.open_connection("localhost", listener.port, ssl=site.client_tls())
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return certificate
