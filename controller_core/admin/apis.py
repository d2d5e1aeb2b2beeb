"""The table of the client requests that the controller answers in turn with its other events."""

from typing import Final

from controller_core.admin import alter_scram, update_features
from controller_core.admin.cluster import own_configs
from controller_core.admin.partitions import alter_reassignments, elect_leaders, list_reassignments
from controller_core.admin.topics import create_partitions, create_topics, delete_topics
from controller_core.controller.serving.served_api import AnyServedApi

CLIENT_APIS: Final[tuple[AnyServedApi, ...]] = (
    create_topics.API,
    delete_topics.API,
    create_partitions.API,
    elect_leaders.API,
    alter_reassignments.API,
    list_reassignments.API,
    alter_scram.API,
    update_features.API,
)

OWN_CONFIG_APIS: Final[tuple[AnyServedApi, ...]] = (own_configs.ALTER, own_configs.REPLACE, own_configs.DESCRIBE)
"""Requests that any broker answers for itself and for topics. The controller answers those about itself, in turn."""
