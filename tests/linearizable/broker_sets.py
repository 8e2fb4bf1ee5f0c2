"""What a controller keeps of one broker set, as its clients see it.

Who has which id, where each broker is reached, and who leads: these are three objects, and a history is
linearizable if each of them is. Elections also come without being asked for, by heartbeats that no history
tells of. They are made when something that is seen needs them, so many as it needs: the epochs that follow,
and a set of the elected alone. Source: RIP-44; written from the proposal and not from the machine, so that
an error of the machine is found, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

Ids = frozenset[int]
NOBODY: Final[Ids] = frozenset()


class View(NamedTuple):
    """Who leads: masterEpoch, epoch of the SyncStateSet, master, SyncStateSet. Unless it `is_known` the
    epochs are what they are at least: something was refused that only an election explains."""

    epoch: int = 0
    set_epoch: int = 0
    master: int | None = None
    members: Ids = NOBODY
    is_known: bool = True


class Identities(NamedTuple):
    """The id that is granted next, and who holds which by which check code."""

    next_id: int = 1
    holders: frozenset[tuple[int, str]] = frozenset()

    @property
    def ids(self) -> Ids:
        """The brokers."""
        return frozenset(each for each, _ in self.holders)


# What is asked of identities, and what is answered.


class NextId(NamedTuple):
    """1012."""

    told: int


class Applied(NamedTuple):
    """1013; `next_id`: what a refusal says. `granted` is None without an answer."""

    broker: int
    code: str
    granted: bool | None = None
    next_id: int | None = None


class Holds(NamedTuple):
    """1003 says whether somebody holds this id."""

    broker: int
    is_held: bool


class Brokers(NamedTuple):
    """1004 and 1006 say who there is: `ids` all of them, None that there is somebody."""

    ids: Ids | None


class IdentitiesModel:
    """Ids are granted in order, and each to one check code."""

    initial: Final = Identities()

    def after(self, state: Identities, what: NextId | Applied | Holds | Brokers) -> Iterable[Identities]:
        """What they may be after this."""
        match what:
            case NextId():
                return [state] if what.told == state.next_id else []
            case Applied():
                return _applied(state, what)
            case Holds():
                return [state] if what.is_held == (what.broker in state.ids) else []
            case Brokers():
                fits = bool(state.holders) if what.ids is None else what.ids == state.ids
                return [state] if fits else []


def _applied(state: Identities, what: Applied) -> Iterator[Identities]:
    held = dict(state.holders).get(what.broker)
    may = held == what.code or (held is None and what.broker == state.next_id)
    if what.granted is False:
        if not may and what.next_id == state.next_id:
            yield state
    elif may and held is not None:
        yield state
    elif may:
        yield Identities(state.next_id + 1, state.holders | {(what.broker, what.code)})


# Where one broker is reached.


class Granted(NamedTuple):
    """1013: the first that is granted says it."""

    address: str


class Moved(NamedTuple):
    """1003 says it. `accepted` is None without an answer."""

    address: str
    accepted: bool | None = None


class Reached(NamedTuple):
    """1004, 1006 and 1002 say where the master is."""

    address: str


class AddressModel:
    """The address of one broker; none before it has an identity."""

    initial: Final[str | None] = None

    def after(self, state: str | None, what: Granted | Moved | Reached) -> Iterable[str | None]:
        """What it may be after this."""
        match what:
            case Granted():
                return [what.address if state is None else state]
            case Moved(accepted=False):
                return [state] if state is None else []
            case Moved():
                return [what.address] if state is not None else []
            case Reached():
                return [state] if state == what.address else []


# Who leads, and what is asked and answered of that.


class Seen(NamedTuple):
    """1004, 1006, a 1002 that changed nothing, a 1003 that names the master: all that is recorded."""

    told: View


class SetSeen(NamedTuple):
    """A 1003 that names no master: epoch and members of the SyncStateSet."""

    told: View


class Elected(NamedTuple):
    """1002 that found a master."""

    told: View


class Altered(NamedTuple):
    """1001. `outcome` is "done", one of `REFUSALS`, or None without an answer."""

    master: int
    epoch: int
    set_epoch: int
    members: Ids
    outcome: str | None = None


REFUSALS: Final = ("another master", "another masterEpoch", "another set")


class ViewModel:
    """An epoch never says two things, and the SyncStateSet is changed by whoever knows both."""

    initial: Final = View()

    def after(self, state: View, what: Seen | SetSeen | Elected | Altered) -> Iterable[View]:
        """Who may lead after this."""
        match what:
            case Seen():
                return [what.told] if state == what.told or _follows(state, what.told) else []
            case SetSeen():
                return _set_seen(state, what.told)
            case Elected():
                return _elected(state, what.told)
            case Altered():
                return _altered(state, what)


def _follows(view: View, told: View) -> bool:
    """Whether elections alone lead from one to the other, at least one of them."""
    if not view.is_known:
        return told.epoch >= view.epoch and told.set_epoch >= view.set_epoch
    elections, founded = told.epoch - view.epoch, told.set_epoch - view.set_epoch
    if elections < 1 or not 0 <= founded <= elections:
        return False
    if not founded:
        # The master was lost, and nobody could follow.
        return elections == 1 and told.master is None and told.members == view.members
    return told.members == {told.master} if told.master is not None else len(told.members) == 1


def _set_seen(view: View, told: View) -> Iterator[View]:
    """Epoch and members of the set were told."""
    if told.set_epoch < view.set_epoch:
        return
    if not view.is_known:
        yield view._replace(set_epoch=told.set_epoch)
    elif (view.set_epoch, view.members) == (told.set_epoch, told.members):
        yield view
    else:
        yield View(view.epoch + 1, told.set_epoch, is_known=False)


def _elected(view: View, told: View) -> Iterator[View]:
    if _follows(view, told) and told.members == {told.master} and told.set_epoch > view.set_epoch:
        yield told


def _altered(view: View, what: Altered) -> Iterator[View]:
    expected = View(what.epoch, what.set_epoch, what.master, view.members)
    if what.outcome is None or what.outcome == "done":
        alone = expected._replace(members=frozenset({what.master}))
        if view == expected or _follows(view, alone):
            yield View(what.epoch, what.set_epoch + 1, what.master, what.members)
    elif not view.is_known:
        yield view
    else:
        yield from _refused(view, expected, what.outcome)


def _refused(view: View, expected: View, outcome: str) -> Iterator[View]:
    """An election before it explains a refusal that nothing else does."""
    later = View(view.epoch + 1, view.set_epoch, is_known=False)
    match outcome:
        case "another master":
            yield view if view.master != expected.master else later
        case "another masterEpoch":
            yield view if view.epoch != expected.epoch else later
        case _:
            if view.set_epoch != expected.set_epoch and view.epoch == expected.epoch:
                yield view
            if view.epoch < expected.epoch:
                yield later
