"""IncrementalAlterConfigs: changes a configuration in ZooKeeper and notifies all brokers.

Each resource is changed as a whole or not at all, if it has not changed since it was read.
"""

from typing import Final

from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource, IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from controller_core.admin.refusals import ItemRefused, make_unwritten_refusal
from controller_core.model.ids import TopicName
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE, ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, make_reader, put
from controller_core.zk.session import Create, CreateMode, WriteOp, ZkError, ZkNode, ZkSession
from replica_broker.membership.node import Node
from replica_broker.serving.configs.altering import apply_changes

VERSIONS: Final = Versions(IncrementalAlterConfigsRequest, oldest=0)

_TOPIC, _BROKER = 2, 4


async def on_alter_configs(
    node: Node, zk: ZkSession, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Answer for each resource on its own."""
    responses = []
    for resource in request.resources:
        error_code, why = ErrorCode.none, None
        try:
            await _alter(node, zk, resource, validate_only=request.validate_only)
        except ItemRefused as refused:
            error_code, why = refused.error_code, refused.message
        except Contended as error:
            error_code, why = make_unwritten_refusal(error).error_code, make_unwritten_refusal(error).message
        except (MalformedZnode, ZkError) as error:
            error_code, why = ErrorCode.unknown_server_error, str(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=error_code,
                error_message=why,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=tuple(responses))


async def _alter(node: Node, zk: ZkSession, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    is_topic = resource.resource_type == _TOPIC
    path, entity = _topic(node, resource) if is_topic else _own(node, resource)

    def decide(present: ZkNode | None) -> list[WriteOp]:
        config = codecs.decode_config(present.data, path) if present else {}
        wanted = apply_changes(config, resource.configs, is_topic=is_topic)
        if validate_only or wanted == config:
            return []
        change = codecs.encode_config_change(entity)
        return [
            put(path, present, codecs.encode_config(wanted)),
            Create(path=paths.CONFIG_CHANGE_PREFIX, data=change, mode=CreateMode.PERSISTENT_SEQUENTIAL),
        ]

    await compare_and_set(make_reader(zk, path), decide, zk.transact)


def _topic(node: Node, resource: AlterConfigsResource) -> tuple[str, str]:
    topic = TopicName(resource.resource_name)
    if not node.metadata.partitions(topic):
        raise ItemRefused(ErrorCode.unknown_topic_or_partition, f"The topic '{topic}' does not exist.")
    return paths.topic_config(topic), f"topics/{topic}"


def _own(node: Node, resource: AlterConfigsResource) -> tuple[str, str]:
    if resource.resource_type != _BROKER or resource.resource_name != str(node.id):
        raise ItemRefused(
            ErrorCode.invalid_request,
            f"broker {node.id} alters only topics and its own throttles: send other changes to a stock broker",
        )
    return paths.broker_config(node.id), f"brokers/{node.id}"
