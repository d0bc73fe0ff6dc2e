"""Build the documentation site in build/site from the pages of docs/, the reference in the source, and the lessons.

python tools/build_site.py

It runs the programs of the pages and the lessons of examples/, and shows what they print. MkDocs makes the site; it is
in an environment of its own (`scripts/setup --docs`).
"""

import ast
import contextlib
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import generate_api
import generate_reference
import pages
import report

MKDOCS = Path("build/site-env/bin/mkdocs")
#: What MkDocs reads, and what it writes.
SOURCE, SITE = Path("build/site-source"), Path("build/site")
#: Longer outputs are cut.
MOST_LINES = 40
_COMMAND = re.compile(r"^ *((?:python|tilewright) .*?)(?: \[\w+\])?$", re.MULTILINE)


def shown(output: str) -> str:
    """Return a code block with the first lines of an output; nothing for an empty one."""
    lines = output.rstrip().splitlines()
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "..."]
    return "\n*Output:*\n\n```text\n" + "\n".join(lines) + "\n```\n" if lines else ""


def outputs_of(programs: list[str], before: str, name: str) -> list[str]:
    """Run programs one after the other, after those of another page, in an empty folder; return what each prints."""
    printed, ends = io.StringIO(), list[int]()
    between = "_end_of_program()"
    text = f"{before}\n{between}\n" + "".join(f"{program}\n{between}\n" for program in programs)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        file = Path(folder) / f"{name}.py"  # the parser of scripts reads it
        file.write_text(text)
        names = {"__name__": name, "_end_of_program": lambda: ends.append(printed.tell())}
        exec(compile(text, file, "exec"), names)
    return [printed.getvalue()[begin:end] for begin, end in itertools.pairwise(ends)]


def with_outputs(page: Path) -> str:
    """Return a page with the outputs of its programs below them."""
    text = page.read_text()
    programs = [program for language, program in pages.blocks(page) if language == "python"]
    before = pages.program(page.with_name(pages.CONTINUES[page.name])) if page.name in pages.CONTINUES else ""
    for program, output in zip(programs, outputs_of(programs, before, page.stem.replace("-", "_")), strict=True):
        block = f"```python\n{program}```\n"
        text = text.replace(block, block + shown(output), 1)
    return text


def lesson(path: Path) -> str:
    """Return a page with a lesson: what its docstring says, the program, and what its command prints."""
    text = path.read_text()
    doc = ast.get_docstring(ast.parse(text)) or ""
    title, _, about = doc.partition("\n")
    command = _COMMAND.search(about)
    if command is None:
        raise ValueError(f"{path}: the docstring has no command")
    arguments = command[1].split()
    start = [sys.executable] if arguments[0] == "python" else [sys.executable, "-m", "tilewright"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path.parent, Path(folder) / path.parent.name)
        environment = os.environ | {"PYTHONPATH": str(report.ROOT / "python")}
        done = subprocess.run([*start, *arguments[1:]], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[1]}: {done.stderr}")
    about = about.replace(command[0], "").strip()
    program = text[text.index('"""', 3) + 3 :].strip()
    return f"# {title}\n\n{about}\n\n```\n{command[1]}\n```\n{shown(done.stdout)}\n```python\n{program}\n```\n"


def navigation(index: str) -> list[dict[str, object]]:
    """Return the sections of docs/README.md with their pages."""
    sections: list[dict[str, object]] = [{"Documentation": "README.md"}]
    for section in index.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        sections.append({title: [{name: page} for name, page in re.findall(r"^- \[(.*?)\]\((.*?)\)", body, re.M)]})
    return sections


def with_catalogs(text: str, depth: int) -> str:
    """Return the text of a page, `depth` folders below the top, with links to the catalogs that the site generates.

    In a checkout, where there are no catalogs, such links lead to the tables that they are generated from.
    """
    for table, catalog in generate_reference.TABLES.items():
        text = text.replace(f"]({'../' * (depth + 1)}{table})", f"]({'../' * depth}reference/{catalog})")
    return text


def write_source(root: Path) -> None:
    """Write the folder that MkDocs reads."""
    source = root / SOURCE
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "docs", source, ignore=shutil.ignore_patterns("*.txt"))
    for name in pages.with_programs(root / "docs"):
        print(f"running the programs of docs/{name}", flush=True)
        (source / name).write_text(with_outputs(root / "docs" / name))
    (source / "lessons").mkdir()
    for path in sorted((root / "examples").glob("*.py")):
        print(f"running examples/{path.name}", flush=True)
        (source / "lessons" / f"{path.stem}.md").write_text(lesson(path))
    generate_reference.write(root, source / "reference")
    for page in source.rglob("*.md"):
        page.write_text(with_catalogs(page.read_text(), len(page.relative_to(source).parts) - 1))
    generate_api.write_pages(source / "reference")

    def inside(folder: str) -> list[str]:
        return sorted(str(path.relative_to(source)) for path in (source / folder).glob("*.md"))

    sections = navigation((root / "docs/README.md").read_text())
    folders = {"Lessons": "lessons", "Measurements": "performance", "Python reference": "reference/api"}
    folders |= {"Catalogs": "reference", "Decisions": "decisions"}
    sections += [{title: inside(folder)} for title, folder in folders.items()]
    settings = {
        "site_name": "Tilewright",
        "docs_dir": str(source),
        "site_dir": str(root / SITE),
        "theme": "readthedocs",
        "use_directory_urls": False,
        "nav": sections,
        "validation": {"omitted_files": "warn", "absolute_links": "warn", "anchors": "warn"},
    }
    (root / SOURCE.with_suffix(".yml")).write_text(json.dumps(settings, indent=1))  # which is YAML, too


def main(root: Path) -> None:
    """Write the source of the site, then the site."""
    write_source(root)
    subprocess.run([root / MKDOCS, "build", "--quiet", "--strict", "-f", root / SOURCE.with_suffix(".yml")], check=True)
    print(f"wrote {SITE}/index.html")


if __name__ == "__main__":
    os.environ.setdefault("TILEWRIGHT_NUM_THREADS", "1")
    main(report.ROOT)
