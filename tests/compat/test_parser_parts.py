"""tvm.script.parser.core: the text of what is decorated, and values of expressions and assignments."""

import inspect

import pytest
import tvm  # noqa: F401
from tvm.script.parser.core import doc
from tvm.script.parser.core.diagnostics import Source
from tvm.script.parser.core.evaluator import ExprEvaluator, eval_assign


def plain():
    return 1


def test_texts_of_functions_and_classes():
    class inner:
        def method(self):

            pass

    source = Source(plain)
    assert (source.source, source.start_column) == (inspect.getsource(plain), 0)
    assert source.start_line == inspect.getsourcelines(plain)[1]
    indented = Source(inner)
    assert indented.source == "class inner:\n    def method(self):\n\n        pass"
    assert (indented.start_column, isinstance(indented.as_ast().body[0], doc.ClassDef)) == (4, True)
    assert indented.full_source == inspect.getsource(inspect.getmodule(inner))


def values(text, value):
    (assignment,) = Source(text).as_ast().body
    return eval_assign(None, assignment.targets[0], value)


def test_values_of_assignments():
    assert values("a = 0", 3) == {"a": 3}
    assert values("a, (b, *c) = 0", (1, "xyz")) == {"a": 1, "b": "x", "c": ["y", "z"]}
    with pytest.raises(ValueError, match="too many values"):
        values("a, b = 0", (1, 2, 3))
    with pytest.raises(TypeError, match="no parser"):
        eval_assign(object(), doc.parse("a").body[0].value, 1)


def test_values_of_expressions():
    def value(text, **names):
        return ExprEvaluator.eval(None, names, Source(text).as_ast().body[0].value)

    assert value("(x + 1) * y[0]", x=2, y=[5]) == 15 and value("not x or y", x=True, y=7) == 7
    assert value("f(1, k=2)", f=lambda a, k: (a, k)) == (1, 2) and value("max(1, 2)") == 2
