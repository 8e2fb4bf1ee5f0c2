"""Configuration in RocketMQ's names: one table of parameters, read from properties files."""

from replispec.runtime.configuration.kinds import ROLES, ConfigurationError, Parameter, Role
from replispec.runtime.configuration.settings import Settings, parse
from replispec.runtime.rocketmq import parameters

__all__ = ["ROLES", "ConfigurationError", "Parameter", "Role", "Settings", "parameters", "parse"]
