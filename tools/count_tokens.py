"""Count what there is to read in src/ and python/: tokens and lines of code, by folder.

    python tools/count_tokens.py [--files]     a table by folder, or the largest files

Comments, docstrings, blank lines, tests and generated stubs do not count, so that neither formatting nor more words
change the numbers: a token of C++ is a name, a number, a literal or an operator, one of Python what `tokenize` gives,
without ends of lines and indentation.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import report

FOLDERS = ("src", "python")
SUFFIXES = (".cc", ".h", ".c", ".def", ".py")
#: beside what is named *_test.cc and *_for_test.h
TESTS = {"src/arith/test_evaluator.h", "src/schedule/test_programs.h", "src/search/measure/faulty_helper_test_main.cc"}

_CPP = re.compile(
    r"""(?P<skipped>//(?:\\\n|[^\n])*|/\*.*?\*/|\s+|\\\n)
    |(?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"         # raw strings
    |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'
    |\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*
    |[A-Za-z_]\w*
    |<<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*/%&|^]=
    |.""",
    re.VERBOSE | re.DOTALL,
)
_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def cpp_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Each token and the number of the line where it begins."""
    line = 1
    for found in _CPP.finditer(text):
        if found["skipped"] is None:
            yield found[0], line
        line += found[0].count("\n")


def docstrings(text: str) -> set[tuple[int, int]]:
    """Where they begin."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(getattr(node, "body", None), list) and node.body)
    firsts = (node.body[0] for node in nodes if hasattr(node, "name") or isinstance(node, ast.Module))
    values = (first.value for first in firsts if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))
    return {(value.lineno, value.col_offset) for value in values if isinstance(value.value, str)}


def python_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tokens of Python with their lines, without comments and docstrings."""
    left_out = docstrings(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT and token.start not in left_out:
            yield token.string, token.start[0]


def is_test(name: str) -> bool:
    """Whether it is built for tests alone."""
    return name in TESTS or bool(re.search(r"_test\.cc$|_for_test\.h$", name))


def count(root: Path) -> dict[str, tuple[int, int]]:
    """Tokens and lines that have one, by file."""
    found = {}
    for path in report.source_files(root, FOLDERS, SUFFIXES):
        name = str(path.relative_to(root))
        if not is_test(name):
            text = path.read_text()
            tokens = [*(python_tokens if path.suffix == ".py" else cpp_tokens)(text)]
            found[name] = len(tokens), len({line for _, line in tokens})
    return found


def by_folder(files: dict[str, tuple[int, int]]) -> dict[str, Counter[str]]:
    """Files, tokens and lines of each folder, without those of folders inside of it."""
    table: dict[str, Counter[str]] = {}
    for name, (tokens, lines) in files.items():
        table.setdefault(name.rpartition("/")[0], Counter()).update(files=1, tokens=tokens, lines=lines)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="the 40 largest files")
    options = parser.parse_args()
    files = count(report.ROOT)
    if options.files:
        for name, (tokens, lines) in sorted(files.items(), key=lambda item: -item[1][0])[:40]:
            print(f"{tokens:>9,} {lines:>8,}  {name}")
        return
    table = by_folder(files)
    for top in FOLDERS:
        table[f"{top}/ in all"] = sum(
            (row for name, row in table.items() if f"{name}/".startswith(f"{top}/")), Counter()
        )
    table["all"] = sum((table[f"{top}/ in all"] for top in FOLDERS), Counter())
    print(f"{'tokens':>9} {'lines':>8} {'files':>6}  folder")
    for name, row in table.items():
        print(f"{row['tokens']:>9,} {row['lines']:>8,} {row['files']:>6}  {name}")


if __name__ == "__main__":
    main()
