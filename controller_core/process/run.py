"""A controller process from start to end: connects the seams, runs the controller, and reports why it stopped."""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from controller_core.admin.apis import CLIENT_APIS, OWN_CONFIG_APIS
from controller_core.admin.authorizing.authorization import Authorization, begin_authorization
from controller_core.admin.cluster.brokers_in_our_name import BrokersInOurName
from controller_core.admin.quotas.mutation_quotas import MutationQuotas
from controller_core.admin.quotas.zk_quotas import ZkQuotas
from controller_core.audit.record import AuditRecord
from controller_core.audit.requests import RequestAudit
from controller_core.audit.trail import AuditTrail, open_trail
from controller_core.controller.controller import Controller
from controller_core.controller.loop.clock import SystemClock
from controller_core.controller.role.seams import Seams
from controller_core.controller.serving.broker_apis import BROKER_APIS
from controller_core.controller.serving.metrics import ControllerMetrics
from controller_core.controller.term.cluster_settings import DEFAULT_QUOTA_WINDOWS_S
from controller_core.controller.term.term import Term
from controller_core.controller.term.unserved_listeners import report_at_start
from controller_core.journal.batches import EachJournal, Journal
from controller_core.journal.writer import JournalWriter
from controller_core.model.access import LOCALHOST, parse_address
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.model.topics.topic_changes import TopicRules
from controller_core.process.connections import (
    make_secured_listeners,
    open_secured_brokers,
    open_zookeeper_session,
    read_acl_rules,
)
from controller_core.process.http import make_readiness_route, read_http_access, serve_metrics
from controller_core.process.journal import MissingLibrary, close_journals, open_journal, open_topic_journal
from controller_core.process.journal_http import make_journal_routes, read_journal_door
from controller_core.process.listener_addresses import list_hosts
from controller_core.process.listening import ListenerAssembly
from controller_core.process.settings import ControllerProcessSettings, InvalidSettings
from controller_core.process.signals import run_until_signalled
from controller_core.process.unserved_requests import UnservedRequests
from controller_core.rules.topic_rules import InvalidRules, read_topic_rules
from controller_core.supervision import start_supervised
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.librdkafka import librdkafka_source
from controller_core.wire.limits.descriptors import fit_to_descriptors
from controller_core.wire.limits.gate import report_identity_by_address
from controller_core.wire.limits.memory import fit_to_memory, memory_limit
from controller_core.wire.listener.listener import Listener, ListenerRules
from controller_core.wire.listener.refusals import Refusals
from controller_core.wire.tcp_link import tcp_link_factory
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.scram_credentials import ZkScramCredentials
from controller_core.zk.session import ZkSession

log = structlog.get_logger()

_NOT_WITH_ACLS: Final = "is answered by brokers, and nothing is relayed if there are ACLs (authorizer.class.name)"

SERVED_APIS = (*BROKER_APIS, *CLIENT_APIS, *OWN_CONFIG_APIS)
"""All APIs that this process answers as the controller, each in turn with the other events."""


async def run_controller(
    settings: ControllerProcessSettings,
    session_of: Callable[[ZkSession], ZkSession] = lambda session: session,
) -> None:
    """Run until SIGTERM or SIGINT. They also end the start.

    `session_of` may wrap the session; tests of failures do.

    Raises `InvalidSettings`, `ZooKeeperUnreachable` and `AccessRefused` (at the start), `ZooKeeperGone` (later),
    `IdInUse`, and `OSError` for a port."""
    await run_until_signalled(run_until_cancelled(settings, session_of))


async def run_until_cancelled(
    settings: ControllerProcessSettings,
    session_of: Callable[[ZkSession], ZkSession] = lambda session: session,
) -> None:
    """Run until cancelled, for a process that handles the signals itself. Raises like `run_controller`."""
    brokers = open_secured_brokers(settings.properties, settings.listeners.links)
    rules = read_acl_rules(settings.properties)
    topic_rules = _read_topic_rules(settings)
    async with AsyncExitStack() as stack:
        session = await open_zookeeper_session(settings, jute_maxbuffer_bytes=settings.zookeeper_jute_maxbuffer_bytes)
        stack.push_async_callback(session.close)
        zk = session_of(session)
        secured = make_secured_listeners(settings.properties, settings.binds, ZkScramCredentials(zk))
        # Brokers identify the controller by its id, so a broker with the same id would be mistaken for it.
        if settings.id in await read_registered_brokers(zk):
            raise InvalidSettings(f"--id {settings.id} is the id of a running broker: choose one that no broker has")
        access = read_http_access(settings)
        door = read_journal_door(settings, access.door)
        await report_at_start(zk, settings.listeners)
        registry = CollectorRegistry()
        writers = _open_journals(settings, registry)
        stack.push_async_callback(close_journals, writers)
        authorization = begin_authorization(rules, zk, registry, stack)
        trail = open_trail(
            f"controller-{settings.id}",
            settings.open_audit_sinks(),
            registry,
            lambda record: record_request(controller.term, record),
        )
        refusals = Refusals(registry)
        controller, listener = _assemble(
            settings, zk, registry, EachJournal(writers), brokers, secured, authorization, topic_rules, trail, refusals
        )
        stack.push_async_callback(trail.close)
        summing = start_supervised(trail.sum_up_each_minute, name="audit of refused requests")
        stack.callback(summing.cancel)
        if authorization is None or any(bind.listener not in secured for bind in settings.binds):
            report_identity_by_address(settings.access_rules, is_local=_is_local(settings), node=settings.node_address)
        await listener.start()
        stack.push_async_callback(listener.close)
        if settings.metrics_port is not None:
            routes = [make_readiness_route(controller.check_readiness)]
            routes += make_journal_routes(settings.journal_directory, door=door) if settings.journal_directory else []
            stop = await serve_metrics(settings.metrics_host, settings.metrics_port, registry, routes, access, refusals)
            stack.push_async_callback(stop)
        await controller.run()


def _is_local(settings: ControllerProcessSettings) -> bool:
    """Return True if only this machine reaches the listeners."""
    addresses = [LOCALHOST if bind.host == "localhost" else parse_address(bind.host) for bind in settings.binds]
    return all(address is not None and address.is_loopback for address in addresses)


def _read_topic_rules(settings: ControllerProcessSettings) -> TopicRules | None:
    """Return the rules for topics, or None without any. Raises `InvalidSettings`."""
    if settings.topic_rules is None:
        return None
    try:
        return read_topic_rules(settings.topic_rules)
    except InvalidRules as error:
        raise InvalidSettings(*(f"--topic-rules: {problem}" for problem in error.problems)) from error


def _open_journals(settings: ControllerProcessSettings, registry: CollectorRegistry) -> list[JournalWriter]:
    writers = []
    if settings.journal_topic is not None and settings.journal_bootstrap_server is not None:
        try:
            security = librdkafka_source(open_secured_brokers(settings.properties))
            writers.append(
                open_topic_journal(settings.journal_topic, settings.journal_bootstrap_server, registry, security)
            )
        except MissingLibrary as error:
            raise InvalidSettings(str(error)) from error
    if settings.journal_directory is not None:
        writers.append(open_journal(settings.journal_directory, settings, registry))
    return writers


def _assemble(
    settings: ControllerProcessSettings,
    zk: ZkSession,
    registry: CollectorRegistry,
    journal: Journal,
    brokers: SecuredBrokers,
    secured: Mapping[str, SecuredListener],
    authorization: Authorization | None,
    topic_rules: TopicRules | None,
    trail: AuditTrail,
    refusals: Refusals,
) -> tuple[Controller, Listener]:
    own_id, clock, listeners = BrokerId(settings.id), SystemClock(), settings.listeners
    assembly = ListenerAssembly(
        zk,
        SERVED_APIS,
        lambda: controller.term,
        lambda request, quota, caller: controller.answer(request, quota, caller),
        is_relay=settings.relay,
        unserved=UnservedRequests(registry),
        authorization=authorization,
        quotas=MutationQuotas(
            ZkQuotas(zk, windows_s=lambda: _find_quota_windows_s(controller.term)),
            clock.monotonic_ms,
            registry,
        ),
        out_of_reach=lambda: controller.out_of_reach,
        in_our_name=BrokersInOurName(listeners.links, brokers.source, lambda: _list_live_brokers(controller)),
        rules=(topic_rules, registry) if topic_rules is not None else None,
    )
    listener = Listener(
        (
            assembly.make_acceptor(bind, listeners.find_client_listener(bind.listener), secured.get(bind.listener))
            for bind in settings.binds
        ),
        limits=fit_to_memory(fit_to_descriptors(settings.listener_limits), memory_limit()),
        gate=assembly.make_gate(settings.access_rules, is_local=_is_local(settings)),
        rules=ListenerRules() if authorization is None else ListenerRules(why_not_passed_on=_NOT_WITH_ACLS),
        auditor=RequestAudit(trail, lambda: None if controller.term is None else controller.term.state),
        refusals=refusals,
    )
    seams = Seams(
        zk=zk,
        links=tcp_link_factory(
            listeners.links, str(own_id), request_timeout_ms=settings.request_timeout_ms, security=brokers.source
        ),
        clock=clock,
        close_connections=listener.close_connections,
        journal=journal,
        whereabouts=f"{socket.gethostname()}, process {os.getpid()}",
        hosts=list_hosts((*settings.binds, *listeners.endpoints)),
    )
    controller = Controller(own_id, listeners, seams, settings, ControllerMetrics(registry), SERVED_APIS)
    return controller, listener


def record_request(term: Term | None, record: AuditRecord) -> None:
    """Record a request in the journal of the present term, if there is one."""
    if term is not None:
        term.journal.record_request(record.make_journal_fields())


def _find_quota_windows_s(term: Term | None) -> int:
    return DEFAULT_QUOTA_WINDOWS_S if term is None else term.cluster_settings.quota_windows_s


def _list_live_brokers(controller: Controller) -> list[Broker]:
    """Return the live brokers that answer and are not about to leave, or all if there are none of these."""
    if (term := controller.term) is None:
        return []
    brokers = [*term.state.brokers.values()]
    bad = {*term.state.shutting_down, *controller.out_of_reach}
    return [broker for broker in brokers if broker.id not in bad] or brokers
