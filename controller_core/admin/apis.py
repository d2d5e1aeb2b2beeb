"""The table of the client requests that the controller answers in its turn among the other events."""

from typing import Final

from controller_core.admin import list_reassignments
from controller_core.controller.served_api import AnyServedApi

CLIENT_APIS: Final[tuple[AnyServedApi, ...]] = (list_reassignments.API,)
