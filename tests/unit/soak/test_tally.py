"""The counts of the soak."""

from pathlib import Path

from devcluster.soak.operations import CrashZooKeeper, DeleteTopic, KillServer, ReplaceReassignment, kind_of
from devcluster.soak.tally import read_controller_logs


def test_operations_are_counted_by_words_for_what_they_do() -> None:
    assert kind_of(KillServer(server="broker-3")) == "kill broker"
    assert kind_of(KillServer(server="controller-1")) == "kill controller"
    assert kind_of(CrashZooKeeper(down_s=1)) == "crash ZooKeeper"
    assert kind_of(ReplaceReassignment(targets={})) == "replace reassignment"
    assert kind_of(DeleteTopic(topic="orders")) == "delete topic"


def test_the_logs_tell_of_elections_of_terms_and_of_what_was_not_understood(tmp_path: Path) -> None:
    log = tmp_path / "controller.log"
    log.write_text(
        '{"event":"became the controller","controller_epoch":1}\n'
        '{"event":"leadership","partitions":["orders-0"],"before":null,"after":"1/[1, 2]"}\n'
        '{"event":"leadership","partitions":["orders-0"],"before":"1/[1, 2]","after":"1/[1]"}\n'
        '{"event":"leadership","partitions":["orders-0","orders-1"],"before":"1/[1]","after":"2/[2]"}\n'
        '{"event":"leadership","partitions":["orders-0"],"before":"2/[2]","after":"-1/[2]"}\n'
        '{"event":"unexpected error, resigning","handling":"BrokersChanged()"}\n'
        '{"event":"leaders'
    )
    record = read_controller_logs([log])
    assert (record.terms, record.elections) == (1, 3)
    assert record.unexpected == [f'{log}: {{"event":"unexpected error, resigning","handling":"BrokersChanged()"}}']
