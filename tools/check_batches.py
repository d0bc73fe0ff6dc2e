"""Check that names in anonymous namespaces differ within a layer: release builds compile several of its files as one
(cmake/Layers.cmake), where two of a name are a redefinition, and one that a header of the layer has too is ambiguous.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import report

#: what stands between `namespace {` and its end, as clang-format writes it
ANONYMOUS = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
TYPE = re.compile(r"^(?:struct|class|enum(?: class)?) (\w+)(?! *;)\b[^;\n]*(?:\{|:)[^\n]*$", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) = ([^;]+);", re.MULTILINE)
CONSTANT = re.compile(r"^(?:inline )?constexpr [^=({\n]*?\b(k[A-Z]\w*)\b(?= *[=\[{])", re.MULTILINE)
#: with its parameters: overloads may share a name
FUNCTION = re.compile(r"^(?!return\b|else\b|using\b)\w[\w:<>,*& ]*?[ *&](\w+)(\([^()]*\))(?: const)? \{", re.MULTILINE)
PARAMETER_NAME = re.compile(r"(?<=[\w>&*]) ?\b\w+(?=[,)])")


def names_in(text: str) -> Iterator[tuple[str, str]]:
    """Names at the margin, of types, constants, functions with the types of their parameters, and aliases with what
    they stand for: two of these may be the same."""
    for pattern in (TYPE, CONSTANT):
        yield from ((name, "") for name in pattern.findall(text))
    for function, parameters in FUNCTION.findall(text):
        yield function + PARAMETER_NAME.sub("", " ".join(parameters.split())), ""
    yield from ALIAS.findall(text)


def check_batches(root: Path) -> Iterator[str]:
    """Yield one line for each name that two files of a layer have, one of them in an anonymous namespace."""
    hidden: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    seen: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    functions: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for path in report.source_files(root, ("src",), (".cc", ".h")):
        if "test" in path.stem.split("_"):
            continue
        name = path.relative_to(root)
        text = path.read_text()
        for part in ANONYMOUS.findall(text):
            for each, meaning in names_in(part):
                hidden[name.parts[1], each][str(name)] = meaning
            for function, _ in FUNCTION.findall(part):
                is_taken = re.search(rf"&{function}\b(?![.:])", text) is not None
                functions[name.parts[1], function][str(name)] = is_taken
        if path.suffix == ".h":
            for each, meaning in names_in(text):
                seen[name.parts[1], each][str(name)] = meaning
    for (layer, each), files in hidden.items():
        first, meaning = min(files.items())
        for other, its in sorted((files | seen[layer, each]).items()):
            if other != first and not (meaning and its == meaning):
                yield f"{other}: {each} is also in an anonymous namespace of {first}, which may be compiled with it"
    for (_, function), places in functions.items():
        taken = min((place for place, is_taken in places.items() if is_taken), default="")
        for other in sorted(set(places) - {taken}) if taken else ():
            yield f"{other}: {function}() is overloaded where {taken} takes its address, which may be compiled with it"


if __name__ == "__main__":
    report.run(check_batches)
