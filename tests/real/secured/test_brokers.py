"""Brokers with certificates or logins among each other, under our controller, which has its own in the same properties."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Refused
from controller_core.client.topics.administration import TopicDescription
from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ALICE, CONTROLLER, PASSWORDS, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_logged

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SETUPS: Final = {"certificates": "SSL", "passwords": "SASL_SSL"}
SUPER_USERS: Final = "User:admin;User:alice;User:CN=broker;User:CN=controller;User:CN=renewed;User:ANONYMOUS"
"""Includes the anonymous clients of the open listeners, of clients and of the controller."""
SESSION_S: Final = 6
"""The controller has to renew a login in the last 15 % of this time, on a busy machine as well."""
SEVERAL: Final = 10
NEW_PASSWORD: Final = "new secret"
_OWN: Final = ListenerNames(inter_broker="CONTROLLER", clients="CLIENT")
"""The listeners of the controller."""


@pytest.fixture(
    scope="module",
    params=SETUPS,
)
def brokers(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[SecuredKafka]:
    """Two brokers with authentication, also for replication, which close connections that do not log in again within
    seconds.
    """
    listeners = ListenerNames(
        inter_broker="INTERNAL",
        clients="CLIENT",
        control_plane="CONTROLLER",
        protocols={"INTERNAL": SETUPS[request.param]},
    )
    with SecuredKafka(
        servers_folder,
        zookeeper,
        listeners=listeners,
        name=f"secured-{request.param}",
        authorizes=True,
        properties={"connections.max.reauth.ms": SESSION_S * 1000, "super.users": SUPER_USERS},
    ) as kafka:
        kafka.start()
        yield kafka


@contextmanager
def run_controller(folder: RunFolder, kafka: SecuredKafka, properties: Path) -> Iterator[ControllerProcess]:
    """Start a controller without waiting for it."""
    name = f"{kafka.files.name}-controller"
    settings = {"properties": str(properties), "control_plane_listener": "INTERNAL"}
    controller = ControllerProcess(folder, kafka.zookeeper_connect, name=name, settings=settings, listeners=_OWN)
    try:
        controller.process.log_path.unlink(missing_ok=True)
        controller.process.spawn()
        yield controller
        log = controller.process.log_path.read_text()
        assert not any(password in log for password in (*PASSWORDS.values(), NEW_PASSWORD, "wrong one"))
    finally:
        controller.close()


def says(controller: ControllerProcess, words: str) -> None:
    """Wait until the controller has logged these words."""
    wait_until_logged(controller.process, words)


def admin_of(kafka: SecuredKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers})


async def wait_for_topic(admin: AdminClient, topic: str, holds: Callable[[TopicDescription], bool]) -> None:
    """Wait until a topic satisfies a condition; brokers hear of a topic a moment after its creation."""
    async with asyncio.timeout(60):
        while True:
            try:
                if holds(await admin.describe_topic(topic)):
                    return
            except Refused as error:
                if error.code is not ErrorCode.unknown_topic_or_partition:
                    raise
            await asyncio.sleep(0.1)


def all_in_sync(topic: TopicDescription) -> bool:
    return all(len(partition.isr) == 2 for partition in topic.partitions)


def is_led_by(*leaders: int) -> Callable[[TopicDescription], bool]:
    return lambda topic: {partition.leader for partition in topic.partitions} == set(leaders)


async def test_the_controller_shows_who_it_is_and_leads_the_brokers(
    brokers: SecuredKafka, servers_folder: RunFolder
) -> None:
    with run_controller(servers_folder, brokers, brokers.write_properties()) as controller:
        controller.process.wait_until_ready()
        admin = admin_of(brokers)
        await admin.create_topic("led", replica_assignment="1:2,2:1")
        await wait_for_topic(admin, "led", is_led_by(1, 2))
        brokers.broker(1).kill()
        await wait_for_topic(admin, "led", is_led_by(2))
        brokers.broker(1).start()
        await wait_for_topic(admin, "led", all_in_sync)


async def test_sessions_are_renewed_before_brokers_end_them(brokers: SecuredKafka, servers_folder: RunFolder) -> None:
    with run_controller(servers_folder, brokers, brokers.write_properties()) as controller:
        controller.process.wait_until_ready()
        admin = admin_of(brokers)
        loop = asyncio.get_running_loop()
        until_s, number = loop.time() + 2.5 * SESSION_S, 0
        while loop.time() < until_s:
            number += 1
            await admin.create_topic(f"session-{number}", 1, 2)
            await wait_for_topic(admin, f"session-{number}", all_in_sync)
        assert "not delivered" not in controller.process.log_path.read_text()


async def test_a_password_and_a_certificate_that_change_under_load_are_taken(
    brokers: SecuredKafka, servers_folder: RunFolder
) -> None:
    old = brokers.authority.issue(CONTROLLER)
    file = brokers.write_properties("renewed.properties", **login_of(brokers, ALICE), **make_properties(old))
    with run_controller(servers_folder, brokers, file) as controller:
        controller.process.wait_until_ready()
        admin = admin_of(brokers)
        created: list[str] = []

        async def create_for_ever() -> None:
            while True:
                name = f"load-{len(created)}"
                await admin.create_topic(name, replica_assignment="1:2")
                await wait_for_topic(admin, name, all_in_sync)
                created.append(name)

        async with asyncio.TaskGroup() as group:
            load = group.create_task(create_for_ever())
            await admin.set_scram_user(ALICE, NEW_PASSWORD, mechanism="SCRAM-SHA-512")
            new = brokers.authority.issue("renewed")
            brokers.write_properties(file.name, **login_of(brokers, ALICE, NEW_PASSWORD), **make_properties(new))
            old.store().unlink()
            await asyncio.to_thread(brokers.broker(2).restart)
            await asyncio.to_thread(lambda: wait_until(lambda: len(created) > SEVERAL, "load"))
            already = len(created)
            await asyncio.sleep(SESSION_S)  # no session of the old password is left
            await asyncio.to_thread(lambda: wait_until(lambda: len(created) > already + SEVERAL, "load"))
            load.cancel()


def login_of(kafka: SecuredKafka, user: str, password: str | None = None) -> dict[str, str]:
    """Return the properties of a login, for `write_properties`."""
    properties = kafka.broker_properties(user=user, password=password)
    return {key.replace(".", "_"): value for key, value in properties.items() if key.endswith("jaas.config")}


def make_properties(certificate: CertificateFiles) -> dict[str, str]:
    """Return the properties of a certificate, for `write_properties`."""
    return {"ssl_keystore_location": str(certificate.store())}


def test_a_wrong_password_stops_nothing_and_is_corrected_without_a_restart(
    brokers: SecuredKafka, servers_folder: RunFolder
) -> None:
    wrong = brokers.broker_properties(brokers.certificates[CONTROLLER], password="wrong one")
    logins = {key.replace(".", "_"): value for key, value in wrong.items() if key.endswith("jaas.config")}
    if not logins:
        pytest.skip("nobody logs in by a password")
    file = brokers.write_properties("password.properties", **logins)
    with run_controller(servers_folder, brokers, file) as controller:
        says(controller, "does not admit admin")
        brokers.write_properties("password.properties")
        controller.process.wait_until_ready()


def test_brokers_that_are_not_trusted_are_told_nothing(brokers: SecuredKafka, servers_folder: RunFolder) -> None:
    if not brokers.listeners.protocol("INTERNAL").endswith("SSL"):
        pytest.skip("nothing is encrypted")
    other = Authority(brokers.files / "other")
    file = brokers.write_properties("trust.properties", ssl_truststore_location=str(other.certificate))
    with run_controller(servers_folder, brokers, file) as controller:
        says(controller, "certificate verify failed")
        brokers.write_properties("trust.properties")
        controller.process.wait_until_ready()


@pytest.mark.parametrize("how", ["expired", "of another authority"])
def test_a_certificate_that_brokers_refuse_is_renewed_without_a_restart(
    brokers: SecuredKafka, servers_folder: RunFolder, how: str
) -> None:
    if brokers.listeners.protocol("INTERNAL") != "SSL":
        pytest.skip("certificates are not asked for")
    other = Authority(brokers.files / "other")
    bad = brokers.authority.issue("late", days=-1) if how == "expired" else other.issue("stranger")
    file = brokers.write_properties("certificate.properties", **make_properties(bad))
    with run_controller(servers_folder, brokers, file) as controller:
        says(controller, "ended the connection by TLS")
        brokers.write_properties("certificate.properties")
        controller.process.wait_until_ready()
