"""What can be missing on a machine."""


class NotAvailableError(RuntimeError):
    """Say in one line which package, driver, device or library cannot be used, and what to do."""
