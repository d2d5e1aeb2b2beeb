"""DescribeCluster: the members of the cluster, as a broker reports them."""

from typing import Final

from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32

from controller_core.admin.cluster.authorized_operations import NOT_ASKED, operations_on_cluster
from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE

BROKERS: Final = i8(1)
CONTROLLERS: Final = i8(2)

VERSIONS: Final = Versions(DescribeClusterRequest, oldest=0)


def on_describe_cluster(view: ClusterView, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return the nodes of the cluster. Like a broker in ZooKeeper mode, the controller describes brokers, not
    controllers."""
    if request.endpoint_type == CONTROLLERS:
        return _refusal(
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return _refusal(ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {request.endpoint_type}")
    wants_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        cluster_id=view.cluster_id or "",
        controller_id=WireBrokerId(view.controller.id),
        brokers=tuple(
            DescribeClusterBroker(broker_id=WireBrokerId(node.id), host=node.host, port=i32(node.port), rack=node.rack)
            for node in view.nodes()
        ),
        cluster_authorized_operations=operations_on_cluster(view.rights) if wants_operations else NOT_ASKED,
    )


def _refusal(error_code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, error_message=message, cluster_id="", brokers=()
    )
