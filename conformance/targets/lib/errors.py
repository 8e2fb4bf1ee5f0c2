"""How a target's command fails: one line for people, and the exit code that scripts look at."""

FAILED, USAGE, NOT_INSTALLED = 1, 2, 3


class TargetError(Exception):
    """The command cannot be carried out; its text is the one line that is printed."""

    exit_code = FAILED


class UsageError(TargetError):
    """The command line makes no sense."""

    exit_code = USAGE


class NotInstalledError(TargetError):
    """A program or an artefact is missing; the text says what to install."""

    exit_code = NOT_INSTALLED
