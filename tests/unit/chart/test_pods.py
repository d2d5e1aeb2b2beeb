"""The commands, options and scripts of the pods: the commands and options exist, and a real shell runs the scripts."""

import json
import re
from pathlib import Path

import pytest

from controller_core.process.settings import ControllerProcessSettings
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import (
    COMPONENTS,
    CONTROLLER_FOR_SOME,
    CONTROLLER_ON,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    container,
    find_object,
    options_of,
    render,
    run_as_pod,
    workload,
)

pytestmark = pytest.mark.needs(Part.HELM)

DOMAIN = f"kontroller-kafka.{RELEASE_NAMESPACE}.svc:9092"
POD_DNS_NAME = f"kontroller-controller-0.kontroller-controller.{RELEASE_NAMESPACE}.svc"


def fill_in_pod(value: str) -> str:
    """Replace variables in a value as Kubernetes does for the first controller."""
    return value.replace("$(POD_NAME)", "kontroller-controller-0").replace("$(POD_IP)", "10.1.2.3")


def test_each_controller_has_an_id_of_its_own_that_counts_down_from_the_first(tmp_path: Path) -> None:
    run = container("controller")
    second = run_as_pod([*run["command"], *run["args"]], "kontroller-controller-1", tmp_path)
    assert second[:4] == ["kontroller", "controller", "run", "--id=999"]
    assert second[4:] == run["args"]
    assert {option.split("=")[0] for option in second[3:]} <= options_of("controller", "run")
    first = run_as_pod([*run["command"], *run["args"]], "kontroller-controller-0", tmp_path)
    assert first[3] == "--id=1000"


def test_the_controller_finds_how_its_cluster_is_secured_in_one_folder() -> None:
    secrets = ("--set", "controller.connectionSecrets={kafka-login,kafka-certificates}")
    spec = workload("controller", *secrets)["template"]["spec"]
    (file,) = (option.split("=")[1] for option in spec["containers"][0]["args"] if option.startswith("--properties="))
    (mount,) = (each for each in spec["containers"][0]["volumeMounts"] if file.startswith(f"{each['mountPath']}/"))
    (volume,) = (each for each in spec["volumes"] if each["name"] == mount["name"])
    names = [source["secret"]["name"] for source in volume["projected"]["sources"]]
    assert (mount["readOnly"], names) == (True, ["kafka-login", "kafka-certificates"])


def test_the_operator_finds_how_each_cluster_is_secured_in_a_folder_of_its_own() -> None:
    given = ["one", ["two", "certificates"], ["two", "others"]]
    spec = workload("operator", "--set-json", f"operator.connectionSecrets={json.dumps(given)}")["template"]["spec"]
    files = [option.split("=")[1] for option in spec["containers"][0]["args"] if option.startswith("--properties=")]
    mounts = {each["mountPath"]: each["name"] for each in spec["containers"][0]["volumeMounts"]}
    secrets = {
        each["name"]: [source["secret"]["name"] for source in each.get("projected", {}).get("sources", ())]
        for each in spec["volumes"]
    }
    found = [secrets[mounts[file.removesuffix("/server.properties")]] for file in files]
    assert found == [["one"], ["two", "certificates"], ["two", "others"]]
    assert "--properties" in options_of("operator", "run")


def test_the_controller_can_use_the_settings_that_the_chart_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    run = container("controller", *CONTROLLER_ON)
    for variable in run["env"]:
        if "value" in variable:
            monkeypatch.setenv(variable["name"], fill_in_pod(variable["value"]))
    given = dict(argument.removeprefix("--").split("=", 1) for argument in run["args"])
    settings = ControllerProcessSettings(id=1, **{name.replace("-", "_"): value for name, value in given.items()})
    assert settings.zookeeper == "zk-0:2181,zk-1:2181/kafka"
    (endpoint,) = settings.listeners.endpoints
    assert (endpoint.host, endpoint.port) == (POD_DNS_NAME, 9093)
    assert (settings.metrics_host, settings.metrics_port) == ("0.0.0.0", 9404)
    assert settings.shared == {}, "the brokers return the settings in their files"
    assert settings.journal_directory is not None
    assert (settings.journal_segment_bytes, settings.journal_retention_bytes) == (64 << 20, 4 << 30)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("clusterDomain=cluster.local", f"{POD_DNS_NAME}.cluster.local:9093"),
        ("controller.advertiseBy=address", "10.1.2.3:9093"),
        ("controller.replicas=1,controller.advertise=k.example:19093", "k.example:19093"),
    ],
)
def test_brokers_are_told_the_name_of_a_controller_s_pod_unless_something_else_is_wanted(
    values: str, told: str
) -> None:
    environment = container("controller", "--set", values)["env"]
    (advertised,) = (each["value"] for each in environment if each["name"] == "KONTROLLER_ADVERTISE")
    assert fill_in_pod(advertised) == f"PLAINTEXT://{told}"
    named_before = [each["name"] for each in environment].index("KONTROLLER_ADVERTISE")
    assert {"POD_NAME", "POD_IP"} <= {each["name"] for each in environment[:named_before]}


def test_the_names_of_controllers_are_known_before_their_pods_are_ready() -> None:
    objects = render(*SELF_CONTAINED)
    service = find_object(objects, "Service", "kontroller-controller")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert (
        find_object(objects, "StatefulSet", "kontroller-controller")["spec"]["serviceName"] == "kontroller-controller"
    )


def test_each_further_listener_has_a_port_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    more = "controller.moreListeners[0].name=CLIENT,controller.moreListeners[0].port=9192"
    run = container("controller", *CONTROLLER_ON, "--set", f"{more},controller.controlPlaneListener=CONTROL")
    listened_on = [argument.split("=", 1)[1] for argument in run["args"] if argument.startswith("--listen=")]
    (advertised,) = (each["value"] for each in run["env"] if each["name"] == "KONTROLLER_ADVERTISE")
    monkeypatch.setenv("KONTROLLER_ADVERTISE", fill_in_pod(advertised))
    listeners = ControllerProcessSettings(id=1, zookeeper="zk", listen=tuple(listened_on)).listeners
    assert {(each.listener, each.host, each.port) for each in listeners.endpoints} == {
        ("PLAINTEXT", POD_DNS_NAME, 9093),
        ("CLIENT", POD_DNS_NAME, 9192),
    }
    assert "--control-plane-listener=CONTROL" in run["args"]
    assert {each["containerPort"] for each in run["ports"]} >= {9093, 9192}


def test_the_controller_is_hidden_from_the_listeners_in_the_values() -> None:
    run = container("controller", *CONTROLLER_ON, "--set", "controller.hideFrom={CLIENT,EXTERNAL}")
    assert [argument for argument in run["args"] if "hide" in argument] == [
        "--hide-from=CLIENT",
        "--hide-from=EXTERNAL",
    ]


def test_a_controller_is_told_how_long_clients_keep_the_addresses_of_the_chart_s_brokers() -> None:
    name = "KONTROLLER_ADDRESS_CACHE_SECONDS"
    values = ("--set", "kafka.addressCacheSeconds=70")
    assert [each["value"] for each in container("controller", *values)["env"] if each["name"] == name] == ["70"]
    assert "--address-cache-seconds" in options_of("controller", "run")


def test_a_controller_is_told_the_address_of_its_node_to_name_networks_that_contain_it() -> None:
    (node,) = (each for each in container("controller")["env"] if each["name"] == "KONTROLLER_NODE_ADDRESS")
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "status.hostIP"
    assert "--node-address" in options_of("controller", "run")


def test_who_may_ask_what_is_as_the_values_say(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = ("KONTROLLER_ADMIN_CIDR", "KONTROLLER_BROKER_CIDR", "KONTROLLER_RELAY")

    def access(*values: str) -> tuple[list[str], list[str], bool]:
        given = {each["name"]: each.get("value") for each in container("controller", *CONTROLLER_ON, *values)["env"]}
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)
            if variable in given:
                monkeypatch.setenv(variable, given[variable])
        settings = ControllerProcessSettings(id=1, zookeeper="zk:2181", listen=("PLAINTEXT://h:1",))
        return list(map(str, settings.admin_cidr)), list(map(str, settings.broker_cidr)), settings.relay

    assert access() == (["10.0.0.0/8"], [], False)
    given = "controller.access.adminCidrs={10.0.0.0/8,fd00::/8},controller.access.brokerCidrs={192.0.2.0/24}"
    assert access("--set", given) == (["10.0.0.0/8", "fd00::/8"], ["192.0.2.0/24"], False)
    assert access("--set", "controller.access.relay=true") == (["10.0.0.0/8"], [], True)


def test_what_others_may_take_is_as_the_values_say(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "maxConnections": 7, "maxConnectionsPerAddress": 5, "socketRequestMaxBytes": 104857599,
        "connectionsMaxIdleMs": 6000, "maxRequestsInFlight": 4, "queuedMaxRequests": 3, "queuedMaxRequestBytes": 1 << 33,
        "controllerQuotaWindowNum": 2, "controllerQuotaWindowSizeSeconds": 9,
    }  # fmt: skip
    values = ",".join(f"controller.limits.{name}={value}" for name, value in given.items())
    values += ",controller.resources.limits.memory=9Gi"
    for each in container("controller", *CONTROLLER_ON, "--set", values)["env"]:
        if re.search("MAX(?!BUFFER)|QUOTA", each["name"]):
            monkeypatch.setenv(each["name"], each["value"])
    settings = ControllerProcessSettings(id=1, zookeeper="zk:2181", listen=("PLAINTEXT://h:1",))
    assert [getattr(settings, re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)) for name in given] == [
        *given.values()
    ]


def test_all_who_speak_to_zookeeper_keep_to_its_limit_for_requests() -> None:
    def limits(*values: str) -> dict[str, str | None]:
        containers = {component: container(component, *values) for component in COMPONENTS}
        return {
            component: next(
                (each["value"] for each in run["env"] if "JUTE" in each["name"]),
                option if option in str(run["command"]) else None,
            )
            for component, run in containers.items()
        }

    larger, option = "4194304", "-Djute.maxbuffer=4194304"

    assert limits() == {"operator": "1048575", "controller": "1048575", "zookeeper": None, "kafka": None}
    given = limits("--set", f"zookeeper.juteMaxbufferBytes={larger}")
    assert given == {"operator": larger, "controller": larger, "zookeeper": option, "kafka": option}


@pytest.mark.parametrize(
    ("values", "claims", "folders"),
    [
        ((), {"data": "5Gi"}, {"tmp"}),
        (("--set", "controller.journal.persistence.size=1Ti"), {"data": "1Ti"}, {"tmp"}),
        (("--set", "controller.journal.persistence.enabled=false"), {}, {"tmp", "data"}),
    ],
    ids=["defaults", "larger", "without volumes"],
)
def test_each_controller_has_a_journal_that_it_can_write(
    values: tuple[str, ...], claims: dict[str, str], folders: set[str]
) -> None:
    spec = workload("controller", *values)
    pod = spec["template"]["spec"]
    (run,) = pod["containers"]
    (directory,) = (each["value"] for each in run["env"] if each["name"] == "KONTROLLER_JOURNAL_DIRECTORY")
    (mount,) = (each for each in run["volumeMounts"] if each["name"] == "data")
    assert Path(directory).is_relative_to(mount["mountPath"])
    assert not mount.get("readOnly")
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]
    sizes = {
        each["metadata"]["name"]: each["spec"]["resources"]["requests"]["storage"]
        for each in spec.get("volumeClaimTemplates", [])
    }
    assert sizes == claims
    assert {volume["name"] for volume in pod["volumes"]} == folders


def test_a_controller_without_a_journal_has_no_volume_and_no_setting_of_it() -> None:
    spec = workload("controller", "--set", "controller.journal.enabled=false")
    (run,) = spec["template"]["spec"]["containers"]
    assert not [each["name"] for each in run["env"] if "JOURNAL" in each["name"]]
    assert "volumeClaimTemplates" not in spec
    assert [volume["name"] for volume in spec["template"]["spec"]["volumes"]] == ["tmp"]


def test_of_several_operators_each_is_one_of_its_own_and_all_ask_for_one_lease() -> None:
    assert workload("operator")["replicas"] == 2
    assert workload("operator", "--set", "operator.replicas=3")["replicas"] == 3
    operator = container("operator")
    assert {"--lease=kontroller-operator", f"--lease-namespace={RELEASE_NAMESPACE}"} <= set(operator["args"])
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in operator["env"] if "valueFrom" in each
    }
    assert fields == {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    given = {each["name"]: each.get("value") for each in operator["env"]}
    assert given["KONTROLLER_LEASE_IDENTITY"] == "$(POD_NAME)_$(POD_UID)"


def test_the_operator_is_told_which_namespaces_to_watch() -> None:
    assert "--all-namespaces" in container("operator")["args"]
    listed = container("operator", "--set", "watchNamespaces={payments,audit}")["args"]
    assert [argument for argument in listed if argument.startswith("--namespace")] == [
        "--namespace=payments",
        "--namespace=audit",
    ]


def test_controller_and_brokers_are_told_of_the_same_zookeeper() -> None:
    def find_addresses(*values: str) -> tuple[str, str]:
        objects = render("--set", f"{CONTROLLER_FOR_SOME},kafka.enabled=true", *values)
        config = find_object(objects, "ConfigMap", "kontroller-kafka")["data"]["server.properties"]
        (broker,) = (line for line in config.splitlines() if line.startswith("zookeeper.connect="))
        pod = find_object(objects, "StatefulSet", "kontroller-controller")["spec"]["template"]["spec"]
        (controller,) = (each for each in pod["containers"][0]["args"] if each.startswith("--zookeeper="))
        return broker.removeprefix("zookeeper.connect="), controller.removeprefix("--zookeeper=")

    server = f"kontroller-zookeeper-0.kontroller-zookeeper.{RELEASE_NAMESPACE}.svc"
    assert find_addresses("--set", "zookeeper.enabled=true,zookeeper.replicas=1") == (f"{server}:2181/kafka",) * 2
    full = find_addresses("--set", "zookeeper.enabled=true,zookeeper.replicas=1,clusterDomain=cluster.local")
    assert full == (f"{server}.cluster.local:2181/kafka",) * 2
    assert find_addresses("--set", "kafka.zookeeper=zk:2181/a") == ("zk:2181/a",) * 2
    assert find_addresses("--set", "controller.zookeeper=zk:2181/b") == ("zk:2181/b",) * 2


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def render_server_properties(*values: str) -> str:
    """Return the brokers' file, without what is different on each broker."""
    config: str = find_object(render(*SELF_CONTAINED, *values), "ConfigMap", "kontroller-kafka")["data"][
        "server.properties"
    ]
    return config


def test_a_broker_is_started_with_its_own_id_and_address(tmp_path: Path) -> None:
    values = ("--set", r"kafka.firstBrokerId=100,kafka.config.log\.retention\.ms=604800000,kafka.config.a=0.25")
    (tmp_path / "server.properties").write_text(render_server_properties(*values))
    script = [
        part.replace("/etc/kafka/", f"{tmp_path}/").replace("/tmp/server.properties", f"{tmp_path}/made.properties")
        for part in container("kafka", *values)["command"]
    ]
    started = run_as_pod(script, "kontroller-kafka-2", tmp_path, {"KAFKA_OPTS": "-Dof=others"})
    assert started == ["kafka-server-start.sh", f"{tmp_path}/made.properties"]
    assert (tmp_path / "arguments.kafka-opts").read_text() == "-Dsun.net.inetaddr.ttl=5 -Dof=others"
    made = properties((tmp_path / "made.properties").read_text())
    assert made["broker.id"] == "102"
    assert made["advertised.listeners"] == f"PLAINTEXT://kontroller-kafka-2.{DOMAIN}"
    assert (made["log.retention.ms"], made["a"]) == ("604800000", "0.25")
    assert (made["default.replication.factor"], made["min.insync.replicas"]) == ("3", "2")


def test_whole_numbers_of_a_values_file_are_written_as_such(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        "kafka: {config: {log.retention.ms: 604800000, log.cleaner.min.cleanable.ratio: 0.25, a.b: true}}\n"
    )
    made = properties(render_server_properties("--values", str(file)))
    assert made["log.retention.ms"] == "604800000"
    assert (made["log.cleaner.min.cleanable.ratio"], made["a.b"]) == ("0.25", "true")


@pytest.mark.parametrize(
    ("options", "backoff_ms"), [((), "100"), (("--set", "kafka.config.replica\\.fetch\\.backoff\\.ms=500"), "500")]
)
def test_followers_soon_ask_a_new_leader_again_unless_the_values_say_otherwise(
    options: tuple[str, ...], backoff_ms: str
) -> None:
    assert properties(render_server_properties(*options))["replica.fetch.backoff.ms"] == backoff_ms


@pytest.mark.parametrize(("replicas", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (5, "3", "2")])
def test_replication_is_as_the_number_of_brokers_allows(replicas: int, copies: str, in_sync: str) -> None:
    made = properties(render_server_properties("--set", f"kafka.replicas={replicas}"))
    assert made["default.replication.factor"] == made["offsets.topic.replication.factor"] == copies
    assert made["min.insync.replicas"] == made["transaction.state.log.min.isr"] == in_sync


def test_a_broker_drains_before_it_stops_within_its_time(tmp_path: Path) -> None:
    spec = workload("kafka", "--set", "kafka.firstBrokerId=100")["template"]["spec"]
    hook = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    program, command, *options = run_as_pod(hook, "kontroller-kafka-1", tmp_path)
    assert (program, command) == ("kontroller", "drain")
    assert options == [
        f"--bootstrap-server=kontroller-kafka-1.{DOMAIN},{DOMAIN}",
        "--broker-id=101",
        "--timeout-ms=120000",
        "--log-to=/proc/1/fd/1",
    ]
    assert {option.split("=")[0] for option in options} <= options_of("drain")
    assert spec["terminationGracePeriodSeconds"] == 180
    assert "lifecycle" not in container("kafka", "--set", "kafka.drain.enabled=false")


def test_a_broker_is_ready_when_it_says_so_itself(tmp_path: Path) -> None:
    kafka = container("kafka")
    asked = run_as_pod(kafka["readinessProbe"]["exec"]["command"], "kontroller-kafka-0", tmp_path)
    server = f"--bootstrap-server=kontroller-kafka-0.{DOMAIN}"
    assert asked == ["kontroller", "ready", server, "--broker-id=0", "--address-cache-seconds=40"]
    assert {option.split("=")[0] for option in asked[2:]} <= options_of("ready")
    assert kafka["startupProbe"]["periodSeconds"] * kafka["startupProbe"]["failureThreshold"] == 1800
    assert kafka["livenessProbe"]["tcpSocket"] == {"port": "kafka"}


def test_zookeeper_s_servers_know_who_they_are(tmp_path: Path) -> None:
    values = ("--set", "zookeeper.replicas=3")
    config = find_object(render(*SELF_CONTAINED, *values), "ConfigMap", "kontroller-zookeeper")["data"]["zoo.cfg"]
    servers = [line for line in config.splitlines() if line.startswith("server.")]
    assert servers[2] == f"server.3=kontroller-zookeeper-2.kontroller-zookeeper.{RELEASE_NAMESPACE}.svc:2888:3888"
    script = [part.replace("/var/lib/zookeeper", str(tmp_path)) for part in container("zookeeper", *values)["command"]]
    started = run_as_pod(script, "kontroller-zookeeper-2", tmp_path)
    assert started == ["zookeeper-server-start.sh", "/etc/zookeeper/zoo.cfg"]
    assert (tmp_path / "data" / "myid").read_text() == "3\n"
