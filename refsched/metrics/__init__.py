"""Metrics: what Records say, each number under the name of its definition. Nothing here knows a scheduler."""
