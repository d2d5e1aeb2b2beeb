"""Decisions by ACLs, compared with decisions that follow Kafka's documentation entry by entry."""

from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.authorization.acls import (
    NOBODY_MAY,
    THE_CLUSTER,
    AclTable,
    Entry,
    Operation,
    Pattern,
    Resource,
    ResourceType,
    make_topic_resource,
)
from controller_core.model.authorization.decision import AuthorizerRules, format_host
from controller_core.model.authorization.principal import ANONYMOUS, Caller, Principal

ALICE, BOB = Principal.user("alice"), Principal.user("bob")
HERE, THERE = ip_address("10.0.0.1"), ip_address("10.0.0.2")
AB = make_topic_resource("ab")
NAMES = ("a", "ab", "abc", "b", "*")


def caller(principal: Principal = ALICE, address: str = "10.0.0.1") -> Caller:
    return Caller(address=ip_address(address), principal=principal, is_authenticated=True)


def entry(operation: Operation, *, who: str = "User:alice", host: str = "*", is_allowed: bool = True) -> Entry:
    return Entry(is_allowed, who, operation, host)


@dataclass
class Acls:
    """A table, and the same as a plain list."""

    table: AclTable = field(default_factory=AclTable)
    rules: AuthorizerRules = AuthorizerRules()  # noqa: RUF009 - frozen

    def put(self, pattern: Pattern, *entries: Entry) -> None:
        self.table.put(pattern, entries)

    def allow(self, operation: Operation, resource: Resource = AB, who: Caller | None = None) -> bool:
        return self.rules.allows(self.table, who or caller(), operation, resource)


def is_expected(
    acls: dict[Pattern, frozenset[Entry]], rules: AuthorizerRules, who: Caller, operation: Operation, resource: Resource
) -> bool:
    """Return the decision by the documentation: `AclOperation`, `PatternType`, and the security chapter."""

    def is_about(pattern: Pattern) -> bool:
        if pattern.type is not resource.type:
            return False
        if pattern.is_prefix:
            return resource.name.startswith(pattern.name)
        return pattern.name in ("*", resource.name)

    def is_of_him(one: Entry) -> bool:
        return one.principal in (str(who.principal), "User:*") and one.host in (str(who.address), "*")

    if who.principal in rules.super_users:
        return True
    found = [one for pattern, entries in acls.items() if is_about(pattern) for one in entries]
    if not found:
        return rules.allows_unless_acl
    if any(is_of_him(one) and not one.is_allowed and one.operation in (operation, Operation.ALL) for one in found):
        return False
    enough = {operation, Operation.ALL}
    if operation is Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation is Operation.DESCRIBE_CONFIGS:
        enough |= {Operation.ALTER_CONFIGS}
    return any(is_of_him(one) and one.is_allowed and one.operation in enough for one in found)


operations = st.sampled_from(Operation)
patterns = st.builds(Pattern, type=st.sampled_from(ResourceType), name=st.sampled_from(NAMES), is_prefix=st.booleans())
entries = st.builds(
    Entry,
    is_allowed=st.booleans(),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*", "Group:alice", "User:ANONYMOUS"]),
    operation=operations,
    host=st.sampled_from(["*", str(HERE), str(THERE)]),
)
rules = st.builds(AuthorizerRules, super_users=st.sets(st.just(BOB)).map(frozenset), allows_unless_acl=st.booleans())
callers = st.builds(
    Caller,
    address=st.sampled_from([HERE, THERE]),
    principal=st.sampled_from([ALICE, BOB, Principal("Group", "alice"), ANONYMOUS]),
)
resources = st.builds(Resource, type=st.sampled_from(ResourceType), name=st.sampled_from(NAMES))


@given(
    acls=st.dictionaries(patterns, st.frozensets(entries, max_size=6), max_size=6),
    rules=rules,
    who=callers,
    operation=operations,
    resource=resources,
)
def test_decisions_are_those_of_the_documentation(
    acls: dict[Pattern, frozenset[Entry]], rules: AuthorizerRules, who: Caller, operation: Operation, resource: Resource
) -> None:
    table = AclTable()
    for pattern, some in acls.items():
        table.put(pattern, some)
    assert rules.allows(table, who, operation, resource) is is_expected(acls, rules, who, operation, resource)


@given(
    acls=st.dictionaries(patterns, st.frozensets(entries, max_size=6), max_size=6),
    who=callers,
    operation=st.sampled_from([Operation.WRITE, Operation.READ]),
    kind=st.sampled_from(ResourceType),
)
def test_a_right_on_any_resource_is_one_on_some_resource(
    acls: dict[Pattern, frozenset[Entry]], who: Caller, operation: Operation, kind: ResourceType
) -> None:
    table, rules = AclTable(), AuthorizerRules(super_users=frozenset({BOB}))
    for pattern, some in acls.items():
        table.put(pattern, some)
    further = [f"{prefix}~" for prefix in ("", *NAMES)]
    on_some = any(rules.allows(table, who, operation, Resource(kind, name)) for name in (*NAMES[:-1], *further))
    assert rules.allows_on_any(table, who, operation, kind) is on_some


def test_where_all_may_do_all_only_a_denial_of_every_name_counts_for_any() -> None:
    acls = Acls(rules=AuthorizerRules(allows_unless_acl=True))
    acls.put(Pattern(ResourceType.TOPIC, "ab"), entry(Operation.WRITE, is_allowed=False))
    assert acls.rules.allows_on_any(acls.table, caller(), Operation.WRITE, ResourceType.TOPIC)
    acls.put(Pattern(ResourceType.TOPIC, "*"), entry(Operation.ALL, is_allowed=False))
    assert not acls.rules.allows_on_any(acls.table, caller(), Operation.WRITE, ResourceType.TOPIC)
    assert not acls.rules.allows_on_any(acls.table, Caller(principal=ALICE), Operation.WRITE, ResourceType.TOPIC)


@given(
    first=st.dictionaries(patterns, st.frozensets(entries, max_size=3), max_size=4),
    second=st.dictionaries(patterns, st.frozensets(entries, max_size=3), max_size=4),
    who=callers,
    resource=resources,
)
def test_a_table_that_was_changed_decides_as_one_that_was_always_so(
    first: dict[Pattern, frozenset[Entry]], second: dict[Pattern, frozenset[Entry]], who: Caller, resource: Resource
) -> None:
    changed, fresh = AclTable(), AclTable()
    for pattern in first:
        changed.put(pattern, first[pattern])
    for pattern in {**first, **second}:
        changed.put(pattern, second.get(pattern, ()))
    for pattern in second:
        fresh.put(pattern, second[pattern])
    rules = AuthorizerRules(allows_unless_acl=True)
    assert len(changed) == len(fresh)
    for operation in Operation:
        assert rules.allows(changed, who, operation, resource) is rules.allows(fresh, who, operation, resource)


def test_to_deny_describing_weighs_more_than_to_allow_reading() -> None:
    acls = Acls()
    acls.put(Pattern(ResourceType.TOPIC, "ab"), entry(Operation.READ), entry(Operation.DESCRIBE, is_allowed=False))
    assert acls.allow(Operation.READ)
    assert not acls.allow(Operation.DESCRIBE)


def test_to_deny_reading_does_not_deny_describing() -> None:
    acls = Acls()
    acls.put(Pattern(ResourceType.TOPIC, "ab"), entry(Operation.READ, is_allowed=False), entry(Operation.WRITE))
    assert acls.allow(Operation.DESCRIBE)


def test_what_cannot_be_read_lets_nobody_but_super_users() -> None:
    acls = Acls(rules=AuthorizerRules(super_users=frozenset({BOB}), allows_unless_acl=True))
    acls.put(Pattern(ResourceType.TOPIC, "a", is_prefix=True), *NOBODY_MAY)
    acls.put(Pattern(ResourceType.TOPIC, "ab"), entry(Operation.ALL))
    assert not acls.allow(Operation.READ)
    assert acls.allow(Operation.READ, make_topic_resource("b")), "others are not disturbed"
    assert acls.allow(Operation.READ, who=caller(BOB))


def test_who_asks_from_nowhere_is_let_by_no_acl() -> None:
    acls = Acls(rules=AuthorizerRules(super_users=frozenset({BOB}), allows_unless_acl=True))
    acls.put(Pattern(ResourceType.CLUSTER, "kafka-cluster"), entry(Operation.ALL, who="User:*"))
    assert not acls.allow(Operation.ALTER, THE_CLUSTER, Caller(principal=ALICE))
    assert acls.allow(Operation.ALTER, THE_CLUSTER, Caller(principal=BOB))


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::a00:27ff:fe4e:66a1", "fe80:0:0:0:a00:27ff:fe4e:66a1"),
    ],
)
def test_hosts_are_those_that_java_prints(address: str, host: str) -> None:
    assert format_host(ip_address(address)) == host


@pytest.mark.parametrize(
    ("operation", "title"),
    [
        (Operation.ALL, "All"),
        (Operation.CLUSTER_ACTION, "ClusterAction"),
        (Operation.DESCRIBE_CONFIGS, "DescribeConfigs"),
    ],
)
def test_operations_have_the_names_that_acls_have(operation: Operation, title: str) -> None:
    assert operation.title == title
