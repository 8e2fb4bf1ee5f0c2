"""Configuration of a process: a properties file, read into the options of one role.

A family says which parameters there are: see `replispec.wire.FAMILY.parameters`.
"""

from replispec.runtime.configuration.settings import Settings, parse
from replispec.runtime.primitives.parameters import ConfigurationError

__all__ = ["ConfigurationError", "Settings", "parse"]
