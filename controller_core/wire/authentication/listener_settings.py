"""The security settings of a listener, from the properties that a broker's `server.properties` has for it.

Unsupported settings are errors. Ignoring them would make the listener less secure than those of the brokers.
"""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller_core.security.jaas import read_users
from controller_core.security.oauth.token_login import OAUTHBEARER
from controller_core.security.oauth.token_rules import JWKS_URL, TokenRules, read_token_rules
from controller_core.security.principal_mapping import PrincipalMapping
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.broker_properties import BrokerProperties, one_of, prefix_of
from controller_core.wire.connections.security import MECHANISMS, PLAIN

_JAAS: Final = "sasl.jaas.config"
_CLIENT_AUTH: Final = "ssl.client.auth"
_RULES: Final = "ssl.principal.mapping.rules"
_REAUTHENTICATION: Final = "connections.max.reauth.ms"
_DELAY: Final = "connection.failed.authentication.delay.ms"
_CERTIFICATES: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TLS_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_IN_JAVA: Final = {
    "ssl.engine.factory.class": "",
    "ssl.cipher.suites": "",
    "principal.builder.class": DEFAULT_PRINCIPAL_BUILDER,
}
"""Properties that name Java classes or ciphers, with the value that is supported nevertheless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """The security settings. The default is PLAINTEXT."""

    tls: ssl.SSLContext | None = None
    mapping: PrincipalMapping | None = None
    """Maps certificates' subjects to names; None unless certificates name the callers."""
    sessions_ms: Mapping[str, int] = field(default_factory=dict)
    """The enabled mechanisms in their order, each with the lifetime of a login in milliseconds; 0 means unlimited."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The passwords of PLAIN users."""
    tokens: TokenRules | None = None
    """The rules for tokens; None if OAUTHBEARER is not enabled."""
    failure_delay_ms: int = 100
    files: tuple[Path, ...] = ()
    """The files of certificates and of keys of tokens."""


def listener_settings(properties: BrokerProperties, listener: str, protocol: str) -> ListenerSettings:
    """Return the settings of a server's listener. Raises `InvalidProperties`, which names the property."""
    said = _Said(properties, listener)
    if said.text("principal.builder.class") or protocol.endswith("SSL"):
        said.refuse_what_is_in_java()
    tokens = said.read_tokens() if protocol.startswith("SASL") else None
    certificates = tuple(properties.tls_files(listener).files()) if protocol.endswith("SSL") else ()
    return ListenerSettings(
        tls=said.context(protocol) if protocol.endswith("SSL") else None,
        mapping=said.read_mapping() if protocol == "SSL" else None,
        sessions_ms=dict(said.sessions_ms()) if protocol.startswith("SASL") else {},
        users=said.users() if protocol.startswith("SASL") else {},
        tokens=tokens,
        failure_delay_ms=said.number(_DELAY, 100),
        files=(*certificates, tokens.keys) if tokens and isinstance(tokens.keys, Path) else certificates,
    )


@dataclass(frozen=True, slots=True)
class _Said:
    properties: BrokerProperties
    listener: str

    def text(self, name: str) -> str:
        return self.properties.get(name, self.listener)

    def number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise InvalidProperties(f"{name} is {text[:80]!r}, which is not a number of milliseconds") from None

    def refuse_what_is_in_java(self) -> None:
        for name, may_be in _IN_JAVA.items():
            if self.text(name) not in ("", may_be):
                raise InvalidProperties(
                    f"{name} names a feature of Java that is not supported: "
                    f"set {prefix_of(self.listener)}{name}={may_be}"
                )

    def context(self, protocol: str) -> ssl.SSLContext:
        context = self.properties.tls_files(self.listener).make_server_context(self._client_certificate(protocol))
        versions = [_TLS_VERSIONS[each] for each in self._list("ssl.enabled.protocols") if each in _TLS_VERSIONS]
        if self.text("ssl.enabled.protocols") and not versions:
            raise InvalidProperties(
                f"ssl.enabled.protocols has no supported version: write {one_of(tuple(_TLS_VERSIONS))}"
            )
        context.minimum_version = min(versions, default=ssl.TLSVersion.TLSv1_2)
        context.maximum_version = max(versions, default=ssl.TLSVersion.TLSv1_3)
        return context

    def _client_certificate(self, protocol: str) -> ssl.VerifyMode:
        """Return whether clients must show a certificate. On SASL listeners only the listener's own property counts
        (KIP-684)."""
        own = self.properties.own(self.listener).get(_CLIENT_AUTH, "")
        said = (own if protocol.startswith("SASL") else self.text(_CLIENT_AUTH)).strip().lower() or "none"
        if said not in _CERTIFICATES:
            raise InvalidProperties(f"{_CLIENT_AUTH} is {said[:80]!r}: write {one_of(tuple(_CERTIFICATES))}")
        return _CERTIFICATES[said]

    def read_mapping(self) -> PrincipalMapping:
        if not self.properties.has(_RULES, self.listener):
            return PrincipalMapping()
        try:
            return PrincipalMapping(self.text(_RULES))
        except ValueError as error:
            raise InvalidProperties(f"{_RULES}: {error}") from error

    def sessions_ms(self) -> Iterator[tuple[str, int]]:
        enabled = self._list("sasl.enabled.mechanisms") or ["GSSAPI"]
        for mechanism in enabled:
            if mechanism not in MECHANISMS:
                raise InvalidProperties(
                    f"sasl.enabled.mechanisms has {mechanism[:80]}, which is not supported: set "
                    f"{prefix_of(self.listener)}sasl.enabled.mechanisms to some of {', '.join(MECHANISMS)}"
                )
            if mechanism != OAUTHBEARER:
                self._refuse_handler(mechanism)
            general = self.number(_REAUTHENTICATION, 0)
            yield mechanism, max(0, self.number(f"{mechanism.lower()}.{_REAUTHENTICATION}", general))

    def _refuse_handler(self, mechanism: str) -> None:
        name = f"{mechanism.lower()}.sasl.server.callback.handler.class"
        if self.text(name):
            raise InvalidProperties(
                f"{prefix_of(self.listener)}{name} names a Java class: remove {mechanism} from the mechanisms"
            )

    def users(self) -> dict[str, str]:
        if PLAIN not in self._list("sasl.enabled.mechanisms"):
            return {}
        of_listener = f"{PLAIN.lower()}.{_JAAS}"
        is_own = of_listener in self.properties.own(self.listener)
        name = prefix_of(self.listener) + of_listener if is_own else _JAAS
        users = read_users(self.text(of_listener if is_own else _JAAS), name=name)
        if not users:
            raise InvalidProperties(
                f'PLAIN is enabled but has no users: add user_NAME="password" to '
                f"{prefix_of(self.listener)}{of_listener}"
            )
        return users

    def read_tokens(self) -> TokenRules | None:
        if OAUTHBEARER not in self._list("sasl.enabled.mechanisms"):
            return None
        prefix = f"{OAUTHBEARER.lower()}."
        rules = read_token_rules(
            self.properties.find_mechanism_properties(self.listener, OAUTHBEARER),
            self.properties.own(self.listener).get(prefix + _JAAS, ""),
            prefix=prefix_of(self.listener) + prefix,
            folder=self.properties.folder,
        )
        if isinstance(rules.keys, Path) and not rules.keys.is_file():
            raise InvalidProperties(f"{JWKS_URL} names no file: {rules.keys}")
        return rules

    def _list(self, name: str) -> list[str]:
        return [each.strip() for each in self.text(name).split(",") if each.strip()]
