"""Make pages from the source: the catalogs of nodes, intrinsics, schedule primitives, passes and codes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import check_codes

TABLE_ENTRY = re.compile(r"^X\((.*)\)\s*(?://.*)?$", re.MULTILINE)
STRUCT = re.compile(
    r"(?P<comment>(?:^///[^\n]*\n)*)^struct (?P<name>\w+) \{\n(?P<body>.*?)^\};", re.MULTILINE | re.DOTALL
)
# {"flatten_buffers", flatten_buffers, kAll, kLowered, "the reason, in one string or several"},
PIPELINE_ENTRY = re.compile(r'\{"(\w+)",\s*\w+,\s*k(\w+),\s*k(\w+),\s*((?:"[^"]*"\s*)+)\}')
MACRO = re.compile(r"^#define (TW_\w+)\((\w+)\)((?:.*\\\n)*.*)$", re.MULTILINE)
MEMBERS = re.compile(r"using Members =\s*Fields<(.*?)>;", re.DOTALL)
FIELD = re.compile(r"^  (?P<type>[\w:]+(?:<.*>)?)\s+(?P<names>\w+[^;]*);\s*(?:///?<?\s*(?P<comment>.*))?$")


@dataclass
class Struct:
    """An aggregate with a field list: its comment and the fields (name, type, comment) in the order of the list."""

    name: str
    comment: str
    fields: list[tuple[str, str, str]] = field(default_factory=list)
    body: str = ""


def table(path: Path) -> list[list[str]]:
    """The entries of a .def file, each split at its commas."""
    entries = TABLE_ENTRY.findall(path.read_text()) if path.exists() else []
    return [[part.strip() for part in entry.split(",")] for entry in entries]


def expand_macros(text: str) -> str:
    """The text with uses of its own macros of one parameter written out; a comment behind a use heads what it gives."""
    for match in list(MACRO.finditer(text)):
        name, parameter = match.group(1), match.group(2)
        body = re.sub(r"[ \t]*\\\n", "\n", match.group(3))
        indent = re.match(r"\s*", body.lstrip("\n")).group(0)  # type: ignore[union-attr]
        body = "\n".join(line.removeprefix(indent) for line in body.strip("\n").splitlines())

        def written_out(use: re.Match[str], parameter: str = parameter, body: str = body) -> str:
            comment = f"/// {use.group(2)}\n" if use.group(2) else ""
            return comment + re.sub(rf"\b{parameter}\b", use.group(1), body)

        text = re.sub(rf"^{name}\((\w+)\)\s*?(?:///<\s*(.*))?$", written_out, text, flags=re.MULTILINE)
    return text


def structs(path: Path) -> Iterator[Struct]:
    """The aggregates of a header that have a field list."""
    for match in STRUCT.finditer(expand_macros(path.read_text())):
        body = match.group("body")
        listed = MEMBERS.search(body)
        if not listed:
            continue
        comment = " ".join(line.removeprefix("///").strip() for line in match.group("comment").splitlines())
        declared: dict[str, tuple[str, str]] = {}
        for line in body.splitlines():
            if found := FIELD.match(line):
                for name in found.group("names").split(","):
                    declared[name.split("=")[0].strip()] = (found.group("type"), found.group("comment") or "")
        names = [member.split("::")[-1].strip() for member in listed.group(1).split(",") if member.strip()]
        fields = [(name, *declared.get(name, ("", ""))) for name in names]
        yield Struct(match.group("name"), comment, fields, body)


def leading_comment(path: Path) -> str:
    """The // lines that open a file, without the slashes."""
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").removeprefix(" ").rstrip())
    return "\n".join(lines).strip()


def cell(text: str) -> str:
    """Text that fits into a cell of a Markdown table."""
    return text.replace("|", "\\|").strip()


def nodes(root: Path) -> str:
    """The node catalog: every kind, its fields, at which stage it may occur."""
    found = {struct.name: struct for path in sorted((root / "src/ir").glob("*.h")) for struct in structs(path)}
    stages = {("kSparse", "kScheduled"): "until lowered", ("kSparse", "kSparse"): "in sparse programs"}
    lines = ["# Nodes\n"]
    lines.append("Fields stand in the order of the constructor's arguments and of `__match_args__`.\n")
    sort = ""
    for name, node_sort, *limits in table(root / "src/ir/kinds.def"):
        if node_sort != sort:
            sort = node_sort
            titles = {"Expr": "Expressions", "Stmt": "Statements", "Type": "Types", "Func": "Functions"}
            lines.append(f"## {titles.get(sort, 'Other nodes')}\n")
        struct = found.get(name)
        if struct is None:
            raise ValueError(
                f"src/ir/kinds.def names {name}, but no header of src/ir/ has a struct of that name with a field list"
            )
        lines.append(f"### {name}\n")
        if struct.comment:
            lines.append(struct.comment + "\n")
        if limits:
            lines.append(f"May occur {stages[limits[0], limits[1]]}.\n")
        if struct.fields:
            lines.append("| field | type | |\n|---|---|---|")
            for field_name, field_type, comment in struct.fields:
                lines.append(f"| `{field_name}` | `{cell(field_type)}` | {cell(comment)} |")
            lines.append("")
    return "\n".join(lines)


INTRINSIC = re.compile(r"^(X|FLOATS|INTEGERS|NUMBERS)\((.*)\)$", re.MULTILINE)
# The columns of each kind of row; a column that it lacks has the value given.
INTRINSIC_COLUMNS = {
    "X": ("name arity effect typing script folds cost", {"meaning": ""}),
    "FLOATS": ("name arity folds cost meaning", {"effect": "kPure", "typing": "kSameFloat"}),
    "INTEGERS": ("name arity typing script folds cost meaning", {"effect": "kPure"}),
    "NUMBERS": ("name arity typing folds cost meaning of_integers", {"effect": "kPure"}),
}


def columns(row: str) -> list[str]:
    """The row split at the commas that no parentheses enclose."""
    parts, depth = [""], 0
    for c in row:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def intrinsics(root: Path) -> str:
    """The table of intrinsics."""
    lines = ["# Intrinsics\n", "What the columns say is explained at the top of `src/ir/intrinsics.def`.\n"]
    lines.append("| name | arguments | effect | type | cost | meaning |\n|---|---|---|---|---|---|")
    path = root / "src/ir/intrinsics.def"
    for kind, text in INTRINSIC.findall(path.read_text() if path.exists() else ""):
        names, others = INTRINSIC_COLUMNS[kind]
        row = {**others, **dict(zip(names.split(), columns(text), strict=True))}
        arity = "any" if row["arity"] == "-1" else row["arity"]
        meaning = ", of integers ".join(cell(f"`{row[key]}`") for key in ("meaning", "of_integers") if row.get(key))
        cells = [f"`tir.{row['name']}`", arity, row["effect"][1:], row["typing"][1:], row["cost"][1:], meaning]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def primitives(root: Path) -> str:
    """The reference of schedule primitives: docstring and the contract that opens the file."""
    folder = root / "src/schedule"
    lines = ["# Schedule primitives\n"]
    lines.append("A refusal is a `tw.ScheduleError`; its code names the requirement, such as `split/P1`.\n")
    for kind, method, *_ in table(folder / "instructions.def"):
        lines.append(f"## {method}\n")
        header = folder / "primitives" / f"{method}.h"
        documented = {struct.name: struct.body for struct in structs(header)} if header.exists() else {}
        if doc := re.search(r'kDoc = R"\((.*?)\)";', documented.get(kind, ""), re.DOTALL):
            lines.append(f"```text\n{doc.group(1)}\n```\n")
        file = folder / "primitives" / f"{method}.cc"
        if file.exists():
            contract = leading_comment(file)
            lines.append(f"```text\n{contract}\n```\n")
    return "\n".join(lines)


def passes(root: Path) -> str:
    """Lowering passes in the order of the pipeline: why a pass stands there, and the contract that opens its file."""
    pipeline = root / "src/lower/pipeline.cc"
    lines = [
        "# Lowering passes\n",
        "In the order of `src/lower/pipeline.cc`; `tw.lower(mod, after=PASS)` stops behind one.\n",
    ]
    for name, targets, stage, reason in PIPELINE_ENTRY.findall(pipeline.read_text() if pipeline.exists() else ""):
        lines.append(f"## {name}\n")
        lines.append("Why here: " + "".join(re.findall(r'"(.*?)"', reason)) + ".\n")
        lines.append(f"Targets: {targets.lower()}. Leaves a {stage.lower()} program.\n")
        for path in root.glob(f"src/lower/*/{name}.cc"):
            lines.append(f"```text\n{leading_comment(path)}\n```\n")
    return "\n".join(lines)


def codes(root: Path) -> str:
    """Every code of a diagnostic and the files that raise it."""
    places: dict[str, set[str]] = {}
    for code, name in check_codes.defined_codes(root):
        places.setdefault(code, set()).add(name.split(":")[0])
    lines = [
        "# Codes of diagnostics\n",
        "`error.code` of a `tw.Error`. Requirements P1, P2, ... are stated where they are checked.\n",
    ]
    lines.append("| code | raised in |\n|---|---|")
    for code in sorted(places):
        lines.append(f"| `{code}` | {', '.join(f'`{name}`' for name in sorted(places[code]))} |")
    return "\n".join([*lines, ""])


CATALOGS = {
    "nodes.md": nodes,
    "intrinsics.md": intrinsics,
    "primitives.md": primitives,
    "passes.md": passes,
    "codes.md": codes,
}


#: The tables in the source that catalogs are generated from.
TABLES = {
    "src/ir/intrinsics.def": "intrinsics.md",
    "src/ir/kinds.def": "nodes.md",
    "src/schedule/instructions.def": "primitives.md",
    "src/lower/pipeline.cc": "passes.md",
}


def generate(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each catalog."""
    for name, catalog in CATALOGS.items():
        yield name, catalog(root).rstrip("\n") + "\n"


def write(root: Path, folder: Path) -> None:
    """Write the catalogs into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generate(root):
        (folder / name).write_text(text)
