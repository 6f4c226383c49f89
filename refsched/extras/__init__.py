"""Extras: the one folder that may import more than the standard library, lazily; nothing needs it."""


class MissingPackage(RuntimeError):
    """Say which package is needed for what, and how to install it."""

    def __init__(self, package: str, what: str, extra: str):
        super().__init__(f"{package} is needed to {what}; install refsched[{extra}]")
