"""The store of a cluster in the form of each profile: paths, and what nodes hold. Begin with `store_form`."""

from replispec.runtime.kafka.stores.choosing import design_version, store_form

__all__ = ["design_version", "store_form"]
