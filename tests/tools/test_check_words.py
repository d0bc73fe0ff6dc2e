import pytest

import check_words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// TODO: faster", "TODO: finish it"),
        ("// the behaviour of a loop", "behaviour is spelled behavior here"),
        ("// analyse it", "analyse is spelled analyze here"),
        ("void Initialise();", "Initialis is spelled initializ here"),
    ],
)
def test_finding(tree, text, message):
    (finding,) = check_words.check(tree({"src/ir/a.cc": f"\n{text}\n"}))
    assert finding.startswith("src/ir/a.cc:2: ")
    assert message in finding


@pytest.mark.parametrize("name", ["src/common/hash.cc", "src/ir/utils.h", "python/tilewright/misc.py"])
def test_names_that_say_nothing(tree, name):
    (finding,) = check_words.check(tree({name: ""}))
    assert "does not say what it holds" in finding


def test_no_finding(tree):
    assert list(check_words.check(tree({"src/ir/a.cc": "// METHODOLOGY of colors, two analyses\n"}))) == []


def test_documentation_and_code_use_the_words_of_the_field(tree):
    text = "Rows lie\nside by side; `lie` is a name.\n\n```\ntold\n```\n\n    as written\n\nIt is believed.\n"
    files = {"docs/page.md": text, "README.md": "the operand is turned round\n", "src/ir/a.cc": "// told\n"}
    assert sorted(check_words.check(tree(files))) == [
        "README.md:1: 'turned' has to be decoded; the field says: transposed, transpose",
        "docs/page.md:1: 'lie' has to be decoded; the field says: is stored, is aligned",
        "docs/page.md:2: 'side by side' has to be decoded; the field says: contiguous",
        "src/ir/a.cc:1: 'told' has to be decoded; the field says: report, log, notify",
    ]


def test_names_that_are_stored_are_no_words(tree):
    text = 'seconds["drawing"] = 1; counts.attempts = 2; int64_t attempts = 0; compile(f, schedule="by rules");\n'
    assert list(check_words.check(tree({"src/ir/a.cc": text}))) == []


def test_the_words_of_the_field_in_other_folders(tree):
    root = tree({"src/ir/a.cc": "int f();\n// Told by `draw`.\n", "python/b.py": ""})
    (finding,) = check_words.check_field_words(root, ("src", "python"))
    assert finding.startswith("src/ir/a.cc:2: 'Told'")


def test_attributes_and_summaries_name_their_noun(tree):
    args = "    Args:\n        seed: of the numbers.\n        kept: that stay.\n"
    text = f'def f(seed, kept):\n    """What follows.\n\n{args}    """\n'
    named = 'def g(seed):\n    """Return it.\n\n    Args:\n        seed: seed of the numbers.\n    """\n'
    found = list(
        check_words.check(tree({"python/a.py": text, "python/b.py": named, "src/ir/a.cc": "/// What it is.\n"}))
    )
    assert [finding.partition(":")[2] for finding in found] == [
        "2: a docstring that begins with 'What' names nothing: begin with a verb ('Return the ...') or with what it is",
        "5: 'seed: of ...' has no noun: repeat it ('seed: the seed of ...')",
        "6: 'kept: that ...' has no noun: repeat it ('kept: the kept that ...')",
    ]


def test_docstrings_name_what_they_are_about(tree):
    text = 'def f():\n    """Of one task."""\n\n\ndef g():\n    """The same for tasks.\n\n    Of many.\n    """\n'
    named = 'def h():\n    """Return the same number."""\n\n\ndef i():\n    """Official names."""\n'
    files = {"python/a.py": text, "python/b.py": named, "tests/test_a.py": text, "benchmarks/c.py": text}
    found = sorted(check_words.check(tree(files)))
    assert [each.partition(": a docstring")[0] for each in found] == [
        "benchmarks/c.py:2",
        "benchmarks/c.py:6",
        "python/a.py:2",
        "python/a.py:6",
    ]
    assert "begins with 'The same' names nothing: begin with a verb" in found[-1]


def test_docstrings_of_functions_are_imperative(tree):
    function = 'def f(\n    x: int,\n) -> int:\n    """{}"""\n\n\n'
    words = [
        "Adds a row.",
        "The rows.",
        "A row.",
        "Whether x holds.",
        "Pass a row on.",
        "Return the rows.",
        "Process it.",
    ]
    text = "".join(function.format(word) for word in words) + 'class C:\n    """The rows."""\n'
    found = [*check_words.check(tree({"python/tilewright/report/a.py": text, "tools/a.py": text}))]
    assert [each.partition(": a docstring of a function that begins with ")[0] for each in found] == [
        f"python/tilewright/report/a.py:{4 + 6 * number}" for number in range(4)
    ]
    assert "'Adds': begin with a verb" in found[0]
