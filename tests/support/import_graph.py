"""The import graph of both packages, file by file and folder by folder; lazy and type-checking
imports count."""

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("wallgo_jax", "train")


def read_modules() -> dict[str, str]:
    """The text of every module of both packages, by path."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(paths)}


def folder_of(name: str) -> str:
    """The folder of a module; a module beside the folders is a hub of its own name."""
    parts = name.removesuffix(".py").split("/")
    return "/".join(parts[:2] if len(parts) == 2 else parts[:-1])


@functools.cache
def imports_of(name: str, text: str) -> tuple[str, ...]:
    """Dotted names that a module imports, lazily or not; `from a import b` gives `a.b`."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = Path(name).parent.parts
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            found += (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found += [str(node.args[0].value)] * (function == "import_module")
    return tuple(found)


def target_of(module: str, known: set[str]) -> str:
    """The file that holds a module, or a name in it: the longest dotted path that is a file."""
    parts = module.split(".")
    while parts:
        path = "/".join(parts)
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            if candidate in known:
                return candidate
        parts.pop()
    raise LookupError(module)


def file_edges(texts: dict[str, str]) -> set[tuple[str, str]]:
    """(importing file, imported file)."""
    known = set(texts)
    return {
        (name, target_of(module, known))
        for name, text in texts.items()
        for module in imports_of(name, text)
        if module.split(".")[0] in PACKAGES
    }


def libraries_of(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(file, library) for each import from outside."""
    for name, text in texts.items():
        for module in imports_of(name, text):
            if (library := module.split(".")[0]) not in PACKAGES:
                yield name, library


def circle(pairs: set[tuple[str, str]]) -> list[str]:
    """Nodes of one circle of edges, the first again at the end; empty where there is none."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for a, b in pairs:
        sorter.add(a, b)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []
