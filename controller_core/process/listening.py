"""The APIs of the controller's listener: which are answered here, and which are relayed to brokers.

Without a term nothing is answered: connections are closed, and clients ask another node."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, cast

from kio.static.protocol import RequestPayload, ResponsePayload
from prometheus_client import CollectorRegistry

from controller_core.admin.apis import OWN_CONFIG_APIS
from controller_core.admin.authorizing.acl_gate import AclGate
from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.split_apis import Answering, SplitApis
from controller_core.admin.cluster import (
    api_versions,
    as_broker,
    describe_cluster,
    late_logins,
    metadata,
    own_configs,
)
from controller_core.admin.cluster.api_versions import VersionRange
from controller_core.admin.cluster.brokers_in_our_name import BrokersInOurName
from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.admin.cluster.known_cluster_id import KnownClusterId
from controller_core.admin.quotas.mutation_quotas import MutationQuotas
from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.admin.ruling.judged_requests import TopicJudge
from controller_core.controller.serving.served_api import AnyServedApi
from controller_core.controller.term.term import Term
from controller_core.journal.configs import StaticConfig
from controller_core.model.access import AccessRules
from controller_core.model.authorization.principal import NOBODY_IN_PARTICULAR, Caller
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Endpoint
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.model.settings import shared
from controller_core.model.topics.topic_changes import TopicRules
from controller_core.process.unserved_requests import UnservedRequests
from controller_core.supervision import start_task
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.connections.broker_properties import PLAINTEXT
from controller_core.wire.limits.broker_addresses import BrokerAddresses
from controller_core.wire.limits.gate import AddressGate, Gate
from controller_core.wire.listener.listener import Acceptor, Api, LocalApi, OwnedApi, RelayTarget
from controller_core.wire.listener.owned_api import INTER_BROKER_API_KEYS, AskBroker, Asked, NoAnswerNow
from controller_core.wire.listener.relay import Address, UpstreamError
from controller_core.wire.listener.turns import NoTurns
from controller_core.zk.session import ZkSession

_NO_TERM: Final = "this process is not the controller"

AnswerInTurn: TypeAlias = Callable[[RequestPayload, MutationQuota, Caller | None], Awaitable[ResponsePayload]]
AnswerToCaller: TypeAlias = Callable[[RequestPayload, Caller], Awaitable[ResponsePayload | AskBroker]]
_NOT_FOR_OTHERS: Final = (
    "is answered by brokers, and nothing is relayed from a listener that is not PLAINTEXT, because they would see the "
    "controller as the caller"
)

_UNKNOWN_ACLS: Final = (
    "brokers have an authorizer and would judge the controller as the caller: give the controller the same "
    "authorizer.class.name and super.users (--properties)"
)

_UNKNOWN_AUTHORIZER: Final = (
    "no broker has returned its settings yet, and brokers may have an authorizer, which would judge the controller as the "
    "caller"
)

_CONFIG_VERSIONS: Final[Mapping[int, Versions[Any]]] = {api.versions.key: api.versions for api in OWN_CONFIG_APIS}

LOADING_LOOK_S: Final = 0.02
"""Seconds between checks that a starting term has read the cluster, for all callers that wait for it."""


class ListenerAssembly:
    """Connects the listener to a controller.

    `term`: returns the present term, or None. `answer`: answers in turn, through the event queue. `is_relay`: relay to
    brokers what is not answered here. `unserved`: gets requests with unserved versions. `authorization`: judges by
    ACLs; None without ACLs. With it nothing is relayed, because a broker would see the controller's address, and ACLs
    have addresses. `quotas`: None without quotas. `out_of_reach`: returns the brokers that did not answer this process
    lately. `in_our_name`: brokers that the controller itself asks for configurations of topics after it has authorized
    the caller; None: it does not. `rules`: rules for topics, with the registry of their metrics; None without rules."""

    def __init__(
        self,
        zk: ZkSession,
        served: Iterable[AnyServedApi],
        term: Callable[[], Term | None],
        answer: AnswerInTurn,
        *,
        is_relay: bool = True,
        unserved: UnservedRequests | None = None,
        authorization: Authorization | None = None,
        quotas: MutationQuotas | None = None,
        out_of_reach: Callable[[], Collection[BrokerId]] = frozenset,
        in_our_name: BrokersInOurName | None = None,
        rules: tuple[TopicRules, CollectorRegistry] | None = None,
    ) -> None:
        self._in_our_name = in_our_name
        self._served = tuple(served)
        self._term = term
        self._out_of_reach = out_of_reach
        self._answer = answer
        self._is_relay = is_relay and authorization is None
        self._authorization = authorization
        self._quotas = quotas
        self._split = SplitApis(authorization, self._read_term) if authorization is not None else None
        self._judge = TopicJudge(rules[0], self._read_term, rules[1]) if rules is not None else None
        self._unserved = unserved or UnservedRequests(CollectorRegistry())
        self._cluster_id = KnownClusterId(zk)
        self._turns = itertools.count()
        self._looking: asyncio.Task[None] | None = None

    def make_acceptor(self, bind: Endpoint, listener: str, secured: SecuredListener | None = None) -> Acceptor:
        """Return the acceptor of an address, which serves clients like a broker's listener of that name. `secured`:
        None for PLAINTEXT."""
        passes_on = self._is_relay and secured is None
        return Acceptor(
            host=bind.host,
            port=bind.port,
            apis=self.make_apis(listener, is_secured=secured is not None),
            relay_targets=(lambda: self.list_relay_targets(listener)) if passes_on else None,
            secured=secured,
            why_not_passed_on=_NOT_FOR_OTHERS if secured is not None else None,
        )

    def make_gate(self, rules: AccessRules, *, is_local: bool = False) -> Gate:
        """Return the gate that authorizes callers: by rules and registered broker hosts, and by ACLs if there are
        any. `is_local`: True if only this machine reaches the listener."""

        async def is_in_charge() -> bool:
            return await self._read_term() is not None

        by_address = AddressGate(rules, BrokerAddresses(self._list_broker_hosts), is_in_charge, is_local=is_local)
        return by_address if self._authorization is None else AclGate(self._authorization, by_address, is_in_charge)

    def _is_loading(self) -> bool:
        term = self._term()
        return term is not None and not term.state.is_loaded

    async def _wait_until_loaded(self) -> None:
        """Wait while a term starts, because it does not know the brokers yet."""
        if self._is_loading():
            if self._looking is None or self._looking.done():
                self._looking = start_task(self._poll_until_loaded(), name="a term that begins")
            await asyncio.wait((self._looking,))

    async def _read_term(self) -> Term | None:
        await self._wait_until_loaded()
        return self._term()

    async def _poll_until_loaded(self) -> None:
        while self._is_loading():  # noqa: ASYNC110 - the term may also end
            await asyncio.sleep(LOADING_LOOK_S)

    def _list_broker_hosts(self) -> list[str]:
        term = self._term()
        brokers = term.state.brokers.values() if term is not None else ()
        return [endpoint.host for broker in brokers for endpoint in broker.endpoints]

    def make_apis(self, listener: str, *, is_secured: bool = False) -> list[Api]:
        """Return all APIs that a listener answers here."""
        passes_on = self._is_relay and not is_secured
        in_turn: list[Api] = [
            OwnedApi(
                api.versions,
                self._answer_uncharged,
                api.refuse,
                self._unserved.report,
                answer_to=partial(self._answer_in_turn, api),
            )
            for api in self._served
            if api not in OWN_CONFIG_APIS
        ]
        local: tuple[Versions[Any], ...] = (
            metadata.VERSIONS,
            describe_cluster.VERSIONS,
            api_versions.VERSIONS,
            *as_broker.ANSWERS,
            *(late_logins.ANSWERS if is_secured else ()),
        )
        own = {
            versions.key: VersionRange(min=versions.min, max=versions.max)
            for versions in (*(api.versions for api in self._served), *local)
        }

        async def on_metadata(request: RequestPayload, caller: Caller) -> ResponsePayload | AskBroker:
            return await metadata.on_metadata(await self._make_view(listener, await self._find_rights(caller)), request)

        async def on_describe_cluster(request: RequestPayload, caller: Caller) -> ResponsePayload:
            newest = convert(request, describe_cluster.VERSIONS.newest)
            view = await self._make_view(listener, await self._find_rights(caller))
            return describe_cluster.on_describe_cluster(view, newest)

        async def on_api_versions(request: RequestPayload) -> ResponsePayload | AskBroker:
            stands_by = is_secured and await self._read_term() is None  # clients ask for versions before they log in
            return api_versions.on_api_versions(None if stands_by else await self._make_view(listener), own, request)

        async def on_configs(request: RequestPayload, caller: Caller) -> ResponsePayload | AskBroker:
            term = await self._read_term()
            newest = _CONFIG_VERSIONS[request.__api_key__].lift(request)
            if term is not None and own_configs.is_about(newest, term.identity.id):
                return await self._authorize(caller, newest.__api_key__, self._answer_uncharged)(newest)
            if term is not None and self._authorization is None and not _find_settings(term):
                await term.static_configs.wait_for_first_answers()
            if self._in_our_name is None or passes_on or term is None or not own_configs.is_about_topics(newest):
                is_read = request.__api_key__ == own_configs.DESCRIBE.versions.key
                return AskBroker() if is_read else await self._ask_to_alter(request, caller)
            if (why_not := self._why_not_ask_brokers(term)) is not None:
                raise NoAnswerNow(why_not)
            ask: Answering = partial(self._ask_about_topics, self._in_our_name)
            if self._judge is not None:
                ask = self._judge.answer_to(newest.__api_key__, caller.principal, ask)
            return await self._authorize(caller, newest.__api_key__, ask)(newest)

        return [
            *in_turn,
            *(
                _make_local_api(
                    api.versions,
                    on_configs,
                    refuse=api.refuse,
                    is_of_any_broker=self._judge is None or api is own_configs.DESCRIBE,
                    may_be_twice=api is own_configs.DESCRIBE,
                    turns=NoTurns(),
                )
                for api in OWN_CONFIG_APIS
            ),
            *(
                _make_local_api(versions, self._answer_as_broker(versions), refuse=as_broker.REFUSALS.get(versions.key))
                for versions in as_broker.ANSWERS
            ),
            *(
                LocalApi(versions=api, answer=_make_immediate_answer(api))
                for api in (late_logins.ANSWERS if is_secured else ())
            ),
            _make_local_api(metadata.VERSIONS, on_metadata, is_of_any_broker=True, judged_as=metadata.CREATE_TOPICS),
            _make_local_api(describe_cluster.VERSIONS, on_describe_cluster),
            LocalApi(
                versions=api_versions.VERSIONS,
                answer=on_api_versions,
                unsupported=api_versions.make_unsupported_response,
            ),
        ]

    def list_relay_targets(self, listener: str) -> Sequence[RelayTarget]:
        """Return the live brokers on a listener, beginning with another one each time to balance the load.

        A broker's answers have the addresses of the listener on which it was asked, so clients are relayed to the same
        listener. Raises `UpstreamError` if brokers have ACLs that are unknown here, or may have them: they would judge the
        controller."""
        term = self._term()
        if term is None:
            return ()
        if (why_not := self._why_not_ask_brokers(term)) is not None:
            raise UpstreamError(why_not)
        out_of_reach = self._out_of_reach()
        targets = [
            RelayTarget(
                address=Address(endpoint.host, endpoint.port),
                is_shutting_down=broker.id in term.state.shutting_down,
                is_out_of_reach=broker.id in out_of_reach,
            )
            for broker in term.state.brokers.values()
            if (endpoint := broker.find_endpoint(listener)) and endpoint.security_protocol == PLAINTEXT
        ]
        first = next(self._turns) % max(len(targets), 1)
        return [*targets[first:], *targets[:first]]

    def _why_not_ask_brokers(self, term: Term) -> str | None:
        """Return why brokers are not asked for clients, or None.

        Without an authorizer of its own, this process cannot judge clients in place of brokers that have one."""
        if self._authorization is not None:
            return None
        settings, brokers = _find_settings(term), term.state.brokers.values()
        if any(known.config.get(shared.AUTHORIZER) for known in settings):
            return _UNKNOWN_ACLS
        if settings or not brokers:
            return None
        return f"{_UNKNOWN_AUTHORIZER} ({term.static_configs.explain_silence(brokers)})"

    def _answer_in_turn(self, api: AnyServedApi, asked: Asked) -> Answering:
        """Return the function that answers a caller: authorized, charged to its quota, and in turn by the
        controller."""

        key = api.versions.key
        caller = None if key in INTER_BROKER_API_KEYS else asked.caller

        async def answer(request: RequestPayload) -> ResponsePayload:
            if self._quotas is None or self._term() is None:
                return await self._answer(request, UNLIMITED, caller)
            return await self._answer(request, await self._quotas.find_quota(api, asked), caller)

        judged = answer if self._judge is None else self._judge.answer_to(key, asked.caller.principal, answer)
        return self._authorize(asked.caller, key, judged)

    def _answer_as_broker(self, versions: Versions[Any]) -> AnswerToCaller:
        async def answer(newest: Any) -> ResponsePayload:
            return as_broker.ANSWERS[versions](newest)

        async def on_request(request: RequestPayload, caller: Caller) -> ResponsePayload:
            if self._term() is None:
                raise NoAnswerNow(_NO_TERM)
            return await self._authorize(caller, versions.key, answer)(versions.lift(request))

        return on_request

    async def _ask_to_alter(self, request: Any, caller: Caller) -> ResponsePayload | AskBroker:
        """Let a broker alter configurations, except those of topics whose alteration a rule refuses."""
        ask = AskBroker(may_be_twice=_changes_nothing(request))
        if self._judge is None:
            return ask
        term = await self._read_term()
        if term is None:
            raise NoAnswerNow(_NO_TERM)
        split = await self._judge.divide_alteration(term, request, caller.principal)
        if split.allowed is None:
            return cast(ResponsePayload, split.merge(None))
        return ask if split.allowed == request else replace(ask, instead=split.allowed, amended=split.merge)

    async def _ask_about_topics(self, brokers: BrokersInOurName, request: RequestPayload) -> ResponsePayload:
        """Return a broker's answer about configurations of topics."""
        if self._term() is None:
            # Outside of a term nobody is authorized, and the next one may begin before the broker is asked.
            raise NoAnswerNow(_NO_TERM)
        versions = _CONFIG_VERSIONS[request.__api_key__]
        response_type = versions.response_type(versions.max)
        return await brokers.ask(request, response_type, may_be_twice=_changes_nothing(request))

    async def _answer_uncharged(self, request: RequestPayload) -> ResponsePayload:
        return await self._answer(request, UNLIMITED, None)

    def _authorize(self, caller: Caller, api_key: int, answer: Answering) -> Answering:
        """Wrap `answer` with the authorization of the caller."""
        answer_to = None if self._split is None else self._split.answer_to(api_key, answer)
        return answer if answer_to is None else answer_to(caller)

    async def _find_rights(self, caller: Caller) -> Rights:
        return EVERYTHING if self._authorization is None else await self._authorization.rights_of(caller)

    async def _make_view(self, listener: str, rights: Rights = EVERYTHING) -> ClusterView:
        term = await self._read_term()
        cluster_id = await self._cluster_id.read(term.state.unusable) if term is not None else None
        term = self._term()
        if term is None:
            raise NoAnswerNow(_NO_TERM)
        return ClusterView(
            state=term.state, controller=term.identity, listener=listener, cluster_id=cluster_id, rights=rights
        )


def _find_settings(term: Term) -> list[StaticConfig]:
    """Return the settings in the files of the live brokers that have returned them."""
    found = (term.static_configs.find_answer(broker) for broker in term.state.brokers.values())
    return [settings for settings in found if settings is not None]


def _make_local_api(versions: Versions[Any], answer: AnswerToCaller, **further: Any) -> LocalApi[Any]:
    """Return an API whose answer depends on the caller."""
    return LocalApi(
        versions=versions,
        answer=lambda request: answer(request, NOBODY_IN_PARTICULAR),
        answer_to=lambda caller: lambda request: answer(request, caller),
        **further,
    )


def _changes_nothing(request: Any) -> bool:
    """Return True if a request about configurations is a question, or is only to be validated."""
    return bool(getattr(request, "validate_only", True))  # a question has no such field


def _make_immediate_answer(versions: Versions[Any]) -> Callable[[RequestPayload], Awaitable[ResponsePayload]]:
    async def answer(request: RequestPayload) -> ResponsePayload:
        return late_logins.ANSWERS[versions](request)

    return answer
