"""Check words: no notes to ourselves, American spelling, no file that is named after nothing, the field's words,
docstrings that name what they are about.

python tools/check_words.py              the repository
python tools/check_words.py src python   what the table of the field's words finds in other folders
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import report

FOLDERS = ("src", "python", "tests", "tools", "benchmarks", "examples", "scripts", "cmake", "docs")
SUFFIXES = (".cc", ".h", ".c", ".def", ".py", ".pyi", ".md", ".cmake", "")

NOTES = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# The left side is British. Word parts, so that "initialised" and "initialisation" are found, too.
BRITISH = {
    "behaviour": "behavior",
    "colour": "color",
    "favour": "favor",
    "neighbour": "neighbor",
    "honour": "honor",
    "artefact": "artifact",
    "centre": "center",
    "licence": "license",
    "analyse": "analyze",
    "optimis": "optimiz",
    "initialis": "initializ",
    "serialis": "serializ",
    "normalis": "normaliz",
    "vectoris": "vectoriz",
    "parallelis": "paralleliz",
    "recognis": "recogniz",
    "summaris": "summariz",
    "canonicalis": "canonicaliz",
    "specialis": "specializ",
    "materialis": "materializ",
    "synchronis": "synchroniz",
    "labelled": "labeled",
    "modelling": "modeling",
    "cancelled": "canceled",
}
# "Analyses" is the plural of analysis, too; CancelledError and "cancelled" are names of Python and Dask.
BRITISH_WORD = re.compile(
    "(" + "|".join(BRITISH) + r")(?<!analyse(?=s\b))(?!Error)(?<!\"cancelled(?=\"))", re.IGNORECASE
)
EMPTY_NAMES = {"utils", "util", "common", "misc", "helper", "helpers"}

#: Documentation and code that uses the field's words alone.
FIELD_WORDS_ONLY = ("README.md", "CONTRIBUTING.md", "docs", "src", "python")
#: Words that readers from LLVM, Halide, TVM or PyTorch have to decode, and what these call it. A pattern matches whole
#: words in any case. Code, between backticks, is not looked at: names have tables of their own.
FIELD_WORDS = {
    "bands?|rows at a time": "row blocking, fused attention",
    "few rows": "skinny GEMM, GEMV, split-K",
    "add(ed|s)? in groups|groups? of columns": "dot-product instructions, panels, column blocks",
    "turned|turn(s|ing)? round": "transposed, transpose",
    "in turns?": "alternately",
    "narrow(er)?": "small trip count, low precision",
    "gaps": "strided access, de-interleave",
    "phases": "strided sub-problems",
    "long sums?": "split-K reduction",
    "widen(s|ed|ing)?": "upcast",
    "block facts": "access summary, block info",
    "draws?|drew|drawn|drawing": "sample",
    "attempts?": "try",
    "ask(s|ed|ing)? for ahead|asked for in advance": "prefetch",
    "side by side|along memory": "contiguous",
    "lies?|lay|lying": "is stored, is aligned",
    "(first|second|third) level": "L1, L2, L3",
    "sums? in lanes|sums of two lanes": "vector accumulators",
    "no rest|a rest": "remainder, tail",
    "pieces": "piecewise polynomial, table segments",
    "left out|leav(es?|ing) out": "omitted, optional",
    "spending": "profiler, time breakdown",
    "told|tell(s|ing)?": "report, log, notify",
    "as (it is |they are )?written": "reference, unscheduled",
    "by rules?": "heuristic schedule",
    "homes?": "storage location",
    "by hand": "manual",
    "what (was|is) given": "arguments, inputs",
    "likewise": "name the noun",
}
FIELD_WORD = re.compile("|".join(rf"\b(?P<w{n}>{words})\b" for n, words in enumerate(FIELD_WORDS)), re.IGNORECASE)
# Code in texts, and names that stored programs, records and scripts use: values of `schedule=`, fields, locals.
_CODE = re.compile(
    r"`[^`\n]+`|['\"](?:as written|by rules|spending|drawing|attempts|turned)['\"]"
    r"|(?:report|tilewright)\.spending|(?<=[.:])attempts\b|\battempts(?= = 0|: int)|An attempt to prove"
)

#: Python whose docstrings say what they are about
DOCSTRING_FOLDERS = ("python", "benchmarks", "tools", "scripts")
#: Python whose functions have imperative docstrings
IMPERATIVE_FOLDERS = ("python/tilewright",)
#: Beginnings of docstrings whose noun is somewhere else: in the name of the function, or in the docstring above.
NO_NOUN = re.compile(r'^\s*r?"""(?P<words>Of|The same|Likewise|As the|As above|In a|One or|What)\b')
#: The first line of a function or class, and of a docstring
OWNER = re.compile(r"^\s*(?:async )?(?P<kind>def|class)\b")
SUMMARY = re.compile(r'^\s*r?"""(?P<word>\w+)')
#: Words that do not begin an imperative: articles and the like, verbs in the third person and plural nouns ("Adds")
NO_IMPERATIVE = re.compile(r"(An?|The|All|Each|Every|One|Both|How|Where|Which|What|Whether|Called|\w+(?<!s)s)$")
#: Lines of attributes and arguments whose noun is their name: "seed: of the stream".
NAME_AS_NOUN = re.compile(r"^\s+(?P<name>[a-z_]+): (?P<words>of|that|whose)\b")


def docstrings_without_noun(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each docstring, and of each attribute in one, that begins without its noun or verb, and how to
    begin it."""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := NO_NOUN.match(line):
            instead = "begin with a verb ('Return the ...') or with what it is"
            yield number, f"a docstring that begins with '{match['words']}' names nothing: {instead}"
        if match := NAME_AS_NOUN.match(line):
            name, words = match["name"], match["words"]
            yield number, f"'{name}: {words} ...' has no noun: repeat it ('{name}: the {name} {words} ...')"


def summaries_without_imperative(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each docstring of a function that does not begin with a verb, and its first word."""
    owner, previous = "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := OWNER.match(line):
            owner = match["kind"]
        if owner == "def" and previous.endswith(":") and (match := SUMMARY.match(line)):
            if NO_IMPERATIVE.match(match["word"]):
                instead = "begin with a verb ('Return the ...', 'Add ...')"
                yield number, f"a docstring of a function that begins with '{match['word']}': {instead}"
            owner = ""
        previous = line


def decoded(text: str, is_markdown: bool) -> Iterator[tuple[int, str]]:
    """Yield the line of each word of the table, and what to write instead."""
    instead = list(FIELD_WORDS.values())
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if is_markdown and line.startswith("```"):
            in_code = not in_code
        if in_code or (is_markdown and line.startswith("    ")):
            continue
        for match in FIELD_WORD.finditer(_CODE.sub("", line)):
            (group,) = [name for name, value in match.groupdict().items() if value is not None]
            yield number, f"'{match[0]}' has to be decoded; the field says: {instead[int(group[1:])]}"


def check_field_words(root: Path, names: tuple[str, ...]) -> Iterator[str]:
    """Yield one line for each word of the table in files, and in the files of folders."""
    files = [root / name for name in names if (root / name).is_file()]
    files += report.source_files(root, tuple(name for name in names if (root / name).is_dir()), SUFFIXES)
    for path in files:
        for number, finding in decoded(path.read_text(), path.suffix == ".md"):
            yield f"{path.relative_to(root)}:{number}: {finding}"


def check(root: Path) -> Iterator[str]:
    """Yield one line for each finding."""
    yield from check_field_words(root, FIELD_WORDS_ONLY)
    for path in report.source_files(root, DOCSTRING_FOLDERS, (".py", "")):
        for number, finding in docstrings_without_noun(path.read_text()):
            yield f"{path.relative_to(root)}:{number}: {finding}"
    for path in report.source_files(root, IMPERATIVE_FOLDERS, (".py",)):
        for number, finding in summaries_without_imperative(path.read_text()):
            yield f"{path.relative_to(root)}:{number}: {finding}"
    for path in report.source_files(root, FOLDERS, SUFFIXES):
        name = path.relative_to(root)
        for part in (*name.parts[:-1], path.stem):
            if part in EMPTY_NAMES:
                yield f"{name}: '{part}' does not say what it holds"
        if path == Path(__file__) or name.parts[:2] == ("tests", "tools"):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if match := NOTES.search(line):
                yield f"{name}:{number}: {match.group(0)}: finish it, or open an issue"
            if match := BRITISH_WORD.search(line):
                yield f"{name}:{number}: {match.group(0)} is spelled {BRITISH[match.group(0).lower()]} here"


if __name__ == "__main__":
    report.run((lambda root: check_field_words(root, tuple(sys.argv[1:]))) if sys.argv[1:] else check)
