"""One name for one thing: no two public classes are called alike."""

import ast
from collections.abc import Iterator

from tests.house.tree import ROOMS, hand_written, shown

# The replay is to be built anew; until then it has words of its own.
EXEMPT = ("spark_replay",)


def public_classes(source: str) -> Iterator[str]:
    """The names of the classes that a module offers."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def namesakes(sources: dict[str, str]) -> list[str]:
    """The classes of which there are several, with the places of each."""
    places: dict[str, list[str]] = {}
    for place, source in sources.items():
        for name in public_classes(source):
            places.setdefault(name, []).append(place)
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def test_no_two_public_classes_written_by_people_have_one_name() -> None:
    """Generated ones are apart: every machine has its State, and the specification names its own messages."""
    paths = hand_written(*(room for room in ROOMS if room not in EXEMPT))
    assert namesakes({shown(path): path.read_text() for path in paths}) == []


def test_namesakes_are_found_and_private_ones_left_aside() -> None:
    sources = {
        "a": "class Machine: ...\nclass _Emitter: ...\n",
        "b": "class _Emitter: ...\ndef f():\n    class Machine: ...\n",
        "c": "class Machine: ...\nclass State: ...\n",
    }
    assert namesakes(sources) == ["Machine: a, c"]
