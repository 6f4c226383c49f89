"""The floors of the house: imports that go down pass, and each way of not going down is found and named."""

from pathlib import Path

import pytest

from scripts.layers import Violation, find_violations

HOUSE = {
    "refsched/__init__.py": "__version__ = '1'\nfrom refsched.model import Request\nfrom refsched import oracle\n",
    "refsched/__main__.py": "from refsched.cli import main\n",
    "refsched/units.py": "import re\nfrom refsched.errors import InputError\n",
    "refsched/errors.py": "from __future__ import annotations\n",
    "refsched/model.py": "from refsched.units import Tokens\n",
    "refsched/dialect.py": "from refsched.model import Limits\n",
    "refsched/scheduling/__init__.py": "",
    "refsched/scheduling/kv.py": "from refsched import model\nfrom ..units import ceil_div\n",
    "refsched/scheduling/engine.py": "from .kv import Pool\nfrom refsched.scheduling.policies import POLICIES\n",
    "refsched/scheduling/policies/__init__.py": "from refsched.scheduling.policies import static\n",
    "refsched/scheduling/policies/static.py": "from ..kv import Pool\n",
    "refsched/metrics/__init__.py": "",
    "refsched/simulation/step.py": "from refsched.scheduling.engine import Engine\n",
    "refsched/conformance/relation.py": "from refsched.conformance import follow\nfrom refsched.scheduling import kv\n",
    "refsched/conformance/follow.py": "from refsched import __version__\n",
    "refsched/report/text.py": "from refsched import __version__\n",
    "refsched/oracle.py": "from refsched.simulation.step import simulate\n",
    "refsched/calibration/fit.py": "import math\n",
    "refsched/studies/sweep.py": "from concurrent.futures import Executor\n",
    "refsched/extras/plots.py": "import matplotlib.pyplot\nfrom refsched.studies import sweep\n",
    "refsched/cli/__init__.py": "from refsched import __version__\nfrom refsched.oracle import check\n",
    "refsched/cli/calibrate.py": "def run():\n    from refsched.extras import plots\n    import refsched_gpu\n",
    "gpu/refsched_gpu/__init__.py": "",
    "gpu/refsched_gpu/measure.py": (
        "import json\nimport numpy as np\nimport cupy\nfrom refsched import Request, oracle\n"
        "from refsched.calibration import fit\nfrom refsched_gpu import kernels\n"
    ),
    "gpu/refsched_gpu/kernels.py": "import refsched\n",
}

# file, the line planted at its end, and what the report must say
PLANTED = [
    ("refsched/units.py", "from refsched.model import Request", "refsched.model stands above units"),
    ("refsched/model.py", "from refsched import scheduling", "refsched.scheduling stands above model"),
    ("refsched/scheduling/kv.py", "from refsched.metrics import latency", "stands on one floor with scheduling"),
    ("refsched/scheduling/kv.py", "from ..metrics import latency", "stands on one floor with scheduling"),
    ("refsched/scheduling/kv.py", "from .. import metrics", "stands on one floor with scheduling"),
    ("refsched/simulation/step.py", "import refsched.report.text as text", "stands on one floor with simulation"),
    ("refsched/studies/sweep.py", "import refsched.oracle", "stands on one floor with studies"),
    ("refsched/oracle.py", "from refsched.studies import sweep", "stands on one floor with oracle"),
    ("refsched/simulation/step.py", "def late():\n    from refsched.studies import sweep", "stands above simulation"),
    ("refsched/simulation/step.py", "if True:\n    import refsched.cli", "refsched.cli stands above simulation"),
    ("refsched/simulation/step.py", "from refsched import Request", "refsched stands above simulation"),
    ("refsched/simulation/step.py", "import refsched", "refsched stands above simulation"),
    ("refsched/simulation/step.py", "import yaml", "yaml is not in the standard library"),
    ("refsched/simulation/step.py", "def late():\n    import numpy.linalg", "numpy is not in the standard library"),
    ("refsched/__init__.py", "import numpy", "numpy is not in the standard library"),
    ("refsched/cli/calibrate.py", "import importlib\nimportlib.import_module('yaml')", "yaml is not in the standard"),
    ("refsched/cli/calibrate.py", "from importlib import import_module\nimport_module('yaml')", "yaml is not in the"),
    ("refsched/cli/calibrate.py", "__import__('yaml')", "yaml is not in the standard library"),
    ("refsched/cli/calibrate.py", "from refsched.extras import plots", "refsched.extras.plots is optional"),
    ("refsched/cli/calibrate.py", "class Late:\n    import refsched.extras", "refsched.extras is optional"),
    ("refsched/cli/calibrate.py", "import refsched_gpu", "refsched_gpu is optional"),
    ("refsched/studies/sweep.py", "def late():\n    from refsched.extras import plots", "extras.plots is optional"),
    ("refsched/__init__.py", "from refsched.extras import plots", "refsched.extras.plots is optional"),
    ("refsched/studies/sweep.py", "def late():\n    import refsched_gpu", "refsched_gpu is optional"),
    ("refsched/helpers.py", "import re", "helpers stands on no floor"),
    ("refsched/misc/deep.py", "import re", "misc stands on no floor"),
    ("gpu/refsched_gpu/kernels.py", "import torch", "torch is neither"),
    ("gpu/refsched_gpu/kernels.py", "from refsched.model import Request", "refsched.model.Request is not public"),
    ("gpu/refsched_gpu/kernels.py", "from refsched import model", "refsched.model is not public"),
    ("gpu/refsched_gpu/kernels.py", "from refsched import _hidden", "refsched._hidden is not public"),
    ("gpu/refsched_gpu/kernels.py", "def late():\n    import refsched.units", "refsched.units is not public"),
]

LEAKS = [
    ({"refsched/conformance/relation.py": "from refsched.scheduling import policies"}, "refsched.scheduling.policies"),
    (
        {"refsched/conformance/relation.py": "def late():\n    from refsched.scheduling.policies.static import plan"},
        "refsched.scheduling.policies.static",
    ),
    (
        {"refsched/conformance/follow.py": "import refsched.scheduling.policies.static"},
        "refsched.conformance.follow -> refsched.scheduling.policies.static",
    ),
    (
        {
            "refsched/conformance/follow.py": "from refsched.conformance import exact",
            "refsched/conformance/exact.py": "from refsched.scheduling.engine import Engine",
        },
        "refsched.conformance.follow -> refsched.conformance.exact"
        " -> refsched.scheduling.engine -> refsched.scheduling.policies",
    ),
]


def plant(root: Path, extra: dict[str, str]) -> list[Violation]:
    """Write the sound house with extra lines at the end of some files, and judge it."""
    for path in HOUSE | extra:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HOUSE.get(path, "") + extra.get(path, ""), encoding="utf-8")
    return find_violations(root)


def test_a_sound_house_has_no_violation(tmp_path: Path) -> None:
    assert plant(tmp_path, {}) == []


@pytest.mark.parametrize(("path", "line", "sentence"), PLANTED)
def test_a_planted_import_is_rejected(tmp_path: Path, path: str, line: str, sentence: str) -> None:
    found = plant(tmp_path, {path: line})
    assert len(found) == 1
    assert found[0].path == Path(path)
    assert sentence in found[0].sentence


@pytest.mark.parametrize(("extra", "chain"), LEAKS)
def test_the_relation_may_not_reach_the_policies(tmp_path: Path, extra: dict[str, str], chain: str) -> None:
    found = plant(tmp_path, extra)
    assert [str(violation.path) for violation in found] == ["refsched/conformance/relation.py"]
    assert found[0].sentence.endswith(f": {chain}")


def test_a_violation_names_its_place(tmp_path: Path) -> None:
    found = plant(tmp_path, {"refsched/metrics/__init__.py": "import re\n\nfrom refsched import scheduling\n"})
    assert [str(violation) for violation in found] == [
        "refsched/metrics/__init__.py:3: refsched.scheduling stands on one floor with metrics, "
        "and folders on one floor do not import each other"
    ]


def test_names_listed_by_the_facade_are_public(tmp_path: Path) -> None:
    extra = {
        "refsched/__init__.py": "__all__ = ['simulate']\n",
        "gpu/refsched_gpu/kernels.py": "from refsched import simulate\n",
    }
    assert plant(tmp_path, extra) == []
