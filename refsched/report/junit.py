"""JUnit XML, as continuous integration systems read it: one test case per thing that was checked."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

TAGS = {"failed": "failure", "skipped": "skipped", "error": "error"}


@dataclass(frozen=True, slots=True)
class Case:
    """Hold one test case; `outcome` is passed, failed, skipped or error."""

    group: str
    name: str
    outcome: str
    message: str = ""


def format_junit(suite: str, cases: Iterable[Case]) -> str:
    """Write one test suite as XML text."""
    cases = tuple(cases)
    counts = Counter(case.outcome for case in cases)
    numbers = {
        "tests": len(cases),
        "failures": counts["failed"],
        "errors": counts["error"],
        "skipped": counts["skipped"],
    }
    root = Element("testsuites")
    page = SubElement(
        root, "testsuite", {"name": clean(suite), **{name: str(count) for name, count in numbers.items()}}
    )
    for case in cases:
        element = SubElement(page, "testcase", {"classname": clean(case.group), "name": clean(case.name)})
        if case.outcome in TAGS:
            SubElement(element, TAGS[case.outcome], {"message": clean(case.message)})
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """Replace characters that XML 1.0 cannot hold."""
    return "".join(
        each
        if each in "\t\n" or " " <= each <= "\ud7ff" or "\ue000" <= each <= "\ufffd" or each > "\uffff"
        else "\ufffd"
        for each in text
    )
