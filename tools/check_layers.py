"""Check that every #include of src/ follows the layer table of src/README.md.

A layer may include the layers that its line names and, through them, what these may include. Unit tests may include
any layer.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import report

TABLE_LINE = re.compile(r"^(\w+)\s*->\s*(.+)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_table(readme: str) -> dict[str, set[str]]:
    """The lines `layer -> layers` of the table; "nothing" is the empty set and "everything" all other layers."""
    table: dict[str, set[str]] = {}
    for line in readme.splitlines():
        if match := TABLE_LINE.match(line):
            layer, targets = match.group(1), set(match.group(2).split())
            if layer in table:
                raise ValueError(f"src/README.md: layer {layer} stands twice in the table")
            table[layer] = targets - {"nothing"}
    for layer, targets in table.items():
        if "everything" in targets:
            table[layer] = set(table) - {layer}
    for layer, targets in table.items():
        for target in targets - set(table):
            raise ValueError(f"src/README.md: layer {layer} names {target}, which has no line of its own")
    return table


def reachable(table: dict[str, set[str]], layer: str) -> set[str]:
    """All layers that a layer may include, itself among them, and everything may use support."""
    seen: set[str] = set()
    pending = [layer, "support"]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending.extend(table.get(current, ()))
    return seen


def check(root: Path) -> Iterator[str]:
    """Yield one line for each include that the table does not allow, and for faults of the table itself."""
    try:
        table = read_table((root / "src/README.md").read_text())
    except ValueError as error:
        yield str(error)
        return
    allowed = {layer: reachable(table, layer) for layer in table}
    for layer in table:
        if any(layer in allowed[target] for target in table[layer]):
            yield f"src/README.md: layer {layer} depends on itself"
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


if __name__ == "__main__":
    report.run(check)
