import pytest

import generate_script_stub


def plain(a, b=1, *rest, named="x", **others):
    """What it does.

    More.
    """


def typed(name: str, flag: bool = True) -> None:
    """What it does."""


def test_names_of_the_part_written_by_hand():
    head = "class A: ...\n@overload\ndef f() -> None: ...\ng = f\nh: Any\nimport x\n"
    assert generate_script_stub.defined(head) == {"A", "f", "g", "h"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (plain, "a: Any, b: Any = 1, *rest: Any, named: Any = 'x', **others: Any"),
        (typed, "name: str, flag: builtins.bool = True"),
    ],
)
def test_signatures(value, text):
    assert generate_script_stub.signature(value) == text


def test_declarations():
    assert generate_script_stub.declaration("plain", plain, {}).endswith('-> Value:\n    """What it does."""')
    assert "-> None:" in generate_script_stub.declaration("typed", typed, {})

    def sqrt(x):
        pass

    sqrt.__doc__ = "The intrinsic `tir.sqrt`."
    text = generate_script_stub.declaration("sqrt", sqrt, {"sqrt": (1, 0)})
    assert text == 'def sqrt(x: ExprLike) -> Value:\n    """The intrinsic `tir.sqrt`."""'
