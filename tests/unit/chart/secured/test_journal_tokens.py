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


TLS = "{0}.journalTls.caSecret=authorities,{0}.journalTls.certificateSecret=reader"
CAPS = {"--max-line-bytes": 2**20, "--max-file-bytes": 2**33, "--max-journal-bytes": 2**40}


def find_options(container: Object, *names: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in container["args"]]
    return {name: value for name, _, value in pairs if name in names}


def test_readers_of_https_journals_have_their_authorities_and_a_certificate() -> None:
    both = ("--set", TLS.format("history"), "--set", TLS.format("alarms"))
    http = ("--set", "monitoring.http.certificateSecret=web,monitoring.http.clientCaSecret=ca")
    files = {
        "--journal-ca": "/etc/kontroller/journal-ca/ca.crt",
        "--journal-certificate": "/etc/kontroller/journal-certificate/tls.crt",
        "--journal-key": "/etc/kontroller/journal-certificate/tls.key",
    }
    for values in (both, (*both, *http)):
        for pod, container in readers(pods(render(*READERS, *values))):
            assert find_options(container, *files) == files
            named = {each["name"]: each.get("secret", {}).get("secretName") for each in pod["volumes"]}
            mounts = {each["mountPath"]: named[each["name"]] for each in container["volumeMounts"]}
            assert {mounts[file.rpartition("/")[0]] for file in files.values()} == {"authorities", "reader"}
    for _, container in readers(pods(render(*READERS))):
        assert find_options(container, *files, *CAPS) == {}


def test_readers_have_the_given_caps_as_whole_numbers() -> None:
    caps = [f"{{0}}.journalCaps.{name.split('-')[3]}Bytes={size}" for name, size in CAPS.items()]
    values = ("--set", ",".join(caps).format("history"), "--set", ",".join(caps[:2]).format("alarms"))
    found = [find_options(container, *CAPS) for _, container in readers(pods(render(*READERS, *values)))]
    whole = {name: str(size) for name, size in CAPS.items()}
    assert found == [whole, {name: size for name, size in whole.items() if name != "--max-journal-bytes"}]


@pytest.mark.parametrize("value", ["history.journalCaps.lineBytes=5", "alarms.journalCaps.journalBytes=1000000"])
def test_a_cap_that_the_command_would_refuse_is_refused(value: str) -> None:
    with pytest.raises(CommandError, match="journalCaps"):
        render(*READERS, "--set", value)


def test_the_commands_have_the_options_for_certificates_and_caps() -> None:
    tls = {"--journal-ca", "--journal-certificate", "--journal-key"}
    assert tls | CAPS.keys() <= set(options_of("history", "ingest"))
    assert tls | (CAPS.keys() - {"--max-journal-bytes"}) <= set(options_of("history", "watch"))


def test_the_commands_have_the_option() -> None:
    for command in (("controller", "run"), ("record",), ("history", "ingest"), ("history", "watch")):
        assert "--journal-token-file" in options_of(*command)


def test_a_token_that_is_both_made_and_given_is_refused() -> None:
    with pytest.raises(CommandError, match="set either create or secretName"):
        render(*SELF_CONTAINED, *GIVEN, "--set", "controller.journal.token.create=true")
