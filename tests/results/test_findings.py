"""The names of what an audit can find: all are written down, and all that are written down can be found."""

import json
import re
from pathlib import Path

import refsched.results
from refsched.spec import read_text

FINDINGS = json.loads(read_text("tools/findings.json"))["findings"]
NAMED = re.compile(r'Finding\(\s*"([a-z0-9-]+)"')


def test_every_name_is_written_down_and_in_use() -> None:
    folder = Path(refsched.results.__file__).parent
    used = {name for path in folder.glob("*.py") for name in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert used == FINDINGS.keys()


def test_each_says_what_it_is() -> None:
    assert all(each["kind"] in ("contradiction", "trap", "contradiction or trap") for each in FINDINGS.values())
    assert all(each["about"] for each in FINDINGS.values())


def test_every_published_cross_check_has_a_name() -> None:
    words = " ".join(each["about"] for each in FINDINGS.values())
    assert all(f"[{number}]" in words.replace("cross-check ", "") for number in range(1, 14))
