"""Check that every import goes down the floors of the house; print each that does not as `file:line: sentence`.

A module imports from floors below its own and from its own folder. Folders on one floor do not import each other.
refsched uses the standard library only, except in `extras`; only the command may use `extras` and refsched_gpu, inside
a function, so that nothing needs them. The relation of conformance never reaches the policies: they are two
independent statements of each rule. refsched_gpu uses public names only.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

HOUSE, GPU, EXTRAS, COMMAND = "refsched", "refsched_gpu", "extras", "cli"
SOURCES = {HOUSE: Path("refsched"), GPU: Path("gpu/refsched_gpu")}

FLOORS: tuple[tuple[str, ...], ...] = (  # from the ground up
    ("units", "errors", "spec"),
    ("model", "dialect", "record"),
    ("scheduling", "workload", "metrics"),
    ("simulation", "conformance", "results", "report"),
    ("studies", "calibration", "oracle"),
    (COMMAND,),
)
FLOOR_OF = {unit: number for number, units in enumerate(FLOORS) for unit in units}
ONE_FOLDER = {0, 1}  # the units of these floors are modules of refsched/ itself, so they may import each other

FACADES = {HOUSE, f"{HOUSE}.__main__"}  # they stand on the roof
FACADE_FACTS = {"__version__"}  # what every floor may take from the facade: it depends on nothing
RELATION, POLICIES = f"{HOUSE}.conformance.relation", f"{HOUSE}.scheduling.policies"
PUBLIC_MODULE = f"{HOUSE}.calibration"
GPU_MAY_USE = {GPU, "numpy", "cupy"}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Import:
    """Hold one import: the module it reaches, and how it is written, `from base import name` or `import base`."""

    target: str
    base: str
    name: str | None
    line: int
    is_lazy: bool  # inside a function


@dataclass(frozen=True, slots=True)
class Module:
    """Hold one module of the house and everything it imports."""

    name: str
    path: Path
    imports: tuple[Import, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """Hold one import that breaks a rule, and the sentence that says which."""

    path: Path
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.sentence}"


# READING

def find_files(root: Path) -> dict[str, Path]:
    """Map the name of every module to its path inside `root`."""
    files = {}
    for package, folder in SOURCES.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            names = parts[:-1] if parts[-1] == "__init__" else parts
            files[".".join((package, *names))] = path.relative_to(root)
    return files


def read_modules(root: Path) -> dict[str, Module]:
    """Read every module below `root` with its imports."""
    files = find_files(root)
    modules = {}
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse((root / path).read_text(encoding="utf-8"), str(path))
        modules[name] = Module(name, path, tuple(find_imports(tree, package, files.keys())))
    return modules


def find_imports(tree: ast.AST, package: str, known: Set[str]) -> Iterator[Import]:
    """Find every import of a module that lies in `package`, wherever it stands."""
    for node, line, is_lazy in walk(tree):
        for base, name in read_import(node, package):
            target = f"{base}.{name}" if f"{base}.{name}" in known else base
            yield Import(target, base, name, line, is_lazy)


def walk(tree: ast.AST, is_lazy: bool = False) -> Iterator[tuple[ast.AST, int, bool]]:
    """Visit every node with its line, telling whether it stands inside a function."""
    for node in ast.iter_child_nodes(tree):
        yield node, getattr(node, "lineno", 1), is_lazy
        yield from walk(node, is_lazy or isinstance(node, FUNCTIONS))


def read_import(node: ast.AST, package: str) -> list[tuple[str, str | None]]:
    """List what a node imports as (module, name taken from it)."""
    match node:
        case ast.Import(names=names):
            return [(alias.name, None) for alias in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            base = get_base(package, module, level)
            return [(base, alias.name) for alias in names]
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [(name, None)]
    return []


def get_base(package: str, module: str | None, level: int) -> str:
    """Name the module after `from`, resolving the dots of a relative import."""
    parents = package.split(".")[: package.count(".") + 2 - level] if level else []
    return ".".join(parents + ([module] if module else []))


def find_public(tree: ast.Module) -> set[str]:
    """Collect the names that the facade binds or lists in `__all__`."""
    names = set(FACADE_FACTS)
    for node in tree.body:
        match node:
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(alias.asname or alias.name for alias in aliases)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items) | ast.Tuple(elts=items)):
                names.update(str(item.value) for item in items if isinstance(item, ast.Constant))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_") or name in FACADE_FACTS}


# JUDGING

def find_violations(root: Path) -> list[Violation]:
    """List every import below `root` that breaks a rule, in the order of the files."""
    modules = read_modules(root)
    facade = root / SOURCES[HOUSE] / "__init__.py"
    public = find_public(ast.parse(facade.read_text(encoding="utf-8")))
    found = [*find_homeless(modules), *find_relation_leaks(modules)]
    for module in modules.values():
        for imported in module.imports:
            sentence = explain_import(module, imported, public)
            if sentence is not None:
                found.append(Violation(module.path, imported.line, sentence))
    return sorted(found, key=lambda violation: (violation.path, violation.line))


def find_homeless(modules: Mapping[str, Module]) -> Iterator[Violation]:
    """Find the modules of refsched that stand on no floor."""
    for module in modules.values():
        unit = get_unit(module.name)
        if get_root(module.name) == HOUSE and module.name not in FACADES and unit not in {*FLOOR_OF, EXTRAS}:
            yield Violation(module.path, 1, f"{unit} stands on no floor; name its floor in scripts/layers.py")


def find_relation_leaks(modules: Mapping[str, Module]) -> Iterator[Violation]:
    """Find the imports of the relation through which it reaches the policies."""
    for module in modules.values():
        if not is_within(module.name, RELATION):
            continue
        for imported in module.imports:
            chain = find_chain(modules, imported.target, set())
            if chain:
                yield Violation(module.path, imported.line, f"the relation reaches the policies: {' -> '.join(chain)}")


def find_chain(modules: Mapping[str, Module], name: str, seen: set[str]) -> list[str]:
    """Find the modules through which `name` reaches the policies, itself first; empty where it does not."""
    if is_within(name, POLICIES):
        return [name]
    if name in seen or name in FACADES or name not in modules:
        return []
    seen.add(name)
    for imported in modules[name].imports:
        rest = find_chain(modules, imported.target, seen)
        if rest:
            return [name, *rest]
    return []


def explain_import(module: Module, imported: Import, public: Set[str]) -> str | None:
    """Say which rule an import breaks, or return None."""
    root = get_root(imported.target)
    if get_root(module.name) == GPU:
        return explain_gpu(imported, public)
    if root == GPU or get_unit(imported.target) == EXTRAS:
        return explain_optional(module, imported)
    if root != HOUSE:
        return explain_foreign(module, root)
    return explain_floors(module, imported)


def explain_gpu(imported: Import, public: Set[str]) -> str | None:
    """Say why refsched_gpu may not use this: it is not public, or one package more to install."""
    root = get_root(imported.target)
    if root != HOUSE:
        allowed = root in sys.stdlib_module_names or root in GPU_MAY_USE
        return None if allowed else f"{root} is neither the standard library nor NumPy nor CuPy"
    if is_within(imported.target, PUBLIC_MODULE):
        return None
    if imported.base == HOUSE and (imported.name is None or imported.name in public):
        return None
    wanted = imported.base if imported.name is None else f"{imported.base}.{imported.name}"
    return f"{wanted} is not public; refsched_gpu uses the names of {HOUSE} and of {PUBLIC_MODULE}"


def explain_optional(module: Module, imported: Import) -> str | None:
    """Say why this module may not use what an installation can lack."""
    unit = get_unit(module.name)
    if unit == EXTRAS or (unit == COMMAND and imported.is_lazy):
        return None
    return f"{imported.target} is optional: only {COMMAND} may import it, inside the function that needs it"


def explain_foreign(module: Module, root: str) -> str | None:
    """Say that a package is not in the standard library."""
    if root in sys.stdlib_module_names or get_unit(module.name) == EXTRAS:
        return None
    return f"{root} is not in the standard library; only {HOUSE}/{EXTRAS} may use other packages"


def explain_floors(module: Module, imported: Import) -> str | None:
    """Say why an import inside refsched does not go down."""
    mine, theirs = get_unit(module.name), get_unit(imported.target)
    if module.name in FACADES or mine in (EXTRAS, theirs):
        return None
    if imported.target in FACADES:
        allowed = mine == COMMAND or imported.name in FACADE_FACTS
        return None if allowed else f"{imported.target} stands above {mine}: import the name from where it is defined"
    if not {mine, theirs} <= FLOOR_OF.keys():
        return None  # find_homeless reports it, and mypy a module that does not exist
    if FLOOR_OF[theirs] > FLOOR_OF[mine]:
        return f"{imported.target} stands above {mine}"
    if FLOOR_OF[theirs] == FLOOR_OF[mine] and FLOOR_OF[mine] not in ONE_FOLDER:
        return f"{imported.target} stands on one floor with {mine}, and folders on one floor do not import each other"
    return None


def get_root(name: str) -> str:
    """Give the first part of a module's name: its package."""
    return name.partition(".")[0]


def get_unit(name: str) -> str:
    """Give the folder or module of refsched that a module belongs to; empty for the facade and for other packages."""
    parts = name.split(".")
    return parts[1] if parts[0] == HOUSE and len(parts) > 1 else ""


def is_within(name: str, package: str) -> bool:
    """Tell whether a name is that package or lies in it."""
    return name == package or name.startswith(f"{package}.")


def main() -> int:
    """Print every violation of this checkout; return 1 if there is one."""
    violations = find_violations(Path(__file__).resolve().parents[1])
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
