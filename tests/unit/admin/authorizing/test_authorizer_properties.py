"""The properties that turn ACLs on, and those that are refused."""

import pytest

from controller_core.admin.authorizing.authorizer_properties import ACL_AUTHORIZER, parse_authorizer_rules
from controller_core.model.authorization.principal import Principal
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.authentication.listener_settings import DEFAULT_PRINCIPAL_BUILDER

ON = {"authorizer.class.name": ACL_AUTHORIZER}


@pytest.mark.parametrize("properties", [{}, {"authorizer.class.name": " "}, {"super.users": "User:a"}])
def test_no_acls_are_asked_unless_an_authorizer_is_named(properties: dict[str, str]) -> None:
    assert parse_authorizer_rules(properties) is None


def test_super_users_are_separated_by_semicolons_as_certificates_have_commas() -> None:
    rules = parse_authorizer_rules({**ON, "super.users": "User:CN=broker,O=us; User:admin;"})
    assert rules is not None
    assert rules.super_users == {Principal.user("CN=broker,O=us"), Principal.user("admin")}
    assert not rules.allows_unless_acl


def test_all_may_be_allowed_where_there_is_no_acl() -> None:
    rules = parse_authorizer_rules({**ON, "allow.everyone.if.no.acl.found": "true"})
    assert rules is not None
    assert rules.allows_unless_acl


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, "StandardAuthorizer"),
        ({"authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer"}, "the only supported authorizer"),
        ({**ON, "super.users": "admin"}, "'admin' is not a principal"),
        ({**ON, "principal.builder.class": "org.example.Own"}, "principal.builder.class is org.example.Own, whose"),
        ({**ON, "listener.name.client.principal.builder.class": "org.example.Own"}, "listener.name.client.principal"),
        ({**ON, "authorizer.zookeeper.url": "there:2181", "zookeeper.connect": "here:2181"}, "keep them there"),
        ({**ON, "allow.everyone.if.no.acl.found": "perhaps"}, "allow.everyone.if.no.acl.found"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidProperties, match=complaint):
        parse_authorizer_rules(properties)


def test_kafkas_own_principal_builder_and_the_clusters_own_zookeeper_may_be_named() -> None:
    named = {
        "principal.builder.class": DEFAULT_PRINCIPAL_BUILDER,
        "authorizer.zookeeper.url": "here:2181/kafka",
        "zookeeper.connect": "here:2181/kafka",
    }
    assert parse_authorizer_rules({**ON, **named}) is not None
