"""List the public names of the built package with their signatures, in docs/reference/api/signatures.txt.

python tools/generate_api.py            write the list
python tools/generate_api.py --check    report whether it is out of date, and which public names have no docstring

The list is tracked, so that a review shows what changes for users. From the docstrings `write_pages` makes the API
reference of the site (tools/build_site.py) and the table of tensor intrinsics.
"""

import enum
import functools
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

SIGNATURES = Path("docs/reference/api/signatures.txt")
#: Pages, below the folder of the reference.
FOLDER = Path("api")
INTRINSICS = Path("tensor-intrinsics.md")

#: module -> what it is for
MODULES = {
    "tilewright": "compiling, calling, scheduling and tuning programs",
    "tilewright.meta_schedule": "the parts of the search, each of which can be replaced",
    "tilewright.ir": "programs as nodes",
    "tilewright.script": "programs as text",
    "tilewright.te": "programs as formulas",
    "tilewright.arith": "integer reasoning",
    "tilewright.schedule": "schedules, their handles and traces",
    "tilewright.sparse": "sparse matrices, their formats and products",
    "tilewright.tensor_intrin": "instructions on tensors",
    "tilewright.auto_tensorize": "finding where instructions on tensors fit",
    "tilewright.timing": "interleaved times of calls, against the limits of the machine",
    "tilewright.tables": "what tables are made of",
    "tilewright.testing": "for tests of programs and schedules",
}
#: names that another page has
ELSEWHERE = {"tilewright.Schedule": "schedule.md", "tilewright.Trace": "schedule.md"}
#: longer signatures have a line for each parameter
_WIDTH = 100
_ROLE = re.compile(r":(?:class|func|meth|attr|mod|exc|data):`~?(?:[\w.]*\.)?([\w]+(?:\(\))?)`")
_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Warns|Attributes|Note|Example|Examples):$")


#: of the functions of the compiled module, which tilewright.ir hands on, those on nodes; others belong to other modules
_ON_NODES = {
    *("as_module", "call_intrinsic", "cast", "ceildiv", "const", "decl_buffer", "floordiv", "floormod", "from_json"),
    *("if_then_else", "logical_and", "logical_not", "logical_or", "max", "max_value", "min", "min_value"),
    *("post_order_visit", "pre_order_visit", "renew_defs", "rewrite", "select", "seq", "structural_equal"),
    *("structural_hash", "structural_mismatch", "substitute", "to_json", "truncdiv", "truncmod", "visit"),
    "with_function",
}


def public_names(module: ModuleType) -> list[str]:
    """Return the names that users may import from a module, sorted."""
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    if module.__name__ == "tilewright.ir":
        own = ("IRModule", "assert_structural_equal", "load_json", "save_json")
        nodes = [name for name in names if _is_node(module.__name__, getattr(module, name))]
        names = [name for name in names if name in own or name in _ON_NODES or name in nodes]
    return sorted(names)


def prose(text: str, level: int = 0) -> str:
    """A docstring as Markdown: sections as lists, examples as code."""
    lines: list[str] = []
    in_code, in_section, has_items = False, False, False
    for line in inspect.cleandoc(text).splitlines():
        bare = line.strip()
        is_code = bare.startswith((">>> ", "... "))
        if is_code != in_code and (is_code or not bare):
            lines.append("```python" if is_code else "```")
            in_code = is_code
        if in_code:
            lines.append(bare[4:] if is_code else bare)
            continue
        line = _ROLE.sub(r"`\1`", line).replace("``", "`")
        if found := _SECTION.match(bare):
            lines += ["", f"*{found[1]}*", ""]
            in_section, has_items = True, found[1] not in ("Returns", "Yields")
        elif in_section and re.match(r" {4}\S", line):
            name, colon, rest = bare.partition(":")
            is_item = has_items and bool(colon) and re.fullmatch(r"[\w.*, \[\]|]+", name) is not None
            lines.append(f"- `{name}`:{_plain(rest)}" if is_item else f"  {_plain(bare)}")
        else:
            in_section = in_section and (not bare or line.startswith(" "))
            lines.append(f"  {_plain(bare)}" if in_section and bare else _plain(line))
    if in_code:
        lines.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _plain(text: str) -> str:
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def signature_of(value: Any, name: str) -> tuple[str, str]:
    """How it is called, and what it says of itself."""
    native = getattr(value, "__nb_signature__", None)
    if native:
        calls = []
        for text, _, defaults in native:
            given = [repr(default) for default in defaults or ()]
            text = re.sub(r"\\(\d+)", lambda at, given=given: given[int(at[1])], text)
            calls.append(readable(re.sub(r"^def \w+", name, text)))
        return "\n".join(calls), next((entry[1] for entry in native if entry[1]), "") or ""
    try:
        text = f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        text = name
    return readable(text), inspect.getdoc(value) or ""


def readable(text: str) -> str:
    """A signature as one writes it: without modules, quotes around types and addresses; a long one on several lines."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    text = re.sub(r"\b(?:tilewright(?:\.\w+)*|collections\.abc|numpy|np|ir|typing)\.(?=[A-Z])", "", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace(", /)", ")").replace("(self, ", "(").replace("(self)", "()")
    begin, end = text.find("("), text.rfind(")")
    if len(text) <= _WIDTH or begin < 0:
        return text
    parts, depth = [""], 0
    for letter in text[begin + 1 : end]:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return text[: begin + 1] + "".join(f"\n    {part.strip()}," for part in parts) + "\n" + text[end:]


def is_ours(owner: type) -> bool:
    """Whether its members belong to the reference."""
    return owner.__module__.startswith("tilewright")


@functools.cache
def classes_with_entries() -> frozenset[type]:
    """The public classes of all modules, each of which has an entry on a page."""
    found = set()
    for name in MODULES:
        module = importlib.import_module(name)
        found |= {value for each in public_names(module) if inspect.isclass(value := getattr(module, each))}
    return frozenset(found)


def has_own_entry(base: type) -> bool:
    """Whether what a class inherits from this base is described elsewhere: on a page, or by Python."""
    return base in classes_with_entries() or not is_ours(base)


def described_bases(cls: type) -> list[type]:
    """The nearest bases of ours that have entries of their own."""
    found: list[type] = []
    for base in cls.__bases__:
        found += [base] if is_ours(base) and has_own_entry(base) else described_bases(base)
    return list(dict.fromkeys(found))


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public members in the order of the alphabet; those of bases that have no entry of their own, too."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is cls or not has_own_entry(base):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    yield from sorted(found.items())


def inherited(cls: type) -> set[str]:
    """The public names that the entries of bases have, or Python's own."""
    return {name for base in cls.__mro__[1:] if has_own_entry(base) for name in vars(base)}


def missing_members(cls: type, text: str) -> Iterator[str]:
    """The public names of a class, as Python sees it, that its entry does not have."""
    prose_alone = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    code = "\n".join(re.findall(r"`[^`\n]+`|^### .*$", prose_alone, re.MULTILINE))
    if is_dataclass(cls) or hasattr(cls, "_fields"):  # whose fields are named as arguments
        code += "".join(re.findall(r"^```python\nclass .*?^```$", text, re.MULTILINE | re.DOTALL)[:1])
    for name in dir(cls):
        if not name.startswith("_") and name not in inherited(cls) and not re.search(rf"\b{name}\b", code):
            yield name


def described_fields(cls: type) -> set[str]:
    """Names that the docstring of the class or of a base explains."""
    text = "\n".join(inspect.getdoc(base) or "" for base in cls.__mro__ if is_ours(base))
    return set(re.findall(r"^ {4}(\w+):", text, re.MULTILINE))


def class_text(cls: type, name: str, wordless: list[str]) -> Iterator[str]:
    """A class with its members; those that say nothing of themselves are noted."""
    try:
        call, said = signature_of(cls.__init__ if hasattr(cls.__init__, "__nb_signature__") else cls, name)  # type: ignore[misc]
    except AttributeError:
        call, said = name, ""
    call = call.removesuffix(" -> None")
    doc = inspect.getdoc(cls) or ""
    bases = [base.__name__ for base in described_bases(cls)]
    yield f"```python\nclass {call}\n```\n"
    if bases:
        yield f"Of {', '.join(f'`{base}`' for base in bases)}.\n"
    yield prose(doc)
    if said and said != doc:
        yield prose(said.removeprefix("Make one.").lstrip())
    known = described_fields(cls)
    values = {field.name for field in fields(cls) if field.default is not MISSING} if is_dataclass(cls) else set()
    if issubclass(cls, enum.Enum):
        yield f"Values: {', '.join(f'`{each}`' for each in cls.__members__)}.\n"
    for member, value in members(cls):
        plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if is_property(plain):
            said = inspect.getdoc(plain) or ""
            if member not in known and (not said or type(plain).__name__ == "member_descriptor"):
                wordless.append(f"{name}.{member}")
            if said and member not in known:
                yield f"`{name}.{member}`: {prose(said)}"
        elif callable(plain) and not inspect.isclass(plain):
            call, said = signature_of(plain, member)
            if not said:
                wordless.append(f"{name}.{member}")
            yield f"### {name}.{member}\n\n```python\n{call}\n```\n\n{prose(said)}"
        elif member not in known and member not in values and not inspect.isclass(plain):
            said = inspect.getdoc(plain) if type(plain).__module__.startswith("tilewright") else ""
            if not said and not isinstance(value, cls):  # members of enumerations say it by their names
                wordless.append(f"{name}.{member}")


def is_property(plain: object) -> bool:
    """Return whether a member is read without a call."""
    kinds = ("property", "cached_property", "member_descriptor", "getset_descriptor")
    return isinstance(plain, property) or type(plain).__name__ in kinds


def signature_lines(path: str, value: Any) -> Iterator[str]:
    """Yield one line for a public name, and one for each public member of a class."""
    plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    folder, _, name = path.rpartition(".")
    if inspect.isclass(plain):
        has_own = hasattr(plain.__init__, "__nb_signature__")
        try:
            call = signature_of(plain.__init__ if has_own else plain, name)[0]
        except AttributeError:
            call = name
        bases = ", ".join(base.__name__ for base in plain.__bases__ if is_ours(base))
        kind = f"class({bases})" if bases else "class"
        yield from lines_of_calls(kind, folder, call.removesuffix(" -> None"))
        for member, value in members(plain):
            if not inspect.isclass(value):
                yield from signature_lines(f"{path}.{member}", value)
    elif is_property(plain) or not callable(plain):
        yield f"{'property' if is_property(plain) else 'value'} {path}"
    else:
        yield from lines_of_calls("def", folder, signature_of(plain, name)[0])


def lines_of_calls(kind: str, folder: str, calls: str) -> Iterator[str]:
    """Yield one line for each overload."""
    joined = re.sub(r"\(\n    |,\n\)|\n    ", lambda at: {"(": "(", ",": ")"}.get(at[0][0], " "), calls)
    for call in joined.split("\n"):
        yield f"{kind} {folder}.{call}"


def signatures() -> str:
    """Return the list: a change of it is a change for users."""
    lines: list[str] = []
    for name in MODULES:
        module = importlib.import_module(name)
        for each in public_names(module):
            lines += signature_lines(f"{name}.{each}", getattr(module, each))
    return "\n".join(lines) + "\n"


def source_of(value: Any) -> str:
    """Where it is written."""
    module = getattr(value, "__module__", "") or ""
    if module.startswith("tilewright._core") or not module.startswith("tilewright"):
        return "src/python/"
    file = getattr(sys.modules.get(module), "__file__", None)
    return "" if file is None else "python/" + file.partition("/python/")[2]


def page(name: str, wordless: list[str], missing: list[str]) -> str:
    """The reference of a module; members of classes that it does not have are noted."""
    module = importlib.import_module(name)
    lines = [f"# {name}: {MODULES[name]}\n", prose(inspect.getdoc(module) or "")]
    own = [each for each in public_names(module) if not _is_node(name, getattr(module, each))]
    nodes = [each for each in public_names(module) if each not in own]
    for each in own:
        value = getattr(module, each)
        lines.append(f"## {each}\n")
        if inspect.isclass(value) and f"{name}.{each}" in ELSEWHERE:
            lines.append(prose(inspect.getdoc(value) or ""))
            lines.append(f"Its members are in [{ELSEWHERE[f'{name}.{each}']}]({ELSEWHERE[f'{name}.{each}']}).\n")
        elif inspect.isclass(value):
            entry = [*class_text(value, each, wordless)]
            lines += entry
            missing += [f"{name}.{each}.{member}" for member in missing_members(value, "\n".join(entry))]
        elif callable(value):
            call, said = signature_of(value, each)
            if not said:
                wordless.append(f"{name}.{each}")
            lines.append(f"```python\n{call}\n```\n\n{prose(said)}")
        else:
            lines.append(f"A value of type `{type(value).__name__}`.\n")
        if source := source_of(value):
            lines.append(f"Source: `{source}`\n")
    if nodes:
        listed = ", ".join(f"`{each}`" for each in nodes)
        lines.append(f"## Classes of nodes\n\n{listed}: their fields are in [nodes.md](../nodes.md).\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _is_node(module: str, value: Any) -> bool:
    """Whether nodes.md has it."""
    from tilewright import ir

    return module == "tilewright.ir" and inspect.isclass(value) and issubclass(value, ir.Node)


def index() -> str:
    """The list of pages."""
    lines = ["# Python\n", "| module | |\n|---|---|"]
    lines += [f"| [`{name}`]({_file(name)}) | {what} |" for name, what in MODULES.items()]
    lines.append(
        "\nSchedule primitives are in [primitives.md](../primitives.md), node classes in [nodes.md](../nodes.md), what"
    )
    lines.append(
        "scripts may call in [intrinsics.md](../intrinsics.md), errors by their codes in [codes.md](../codes.md).\n"
    )
    return "\n".join(lines)


def _file(name: str) -> str:
    return f"{name.removeprefix('tilewright.')}.md"


def _buffers(function: Any) -> list[str]:
    found = []
    for param in function.params:
        buffer = function.buffer_map[param]
        shape = " x ".join(str(extent) for extent in buffer.shape)
        layout = "strided" if buffer.strides else "compact"
        scope = "" if buffer.scope() == "global" else f", {buffer.scope()}"
        found.append(f"{buffer.name}: {buffer.dtype} {shape} ({layout}{scope})")
    return found


def tensor_intrinsics() -> str:
    """The table of instructions on tensors, by the module that has them."""
    from tilewright import TensorIntrin

    lines = ["# Instructions on tensors\n"]
    lines.append(
        "What `sch.tensorize(block, name)` takes, once `import tilewright.tensor_intrin` has made them known: the\n"
        "buffers of the description with data type and shape. Strides that an implementation states are checked where\n"
        "it is used. `features` are those of the processor, as LLVM spells them; programs for GPUs are scheduled and\n"
        "interpreted, not compiled. `TensorIntrin.get(name)` has description and implementation,\n"
        "`tilewright.tensor_intrin` shows how one of your own is registered.\n"
    )
    lines.append("| name | buffers | features |\n|---|---|---|")
    for name in sorted(TensorIntrin.names()):
        intrin = TensorIntrin.get(name)
        features = ", ".join(f"`{each}`" for each in intrin.features)
        lines.append(f"| `{name}` | {'<br>'.join(_buffers(intrin.desc))} | {features} |")
    return "\n".join(lines) + "\n"


def texts() -> tuple[dict[Path, str], list[str], list[str]]:
    """Return the text of each page, the public names without a docstring, and those that no page has."""
    import tilewright.tensor_intrin  # noqa: F401  (what its modules register)

    wordless: list[str] = []
    missing: list[str] = []
    found = {FOLDER / _file(name): page(name, wordless, missing) for name in MODULES}
    found[FOLDER / "README.md"] = index()
    found[INTRINSICS] = tensor_intrinsics()
    return found, wordless, missing


def check(root: Path) -> Iterator[str]:
    """Yield a line if the list is out of date, and one for each public name without a docstring or a page."""
    path = root / SIGNATURES
    if not path.exists() or path.read_text() != signatures():
        yield f"{SIGNATURES}: out of date, run `python tools/generate_api.py`"
    _, wordless, missing = texts()
    for name in wordless:
        yield f"{name}: has no docstring"
    for name in missing:
        yield f"{name}: is public, and on no page"


def write(root: Path) -> None:
    """Write the list of signatures."""
    (root / SIGNATURES).parent.mkdir(parents=True, exist_ok=True)
    (root / SIGNATURES).write_text(signatures())


def write_pages(folder: Path) -> None:
    """Write the pages of the reference into a folder."""
    for path, text in texts()[0].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("TILEWRIGHT_NUM_THREADS", "1")
    if sys.argv[1:] == ["--check"]:
        report.run(check)
    write(report.ROOT)
