"""Check that every #include of src/ follows the layer table of src/README.md, every import of the Python package that
of python/README.md, and that no modules of one folder of the package import one another in a circle.

A layer may include the layers that its line names and, through them, what these may include. Unit tests may include
any layer; imports for type annotations alone may name any module.
"""

import ast
import graphlib
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import report

TABLE_LINE = re.compile(r"^(\w+)\s*->\s*(.+)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_table(readme: str, name: str = "src/README.md") -> dict[str, set[str]]:
    """The lines `layer -> layers` of the table; "nothing" is the empty set, "everything" all layers that do not
    say the same."""
    table: dict[str, set[str]] = {}
    for line in readme.splitlines():
        if match := TABLE_LINE.match(line):
            layer, targets = match.group(1), set(match.group(2).split())
            if layer in table:
                raise ValueError(f"{name}: layer {layer} stands twice in the table")
            table[layer] = targets - {"nothing"}
    whole = whole_layers(readme)
    for layer in whole:
        table[layer] |= set(table) - whole
        table[layer].remove("everything")
    for layer, targets in table.items():
        for target in targets - set(table):
            raise ValueError(f"{name}: layer {layer} names {target}, which has no line of its own")
    return table


def whole_layers(readme: str) -> set[str]:
    """The layers that may use everything."""
    matches = (TABLE_LINE.match(line) for line in readme.splitlines())
    return {match.group(1) for match in matches if match and "everything" in match.group(2).split()}


def reachable(table: dict[str, set[str]], layer: str, base: str = "support") -> set[str]:
    """All layers that a layer may include, itself among them, and everything may use the base."""
    seen: set[str] = set()
    pending = [layer, base]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending.extend(table.get(current, ()))
    return seen


def cycles(table: dict[str, set[str]], allowed: dict[str, set[str]], name: str) -> Iterator[str]:
    """Yield one line for each layer that can reach itself."""
    for layer in table:
        if any(layer in allowed[target] for target in table[layer]):
            yield f"{name}: layer {layer} depends on itself"


def check_includes(root: Path) -> Iterator[str]:
    """Yield one line for each include that the table does not allow, and for faults of the table itself."""
    try:
        table = read_table((root / "src/README.md").read_text())
    except ValueError as error:
        yield str(error)
        return
    allowed = {layer: reachable(table, layer) for layer in table}
    yield from cycles(table, allowed, "src/README.md")
    for folder in sorted(path.name for path in (root / "src").iterdir() if path.is_dir()):
        if folder not in table:
            yield f"src/{folder}: no line in the layer table of src/README.md"
    for path in report.source_files(root, ("src",), (".cc", ".h", ".c", ".def")):
        name = path.relative_to(root)
        layer = name.parts[1]
        if layer not in table or path.stem.endswith("_test"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if match := INCLUDE.match(line):
                target = match.group(1).split("/")[0]
                if "/" not in match.group(1):
                    yield f'{name}:{number}: write includes of ours from src/, such as "{layer}/{match.group(1)}"'
                elif target not in table:
                    yield f'{name}:{number}: "{match.group(1)}" lies in no layer'
                elif target not in allowed[layer]:
                    yield f"{name}:{number}: layer {layer} may not include {target} ({match.group(1)})"


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the imports from tilewright that are not only for annotations: the line, and the dotted name of a module or
    of a name in one, without the package's own name; "" for the package itself."""
    annotations: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING":
            annotations.update(*(ast.walk(statement) for statement in node.body))
    for node in ast.walk(tree):
        if node in annotations:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "tilewright":
                yield node.lineno, rest


def module_of(name: str, modules: Collection[str]) -> str:
    """Return the module that an imported name refers to or is defined in; "" if that is the package itself."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def circles(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield one line for each top-level folder in which modules import one another in a circle."""
    for folder in sorted({module.split(".")[0] for module in graph}):
        inside = {module: targets for module, targets in graph.items() if module.split(".")[0] == folder}
        try:
            graphlib.TopologicalSorter(inside).prepare()
        except graphlib.CycleError as error:
            yield f"python/tilewright/{folder}: modules import one another in a circle: {' <- '.join(error.args[1])}"


def check_imports(root: Path) -> Iterator[str]:
    """Yield one line for each import that the table of the package does not allow or that closes a circle, and for
    faults of the table."""
    name = "python/README.md"
    if not (root / name).exists():
        return
    try:
        table = read_table((root / name).read_text(), name)
    except ValueError as error:
        yield str(error)
        return
    allowed = {layer: reachable(table, layer, "_core") for layer in table}
    whole = whole_layers((root / name).read_text())
    yield from cycles(table, allowed, name)
    package = root / "python/tilewright"
    paths = list(report.source_files(root, ("python/tilewright",), (".py",)))
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path for path in paths
    }
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        layer = module.split(".")[0]
        if layer == "__init__":
            continue
        shown = path.relative_to(root)
        if layer not in table:
            yield f"{shown}: {layer} has no line in the layer table of {name}"
            continue
        found = list(imports(ast.parse(path.read_text())))
        graph[module] = {module_of(target, modules) for _, target in found} - {module, ""}
        for number, target in dict.fromkeys((number, target.split(".")[0]) for number, target in found):
            if target in table:
                if target not in allowed[layer]:
                    yield f"{shown}:{number}: {layer} may not import {target}"
            elif layer not in whole:
                yield f"{shown}:{number}: {layer} may not import the whole package"
    yield from circles(graph)


def check(root: Path) -> Iterator[str]:
    """Yield what either table forbids."""
    yield from check_includes(root)
    yield from check_imports(root)


if __name__ == "__main__":
    report.run(check)
