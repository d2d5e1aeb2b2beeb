"""The approval of a plan by another person, as the specs and statuses of several kinds have it."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from controller_operator.resources.schema import Rule


class Approval(StrEnum):
    """The need for a person's approval of the plan before it is carried out."""

    AUTOMATIC = "Automatic"
    REQUIRED = "Required"


HASH_DIGITS: Final = 16
PlanHash = Annotated[str, Field(max_length=HASH_DIGITS, pattern=rf"^[0-9a-f]{{{HASH_DIGITS}}}$")]
"""The hash of a plan in a spec."""


def require_for_good(what: str) -> Rule:
    """Return the rule that the need for approval cannot be revoked. `what`: the object, in words."""
    return Rule(
        "!has(oldSelf.approval) || oldSelf.approval != 'Required'"
        " || (has(self.approval) && self.approval == 'Required')",
        f"{what} with approval Required cannot be changed to Automatic: set approvedPlan, or create a new one",
        ".approval",
    )
