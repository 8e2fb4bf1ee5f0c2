"""What went wrong, as one line a user can act on; faults of our own keep their traceback."""

EXIT_UNUSABLE = 2


def describe(error: Exception) -> str | None:
    """`FILE: reason (at byte N)` for input that cannot be used, None for an error that is ours."""
    from replispec.replay.capture_records import CaptureError

    if isinstance(error, CaptureError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return None
