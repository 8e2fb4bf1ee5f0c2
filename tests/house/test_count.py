"""The counts that compare two states of the project say the same twice, and see what they are to see."""

from pathlib import Path

import pytest

from tests.house.count import WAY_OF_FINDING, captured_1001, main, way
from tests.house.places import names_of, naming
from tests.house.tree import ROOT

PROTO = """
// The change.
message AlterRequest {
  option (on_wire) = { code: 7  kind: REQUEST };
}
message AlterResponse {
  option (on_wire) = { code: 7  kind: RESPONSE };
}
message Other {
  option (on_wire) = { code: 77 };
}
enum RequestCode {
  ALTER = 7;
  OTHER = 77;
}
enum Color {
  RED = 7;
}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one message."""
    (tmp_path / "spec" / "proto").mkdir(parents=True)
    (tmp_path / "spec" / "proto" / "all.proto").write_text(PROTO)
    return tmp_path


def test_a_message_is_named_by_what_declares_its_code(root: Path) -> None:
    assert names_of(root, 7) == ("ALTER", "AlterRequest", "AlterResponse")


@pytest.mark.parametrize(
    ("file", "text", "is_place"),
    [
        ("core.py", "code = RequestCode.ALTER\n", True),
        ("core.py", '"""Takes an AlterRequest."""\n', True),
        ("core.py", "ALTERED = AlterRequests\n", False),
        ("core.yaml", "message: AlterResponse\n", True),
        ("core.md", "ALTER\n", False),
        ("out/core.py", "ALTER\n", False),
    ],
)
def test_a_file_that_says_a_name_is_a_place(root: Path, file: str, text: str, *, is_place: bool) -> None:
    path = root / "roles" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert naming(root, "roles", names_of(root, 7)) == ([path] if is_place else [])


def test_help_says_what_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["count", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "Lines by room" in capsys.readouterr().out


def test_the_way_of_a_change_is_the_same_twice_and_goes_through_the_machine() -> None:
    first, second = way(ROOT), way(ROOT)
    assert first == second
    files = {file for file, _ in first}
    assert "generated/replispec/wire/rocketmq/machines/broker_set.py" in files
    assert any(file.startswith("roles/controller/") for file in files)
    assert not any(file.startswith(("tests/", "lab/")) for file in files)


def test_the_way_to_a_finding_is_the_same_twice_and_passes_all_rooms_but_the_report(tmp_path: Path) -> None:
    capture = tmp_path / "one.pcap"
    capture.write_bytes(captured_1001())
    first, second = (way(ROOT, WAY_OF_FINDING, str(capture)) for _ in range(2))
    assert first == second
    rooms = {file.split("/")[3] for file, _ in first if file.startswith("spark_replay/")}
    assert rooms >= {"capture", "tcp", "frames", "pairing", "events", "machines", "judges", "engines"}
