"""The errors a caller can meet; each is one clear line."""


class InputError(ValueError):
    """Say what is wrong with an input, naming file, row and field where they are known."""

    def __init__(self, problem: str, *, file: str | None = None, row: int | None = None, field: str | None = None):
        self.problem, self.file, self.row, self.field = problem, file, row, field
        super().__init__(problem)

    def __str__(self) -> str:
        places = (self.file, None if self.row is None else f"row {self.row}", self.field)
        return ": ".join([place for place in places if place is not None] + [self.problem])

    def at(self, *, file: str | None = None, row: int | None = None, field: str | None = None) -> "InputError":
        """Return the same error with the places filled in that it does not name yet."""
        return InputError(
            self.problem,
            file=self.file if file is None or self.file is not None else file,
            row=self.row if row is None or self.row is not None else row,
            field=self.field if field is None or self.field is not None else field,
        )


class EngineError(RuntimeError):
    """Say how an engine under test broke the protocol: not a wrong decision, but junk, silence or a crash."""
