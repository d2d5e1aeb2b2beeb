"""ACLs: both controllers refuse what an ACL denies to the user of the connection, and do what ACLs allow."""

import json

from controller_core.wire.messages import ErrorCode
from controller_core.zk import paths
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import with_acls
from tests.real.conformance.test_admin_requests import codes, growth, make_growing


def notify(cluster: ConformanceCluster, topic: str) -> None:
    """Announce that the ACLs of a topic have changed, as Kafka's brokers do."""
    cluster.znodes.client.create(f"{paths.ACL_CHANGES}/acl_changes_", f"Topic:{topic}".encode(), sequence=True)


@with_acls
def test_a_request_is_refused_where_an_acl_denies_it_and_done_where_one_allows_it(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("denied", [[1, 2]])
    cluster.serve_topic("allowed", [[1, 2]])
    request = make_growing(growth("allowed", 2), growth("denied", 2), validate_only=True)
    both_allowed = [("allowed", ErrorCode.none), ("denied", ErrorCode.none)]
    assert codes(cluster, request) == both_allowed
    entry = {"principal": f"User:{cluster.user}", "permissionType": "Deny", "operation": "Alter", "host": "*"}
    acl = f"{paths.ACLS}/Topic/denied"
    cluster.znodes.client.create(acl, json.dumps({"version": 1, "acls": [entry]}).encode())
    notify(cluster, "denied")
    refused = [("allowed", ErrorCode.none), ("denied", ErrorCode.topic_authorization_failed)]
    cluster.wait(lambda: codes(cluster, request) == refused, "the controller knows the ACL")
    cluster.znodes.client.delete(acl)
    notify(cluster, "denied")
    cluster.wait(lambda: codes(cluster, request) == both_allowed, "the controller knows that the ACL is gone")
