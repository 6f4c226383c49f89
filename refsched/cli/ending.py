"""Ending in order: a request to terminate is treated as Ctrl-C, so that engines under test are ended as well."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM while an engine runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interrupt(number: int, frame: object) -> None:
    """Leave as Ctrl-C does."""
    raise KeyboardInterrupt
