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
