"""The shell at a terminal, on real clusters: completion, commands and errors."""

from pathlib import Path

import pytest

from tests.real.conformance.client.commands import Kontroller, Terminal, kontroller_of
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.tools.test_java_tools import fill, plan_file

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

TAB = "\t"


@pytest.fixture
def shell(cluster: ConformanceCluster, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    kontroller = kontroller_of(cluster, cluster.bootstrap, state=str(tmp_path_factory.mktemp("state")))
    terminal = kontroller.start_at_terminal("shell")
    terminal.wait_for(f"[controller {cluster.znodes.controller()}]>")
    return terminal


def test_lines_are_run_as_commands_and_errors_do_not_end_it(
    shell: Terminal, cluster: ConformanceCluster, name: str
) -> None:
    shell.type(f"topics create --topic {name} --replica-assignment 1:2\n")
    shell.wait_for(f"topic {name} is created")
    shell.wait_for_prompt()
    cluster.wait_until_served(name)
    for wrong, said in (
        ("topics create", "Missing option"),
        ("topic list", "is not a command"),
        ('topics "', "cannot be read"),
        (f"topics create --topic {name}", "TOPIC_ALREADY_EXISTS"),
    ):
        shell.type(f"{wrong}\n")
        shell.wait_for(said)
        shell.wait_for_prompt()
    shell.type("help topics create\n")
    shell.wait_for("--replica-assignment 1:2,2:3")
    shell.wait_for_prompt()
    shell.type(f"topics delete --topic {name}\n")
    shell.wait_for("[y/N]?")
    shell.type("\n")
    shell.wait_for("nothing is deleted")
    shell.wait_for_prompt()
    shell.type(f"topics delete --topic {name}\n")
    shell.wait_for("[y/N]?")
    shell.type("y\n")
    shell.wait_for("is marked for deletion")
    shell.wait_for_prompt()
    cluster.wait_until_gone(f"/brokers/topics/{name}")
    shell.type("exit\n")
    assert shell.end().code == 0


def test_commands_options_topics_and_brokers_are_completed(cluster: ConformanceCluster, name: str) -> None:
    topic = f"completed-{name}"  # like no other, so that the completion is unique
    cluster.serve_topic(topic, [[1, 2, 3]])  # a controller does not count as a broker in replicas
    cluster.wait_until_everybody_knows(topic)
    shell = kontroller_of(cluster, cluster.bootstrap).start_at_terminal("shell")
    shell.wait_for_prompt()
    shell.type(f"top{TAB}")
    shell.wait_for("topics")
    shell.type(f" desc{TAB}")
    shell.wait_for("describe")
    shell.type(f" --top{TAB}")
    shell.wait_for("--topic")
    shell.type(f" {topic[:-1]}{TAB}")
    shell.wait_for(topic[-1])
    shell.type("\n")
    shell.wait_for("PARTITION")
    shell.wait_for_prompt()
    shell.type(f"topics create --validate-only --topic {topic}-new --replica-assignment 1:2,3:{TAB}{TAB}")
    said = shell.wait_for("\n 3 ")
    assert ("\n 1 " in said, "\n 2 " in said, "\n 4 " in said) == (True, True, False)
    shell.type("\x03")
    shell.wait_for_prompt()
    assert shell.end(shell.press_control_d).code == 0


def test_ctrl_c_ends_a_command_and_not_the_shell(
    shell: Terminal, cluster: ConformanceCluster, name: str, tmp_path: Path
) -> None:
    shell.type("clus\x03")
    shell.wait_for_prompt()
    shell.type("cluster describe -o json\n")
    shell.wait_for('"clusterId"')
    shell.wait_for_prompt()
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = plan_file(tmp_path, name, [first, third])
    shell.type(f"reassign start --throttle 1000 --reassignment-json-file {there}\n")
    shell.wait_for("0/1")
    shell.interrupt()
    shell.wait_for("the move goes on without this command")
    shell.wait_for_prompt()
    assert cluster.znodes.is_reassigning(name)
    shell.type(f"reassign cancel --reassignment-json-file {there}\n")
    shell.wait_for(f"the move of {name}-0 is cancelled")
    shell.wait_for_prompt()
    assert shell.end(shell.press_control_d).code == 0


def test_the_prompt_follows_the_controller(shell: Terminal, cluster: ConformanceCluster) -> None:
    if cluster.own_controller is not None:
        pytest.skip("brokers keep the one id that it has")
    before = cluster.znodes.controller()
    while cluster.znodes.controller() == before:
        cluster.begin_a_new_term()

    def shows_it() -> bool:
        shell.type("\n")  # a prompt is written again only as far as it has changed
        return f"[controller {cluster.znodes.controller()}]>" in shell.wait_for_prompt()

    cluster.wait(shows_it, "the prompt shows the next controller")
    assert shell.end(shell.press_control_d).code == 0


def test_a_cluster_that_does_not_answer_keeps_nobody_from_typing(unused_tcp_port: int) -> None:
    shell = Kontroller(f"127.0.0.1:{unused_tcp_port}").start_at_terminal("shell")
    shell.wait_for("[controller ?]>")
    shell.type("topics list --timeout-ms 300\n")
    shell.wait_for("it did not happen within 300 ms")
    shell.wait_for_prompt()
    shell.interrupt()
    shell.wait_for_prompt()
    shell.type("exit\n")
    assert shell.end().code == 0


def test_servers_that_are_none_are_said_at_once() -> None:
    ended = Kontroller("nowhere").run("shell")
    assert ended.code == 2
    assert "host:port" in ended.err
