"""Workloads: which requests are offered, when, and by whom."""
