"""Marks: for each clause where it first broke, how often it held, and how often it stayed open [CNF-OPEN-1]."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from refsched.conformance.breach import Breach
from refsched.conformance.invariants import Check
from refsched.conformance.scene import Because


@dataclass(slots=True)
class Marks:
    """Note for each clause where it first broke, how often it held, and how often it stayed open."""

    broken: dict[str, Breach] = field(default_factory=dict)
    remarks: dict[str, Breach] = field(default_factory=dict)
    held: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)

    def check(self, checks: Iterable[Check], tells: frozenset[str], iteration: int, *scene: object) -> None:
        """Ask each predicate whose needs were told."""
        for check in checks:
            if not check.needs <= tells:
                self.open[check.clause] += 1
                continue
            because: Because = check.holds(*scene)
            if because is None:
                self.held[check.clause] += 1
            else:
                self.broken.setdefault(check.clause, Breach(check.clause, iteration, because))

    def remark(self, breach: Breach | None) -> None:
        """Note what should not be, once per clause."""
        if breach is not None:
            self.remarks.setdefault(breach.clause, breach)
