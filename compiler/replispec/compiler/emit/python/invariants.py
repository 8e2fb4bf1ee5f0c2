"""The Python module of a family's invariants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.annotations import annotation
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import (
    ARGUMENTS,
    initial_value,
    lambda_of,
    python_of,
    strings,
)
from replispec.compiler.emit.python.tree import (
    ABC,
    DATACLASSES,
    PRIMITIVES,
    TYPING,
    Class,
    Constant,
    Module,
    Names,
    Node,
    Ref,
    homes,
)
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.invariant import (
    CheckSpec,
    FoldStepSpec,
    InvariantSpec,
    OtherwiseSpec,
    runtime_template,
)
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model

_INVARIANTS = Names(f"{PRIMITIVES}.invariants")
_CLASSES = {
    "set": _INVARIANTS.SetInvariant,
    "order": _INVARIANTS.OrderInvariant,
    "pairing": _INVARIANTS.PairingInvariant,
    "as_of": _INVARIANTS.EndInvariant,
}


def invariants_text(
    invariants: Mapping[str, InvariantSpec],
    model: Model,
    machines: Mapping[str, MachineSpec],
    sources: Mapping[str, bytes],
) -> str:
    """The module, not yet formatted."""
    nodes = list(_Emitter(model, machines).nodes(invariants))
    about = f"The invariants of {model.family}, as data for judges of traffic."
    name = f"replispec.wire.{model.family}.invariants"
    return Module(name, certificate(sources), about, nodes, homes(model)).text()


class _Emitter:
    def __init__(self, model: Model, machines: Mapping[str, MachineSpec]) -> None:
        self._model = model
        package = f"replispec.wire.{model.family}.machines"
        self._guards = {
            (machine.name, name): f"{Ref(package, machine.name)}.{name}({', '.join(ARGUMENTS)})"
            for machine in machines.values()
            for name in machine.guards
        }

    def nodes(self, invariants: Mapping[str, InvariantSpec]) -> Iterator[Node]:
        """Variables first, then the invariants and their table."""
        for invariant in invariants.values():
            if invariant.variables:
                yield self._variables(invariant)
        for invariant in invariants.values():
            arguments = ", ".join(self._arguments(invariant))
            yield Constant(
                _constant(invariant), f"{_CLASSES[invariant.shape]}({arguments},)", str(TYPING.Final)
            )
        rows = " ".join(f"{each.id!r}: {_constant(each)}," for each in invariants.values())
        kind = f"{TYPING.Final}[{ABC.Mapping}[str, {_INVARIANTS.Invariant}]]"
        yield Constant("INVARIANTS", f"{{{rows}}}", kind)

    def _variables(self, invariant: InvariantSpec) -> Class:
        values = [
            Constant(each.name, initial_value(each, self._model), annotation(each.type))
            for each in invariant.variables.values()
        ]
        decorators = [f"{DATACLASSES.dataclass}(frozen=True, slots=True)"]
        return Class(_variables_class(invariant), "", [], decorators, values)

    def _python(self, node: ex.Expression) -> str:
        return python_of(node, self._model, self._guards)

    def _condition(self, node: ex.Expression) -> str:
        return lambda_of(self._python(node))

    def _of_event(self, text: str) -> str:
        return lambda_of(text, ("event", "rules"))

    def _arguments(self, invariant: InvariantSpec) -> Iterator[str]:
        yield f"id={invariant.id!r}"
        yield f"about={invariant.about!r}"
        yield f"clauses={strings(invariant.clauses)}"
        yield f"stream={invariant.stream.name!r}"
        yield f"group={strings(invariant.group)}"
        yield f"evaluated={invariant.evaluated!r}"
        yield f"says={runtime_template(invariant.says)!r}"
        if invariant.unseen:
            yield f"unseen={invariant.unseen!r}"
        if divergences := tuple(invariant.divergences()):
            yield f"divergences={strings(divergences)}"
        keys = ", ".join(f"event.{name}" for name in invariant.key)
        yield f"key={self._of_event(f'({keys},)' if keys else '()')}"
        if invariant.shape == "set" or invariant.shape == "as_of":
            yield f"event={invariant.event!r}"
            if invariant.where is not None:
                yield f"where={self._of_event(self._python(invariant.where))}"
        if invariant.value is not None:
            yield f"value={self._of_event(self._python(invariant.value))}"
            if invariant.otherwise:
                yield f"otherwise={self._otherwise(invariant.otherwise)}"
            return
        if invariant.variables:
            yield f"variables={_variables_class(invariant)}()"
        steps = ", ".join(map(self._step, invariant.steps))
        yield f"steps={_INVARIANTS.steps}({steps})"
        if invariant.pairing is not None:
            names = invariant.pairing
            yield f"request={names.request!r}, one_way={names.one_way!r}"
            yield f"answer={names.answer!r}"
        if invariant.check is not None:
            yield f"check={self._check(invariant.check)}"

    def _step(self, step: FoldStepSpec) -> str:
        parts = [repr(step.event)]
        if step.condition is not None:
            parts.append(f"condition={self._condition(step.condition)}")
        if step.checks:
            parts.append(f"checks=({', '.join(map(self._check, step.checks))},)")
        if step.assign:
            rows = (f"{name!r}: {self._condition(node)}" for name, node in step.assign.items())
            parts.append(f"assign={{{', '.join(rows)}}}")
        return f"{_INVARIANTS.FoldStep}({', '.join(parts)})"

    def _check(self, check: CheckSpec) -> str:
        parts = [f"holds={self._condition(check.holds)}"]
        if check.otherwise:
            parts.append(f"otherwise={self._otherwise(check.otherwise)}")
        if check.says:
            parts.append(f"says={runtime_template(check.says)!r}")
        return f"{_INVARIANTS.Check}({', '.join(parts)})"

    def _otherwise(self, entries: tuple[OtherwiseSpec, ...]) -> str:
        found = []
        for entry in entries:
            parts = [f"{_INVARIANTS.Verdict}.{entry.verdict.upper()}"]
            if entry.condition is not None:
                parts.append(f"condition={self._condition(entry.condition)}")
            if entry.divergence:
                parts.append(f"divergence={entry.divergence!r}")
            if entry.says:
                parts.append(f"says={runtime_template(entry.says)!r}")
            found.append(f"{_INVARIANTS.Otherwise}({', '.join(parts)})")
        return f"({', '.join(found)}{',' if found else ''})"


def _constant(invariant: InvariantSpec) -> str:
    return invariant.id.replace("-", "_").upper()


def _variables_class(invariant: InvariantSpec) -> str:
    return "".join(word.capitalize() for word in invariant.id.split("-")) + "Variables"
