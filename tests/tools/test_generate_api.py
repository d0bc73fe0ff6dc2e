import subprocess
import sys

import pytest

import generate_api
import report


class Shape:
    """A shape, of :class:`tilewright.ir.Buffer` for ``n`` elements.

    >>> Shape(3)
    Shape(3)

    Args:
        size: elements,
            at least one.

    Raises:
        tilewright.ArgumentError: there is none.
    """

    def __init__(self, size: int = 1) -> None:
        pass

    def area(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return 1

    @property
    def side(self) -> int:
        """Of a square."""
        return 1


Shape.__module__ = "tilewright.shape"


def test_a_docstring_as_markdown():
    text = generate_api.prose(Shape.__doc__)
    assert text.startswith("A shape, of `Buffer` for `n` elements.\n\n```python\nShape(3)\n")
    assert (
        "*Args*\n\n- `size`: elements,\n  at least one.\n\n*Raises*\n\n- `tilewright.ArgumentError`: there is none."
        in text
    )


def test_what_says_nothing_of_itself_is_noted():
    wordless = []
    text = "\n".join(generate_api.class_text(Shape, "Shape", wordless))
    assert text.startswith("```python\nclass Shape(size: int = 1)\n```")
    assert wordless == ["Shape.area"]  # the docstring of the class explains size
    assert "`Shape.side`: Of a square." in text and "### Shape.area\n\n```python\narea() -> int\n```" in text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("f(a: 'Sequence[int] | None' = None) -> 'Any'", "f(a: Sequence[int] | None = None) -> Any"),
        ("f(self, a: tilewright._core.Buffer, /) -> ir.PrimFunc", "f(a: Buffer) -> PrimFunc"),
        ("f(a: object = <Thing at 0x7f00>)", "f(a: object = <Thing>)"),
        (
            f"f({'a' * 60}: int, {'b' * 60}: dict[str, int])",
            f"f(\n    {'a' * 60}: int,\n    {'b' * 60}: dict[str, int],\n)",
        ),
    ],
)
def test_signatures_as_one_writes_them(written, shown):
    assert generate_api.readable(written) == shown


def test_every_public_name_says_what_it_is():
    texts, wordless, missing = generate_api.texts()
    assert wordless == [] and missing == []
    page = texts[generate_api.FOLDER / "tilewright.md"]
    assert "## tune\n" in page and "*Raises*" in page and "Source: `python/tilewright/search/session.py`" in page
    rows = texts[generate_api.INTRINSICS].splitlines()
    (row,) = [row for row in rows if row.startswith("| `dot_16x4_vnni` |")]
    assert "A: uint8 4 (compact)<br>B: int8 16 x 4 (compact)<br>C: int32 16 (compact)" in row and "avx512vnni" in row


class Base:
    """No page has it."""

    @property
    def corners(self) -> int:
        """How many."""
        return 4


class Square(Base, Shape):
    """A square."""

    edge = Shape.side


Base.__module__ = Square.__module__ = "tilewright.shape"


def test_members_of_bases_without_a_page_are_described(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(generate_api, "classes_with_entries", lambda: frozenset({Shape}))
    text = "\n".join(generate_api.class_text(Square, "Square", []))
    assert "`Square.corners`: How many." in text and "`Square.edge`: Of a square." in text
    assert "Of `Shape`." in text and "Square.side" not in text  # which has an entry of its own
    assert list(generate_api.missing_members(Square, text)) == []
    assert list(generate_api.missing_members(Square, text.replace("corners", "x"))) == ["corners"]
    assert list(generate_api.missing_members(Square, "")) == ["corners", "edge"]


def test_a_kernel_is_described_with_what_it_inherits_from_the_compiled_module():
    page = generate_api.texts()[0][generate_api.FOLDER / "tilewright.md"]
    kernel = page.partition("\n## Kernel\n")[2].partition("\n## ")[0]
    for name in ("name", "parameters", "threads"):
        assert f"`Kernel.{name}`" in kernel, name


def test_the_list_of_signatures_has_names_and_members():
    lines = list(generate_api.signature_lines("shapes.Square", Square))
    assert lines == [
        "class(Base, Shape) shapes.Square(size: int = 1)",
        "def shapes.Square.area() -> int",
        "property shapes.Square.corners",
        "property shapes.Square.edge",
        "property shapes.Square.side",
        "property shapes.Square.size",
    ]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="signatures that Python makes differ between its versions")
def test_the_tracked_list_of_signatures_is_up_to_date():
    """In a process of its own: tests wrap Error.code."""
    done = subprocess.run(
        [sys.executable, report.ROOT / "tools/generate_api.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_an_old_list_is_noticed(tmp_path):
    assert list(generate_api.check(tmp_path)) == [
        f"{generate_api.SIGNATURES}: out of date, run `python tools/generate_api.py`"
    ]
