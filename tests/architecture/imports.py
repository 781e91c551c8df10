"""What a module imports, however it is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
LOADERS = {"import_module", "__import__"}


def module_name(path: Path, *, root: Path = PACKAGE) -> str:
    """Return a file's dotted name; a package is its folder, the top package `slackwater.__init__`."""
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    if parts[-1] == "__init__" and len(parts) > 2:
        parts.pop()
    return ".".join(parts)


def known_modules() -> dict[str, Path]:
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def by_name(call: ast.Call) -> list[str]:
    """Return what a call of `import_module` or `__import__` loads; of a name that varies, what is before that."""
    match call:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]):
            loaded = module
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name),
            args=[ast.JoinedStr(values=[ast.Constant(value=str(module)), *_]), *_],
        ):
            loaded = module.rpartition(".")[0]
        case _:
            return []
    return [loaded] if name in LOADERS else []


def imports_of(source: str, *, package: str, modules: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and module of each import of Slackwater's own, wherever in the source it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            # `from slackwater import errors` names a module, `from slackwater import stream` a thing in one.
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names = list(dict.fromkeys(name if name in modules else base for name in whole))
        elif isinstance(node, ast.Call):
            names = by_name(node)
        else:
            continue
        for name in names:
            if name == "slackwater":
                yield node.lineno, "slackwater.__init__"
            elif name.startswith("slackwater."):
                yield node.lineno, name


def libraries_of(source: str) -> set[str]:
    """Return the dotted names of everything that is not Slackwater's own and imported in `source`."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            names |= {*by_name(node)}
    return {name for name in names if name.split(".")[0] != "slackwater"}
