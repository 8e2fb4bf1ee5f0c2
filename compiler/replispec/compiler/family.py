"""Everything that the specification's YAML becomes: machines, rules, invariants, clauses, documents.

Layout of a family: statemachines/FAMILY/*.yaml, systems/FAMILY/*.yaml, invariants/FAMILY/*.yaml
(streams.yaml and NAME_streams.yaml declare the streams of events), parameters/FAMILY/*.yaml (roles.yaml
names the roles), constants/FAMILY/*.yaml, metrics/FAMILY/*.yaml (labels.yaml declares their labels),
clauses/FAMILY/*.yaml (coverage.yaml says which of them cover a document's paragraphs),
vectors/FAMILY/*.yaml. All are optional, so that a family may grow; its documents lie below docs/FAMILY."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from replispec.compiler.check.citations import check_citations
from replispec.compiler.check.python_names import check_module
from replispec.compiler.check.unread import check_read
from replispec.compiler.emit.data.golden import clauses_json, vectors_json
from replispec.compiler.emit.docs.clauses import clauses_document
from replispec.compiler.emit.docs.compliance import Compliance, check_reasons, compliance_document
from replispec.compiler.emit.docs.constants import constants_document
from replispec.compiler.emit.docs.examples import examples_document
from replispec.compiler.emit.docs.invariants import invariants_document
from replispec.compiler.emit.docs.machines import machine_document
from replispec.compiler.emit.docs.metrics import metrics_document
from replispec.compiler.emit.docs.parameters import parameters_document
from replispec.compiler.emit.docs.paths import paths_document
from replispec.compiler.emit.docs.rules import rules_document
from replispec.compiler.emit.docs.systems import system_document
from replispec.compiler.emit.python.bindings import BindingsEmitter, wire_module
from replispec.compiler.emit.python.constants import constants_text
from replispec.compiler.emit.python.data import clauses_text, vectors_text
from replispec.compiler.emit.python.format import format_files
from replispec.compiler.emit.python.invariants import invariants_text
from replispec.compiler.emit.python.machines import MachineEmitter, package_module
from replispec.compiler.emit.python.metrics import metrics_text
from replispec.compiler.emit.python.parameters import options_text, parameters_text
from replispec.compiler.emit.python.paths import paths_text
from replispec.compiler.emit.python.rules import rules_text
from replispec.compiler.emit.python.systems import system_text, systems_package
from replispec.compiler.model.constant import NamedConstant
from replispec.compiler.model.coverage import Coverage
from replispec.compiler.model.example import Example
from replispec.compiler.model.faults import attempt, whole_since
from replispec.compiler.model.invariant import EventStream, InvariantSpec
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.metric import MetricsSpec
from replispec.compiler.model.parameter import ConfigurationSpec
from replispec.compiler.model.path import PathSpec
from replispec.compiler.model.rule import RuleSource, RuleType
from replispec.compiler.model.system import SystemSpec
from replispec.compiler.read.clauses import read_clauses
from replispec.compiler.read.constants import read_constants
from replispec.compiler.read.coverage import read_coverage
from replispec.compiler.read.examples import read_examples
from replispec.compiler.read.invariants import STREAMS_END, read_invariants, read_streams
from replispec.compiler.read.machines import read_machine
from replispec.compiler.read.metrics import read_metrics
from replispec.compiler.read.parameters import check_timers, read_parameters
from replispec.compiler.read.paths import read_paths
from replispec.compiler.read.records import read_records
from replispec.compiler.read.rules import read_rules
from replispec.compiler.read.systems import read_system
from replispec.compiler.read.yaml_source import Tree, read_yaml

T = TypeVar("T")
_CLAUSES_FILE = re.compile(r"clauses/\w+/(?!coverage\.)\w+\.yaml")


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """What was read of a family's YAML; `sources` maps each file, relative to spec/, to its bytes."""

    model: Model
    machines: Mapping[str, MachineSpec]
    systems: Mapping[str, SystemSpec]
    rules: Mapping[str, RuleSource]
    invariants: Mapping[str, InvariantSpec]
    examples: Sequence[Example]
    configuration: ConfigurationSpec
    constants: Mapping[str, NamedConstant]
    metrics: MetricsSpec
    paths: Mapping[str, PathSpec]
    sources: Mapping[str, bytes]


def compile_family(model: Model, spec_dir: Path) -> dict[str, bytes]:
    """Every file that the YAML of a family becomes, formatted: path relative to generated/ -> bytes.

    Raises SpecificationError with file, line and advice for what the language refuses.
    """
    sources = _sources(model, spec_dir)
    trees = _trees(spec_dir, sources)
    _add_records(model, trees, spec_dir)
    written = {name: trees[name] for name in _only(trees, "clauses/")}
    covering = {name: written.pop(name) for name in tuple(written) if name.endswith("/coverage.yaml")}
    clauses = read_clauses(written)
    family = _read(model, trees, sources)
    with attempt():
        # What was refused may be what reads a variable.
        whole_since(0)
        check_read(family.machines.values(), family.systems.values())
    uses = check_citations(
        clauses,
        family.model,
        family.machines,
        family.rules,
        family.invariants,
        family.examples,
        family.systems,
        family.paths,
    )
    coverages: tuple[Coverage, ...] = ()
    with attempt():
        coverages = read_coverage(covering, clauses)
    # What is only a view of all the rest says nothing new while some part of it is missing.
    whole_since(0)
    check_reasons(clauses, uses)
    findings = {name: each.finding for name, each in family.machines.items() if each.finding}
    view = Compliance(clauses, uses, family.rules, coverages, model, findings)
    modules, documents = _python(family), _documents(family)
    for name, text in modules.items():
        with attempt():
            check_module(text, _origin(name, family))
    whole_since(0)
    if clauses:
        pages = f"docs/{model.family}"
        own = {name: sources[name] for name in written}
        modules[f"replispec/wire/{model.family}/clauses.py"] = clauses_text(model.family, own)
        documents[f"replispec/wire/{model.family}/clauses.json"] = clauses_json(clauses, uses, own)
        documents[f"{pages}/clauses.md"] = clauses_document(clauses, uses, own)
        documents[f"{pages}/compliance.md"] = compliance_document(view, _only(sources, "clauses/"))
    written_out = {**format_files(modules), **documents}
    return {name: text.encode("utf-8") for name, text in sorted(written_out.items())}


def read_family(model: Model, spec_dir: Path) -> FamilySpec:
    """Machines, rules and invariants of a family, checked, without the texts they become."""
    sources = _sources(model, spec_dir)
    trees = _trees(spec_dir, sources)
    _add_records(model, trees, spec_dir)
    return _read(model, trees, sources)


def _add_records(model: Model, trees: Mapping[str, Tree], spec_dir: Path) -> None:
    """Let the model know what records may hold, where some machine has a log."""
    if any("log" in tree.items for tree in trees.values()):
        model.records = read_records(spec_dir / "proto")


def check_alone(family: str, spec_dir: Path) -> None:
    """Refuse what is wrong with a family's YAML whatever its messages are, for want of messages."""
    trees = _trees(spec_dir, _sources(Model(family), spec_dir))
    read_clauses({name: tree for name, tree in trees.items() if _CLAUSES_FILE.fullmatch(name)})


def _trees(spec_dir: Path, sources: Iterable[str]) -> dict[str, Tree]:
    """The YAML files that can be read, by name."""
    found = {}
    for name in sources:
        with attempt(gap=True):
            found[name] = read_yaml(spec_dir / name, spec_dir)
    return found


def _sources(model: Model, spec_dir: Path) -> dict[str, bytes]:
    """The family's YAML files in a fixed order."""
    kinds = (
        *("parameters", "constants", "metrics", "paths", "statemachines"),
        *("systems", "invariants", "clauses", "vectors"),
    )
    paths = [path for kind in kinds for path in _files(spec_dir / kind / model.family)]
    return {path.relative_to(spec_dir).as_posix(): path.read_bytes() for path in paths}


def _files(folder: Path) -> list[Path]:
    """The YAML files of a folder. Raises SpecificationError for what would be passed over beside them."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in found:
        if not path.is_file() or path.suffix != ".yaml":
            raise SpecificationError(
                "/".join(path.parts[-3:]), "this is read by nobody", "a family's folder holds NAME.yaml alone"
            )
    return found


def _only(sources: Mapping[str, T], start: str) -> dict[str, T]:
    return {name: data for name, data in sources.items() if name.startswith(start)}


def _read(model: Model, trees: Mapping[str, Tree], sources: Mapping[str, bytes]) -> FamilySpec:
    rules: dict[str, RuleSource] = {}
    examples: list[Example] = []
    for tree in _only(trees, "vectors/").values():
        with attempt():
            if "messages" in tree.items:
                examples += read_examples(tree, model)
            else:
                _take_rules(tree, model, rules)
    types = {name: rule.type for name, rule in rules.items()}
    model.keywords = {name: kind.named for name, kind in types.items()}
    configuration = ConfigurationSpec()
    with attempt(gap=True):
        configuration = read_parameters(_only(trees, "parameters/"))
    constants: Mapping[str, NamedConstant] = {}
    with attempt(gap=True):
        constants = read_constants(_only(trees, "constants/"), model, configuration)
    metrics = MetricsSpec()
    with attempt():
        metrics = read_metrics(_only(trees, "metrics/"), configuration)
    paths: Mapping[str, PathSpec] = {}
    with attempt():
        paths = read_paths(_only(trees, "paths/"), model)
    model.constants = {name: each.value for name, each in constants.items()}
    machines: dict[str, MachineSpec] = {}
    for name, tree in _only(trees, f"statemachines/{model.family}/").items():
        with attempt(Path(name).stem):
            machine = read_machine(tree, model, types, configuration)
            if machine.name != Path(name).stem:
                raise SpecificationError(
                    machine.place,
                    f"{machine.name} stands in {Path(name).name}",
                    "name the file like the machine",
                )
            machines[machine.name] = machine
    with attempt():
        check_timers(configuration, machines)
    systems = _systems(_only(trees, f"systems/{model.family}/"), model, types, machines)
    invariants: dict[str, InvariantSpec] = {}
    streams, of_invariants = _streams(_only(trees, f"invariants/{model.family}/"), model)
    for tree in of_invariants:
        with attempt():
            for found in read_invariants(tree, model, streams, types, machines):
                if found.id in invariants:
                    raise SpecificationError(found.place, f"duplicate invariant {found.id}", "rename one")
                invariants[found.id] = found
    with attempt():
        _check_findings(machines, invariants)
    return FamilySpec(
        model,
        machines,
        systems,
        rules,
        invariants,
        tuple(examples),
        configuration,
        constants,
        metrics,
        paths,
        sources,
    )


def _systems(
    trees: Mapping[str, Tree],
    model: Model,
    rules: Mapping[str, RuleType],
    machines: Mapping[str, MachineSpec],
) -> dict[str, SystemSpec]:
    found: dict[str, SystemSpec] = {}
    for name, tree in trees.items():
        with attempt(Path(name).stem):
            system = read_system(tree, model, rules, machines)
            if system.name != Path(name).stem:
                raise SpecificationError(
                    system.place,
                    f"{system.name} stands in {Path(name).name}",
                    "name the file like the system",
                )
            found[system.name] = system
    return found


def _streams(trees: Mapping[str, Tree], model: Model) -> tuple[Mapping[str, EventStream], Sequence[Tree]]:
    """The streams of events, and the trees that hold invariants, which are those of the other files."""
    found: dict[str, EventStream] = {}
    others: list[Tree] = []
    for name, tree in trees.items():
        if not name.endswith(STREAMS_END):
            others.append(tree)
            continue
        for each in read_streams(tree, model).values():
            with attempt():
                if each.name in found:
                    raise SpecificationError(
                        each.place, f"duplicate stream {each.name}", f"see {found[each.name].place}"
                    )
                found[each.name] = each
    if others and len(others) == len(trees):
        with attempt():
            raise SpecificationError(
                f"invariants/{model.family}/streams.yaml",
                "invariants, but no streams of events",
                "declare the streams there",
            )
    return found, others if found else []


def _take_rules(tree: Tree, model: Model, rules: dict[str, RuleSource]) -> None:
    for rule in read_rules(tree, model):
        if rule.name in rules:
            raise SpecificationError(
                rule.place, f"duplicate rule {rule.name}", f"see {rules[rule.name].place}"
            )
        rules[rule.name] = rule


def _check_findings(machines: Mapping[str, MachineSpec], invariants: Mapping[str, InvariantSpec]) -> None:
    """Refuse two rules whose findings have one name."""
    known = {name: str(each.place) for name, each in invariants.items()}
    for each in machines.values():
        if each.finding in known:
            raise SpecificationError(
                each.place, f"duplicate finding {each.finding}", f"see {known[each.finding]}"
            )
        if each.finding:
            known[each.finding] = str(each.place)


def _python(family: FamilySpec) -> dict[str, str]:
    """The Python modules, not yet formatted."""
    root = f"replispec/wire/{family.model.family}"
    texts: dict[str, str] = {}
    if family.machines:
        texts[f"{root}/machines/__init__.py"] = package_module(family.machines, family.model.family)
    for name, machine in family.machines.items():
        source = f"statemachines/{family.model.family}/{name}.yaml"
        texts[f"{root}/machines/{name}.py"] = MachineEmitter(machine, family.model).text(
            _only(family.sources, source)
        )
        if machine.bindings:
            texts[f"{root}/machines/{wire_module(machine)}.py"] = BindingsEmitter(machine, family.model).text(
                _only(family.sources, source)
            )
    given_by = _only(family.sources, f"systems/{family.model.family}/")
    if family.systems:
        texts[f"{root}/systems/__init__.py"] = systems_package(family.systems, family.model.family, given_by)
    for name, system in family.systems.items():
        own = _only(given_by, f"systems/{family.model.family}/{name}.yaml")
        texts[f"{root}/systems/{name}.py"] = system_text(system, family.model, own)
    if family.rules or any(each.bindings.is_answering for each in family.machines.values()):
        # Who answers for instances is handed rules, whether its family has some or not.
        given_by = _rule_sources(family) or _only(family.sources, "statemachines/")
        texts[f"{root}/rules.py"] = rules_text(family.rules, family.model, given_by)
    if family.configuration.roles:
        given = family.configuration, family.model.family, _only(family.sources, "parameters/")
        texts[f"{root}/options.py"] = options_text(*given)
        texts[f"{root}/parameters.py"] = parameters_text(*given)
    texts |= _named(family, root)
    golden = _only(family.sources, "vectors/")
    if golden:
        texts[f"{root}/vectors.py"] = vectors_text(family.model.family, golden)
    if family.invariants:
        sources = _only(family.sources, "invariants/")
        texts[f"{root}/invariants.py"] = invariants_text(
            family.invariants, family.model, family.machines, sources
        )
    return texts


def _named(family: FamilySpec, root: str) -> dict[str, str]:
    """The modules of what has a name and stands in no message: constants, metrics, paths."""
    texts: dict[str, str] = {}
    if family.constants:
        given_by = _only(family.sources, "constants/")
        texts[f"{root}/constants.py"] = constants_text(family.constants, family.model.family, given_by)
    if family.metrics.metrics:
        given_by = _only(family.sources, "metrics/")
        texts[f"{root}/metrics.py"] = metrics_text(family.metrics, family.model.family, given_by)
    if family.paths:
        given_by = _only(family.sources, "paths/")
        texts[f"{root}/paths.py"] = paths_text(family.paths, family.model, given_by)
    return texts


def _origin(module: str, family: FamilySpec) -> Place:
    """Where the specification of a module starts: its machine, else the file or folder of its kind."""
    stem, is_system = Path(module).stem, Path(module).parent.name == "systems"
    if is_system and stem in family.systems:
        return family.systems[stem].place
    machine = family.machines.get(stem.removesuffix("_wire"))
    if machine is not None:
        return machine.place
    kind = {"options": "parameters", "rules": "vectors"}.get(stem, stem)
    return Place(f"{kind}/{family.model.family}")


def _rule_sources(family: FamilySpec) -> dict[str, bytes]:
    """The files of vectors that hold rules."""
    files = {rule.place.file for rule in family.rules.values()}
    return {name: data for name, data in family.sources.items() if name in files}


def _documents(family: FamilySpec) -> dict[str, str]:
    """The Markdown pages, without that of the clauses."""
    root = f"docs/{family.model.family}"
    pages: dict[str, str] = {}
    if family.rules:
        pages[f"{root}/rules.md"] = rules_document(family.rules, _rule_sources(family))
    if family.configuration.roles:
        sources = _only(family.sources, "parameters/")
        pages[f"{root}/parameters.md"] = parameters_document(family.configuration, sources)
    if family.rules or family.examples:
        golden = vectors_json(family.rules, family.examples, _only(family.sources, "vectors/"))
        pages[f"replispec/wire/{family.model.family}/vectors.json"] = golden
    if family.constants:
        pages[f"{root}/constants.md"] = constants_document(
            family.constants, _only(family.sources, "constants/")
        )
    if family.paths:
        pages[f"{root}/paths.md"] = paths_document(family.paths, _only(family.sources, "paths/"))
    if family.metrics.metrics:
        pages[f"{root}/metrics.md"] = metrics_document(family.metrics, _only(family.sources, "metrics/"))
    if family.examples:
        sources = {
            name: family.sources[name] for name in sorted({each.place.file for each in family.examples})
        }
        pages[f"{root}/examples.md"] = examples_document(family.examples, sources)
    for name, machine in family.machines.items():
        source = f"statemachines/{family.model.family}/{name}.yaml"
        pages[f"{root}/machines/{name}.md"] = machine_document(machine, _only(family.sources, source))
    for name, system in family.systems.items():
        source = f"systems/{family.model.family}/{name}.yaml"
        pages[f"{root}/systems/{name}.md"] = system_document(system, _only(family.sources, source))
    if family.invariants:
        sources = _only(family.sources, "invariants/")
        sources |= _only(family.sources, "statemachines/")
        pages[f"{root}/invariants.md"] = invariants_document(family.invariants, family.machines, sources)
    return pages
