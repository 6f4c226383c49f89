"""Simulation: an engine, a cost model and offers make a Timeline and Records."""
