"""What the compiler refuses in systems: one line with file, fault and advice, and nothing is written.

The specification is that of docs/systems.md, with a role that is asked for the name of the till.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.model.message import SpecificationError
from tests.explorer.walkthrough import File, steps
from tests.house.tree import ROOT

LOCAL = """\
local:
  shop: {type: string, about: The name of the till.}
  bought: {type: list BuyRequest, about: Purchases.}
sends:
"""
ROLE = """\
    local:
      shop: "'till'"
      bought: {each: only(self.number), of: {till: "'till'", purchase: each}}
"""
GIVEN = (
    ("sends:\n", LOCAL),
    ("""{till: "'till'", """, "{till: local.shop, "),
    ("    effects:\n", f"{ROLE}    effects:\n"),
    ("machines: {wish: customer}", "machines: {wish: {machine: customer}}"),
    ("    about: Who buys.\n", "    about: Who buys.\n    keeps: {paid: {type: bool}}\n"),
    ("some_day_content:\n", "some_day_content:\n    clause: TILL-ASK-1\n"),
)
"""Edits that make the walkthrough's system say something of every kind."""
CLAUSES = """\
clauses:
  - id: TILL-ASK-1
    requirement: Whoever asks is answered.
    basis: ours
    source: {document: the till, section: asking}
"""
ASK = "ask: {asks: till}"
PARTIES = [
    (
        "system: one_sale",
        "system: one_sail",
        "one_sail stands in one_sale.yaml. name the file like the system",
    ),
    ("budgets: {", "bounds: 3\nbudgets: {", "unknown option 'bounds'"),
    ("    about: Who buys.", "    about: Who buys.\n    count: 0", "a party of nobody"),
    ("    about: Who buys.", "    about: Who buys.\n    count: 10", "count is no number from 0 to 9"),
    ("    about: Who buys.", "    about: Who buys.\n    count: true", "count is no number from 0 to 9"),
    ("    about: Who buys.", "    about: Who buys.\n    size: 2", "unknown option 'size'"),
    ("{machine: till, instance", "{machine: tiller, instance", "no machine is named 'tiller'"),
    ("{wish: {machine: customer}}", "{wish: customers}", "no machine is named 'customers'"),
    ("{machine: customer}", "{machine: customer, state: SAD}", "customer has no state 'SAD'"),
    ("{machine: customer}", "{machine: customer, begins: {need: 1}}", "customer has no variable 'need'"),
    (
        "{machine: customer}",
        "{machine: customer, begins: {purchase: 'true'}}",
        "the start of purchase is bool",
    ),
    ("{machine: customer}", "{machine: customer, started: 1}", "unknown option 'started'"),
    ("{wish: {machine: customer}}", "{number: {machine: customer}}", "number is a name already"),
    ("{wish: {machine: customer}}", "{armed: {machine: customer}}", "armed is a name already"),
    (
        "{wish: {machine: customer}}",
        "{wish: {machine: customer}, whim: customer}",
        "wish and whim are one machine, and no message says which of them it is for",
    ),
    ("  customer:\n    about", "  self:\n    about", "every instance is self to itself"),
    ("{machine: customer}", "{machine: customer, begins: {purchase: till.desk.sold}}", "sold begins, too"),
    ("{paid: {type: bool}}", "{paid: {type: bool, initial: self.wish.WAITING}}", "WAITING begins, too"),
    ("{paid: {type: bool}}", "{wish: {type: bool}}", "wish is a name already"),
    ("{paid: {type: bool}}", "{number: {type: bool}}", "number is a name already"),
    ("{paid: {type: bool}}", "{armed: {type: bool}}", "armed is a name already"),
    ("{paid: {type: bool}}", "{paid: {type: bool, durable: 1}}", "'durable' is no truth value"),
    ("{paid: {type: bool}}", "{paid: {type: boolean}}", "'boolean'"),
    ("{paid: {type: bool}}", "{paid: {type: bool, initial: '3'}}", "the start of paid is int"),
    ("      shop: \"'till'\"\n", "", "local.shop of customer is not said"),
    ("shop: \"'till'\"", "shop: '3'", "local.shop is int"),
    ("shop: \"'till'\"", "size: '3'", "no machine asks for local.size"),
    ("shop: \"'till'\"", "shop: {each: '3', of: {}}", "this is string, no list of messages"),
    ("each: only(self.number)", "each: self.number", "each of int"),
    ("purchase: each}", "purchase: each, size: 3}", "size"),
]
EFFECTS = [
    (ASK, "ask: {}", "ask means nothing. say one thing, or a list"),
    (f"    effects:\n      {ASK}\n", "", "what ask of customer means to customer is not said"),
    (ASK, "ask: {asks: tiller}", "no party is named 'tiller'. till, customer"),
    (ASK, "ask: {asks: till, nothing: it waits}", "ask means asks and nothing"),
    (ASK, "ask: {asks: till, says: asked}", "nothing says 'asked'"),
    (ASK, "ask: {asks: till, says: customer.asked}", "nothing says 'customer.asked'"),
    (ASK, "ask: {asks: till, once: perhaps}", "'once' is no truth value"),
    (ASK, "ask: {asks: till, where: to.number}", "is int"),
    (ASK, "ask: {asks: till, where: to.desk.OPEN}", "OPEN"),
    (ASK, "ask: {asks: till, with: {a: 1}}", "unknown option 'with'. use one of: asks, says"),
    (ASK, "ask: {tells: till, says: ask, newest: true}", "unknown option 'newest'"),
    (ASK, "ask: {nothing: it waits, once: true}", "unknown option 'once'. use one of: nothing"),
    (ASK, "ask: [{asks: till}, {assign: {paid: 'true'}, where: 'true'}]", "unknown option 'where'"),
    (ASK, "ask: [{asks: till}, {assign: {debt: 'true'}}]", "debt is kept by nobody"),
    (ASK, "ask: [{asks: till}, {assign: {paid: '3'}}]", "the value of paid is int"),
    (ASK, "ask: [{asks: till}, {raises: wish.bought}]", "customer has no event wish.bought"),
    (ASK, "ask: [{asks: till}, {raises: desk.bought}]", "customer has no event desk.bought"),
    (ASK, "ask: [{asks: till}, {raises: wish.wanted, with: {a: 1}}]", "wanted has no field 'a'"),
    (ASK, "ask: [{asks: till}, {raises: wish.wanted, where: '3'}]", "is int"),
    (ASK, f"{ASK}\n      beg: {{asks: till, says: ask}}", "no machine and no act of customer does beg"),
]
ACTS = [
    ("  wants:\n", "  till:\n", "till is a party already. give the act another name"),
    ("by: customer", "by: buyer", "no party is named 'buyer'"),
    ("by: customer", "by: customer\n    each: {other: buyer}", "no party is named 'buyer'"),
    ("by: customer", "by: customer\n    each: {self: till}", "self is something else to an act"),
    ("by: customer", "by: customer\n    each: {world: till}", "world is something else to an act"),
    ("by: customer", "by: customer\n    each: {a b: till}", "'a b' is no name"),
    ("by: customer", "by: customer\n    do: [beg]", "customer has no effect 'beg'. ask"),
    ("by: customer", "by: customer\n    then: [ask]", "unknown option 'then'"),
    ("by: customer", "by: customer\n    quiet: perhaps", "'quiet' is no truth value"),
    ("    raises: wish.wanted\n", "", "wants does nothing. say do, timer, raises, assign or crash"),
    ("raises: wish.wanted", "timer: wish.patience", "customer has no timer 'wish.patience'. it has none"),
    ("raises: wish.wanted", "timer: desk.patience", "customer has no timer 'desk.patience'"),
    (
        "raises: wish.wanted",
        "raises: wish.wanted\n    timer: wish.patience",
        "a timer raises its own event. leave raises out",
    ),
    ("by: customer", "by: customer\n    crash: perhaps", "'crash' is no truth value"),
    ("    raises: wish.wanted\n", "    do: [ask]\n    with: {a: '1'}\n", "with, but nothing is raised"),
    ("raises: wish.wanted", "raises: wish.wanted\n    assign: {paid: 'true'}", "paid is kept by nobody"),
    (
        "raises: wish.wanted",
        "raises: wish.wanted\n    assign: {till.paid: 'true'}",
        "till.paid is kept by nobody",
    ),
    ("if: self.wish.CONTENT", "if: self.wish.purchase", "is int64"),
    ("if: self.wish.CONTENT", "if: self.wish.MERRY", "MERRY"),
    ("if: self.wish.CONTENT", "if: other.wish.CONTENT", "other"),
    ("budget: wishes", "budget: hopes", "no budget is named 'hopes'. lost, wishes"),
    ("    budget: wishes\n", "", "nothing takes from the budget wishes. leave it out"),
    (
        "{lost: 1, wishes",
        "{lost: 10, wishes",
        "lost is no number from 0 to 9. what is explored must be bounded",
    ),
    ("{lost: 1, wishes", "{lost: -1, wishes", "lost is no number from 0 to 9"),
    ("{lost: 1, wishes", "{lost: many, wishes", "lost is no number from 0 to 9"),
    ("messages: 2", "messages: 17", "messages is no number from 0 to 16"),
    ("messages: 2\n", "", "messages is no number from 0 to 16"),
    ("messages: 2\n", "messages: 2\nwithin: till.desk.sold\n", "is int64"),
]
ALWAYS = "always: till.desk.sold <= customer.wish.purchase"
PROMISES = [
    (
        "always: till.desk.sold",
        "always: cashier.desk.sold",
        "'cashier.desk.sold' is no name. here are customer, till; of a party of several: for NAME in PARTY",
    ),
    (ALWAYS, f"{ALWAYS}\n    pauses: true", "sold_as_often_as_wanted promises always and pauses. say always"),
    (f"    {ALWAYS}\n", "", "sold_as_often_as_wanted promises nothing. say always"),
    (
        "  sold_as_often_as_wanted:",
        "  every_event_has_an_edge:",
        "every system promises every_event_has_an_edge",
    ),
    (ALWAYS, "pauses: false", "pauses is not true. leave the promise out"),
    (ALWAYS, f"{ALWAYS}\n    whenever: customer.wish.WAITING", "promises always"),
    ("    whenever: customer.wish.WAITING\n", "", "some_day_content promises eventually"),
    (ALWAYS, "never: customer.wish.WAITING", "unknown option 'never'"),
    (ALWAYS, "always: till.desk.sold", "is int64"),
    (ALWAYS, "always: till.desk.bought == 0", "bought"),
    (ALWAYS, "always: till.counter.sold == 0", "counter"),
    (ALWAYS, "always: tiller.desk.sold == 0", "tiller"),
    (ALWAYS, "always: all(c.wish.CONTENT for c in customers)", "customers"),
    (ALWAYS, "always: self.desk.sold == 0", "self"),
    (ALWAYS, "always: rule.sells(till.desk.sold)", "sells"),
    ("clause: TILL-ASK-1", "clause: TILL-ASK-2", "the clause 'TILL-ASK-2' is not defined"),
]
BY = "by: customer"
SUITES = [
    (
        "messages: 2\n",
        "messages: 2\nsuite: {subject: tiller, kind: till, profile: core}\n",
        "is no party of one",
    ),
    (
        "messages: 2\n",
        "messages: 2\nsuite: {subject: customer, kind: till, profile: core}\n",
        "no machine of customer answers. a case asks, and is answered",
    ),
    ("messages: 2\n", "messages: 2\nsuite: {subject: till, kind: till, profile: core, x: 1}\n", "option 'x'"),
    (BY, f"{BY}\n    requests: {{BuyRequest: {{purchase: '1'}}}}", "wants is requests to nobody. say suite"),
    (BY, f"{BY}\n    over: self", "over 'self', which asks nothing"),
    (BY, f"{BY}\n    requests: {{BuyRequest: {{price: '1'}}}}", "BuyRequest has no field 'price'"),
    (BY, f"{BY}\n    requests: {{BuyRequest: {{till: '1'}}}}", "BuyRequest.till is string, not int"),
    (BY, f"{BY}\n    requests: {{BuyRequest: {{body: {{a: '1'}}}}}}", "BuyRequest has no one body"),
    (BY, f"{BY}\n    requests: {{BuyResponse: {{}}}}", "BuyResponse is no request"),
]
CASES = [*PARTIES, *EFFECTS, *ACTS, *PROMISES, *SUITES]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specification, which compiles."""
    spec = tmp_path_factory.mktemp("systems") / "spec"
    shutil.copytree(ROOT / "spec" / "proto" / "replispec" / "options", spec / "proto/replispec/options")
    for step in steps():
        if isinstance(step, File):
            path = spec.parent / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
    (spec / "clauses" / "till").mkdir(parents=True)
    (spec / "clauses" / "till" / "till.yaml").write_text(CLAUSES)
    edit(spec, GIVEN)
    generate(spec)
    return spec


def edit(spec: Path, edits: Sequence[tuple[str, str]]) -> None:
    """Replace each old text, which stands once in all files, by the new one."""
    for before, after in edits:
        paths = [path for path in spec.rglob("till/*.yaml") if before in path.read_text()]
        assert len(paths) == 1, (before, paths)
        assert paths[0].read_text().count(before) == 1, before
        paths[0].write_text(paths[0].read_text().replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "says"), CASES, ids=[f"{number}: {says}" for number, (_, _, says) in enumerate(CASES)]
)
def test_a_system_that_is_wrong_is_refused_with_one_line(
    given: Path, tmp_path: Path, before: str, after: str, says: str
) -> None:
    spec = shutil.copytree(given, tmp_path / "spec")
    edit(spec, [(before, after)])
    with pytest.raises(SpecificationError) as refused:
        generate(spec)
    (line,) = str(refused.value).splitlines()
    assert says in line
    assert line.startswith("systems/till/one_sale.yaml:")


def test_who_speaks_of_one_of_several_says_of_which(given: Path, tmp_path: Path) -> None:
    spec = shutil.copytree(given, tmp_path / "spec")
    edit(spec, [("    about: Who buys.\n", "    about: Who buys.\n    count: 2\n")])
    with pytest.raises(SpecificationError) as refused:
        generate(spec)
    says = "which customer is not said. of a party of several: NAME.* for NAME in customer"
    assert [line.endswith(says) for line in str(refused.value).splitlines()] == [True] * 2


def test_what_an_act_does_that_is_wrong_is_not_refused_too(given: Path, tmp_path: Path) -> None:
    """Nothing else does it, and it is the act that has to be mended."""
    spec = shutil.copytree(given, tmp_path / "spec")
    begs = "  begs:\n    about: x\n    by: customer\n    if: self.wish.MERRY\n    do: [beg]\n"
    edit(spec, [(ASK, f"{ASK}\n      beg: {{asks: till, says: ask}}"), ("acts:\n", f"acts:\n{begs}")])
    with pytest.raises(SpecificationError) as refused:
        generate(spec)
    (line,) = str(refused.value).splitlines()
    assert "self.wish.MERRY names nothing" in line


def test_what_speaks_of_a_state_whose_name_is_wrong_is_not_refused_too(given: Path, tmp_path: Path) -> None:
    spec = shutil.copytree(given, tmp_path / "spec")
    edit(spec, [("  CONTENT: {initial", "  Content: {initial")])
    with pytest.raises(SpecificationError) as refused:
        generate(spec)
    (line,) = str(refused.value).splitlines()
    assert "'Content' is no name of a state" in line


def test_a_system_of_nobody_or_without_a_promise_is_refused(given: Path, tmp_path: Path) -> None:
    path = "systems/till/one_sale.yaml"
    whole = (given / path).read_text()
    head, promises = whole.partition("promises:")[0], whole.partition("parties:")[0]
    for text, says in ((head, "nothing is promised"), (promises, "a system of nobody")):
        spec = shutil.copytree(given, tmp_path / says / "spec")
        (spec / path).write_text(text)
        with pytest.raises(SpecificationError, match=says):
            generate(spec)
