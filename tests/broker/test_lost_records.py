"""The way back from lost records of a controller that the manual tells is followed, line by line."""

import re

from tests.broker.simulated_set import BrokerSet
from tests.house.tree import ROOT

PAGE = (ROOT / "docs/run-a-cluster.md").read_text()
PROCESSES = {"broker-1": "broker1", "broker-2": "broker2", "nameserver": "controller"}


def block(name: str) -> list[str]:
    """The lines of one block of commands."""
    found = re.search(rf"```sh {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1].splitlines()


def carry_out(brokers: BrokerSet, line: str) -> None:
    """Do to the simulated disks what a line does to those of the manual."""
    command, path, *rest = line.split()
    folder, _, name = path.partition("/")
    process = folder.removesuffix("-store")
    disk = brokers.world.processes["controller" if process == "controller" else PROCESSES[process]].disk
    match command, name, rest:
        case "mv", "", [to]:
            assert to == f"{folder}-before"
            disk.contents.clear()
            disk.journals.clear()
        case "rm", _, []:
            assert f"store/{name}" in disk.contents, f"{line}: there is no such file"
            del disk.contents[f"store/{name}"]
        case _:
            raise AssertionError(f"what does {line} do?")


def test_a_set_whose_controller_lost_its_records_comes_back_as_the_manual_says() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    sent = [b"message %d" % number for number in range(20)]
    for body in sent:
        assert brokers.send(first, body)[0] == 0
    brokers.world.kill("broker2")
    brokers.until(lambda: brokers.members(1) == {1})
    brokers.start("broker2")
    brokers.until(lambda: brokers.members(1) == {1, 2})
    for name in ("broker1", "broker2", "controller"):
        brokers.world.kill(name)

    for line in block("lost-records"):
        carry_out(brokers, line)
    starts = [line.split() for line in block("lost-records-start")]
    assert [words[:3] for words in starts] == [["replispec", words[1], "-c"] for words in starts]
    for *_, file in starts:
        process = PROCESSES[file.removesuffix(".properties")]
        brokers.start(process)
        if process == "broker1":
            brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: brokers.members(1) == {1, 2})

    assert brokers.epochs(second).max_offset == brokers.epochs(first).max_offset
    assert brokers.send(first, b"one more")[0] == 0
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    code, _, records = brokers.pull(second, 0)
    assert code == 0
    assert all(body in records for body in (*sent, b"one more"))


def test_a_broker_that_is_told_an_older_epoch_than_its_logs_says_so_once() -> None:
    brokers = BrokerSet()
    _, second = brokers.pair()
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert brokers.send(second, b"of the second epoch")[0] == 0
    brokers.world.kill("broker2")
    brokers.world.kill("controller")
    brokers.world.processes["controller"].disk.journals.clear()
    for number in (1, 2):
        contents = brokers.world.processes[f"broker{number}"].disk.contents
        del contents["store/brokerIdentity"]
    brokers.start("controller", "broker2", "broker1")
    brokers.world.run_for(30_000)
    told = [(who, note.values) for who, note in brokers.notes if "fewer elections" in note.what]
    assert [who for who, _ in told] == ["broker2"]
