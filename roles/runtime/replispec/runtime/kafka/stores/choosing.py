"""Which form the store has, by the parameter that names the profile."""

from __future__ import annotations

from typing import Final

from replispec.runtime.kafka.stores.apache_form import ApacheStoreForm
from replispec.runtime.kafka.stores.design_form import DesignStoreForm
from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.wire.kafka import constants

_DESIGNS: Final = {
    constants.PROFILE_DESIGN_1: constants.DESIGN_VERSION_1,
    constants.PROFILE_DESIGN_2: constants.DESIGN_VERSION_2,
}


def design_version(profile: str) -> int | None:
    """The version of the design's requests in a profile; None in one that is not the design's."""
    return _DESIGNS.get(profile)


def store_form(profile: str) -> StoreForm:
    """The form of the store in a profile."""
    version = design_version(profile)
    return ApacheStoreForm() if version is None else DesignStoreForm(version)
