import pytest

import generate_stub
from generate_reference import Struct


@pytest.mark.parametrize(
    ("cpp", "python"),
    [
        ("Expr", "Expr"),
        ("Def<Var>", "Var"),
        ("Ref<BufferRegion>", "BufferRegion"),
        ("DataType", "str"),
        ("Annotations", "dict[str, Any]"),
        ("std::vector<Def<Buffer>>", "tuple[Buffer, ...]"),
        ("std::vector<std::pair<Ref<Var>, Def<Buffer>>>", "dict[Var, Buffer]"),
        ("std::vector<std::pair<std::string, std::vector<Expr>>>", "dict[str, tuple[Expr, ...]]"),
    ],
)
def test_types_of_fields(cpp, python):
    assert generate_stub.python_type(cpp) == python


@pytest.mark.parametrize(
    ("written", "refined"),
    [
        ("def f(a: tilewright.ir.Node | None | None) -> tuple: ...", "def f(a: Node | None) -> tuple[Any, ...]: ..."),
        ("def f(a: tilewright.ir.ExprLike) -> tilewright.ir.ExprLike: ...", "def f(a: ExprLike) -> Expr: ..."),
        ("def f(fn: Callable, d: dict = {}) -> dict[str, int]: ...", None),
        ("from collections.abc import Callable, Sequence", "from collections.abc import Callable, Sequence"),
        (
            "    def __radd__(self, arg: object, /) -> object: ...",
            "    def __radd__(self, arg: ExprLike, /) -> Expr: ...",
        ),
        ("def show(self, **options) -> None: ...", "def show(self, **options: Any) -> None: ..."),
        ("def f(*args, **kwargs) -> int: ...", "def f(*args: Any, **kwargs: Any) -> int: ..."),
        ("    __match_args__: tuple = ('value')", "    __match_args__ = ('value',)"),
        ("def make_tuple(a: tuple[int, ...]) -> list: ...", "def make_tuple(a: tuple[int, ...]) -> list[Any]: ..."),
    ],
)
def test_what_nanobind_writes_is_refined(written, refined):
    if refined is None:
        refined = "def f(fn: Callable[..., Any], d: dict[Any, Any] = {}) -> dict[str, int]: ..."
    assert generate_stub.refine(written) == refined


def test_equality_of_expressions_is_an_expression():
    stub = "class Expr(Node):\n    def __eq__(self, arg: object, /) -> object: ...\n"
    assert "__eq__(self, arg: object, /) -> Expr: ...  # type: ignore[override]" in generate_stub.refine(stub)


def test_attributes_and_docstrings_come_from_the_header():
    stub = (
        "class Block(Stmt):\n    @property\n    def init(self) -> object: ...\n"
        "    @property\n    def reads(self) -> object: ...\n\n"
        "class Other:\n    @property\n    def init(self) -> object: ...\n"
    )
    block = Struct(
        "Block",
        "the unit of scheduling",
        [("init", "Stmt", "null, or what runs first"), ("reads", "std::vector<Ref<BufferRegion>>", "")],
    )
    annotated = generate_stub.annotate_nodes(stub, {"Block": block})
    assert 'class Block(Stmt):\n    """The unit of scheduling."""\n' in annotated
    assert "def init(self) -> Stmt | None: ..." in annotated
    assert "def reads(self) -> tuple[BufferRegion, ...]: ..." in annotated
    assert annotated.endswith("class Other:\n    @property\n    def init(self) -> object: ...\n")
