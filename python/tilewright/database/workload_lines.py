"""Programs as lines of JSON, in the layout of TVM's database: ``["hash", "base64 of the program"]``.

The hash is a decimal number; it is not trusted, but computed again. The program is in Tilewright's own JSON:
``docs/decisions/0024-graphs-of-tvm-are-not-read.md``. A third entry holds properties that the program does not have (a
name of its own, the sizes of the measured calls). Earlier versions wrote ``["hash", {"tvmscript": "text"}]``, which can
also be written by a person; programs that this version cannot read are still written in this form.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tilewright import _core, ir
from tilewright.errors import ArgumentError, Error
from tilewright.support.json_text import parse_json
from tilewright.task.task import module_of, name_of

__all__ = ["WorkloadLine", "key_of", "line_of", "read_line", "text_of_row"]

#: number of bytes in front of a text of TVM that hold its length
_LENGTH = 8


class WorkloadLine(NamedTuple):
    """The content of a line.

    Attributes:
        module: the program.
        name: name of the program.
        sizes: sizes of the measured calls, as JSON; "" if the program has no symbolic sizes.
    """

    module: ir.IRModule
    name: str
    sizes: str


def key_of(program: str, sizes: str) -> str:
    """Return the key of a program in databases, from its hash and the sizes of its calls."""
    return hashlib.blake2b((program + sizes).encode(), digest_size=16).hexdigest() if sizes else program


def line_of(module: ir.IRModule, number: int, name: str = "", sizes: str = "") -> list[Any]:
    """Return the line of a program.

    Args:
        module: the program.
        number: hash of the program.
        name: name of the program, if it differs from its function's.
        sizes: sizes of the measured calls, as JSON.
    """
    more = {"name": name} if name and name != name_of(module) else {}
    more |= {"sizes": sizes} if sizes else {}
    text = base64.b64encode(ir.save_json(module).encode()).decode()
    return [str(number), text, more] if more else [str(number), text]


def read_line(line: Any) -> WorkloadLine:
    """Return the content of a line of any version.

    Raises:
        tilewright.ArgumentError: the line does not hold a program, or holds one in TVM's own format.
        tilewright.ScriptError: the program cannot be read.
    """
    from tilewright.script.scripts import from_source

    more: Any = {}
    match line:
        case [str(), str(text)]:
            module = _module_from_base64(text)
        case [str(), str(text), {**more}]:
            module = _module_from_base64(text)
        case [str(), {"tvmscript": str(script), **more}]:
            module = module_of(from_source(script))
        case _:
            raise ArgumentError.of(
                "database/workload",
                f"{str(line)[:80]} is not a program",
                'it should be ["hash", "base64 of the program"], or ["hash", {"tvmscript": "the text of the program"}]',
            )
    return WorkloadLine(module, str(more.get("name") or name_of(module)), str(more.get("sizes") or ""))


def _module_from_base64(text: str) -> ir.IRModule:
    try:
        data = base64.b64decode(text, validate=True)
        decoded = (data if data.startswith(b"{") else data[_LENGTH:]).decode()
        fields = parse_json(decoded)
    except ValueError as error:  # binascii.Error is one, too
        raise ArgumentError.of("database/workload", f"the program is not JSON in base64: {error}") from None
    if isinstance(fields, Mapping) and "tilewright" not in fields and "nodes" in fields:
        raise ArgumentError.of(
            "database/foreign-workload",
            "the program is a graph of TVM's own objects, which differ from release to release and are not read here",
            'replace the graph by the text of the program, where TVM is: ["hash", {"tvmscript": mod.script()}]; names '
            "are read as TVM v0.20 writes them (T.block)",
        )
    module = ir.load_json(decoded)
    if not isinstance(module, ir.IRModule):
        raise ArgumentError.of("database/workload", f"the program is a {type(module).__name__}, no module")
    return module


def text_of_row(row: _core.Workload) -> str:
    """Return the line of a database entry, with its script if this version cannot parse it."""
    from tilewright.script.scripts import from_source

    try:
        line = line_of(module_of(from_source(row.script)), int(row.hash, 16), row.name, row.sizes)
    except Error:
        more = {"tvmscript": row.script, "name": row.name} | ({"sizes": row.sizes} if row.sizes else {})
        line = [str(int(row.hash, 16)), more]
    return json.dumps(line, separators=(",", ":"))
