"""How a command of the lab fails: one line for people, and the exit code that scripts look at."""

FAILED, USAGE, NOT_INSTALLED = 1, 2, 3


class LabError(Exception):
    """What was started did not do what it was started for; the text is the one line that is printed."""

    exit_code = FAILED


class UsageError(LabError):
    """The command line makes no sense."""

    exit_code = USAGE


class NotInstalledError(LabError):
    """A program or an artefact is missing; the text says what to install."""

    exit_code = NOT_INSTALLED
