"""What brokers ask their controller, and the operations that answer."""

from typing import Final

from controller_core.controller import isr, producer_ids, shutdown
from controller_core.controller.served_api import AnyServedApi, ServedApi
from controller_core.wire import isr_changes
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
)
from controller_core.wire.versions import Versions

BROKER_APIS: Final[tuple[AnyServedApi, ...]] = (
    ServedApi(
        versions=Versions(AlterPartitionRequest, read=isr_changes.read_request, write=isr_changes.write_response),
        answer=isr.on_alter_partition,
        refuse=lambda _, error_code: isr.refusal(error_code),
        may_be_let_in=isr.may_be_let_in,
    ),
    ServedApi(
        versions=Versions(ControlledShutdownRequest),
        answer=shutdown.on_controlled_shutdown,
        refuse=lambda _, error_code: shutdown.refuse(error_code),
    ),
    ServedApi(
        versions=Versions(AllocateProducerIdsRequest),
        answer=producer_ids.on_allocate_producer_ids,
        refuse=lambda _, error_code: producer_ids.refusal(error_code),
    ),
)
