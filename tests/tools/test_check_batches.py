import pytest

import check_batches


def findings(tree, **files):
    return list(
        check_batches.check_batches(tree({f"src/ir/{name.replace('_', '.')}": text for name, text in files.items()}))
    )


def hidden(text):
    return f"namespace tilewright {{\nnamespace {{\n\n{text}\n\n}}  // namespace\n}}  // namespace tilewright\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("struct Interval {\n  int low;\n};", "Interval"),
        ("class Finder : public Base {\n};", "Finder"),
        ("enum class Side { kLeft };", "Side"),
        ("constexpr int64_t kMost = 64;", "kMost"),
        ("bool is_zero(const Expr& value) {\n  return false;\n}", "is_zero(const Expr&)"),
    ],
)
def test_one_name_in_two_files(tree, text, name):
    expected = [f"src/ir/b.cc: {name} is also in an anonymous namespace of src/ir/a.cc, which may be compiled with it"]
    assert findings(tree, a_cc=hidden(text)) == []
    assert findings(tree, b_cc=hidden(text)) == expected


def test_names_of_headers_count(tree):
    header = "namespace tilewright {\n\nusing Digits = std::vector<int>;\n\n}  // namespace tilewright\n"
    (finding,) = findings(tree, a_cc=hidden("struct Digits {\n};"), b_h=header)
    assert finding.startswith("src/ir/b.h: Digits ")


def test_what_may_be_twice(tree):
    alias = hidden("using Clock = std::chrono::steady_clock;")
    assert findings(tree, a_cc=alias, b_cc=alias) == []
    assert findings(tree, a_cc=hidden("bool f(int x) {\n}"), b_cc=hidden("bool f(double x) {\n}")) == []
    assert findings(tree, a_cc=hidden("struct Node;"), b_cc=hidden("struct Node;")) == []


def test_functions_whose_address_is_taken_have_no_overloads(tree):
    create = "int create(\n    int kind) {\n}"
    taken = "int create(double kind) {\n}\nauto made = &create;"
    (finding,) = findings(tree, a_cc=hidden(create), b_cc=hidden(taken))
    assert finding.startswith("src/ir/a.cc: create() is overloaded where src/ir/b.cc ")
