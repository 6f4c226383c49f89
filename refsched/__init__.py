"""refsched: the reference for LLM-inference scheduling and its metrics."""

__version__ = "0.1.0"
