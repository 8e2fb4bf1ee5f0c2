"""Start and stop one subject, as the suite judges it. NAME is one of those that `list` prints.

    python -m lab.subjects list                           print the names, one a line
    python -m lab.subjects NAME fetch                     get what it consists of
    python -m lab.subjects NAME kinds                     print what it can be, one kind a line
    python -m lab.subjects NAME start DIR [KIND]          start it, print one line of JSON when it serves
    python -m lab.subjects NAME crash DIR                 kill what is judged, as a crash does
    python -m lab.subjects NAME stop DIR                  end everything that was started in DIR
    python -m lab.subjects NAME reset DIR                 stop, forget all data, start again

`start` after `crash` or `stop` goes on with the data that is there, on the same ports. Exit code 0: done;
1: it failed; 2: this is no command; 3: something is not installed. Failures are one line on standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import FAILED, LabError, UsageError
from lab.subjects.registry import subject, subjects
from lab.subjects.subject import Subject

USAGE = (
    "usage: python -m lab.subjects list | NAME fetch | NAME kinds | NAME start DIR [KIND]"
    " | NAME crash|stop|reset DIR"
)
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Carry out one command and return its exit code."""
    name = arguments[0] if arguments else "lab.subjects"
    try:
        _carry_out(arguments)
    except (LabError, OSError) as error:
        sys.stderr.write(f"{name}: {' '.join(str(error).split())}\n")
        return error.exit_code if isinstance(error, LabError) else FAILED
    except KeyboardInterrupt:
        sys.stderr.write(f"{name}: interrupted; what had been started is ended\n")
        return INTERRUPTED
    return 0


def _carry_out(arguments: Sequence[str]) -> None:
    match arguments:
        case ["list"]:
            sys.stdout.writelines(f"{name}\n" for name in subjects())
        case [name, "fetch"]:
            sys.stdout.write(f"{subject(name).fetch()}\n")
        case [name, "kinds"]:
            sys.stdout.writelines(f"{kind}\n" for kind in subject(name).kinds)
        case [name, "start", folder]:
            _start(subject(name), Path(folder), None)
        case [name, "start", folder, kind]:
            _start(subject(name), Path(folder), kind)
        case [name, "crash" | "stop" | "reset" as action, folder]:
            _act(subject(name), Path(folder), action)
        case _:
            raise UsageError(USAGE)


def _act(chosen: Subject, folder: Path, action: str) -> None:
    if not Cluster.is_in(folder):
        raise LabError(f"nothing was ever started in {folder.absolute()}")
    with Cluster(folder) as cluster:
        cluster.leave_running()
        _check_same(cluster, chosen)
        match action:
            case "crash":
                role = chosen.kinds[cluster.about["kind"]]
                if role not in cluster.processes:
                    raise LabError(f"no {role} runs in {cluster.folder}")
                cluster.kill(role)
            case "stop":
                cluster.stop_all()
            case _:
                cluster.stop_all()
                cluster.wipe()
                _serve(cluster, chosen, cluster.about["kind"])


def _start(chosen: Subject, folder: Path, kind: str | None) -> None:
    """Start and print the ready line; a refusal leaves what runs in the folder as it is."""
    if kind is not None and kind not in chosen.kinds:
        raise UsageError(f"{kind} is none of its kinds: {', '.join(chosen.kinds)}")
    with Cluster(folder) as cluster:
        cluster.leave_running()
        if cluster.about:
            _check_same(cluster, chosen)
        else:
            cluster.about.update(subject=chosen.name, kind=kind or next(iter(chosen.kinds)))
            cluster.save()
        held = cluster.about["kind"]
        if kind not in (None, held):
            raise LabError(f"{cluster.folder} holds a {held}: stop it and choose another folder")
        if chosen.kinds[held] in cluster.processes:
            raise LabError(f"a {chosen.kinds[held]} already runs in {cluster.folder}")
        _serve(cluster, chosen, held)


def _serve(cluster: Cluster, chosen: Subject, kind: str) -> None:
    """Print the ready line; when that fails, whatever had been started ends with the block."""
    cluster.end_with_block()
    ready = chosen.serve(cluster, kind)
    cluster.leave_running()
    sys.stdout.write(json.dumps(ready) + "\n")


def _check_same(cluster: Cluster, chosen: Subject) -> None:
    if cluster.about["subject"] != chosen.name:
        raise LabError(f"the folder holds {cluster.about['subject']}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
