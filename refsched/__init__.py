"""refsched: the reference for LLM-inference scheduling and its metrics.

The names here are the public ones; times are integer picoseconds, and no normative number is a float.
"""

from refsched.dialect import Dialect, get_dialect, list_dialects
from refsched.errors import EngineError, InputError
from refsched.metrics.measure import Measured, measure
from refsched.model import Entry, Limits, Plan, Request, State, Timeline, Trace
from refsched.record import Delivery, Outcome, Record
from refsched.scheduling import policies
from refsched.scheduling.engine import Engine, ReferenceEngine
from refsched.simulation.cost import CostModel, get_cost_model
from refsched.simulation.leap import leap
from refsched.simulation.step import Simulated, simulate
from refsched.workload.load import load_workload
from refsched.workload.offer import Offer, Workload

__version__ = "0.1.0"

__all__ = [
    "CostModel",
    "Delivery",
    "Dialect",
    "Engine",
    "EngineError",
    "Entry",
    "InputError",
    "Limits",
    "Measured",
    "Offer",
    "Outcome",
    "Plan",
    "Record",
    "ReferenceEngine",
    "Request",
    "Simulated",
    "State",
    "Timeline",
    "Trace",
    "Workload",
    "get_cost_model",
    "get_dialect",
    "leap",
    "list_dialects",
    "load_workload",
    "measure",
    "policies",
    "simulate",
]
