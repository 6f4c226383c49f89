"""Conformance: what an engine decided, held against the rules."""
