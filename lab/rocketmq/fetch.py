"""Artefacts of Apache RocketMQ: what a release consists of, and how Maven is asked for it (lab.pinned)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lab.pinned import fetch_pinned, fetched_jars, pinned_jars, run_quietly

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE / "artefacts"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
# Of these releases there are some jars alone: whose others they run with, and the modules that there are.
PARTIAL: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "5.5.1": ("5.5.0", ("common", "controller", "remoting")),
}
# Of these there is the client alone, or with it the tools: no controller exists. By the module that has all.
CLIENTS: Mapping[str, str] = {"4.9.8": "tools", "5.0.0-PREVIEW": "client"}


def pins(name: str) -> dict[str, str]:
    """SHA-256 of every jar of a release, by file name. Raises LabError for one that is not pinned."""
    return pinned_jars(ARTEFACTS, name)


def jars(name: str) -> Path:
    """The folder of the release's jars. Raises NotInstalledError when one is missing."""
    return fetched_jars(ARTEFACTS, name)


def fetch_apache(name: str, release: str) -> Path:
    """Fetch what is missing of a release; its folder. See lab.pinned.fetch_pinned."""
    return fetch_pinned(ARTEFACTS, name, partial(_copy, release))


def _copy(release: str, quiet: list[str], copy: Path) -> None:
    """Have Maven copy the jars of a release. Raises LabError."""
    whole, replaced = PARTIAL.get(release, (release, ()))
    out = f"-DoutputDirectory={copy}"
    wanted = HERE / ("client.pom.xml" if release in CLIENTS else "pom.xml")
    chosen = ("--file", str(wanted), f"-Drelease={whole}", "-DincludeScope=runtime")
    of_client = (f"-Dmodule={CLIENTS[release]}",) if release in CLIENTS else ()
    run_quietly([*quiet, f"{PLUGIN}:copy-dependencies", *chosen, *of_client, out])
    for module in replaced:
        (copy / f"rocketmq-{module}-{whole}.jar").unlink(missing_ok=True)
        artefact = f"-Dartifact=org.apache.rocketmq:rocketmq-{module}:{release}"
        run_quietly([*quiet, f"{PLUGIN}:copy", artefact, out])
