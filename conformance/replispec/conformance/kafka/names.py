"""The names of Kafka's requests and errors and of the store's, out of the tables generated for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.conformance.vocabulary import SaidBody, Vocabulary
from replispec.conformance.zookeeper.names import VOCABULARY as STORE
from replispec.runtime.primitives.exchanges import ExchangeForm
from replispec.runtime.primitives.releases import NamedNumber
from replispec.wire.kafka.codes import API_KEY_NAMES, ERROR_CODE_NAMES, ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.requests import ApacheRequestFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS

STORE_FROM: Final = 1000
"""Both protocols count their requests and errors from 0: those of the store stand this far above."""

FORMS: Mapping[int, ExchangeForm] = {form.code: form for form in APACHE_RESPONSE_FRAME.forms}


def in_store(names: tuple[NamedNumber, ...]) -> tuple[NamedNumber, ...]:
    """The names of the store with the numbers that they have here."""
    return tuple(each._replace(number=each.number + STORE_FROM) for each in names)


def _moved(bodies: Mapping[int, SaidBody]) -> dict[int, SaidBody]:
    return {code + STORE_FROM: kind for code, kind in bodies.items()}


def _places() -> Mapping[str, tuple[int, int]]:
    """Where the numbers at the start of a request lie: their bytes are those that change with them."""
    (form,) = APACHE_REQUESTS.forms
    found = {"size": (form.length_at, form.length_size)}
    zero = ApacheRequestFrame()
    for name, other in (
        ("api_key", ApacheRequestFrame(api_key=-1)),
        ("api_version", ApacheRequestFrame(api_version=-1)),
        ("correlation_id", ApacheRequestFrame(correlation_id=-1)),
    ):
        pairs = zip(zero.encode(), other.encode(), strict=True)
        changed = [at for at, pair in enumerate(pairs) if len({*pair}) > 1]
        found[name] = changed[0], len(changed)
    return found


VOCABULARY: Final = Vocabulary(
    implementation="apache",
    releases={(2, 8, 2): 0},
    requests=(*API_KEY_NAMES, *in_store(tuple(STORE.requests))),
    responses=(*ERROR_CODE_NAMES, *in_store(tuple(STORE.responses))),
    answer_keys=STORE.answer_keys,
    request_bodies={code: form.request for code, form in FORMS.items()} | _moved(STORE.request_bodies),
    response_bodies={code: form.answer for code, form in FORMS.items() if form.answer is not None}
    | _moved(STORE.response_bodies),
    messages=STORE.messages,
    fixed=_places(),
    settled=frozenset(each.name for each in STORE.responses),
)
SUCCESS: Final = ErrorCode.NONE.name
