"""The namespaces in which the chart's webhook and policies judge objects."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from devcluster.filling.parts import Part
from tests.unit.chart.rendering import render

pytestmark = pytest.mark.needs(Part.HELM)

ALL_OF_THEM: Final = (
    "--set",
    "approvalPolicy.enabled=true,approvalPolicy.required=true,deletionGuard.enabled=true,"
    "webhook.enabled=true,webhook.certificate.certManager.enabled=true",
)
WATCHED: Final = ("--set", "watchNamespaces={team-a,team-b}")
LABELLED: Final = ("--set", "approvalPolicy.namespaceSelector.matchLabels.kafka=shared")
EVERYWHERE: Final = None
IN_WATCHED: Final = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a", "team-b"]},
    ]
}
IN_LABELLED: Final = {"matchLabels": {"kafka": "shared"}}


def find_selectors(*values: str) -> Iterator[tuple[str, Any]]:
    """Yield the name of each webhook and policy, with the selector of its namespaces."""
    for each in render(*ALL_OF_THEM, *values):
        match each["kind"]:
            case "ValidatingWebhookConfiguration":
                yield from ((hook["name"], hook.get("namespaceSelector")) for hook in each["webhooks"])
            case "ValidatingAdmissionPolicyBinding":
                policy = each["metadata"]["name"].partition(".")[0]
                yield policy, each["spec"].get("matchResources", {}).get("namespaceSelector")


@pytest.mark.parametrize(
    ("values", "of_policy", "of_others"),
    [
        ((), EVERYWHERE, EVERYWHERE),
        (WATCHED, IN_WATCHED, IN_WATCHED),
        (LABELLED, IN_LABELLED, EVERYWHERE),
        ((*WATCHED, *LABELLED), IN_LABELLED, IN_WATCHED),
    ],
)
def test_objects_that_another_release_watches_are_not_judged(
    values: tuple[str, ...], of_policy: object, of_others: object
) -> None:
    assert dict(find_selectors(*values)) == {
        "kontroller-approval": of_policy,
        "kontroller-deletion": of_others,
        "validate.kontroller.dev": of_others,
        "warn.kontroller.dev": of_others,
    }
