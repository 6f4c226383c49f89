"""Finding result files, recognising each by the fields in it, and reading those of one run together."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from refsched.errors import InputError
from refsched.results import (
    aiperf,
    aiperf_records,
    genai_bench,
    genai_perf,
    guidellm,
    inference_perf,
    inference_perf_entries,
    llmperf,
    sglang,
    vllm,
)
from refsched.results.fields import Fields, to_fields
from refsched.results.load import DECODER, decode, open_bytes, read_lines, read_values
from refsched.results.run import Run

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
FIRST = 1 << 20  # bytes of the first line that are tried as one value before the whole file is read
Slo = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Kind:
    """Say how one kind of file is recognised."""

    name: str
    tool: str
    is_one: Callable[[object], bool]


def of_object(test: Callable[[Mapping[str, object]], bool]) -> Callable[[object], bool]:
    """Make a test of objects into one of any value."""
    return lambda value: isinstance(value, dict) and test(value)


def is_raw(data: Mapping[str, object]) -> bool:
    """Recognise a line of AIPerf's raw export."""
    return aiperf_records.is_record(data) and "responses" in data


def is_window(data: Mapping[str, object]) -> bool:
    """Recognise AIPerf's export of server metrics, which holds the ends of the phase."""
    summary = data.get("summary")
    return isinstance(summary, dict) and "phase_time_ranges" in summary


KINDS = (
    Kind("sglang", "sglang", of_object(sglang.is_run)),
    Kind("vllm", "vllm", of_object(vllm.is_run)),
    Kind("aiperf raw", "aiperf", of_object(is_raw)),
    Kind("aiperf records", "aiperf", of_object(aiperf_records.is_record)),
    Kind("aiperf summary", "aiperf", of_object(aiperf.is_summary)),
    Kind("aiperf window", "aiperf", of_object(is_window)),
    Kind("genai-perf export", "genai-perf", of_object(genai_perf.is_export)),
    Kind("genai-perf summary", "genai-perf", of_object(genai_perf.is_summary)),
    Kind("guidellm", "guidellm", of_object(guidellm.is_report)),
    Kind("inference-perf summary", "inference-perf", of_object(inference_perf.is_summary)),
    Kind("inference-perf entries", "inference-perf", inference_perf.is_entries),
    Kind("genai-bench", "genai-bench", of_object(genai_bench.is_run)),
    Kind("llmperf summary", "llmperf", of_object(llmperf.is_summary)),
    Kind("llmperf responses", "llmperf", llmperf.is_responses),
)
TOOLS = tuple(dict.fromkeys(kind.tool for kind in KINDS))
ALONE = {"aiperf window"}  # kinds that say nothing by themselves


@dataclass(frozen=True, slots=True)
class Found:
    """Hold one result file and its kind."""

    path: Path
    kind: str

    def folder(self) -> Path:
        """Give the folder it lies in: files of one run lie in one."""
        return self.path.parent


def collect_runs(paths: Iterable[str], tool: str | None = None, slo: Slo | None = None) -> list[Run]:
    """Read every run that the files and folders hold; raise InputError for what is no result file."""
    found = [file for path in paths for file in find_files(Path(path), tool)]
    groups: dict[tuple[Path, str], list[Found]] = {}
    for file in dict.fromkeys(found):
        groups.setdefault((file.folder(), file.kind.split()[0]), []).append(file)
    runs = [run for files in groups.values() for run in read_group(files, slo or {})]
    if not runs:
        raise InputError("holds no run", file=str(found[0].path) if found else None)
    return runs


def find_files(path: Path, tool: str | None) -> list[Found]:
    """Find the result files that a path names: itself, or all in a folder."""
    if not path.is_dir():
        return [Found(path, recognise(path, tool))]
    found = [(file, find_kind(file, tool)) for file in sorted(path.rglob("*")) if file.name.endswith(ENDINGS)]
    kept = [Found(file, kind) for file, kind in found if kind is not None]
    if not any(file.kind not in ALONE for file in kept):
        raise InputError(f"holds no result file of {', '.join(TOOLS)}", file=str(path))
    return kept


def recognise(path: Path, tool: str | None) -> str:
    """Recognise one file; raise InputError where it is none of the known kinds."""
    kind = find_kind(path, tool)
    if kind is None or kind in ALONE:
        names = tool or ", ".join(TOOLS)
        raise InputError(f"has not the fields of a result file of {names}", file=str(path))
    return kind


def find_kind(path: Path, tool: str | None) -> str | None:
    """Recognise a file by the fields of its first value."""
    value = read_first(path)
    kinds = (kind.name for kind in KINDS if (tool is None or kind.tool == tool) and kind.is_one(value))
    return next(kinds, None)


def read_first(path: Path) -> object:
    """Read the first value of a file: its first line where that is one, else the whole file's first value."""
    with open_bytes(path) as file:
        line = file.readline(FIRST)
    if line.endswith(b"\n"):
        try:
            return DECODER.decode(decode(line, str(path), 1))
        except (json.JSONDecodeError, RecursionError):
            pass  # the value goes on in the next line
    return read_values(path)[0]


def read_group(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read files of one tool in one folder, which are one run where they complete each other."""
    reader = READERS[files[0].kind.split()[0]]
    yield from reader(files, slo)


def of_kind(files: Sequence[Found], kind: str) -> list[Path]:
    """List the files of one kind."""
    return [file.path for file in files if file.kind == kind]


def read_objects(path: Path) -> Iterator[Fields]:
    """Read the objects of a file that holds one or several."""
    values = read_values(path)
    for row, value in enumerate(values):
        yield to_fields(value, str(path), row + 1 if len(values) > 1 else None)


def read_vllm(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read each object as a run: a file that was appended to holds several."""
    for file in files:
        for fields in read_objects(file.path):
            yield vllm.read_run(fields, name(file.path, fields.row), slo)


def read_sglang(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read each line as a run."""
    for file in files:
        for row, value in read_lines(file.path):
            yield sglang.read_run(to_fields(value, str(file.path), row), name(file.path, row), slo)


def name(path: Path, row: int | None = None) -> str:
    """Name a run by its file, and by the row where a file holds several."""
    return str(path) if row is None else f"{path} row {row}"


def pair(first: Sequence[Path], second: Sequence[Path]) -> list[tuple[Path | None, Path | None]]:
    """Pair two kinds of files in order where there are as many of each; else each stands alone."""
    if len(first) == len(second):
        return list(zip(first, second, strict=True))
    return [*((path, None) for path in first), *((None, path) for path in second)]


def read_object(path: Path) -> Fields:
    """Read a file of one object."""
    return to_fields(read_values(path)[0], str(path))


def read_aiperf(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read records, raw export, summary and the ends of the phase together."""
    raws, windows = of_kind(files, "aiperf raw"), of_kind(files, "aiperf window")
    pairs = pair(of_kind(files, "aiperf records"), of_kind(files, "aiperf summary")) or [(None, None)]
    for records, summary in pairs:
        alone = len(pairs) == 1
        raw = raws[0] if alone and raws else None
        parts = aiperf.Parts(
            entries=None if records is None else aiperf_records.read_entries(records),
            raw=None if raw is None else aiperf_records.read_raw(raw),
            summary=None if summary is None else read_object(summary),
            files=tuple(str(path) for path in (records, summary, raw) if path is not None),
            window=aiperf.read_window(read_object(windows[0])) if alone and windows else None,
        )
        yield aiperf.read_run(parts, parts.files[0])


def read_genai_perf(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read the export and its summary together; each experiment is a run."""
    for export, summary in pair(of_kind(files, "genai-perf export"), of_kind(files, "genai-perf summary")):
        names = tuple(str(path) for path in (export, summary) if path is not None)
        fields = None if summary is None else read_object(summary)
        experiments = [None] if export is None else genai_perf.read_experiments(read_object(export))
        for number, replies in enumerate(experiments):
            label = names[0] if len(experiments) == 1 else f"{names[0]} experiment {number}"
            yield genai_perf.read_run(replies, fields if len(experiments) == 1 else None, names, label)


def read_guidellm(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read each benchmark of each report as a run."""
    for file in files:
        for fields in read_objects(file.path):
            yield from guidellm.read_runs(fields, name(file.path))


def read_inference_perf(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read the summary, the stages and the per-request file together."""
    entries, reports = of_kind(files, "inference-perf entries"), of_kind(files, "inference-perf summary")
    read = [(path, read_object(path)) for path in reports]
    stages = [(path, fields) for path, fields in read if "requested_rate" in fields.inside("load_summary").data]
    summaries = [fields for path, fields in read if (path, fields) not in stages]
    rows = [read_rows(path) for path in entries]
    config = files[0].folder() / "config.yaml"
    own = {"request_latency" if name == "e2e" else name: limit for name, limit in slo.items()}
    targets = own or (inference_perf.read_config(read_plain(config)) if config.is_file() else {})
    parts = inference_perf.Parts(
        entries=[inference_perf_entries.read_entry(row) for row in rows[0]] if rows else None,
        summary=summaries[0] if summaries else stages[0][1] if len(stages) == 1 and not rows else None,
        stages=[Fields(f.data, f.file, None, p.name.split("_lifecycle")[0]) for p, f in stages] if rows else [],
        files=tuple(str(path) for path in (*entries, *reports)),
        slo=targets,
    )
    yield inference_perf.read_run(parts, str(files[0].path))


def read_plain(path: Path) -> str:
    """Read a small text file beside the results; what is no text counts as empty."""
    return path.read_text(encoding="utf-8", errors="replace")


def read_rows(path: Path) -> list[Fields]:
    """Read a file that is one list of objects."""
    value = read_values(path)[0]
    if not isinstance(value, list) or not value:
        raise InputError("is no list of requests" if value else "holds no requests", file=str(path))
    return [to_fields(each, str(path), row) for row, each in enumerate(value)]


def read_genai_bench(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read each file as a run: one for each concurrency."""
    for file in files:
        for fields in read_objects(file.path):
            yield genai_bench.read_run(fields, name(file.path, fields.row))


def read_llmperf(files: Sequence[Found], slo: Slo) -> Iterator[Run]:
    """Read the summary and the individual responses together."""
    for rows, summary in pair(of_kind(files, "llmperf responses"), of_kind(files, "llmperf summary")):
        names = tuple(str(path) for path in (rows, summary) if path is not None)
        entries = None if rows is None else [llmperf.read_entry(row) for row in read_rows(rows)]
        yield llmperf.read_run(entries, None if summary is None else read_object(summary), names, names[0])


READERS: Mapping[str, Callable[[Sequence[Found], Slo], Iterator[Run]]] = {
    "vllm": read_vllm,
    "sglang": read_sglang,
    "aiperf": read_aiperf,
    "genai-perf": read_genai_perf,
    "guidellm": read_guidellm,
    "inference-perf": read_inference_perf,
    "genai-bench": read_genai_bench,
    "llmperf": read_llmperf,
}
