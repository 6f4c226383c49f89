"""Scheduling: which requests run in this iteration. It knows tokens, blocks and order, and no clock."""
