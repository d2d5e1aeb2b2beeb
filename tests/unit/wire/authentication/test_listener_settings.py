"""Invalid properties of a listener: the error names the property, and shows no secrets."""

import ssl
from collections.abc import Mapping

import pytest

from controller_core.security.oauth.token_login import Endpoint
from controller_core.security.oauth.token_rules import TokenRules
from controller_core.security.properties_file import InvalidProperties
from controller_core.security.tls_files import TlsFiles
from controller_core.wire.authentication.listener_settings import ListenerSettings, listener_settings
from controller_core.wire.connections.broker_properties import BrokerProperties
from devcluster.clusters.certificates import CertificateFiles
from tests.unit.wire.authentication.secured_site import Site

PLAIN_JAAS = 'a.PlainLoginModule required user_alice="hush";'
JWKS = "sasl.oauthbearer.jwks.endpoint.url"
TOKENS = {"sasl.enabled.mechanisms": "OAUTHBEARER", JWKS: "https://identity.example/jwks"}
PLAIN = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.secure.plain.sasl.jaas.config": PLAIN_JAAS}


def make_settings(site: Site, protocol: str, properties: Mapping[str, str]) -> ListenerSettings:
    return listener_settings(BrokerProperties(properties, site.folder), "SECURE", protocol)


@pytest.mark.parametrize(
    ("protocol", "changed", "words"),
    [
        ("SSL", {"ssl.keystore.location": ""}, "there is no certificate: set ssl.keystore.location"),
        ("SASL_SSL", {**PLAIN, "ssl.keystore.location": ""}, "there is no certificate"),
        ("SSL", {"ssl.keystore.type": "JKS"}, r"ssl.keystore.type is JKS: convert the keystore to PEM"),
        ("SSL", {"ssl.truststore.type": "PKCS12", "ssl.client.auth": "required"}, "ssl.truststore.type is PKCS12"),
        ("SSL", {"listener.name.secure.ssl.keystore.location": "absent.pem"}, r"listener.name.secure.ssl.\* cannot"),
        ("SSL", {"ssl.client.auth": "requested", "ssl.truststore.location": ""}, "set ssl.truststore.location"),
        ("SSL", {"ssl.client.auth": "perhaps"}, "ssl.client.auth is 'perhaps': write one of none, requested, required"),
        ("SSL", {"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules: 'RULE:x' is not a rule"),
        ("SSL", {"ssl.principal.mapping.rules": ""}, "ssl.principal.mapping.rules: there is no rule"),
        ("SSL", {"ssl.enabled.protocols": "TLSv1.1,SSLv3"}, "ssl.enabled.protocols has no supported version"),
        ("SSL", {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "set listener.name.secure.ssl.cipher.suites="),
        ("SSL", {"ssl.engine.factory.class": "org.example.Ours"}, "ssl.engine.factory.class names a feature of Java"),
        ("SSL", {"principal.builder.class": "org.example.Ours"}, "principal.builder.class names a feature of Java"),
        ("SASL_PLAINTEXT", {}, "sasl.enabled.mechanisms has GSSAPI, which is not supported: set listener.name.secure.sasl"),
        ("SASL_SSL", {"sasl.enabled.mechanisms": "OAUTHBEARER"}, "unsecured tokens are not supported: set sasl.oauth"),
        ("SASL_SSL", {**TOKENS, JWKS: "ldap://x"}, f"{JWKS} is not a usable URL: write https://"),
        ("SASL_SSL", {**TOKENS, JWKS: "file:///absent"}, f"{JWKS} names no file: /absent"),
        ("SASL_SSL", {**TOKENS, "sasl.oauthbearer.clock.skew.seconds": "-1"}, "sasl.oauthbearer.clock.skew.seconds: "),
        ("SASL_SSL", {**TOKENS, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "x"}, "jwks.endpoint.refresh.ms: "),
        (
            "SASL_SSL",
            {**TOKENS, "listener.name.secure.oauthbearer.sasl.server.callback.handler.class": "org.example.Ours"},
            "org.example.Ours, a Java class that is not supported: set it to org.apache.kafka.common.security.oauth",
        ),
        ("SASL_SSL", {"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN is enabled but has no users"),
        ("SASL_PLAINTEXT", {**PLAIN, "connections.max.reauth.ms": "soon"}, "connections.max.reauth.ms is 'soon'"),
        ("SASL_PLAINTEXT", {**PLAIN, "connection.failed.authentication.delay.ms": "x"}, "delay.ms is 'x'"),
        (
            "SASL_PLAINTEXT",
            {**PLAIN, "listener.name.secure.plain.sasl.server.callback.handler.class": "org.example.Ours"},
            "names a Java class: remove PLAIN",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(
    site: Site, server: CertificateFiles, protocol: str, changed: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidProperties, match=words) as refused:
        make_settings(site, protocol, {**site.tls(server), **changed})
    assert "hush" not in str(refused.value)


def test_what_is_of_another_listener_or_another_protocol_does_not_matter(site: Site, server: CertificateFiles) -> None:
    others = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.other.ssl.client.auth": "perhaps",
        "listener.name.other.ssl.keystore.location": "absent.pem",
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    }
    settings = make_settings(site, "SSL", {**site.tls(server), **others})
    assert settings.tls is not None
    assert settings.tls.verify_mode is ssl.CERT_NONE
    assert settings.tls.minimum_version is ssl.TLSVersion.TLSv1_2
    assert not settings.sessions_ms


def test_rules_for_names_of_certificates_do_not_matter_with_logins(site: Site, server: CertificateFiles) -> None:
    rules = {"ssl.principal.mapping.rules": "RULE:x"}
    assert make_settings(site, "SASL_SSL", {**site.tls(server), **PLAIN, **rules}).mapping is None


def test_tokens_have_the_properties_of_kafkas_validator(site: Site) -> None:
    of_listener = "listener.name.secure.oauthbearer.sasl"
    settings = make_settings(
        site,
        "SASL_PLAINTEXT",
        {
            **TOKENS,
            "sasl.oauthbearer.expected.audience": "kafka, other",
            "sasl.oauthbearer.expected.issuer": "https://identity.example",
            "sasl.oauthbearer.clock.skew.seconds": "5",
            "sasl.oauthbearer.scope.claim.name": "scp",
            "sasl.oauthbearer.sub.claim.name": "client_id",
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": "1000",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "7",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "80",
            f"{of_listener}.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler"
            ),
            f"{of_listener}.jaas.config": 'x required ssl.truststore.type="PEM" ssl.truststore.location="ca.pem";',
            "connections.max.reauth.ms": "60000",
        },
    )
    assert settings.sessions_ms == {"OAUTHBEARER": 60_000}
    assert settings.tokens == TokenRules(
        keys=Endpoint(
            url="https://identity.example/jwks",
            tls=TlsFiles(
                prefix="listener.name.secure.oauthbearer.sasl.jaas.config: ssl",
                truststore_location=site.folder / "ca.pem",
                keystore_type="JKS",
            ),
            retry_backoff_ms=7,
            retry_backoff_max_ms=80,
        ),
        refresh_ms=1000,
        audiences=frozenset({"kafka", "other"}),
        issuer="https://identity.example",
        clock_skew_s=5,
        scope_claim="scp",
        subject_claim="client_id",
    )
    assert make_settings(site, "SASL_PLAINTEXT", PLAIN).tokens is None


def test_passwords_are_not_shown(site: Site) -> None:
    settings = make_settings(site, "SASL_PLAINTEXT", {**PLAIN, "connections.max.reauth.ms": "-1"})
    assert settings.users == {"alice": "hush"}
    assert settings.sessions_ms == {"PLAIN": 0}
    assert "hush" not in repr(settings)


def test_users_may_be_in_what_java_reads_from_a_file_of_logins(site: Site) -> None:
    settings = make_settings(
        site, "SASL_PLAINTEXT", {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN_JAAS}
    )
    assert settings.users == {"alice": "hush"}


def test_what_is_not_said_has_the_documented_defaults(site: Site) -> None:
    settings = make_settings(site, "SASL_PLAINTEXT", TOKENS)
    assert (settings.failure_delay_ms, settings.sessions_ms) == (100, {"OAUTHBEARER": 0})
    assert settings.tokens == TokenRules(
        keys=Endpoint(
            url="https://identity.example/jwks",
            connect_timeout_ms=10_000,
            read_timeout_ms=10_000,
            retry_backoff_ms=100,
            retry_backoff_max_ms=10_000,
        ),
        refresh_ms=3_600_000,
        audiences=frozenset(),
        issuer=None,
        clock_skew_s=30,
        scope_claim="scope",
        subject_claim="sub",
    )
