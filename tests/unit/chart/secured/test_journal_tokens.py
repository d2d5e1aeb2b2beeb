"""The token of a served journal: the pods that have it as a file. Each journal is shown only its own token."""

from typing import Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import RELEASE_NAMESPACE, SELF_CONTAINED, Object, find_object, options_of, render

pytestmark = pytest.mark.needs(Part.HELM)

GIVEN: Final = ("--set", "controller.journal.token.secretName=journal")
READERS: Final = (*SELF_CONTAINED, "--set", "history.enabled=true,alarms.enabled=true")
ELSEWHERE: Final = "http://recorder.other.svc:9404/journal"
OWN: Final = [
    f"http://kontroller-controller-{number}.kontroller-controller.{RELEASE_NAMESPACE}.svc:9404/journal"
    for number in range(2)
]


def pods(objects: list[Object]) -> dict[str, Object]:
    """The specs of the pods of controllers, ingest and watch."""
    job = find_object(objects, "CronJob", "kontroller-history")["spec"]["jobTemplate"]["spec"]
    return {
        "controller": find_object(objects, "StatefulSet", "kontroller-controller")["spec"]["template"]["spec"],
        "history": job["template"]["spec"],
        "alarms": find_object(objects, "Deployment", "kontroller-alarms")["spec"]["template"]["spec"],
    }


def secrets(pod: Object, container: Object) -> dict[str, str]:
    """Return the Secret of each file `token` that a container has."""
    volumes = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    mounts = [each for each in container["volumeMounts"] if each["name"] in volumes]
    assert all(each["readOnly"] for each in mounts)
    return {f"{each['mountPath']}/token": volumes[each["name"]] for each in mounts}


def find_tokens(pod: Object, container: Object) -> dict[str, str]:
    """Return the Secret whose token is shown to each journal."""
    start = "--journal-token-file="
    options = [each.removeprefix(start).split("=") for each in container["args"] if each.startswith(start)]
    files = secrets(pod, container)
    assert {file for _, file in options} == files.keys()
    return {journal: files[file] for journal, file in options}


def readers(pods: dict[str, Object]) -> list[tuple[Object, Object]]:
    """The containers that read journals, each with its pod."""
    (ingest,), (watch,) = pods["history"]["initContainers"], pods["alarms"]["containers"]
    return [(pods["history"], ingest), (pods["alarms"], watch)]


@pytest.mark.parametrize(
    ("values", "secret"),
    [(GIVEN, "journal"), (("--set", "controller.journal.token.create=true"), "kontroller-controller-journal-token")],
    ids=["given", "made"],
)
def test_controllers_and_who_reads_their_journals_have_the_token_as_a_file(
    values: tuple[str, ...], secret: str
) -> None:
    objects = render(*READERS, *values)
    found = pods(objects)
    (controller,) = found["controller"]["containers"]
    (file,) = (each["value"] for each in controller["env"] if each["name"] == "KONTROLLER_JOURNAL_TOKEN_FILE")
    assert secrets(found["controller"], controller) == {file: secret}
    for pod, container in readers(found):
        assert find_tokens(pod, container) == dict.fromkeys(OWN, secret)
    (report,) = found["history"]["containers"]
    assert secrets(found["history"], report) == {}


def test_without_being_asked_for_there_is_no_token() -> None:
    for values in ((), ("--set", "controller.journal.enabled=false,controller.journal.token.create=true")):
        named_too = ("--set", f"history.journals={{{ELSEWHERE}}},alarms.journals={{{ELSEWHERE}}}")
        objects = render(*READERS, *named_too, *values)
        assert "journal-token" not in str(objects)
        assert "Secret" not in {each["kind"] for each in objects}


def test_a_journal_of_others_is_shown_its_own_token_and_never_this_release_s() -> None:
    def make_values(reader: str) -> str:
        token = f"{reader}.journalTokens[0]"
        return f"{reader}.journals={{{ELSEWHERE}}},{token}.journal={ELSEWHERE},{token}.secretName=theirs"

    values = ("--set", make_values("history"), "--set", make_values("alarms"))
    objects = render(*READERS, *GIVEN, *values)
    for pod, container in readers(pods(objects)):
        assert find_tokens(pod, container) == {**dict.fromkeys(OWN, "journal"), ELSEWHERE: "theirs"}
    for pod, container in readers(pods(render(*READERS, *values))):
        assert find_tokens(pod, container) == {ELSEWHERE: "theirs"}


def test_the_commands_have_the_option() -> None:
    for command in (("controller", "run"), ("record",), ("history", "ingest"), ("history", "watch")):
        assert "--journal-token-file" in options_of(*command)


def test_a_token_that_is_both_made_and_given_is_refused() -> None:
    with pytest.raises(CommandError, match="set create or secretName"):
        render(*SELF_CONTAINED, *GIVEN, "--set", "controller.journal.token.create=true")
