"""Calibration: from measured step times to a cost model that states its own error and its own limits."""
