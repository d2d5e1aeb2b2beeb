"""The behaviour of a Lease on a real API server, and of the one in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from controller_operator.kubernetes.api_client import ApiRequests
from controller_operator.kubernetes.api_server import load_configuration
from controller_operator.kubernetes.object_api import ApiUnavailable, ObjectChanged, ObjectGone
from controller_operator.leading.kubernetes_lease import KubernetesLease
from controller_operator.leading.lease import NOBODY, make_first_claim, release_claim, renew_claim, take_over
from controller_operator.leading.lease_api import LeaseApi
from devcluster.clusters.kubernetes import KubernetesCluster
from tests.unit.operator.leading.simulated_lease import SimulatedLease

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

NOW = datetime(2026, 2, 3, 4, 5, 6, 789012, UTC)
TIMEOUT_S = 20.0

_numbers = count(1)


@dataclass(frozen=True)
class Kept:
    """A Lease, and the changes that users make to it."""

    api: LeaseApi
    label: Callable[[], Awaitable[object]]
    delete: Callable[[], Awaitable[object]]


@pytest.fixture(params=["in memory", "real"])
async def kept(request: pytest.FixtureRequest, kubernetes_api: KubernetesCluster) -> AsyncIterator[Kept]:
    if request.param == "in memory":
        simulated = SimulatedLease()

        async def label() -> None:
            simulated.label()

        async def delete() -> None:
            simulated.lease = None

        yield Kept(simulated, label, delete)
        return
    name = f"a-lease-{next(_numbers)}"

    async def kubectl(*arguments: str) -> None:
        kubernetes_api.kubectl(*arguments, "--namespace", "default")

    requests = ApiRequests(await load_configuration(kubeconfig=kubernetes_api.kubeconfig))
    try:
        yield Kept(
            KubernetesLease(requests, "default", name),
            lambda: kubectl("label", "lease", name, "a=label"),
            lambda: kubectl("delete", "lease", name),
        )
    finally:
        await requests.close()


async def test_a_lease_is_read_as_it_was_written(kept: Kept) -> None:
    assert await kept.api.read(TIMEOUT_S) is None
    created = await kept.api.create(make_first_claim("first", 10, NOW), TIMEOUT_S)
    assert created.claim == make_first_claim("first", 10, NOW)
    later = renew_claim(created.claim, NOW + timedelta(seconds=2, microseconds=5))
    written = await kept.api.write(created, later, TIMEOUT_S)
    assert (written.claim, written.uid) == (later, created.uid)
    assert written.version != created.version
    assert await kept.api.read(TIMEOUT_S) == written


async def test_only_one_of_two_that_write_the_same_version_succeeds(kept: Kept) -> None:
    created = await kept.api.create(make_first_claim("first", 10, NOW), TIMEOUT_S)
    with pytest.raises(ObjectChanged):
        await kept.api.create(make_first_claim("second", 10, NOW), TIMEOUT_S)
    await kept.api.write(created, renew_claim(created.claim, NOW + timedelta(seconds=1)), TIMEOUT_S)
    with pytest.raises(ObjectChanged):
        await kept.api.write(created, take_over(created.claim, "second", 10, NOW), TIMEOUT_S)


async def test_what_people_do_to_it_makes_it_another_version(kept: Kept) -> None:
    created = await kept.api.create(make_first_claim("first", 10, NOW), TIMEOUT_S)
    await kept.label()
    with pytest.raises(ObjectChanged):
        await kept.api.write(created, renew_claim(created.claim, NOW), TIMEOUT_S)
    labelled = await kept.api.read(TIMEOUT_S)
    assert labelled is not None
    assert (labelled.uid, labelled.claim) == (created.uid, created.claim)


async def test_a_lease_that_was_given_back_has_no_holder(kept: Kept) -> None:
    created = await kept.api.create(make_first_claim("first", 10, NOW), TIMEOUT_S)
    released = await kept.api.write(created, release_claim(created.claim, NOW), TIMEOUT_S)
    assert released.claim.holder == NOBODY
    again = await kept.api.write(released, take_over(released.claim, "second", 10, NOW), TIMEOUT_S)
    assert (again.claim.holder, again.claim.transitions) == ("second", 1)


async def test_a_deleted_lease_is_gone_and_the_next_one_is_another(kept: Kept) -> None:
    created = await kept.api.create(make_first_claim("first", 10, NOW), TIMEOUT_S)
    await kept.delete()
    assert await kept.api.read(TIMEOUT_S) is None
    with pytest.raises(ObjectGone):
        await kept.api.write(created, renew_claim(created.claim, NOW), TIMEOUT_S)
    another = await kept.api.create(make_first_claim("second", 10, NOW), TIMEOUT_S)
    assert another.uid != created.uid
    with pytest.raises(ObjectChanged):
        await kept.api.write(created, renew_claim(created.claim, NOW), TIMEOUT_S)


async def test_an_api_server_that_does_not_answer_in_time_is_unavailable(kubernetes_api: KubernetesCluster) -> None:
    requests = ApiRequests(await load_configuration(kubeconfig=kubernetes_api.kubeconfig))
    try:
        with pytest.raises(ApiUnavailable):
            await KubernetesLease(requests, "default", "whichever").read(0.000_1)
    finally:
        await requests.close()
