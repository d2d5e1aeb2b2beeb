"""Every call of the client."""

from collections.abc import Awaitable, Callable

from controller_core.client.admin_client import AdminClient
from controller_core.client.features import FeatureUpdate


def every_call(admin: AdminClient) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return every call by name, made for the existing topic `orders`."""
    move = '{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]}]}'
    return {
        "describe_cluster": admin.describe_cluster,
        "describe_loads": lambda: admin.describe_loads(between_looks_s=0),
        "create_topic": lambda: admin.create_topic("new", 1, 1),
        "alter_topic": lambda: admin.alter_topic("orders", 2, added_configs={"a": "b"}),
        "delete_topic": lambda: admin.delete_topic("orders"),
        "list_topics": admin.list_topics,
        "describe_topic": lambda: admin.describe_topic("orders"),
        "reassign_partitions": lambda: admin.reassign_partitions(move),
        "throttle_reassignment": lambda: admin.throttle_reassignment(move, 1000),
        "throttle_brokers": lambda: admin.throttle_brokers([1], 1000),
        "end_owned_throttle": lambda: admin.end_owned_throttle(move),
        "unthrottle_reassignment": lambda: admin.unthrottle_reassignment(move),
        "progress_of_reassignment": lambda: admin.progress_of_reassignment(move),
        "placements_of_reassignment": lambda: admin.placements_of_reassignment(move),
        "verify_reassign_partitions": lambda: admin.verify_reassign_partitions(move),
        "cancel_reassignment": lambda: admin.cancel_reassignment(move),
        "list_reassignments": admin.list_reassignments,
        "preferred_replica_leader_election": admin.preferred_replica_leader_election,
        "elect_unclean": admin.elect_unclean,
        "verify_preferred_replica_leader_election": admin.verify_preferred_replica_leader_election,
        "set_scram_user": lambda: admin.set_scram_user("u", "p"),
        "delete_scram_user": lambda: admin.delete_scram_user("u", "SCRAM-SHA-256"),
        "list_scram_users": admin.list_scram_users,
        "describe_features": admin.describe_features,
        "update_features": lambda: admin.update_features([FeatureUpdate(feature="f", level=1)]),
        "delete_features": lambda: admin.delete_features(["f"]),
    }
