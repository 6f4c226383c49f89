"""The measure of sizes: code counts; docstrings, comments and blank lines do not."""

from scripts.sizes import Size, measure_source, summarise

SOURCE = '''"""A module."""

def outer(a,
          b):
    """Say what it does,

    at some length."""
    # why
    total = a + b

    text = """one

    # three"""

    def inner() -> int:
        """Explain."""
        return 1  # a comment beside code

    return total, text, inner


class Thing:
    """A thing."""

    def only_a_docstring(self) -> None:
        """Do nothing."""

    def stub(self) -> None: ...
'''


def test_only_lines_with_code_count() -> None:
    # outer: total, three lines of text, def inner, return 1, return
    assert set(measure_source(SOURCE, "m.py")) == {
        Size(28, "module", "m.py"),
        Size(7, "function", "m.py:3 outer"),
        Size(0, "function", "m.py:25 only_a_docstring"),
        Size(1, "function", "m.py:28 stub"),
        Size(1, "function", "m.py:15 inner"),
    }


def test_the_ninetieth_percentile_is_the_nearest_rank() -> None:
    assert summarise("function", list(range(10, 0, -1))) == "functions: 10, median 5.5, p90 9, max 10 lines"
    assert summarise("function", list(range(1, 12))) == "functions: 11, median 6, p90 10, max 11 lines"
