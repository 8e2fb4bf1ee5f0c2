"""What a role does when its file says nothing: all its parameters, as `--print-config` shows them.

`REWRITE=1` writes the files again after a change of the specification; then read the diff: it is what changes
for everybody who has not set the parameter.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.configuration import parse
from replispec.runtime.primitives.parameters import RoleParameters
from replispec.runtime.primitives.properties import write_properties
from replispec.wire.rocketmq.parameters import ROLES

FOLDER = Path(__file__).parent / "defaults"


@pytest.mark.parametrize("role", ROLES.values(), ids=ROLES)
def test_the_defaults_of_a_role_are_those_that_people_rely_on(role: RoleParameters[Any]) -> None:
    required = {each.name: each.name for each in role.parameters if role.is_required(each)}
    shown = write_properties(parse("", role, overrides=required).properties())
    path = FOLDER / f"{role.name}.properties"
    if os.environ.get("REWRITE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, "utf-8")
    assert path.read_text("utf-8") == shown
