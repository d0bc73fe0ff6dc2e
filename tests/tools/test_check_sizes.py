import pytest

import check_sizes


def cpp_function(lines):
    body = "  f(\n      1);\n" * ((lines - 3) // 2)
    return "namespace tilewright {\n\nint g(int a,\n      int b) {\n" + body + "}\n\n}  // namespace tilewright\n"


def cpp_method(lines):
    body = "    if (a) {\n      f(1);\n    }\n" * ((lines - 4) // 3) + "    f(2);\n" * ((lines - 4) % 3)
    method = "  explicit S(int a,\n             int b)\n      : a_(a) {\n" + body + "  }\n"
    return "namespace {\n\nclass S {\n public:\n" + method + "  int a_ = 0;\n};\n\n}  // namespace\n"


def python_function(lines):
    return "class C:\n    def g(self):\n" + "        pass\n" * (lines - 1)


@pytest.mark.parametrize("lines", [799, 800])
def test_file_of_allowed_size(tree, lines):
    assert list(check_sizes.check(tree({"src/ir/a.cc": "x\n" * lines}))) == []


def test_long_file(tree):
    (finding,) = check_sizes.check(tree({"src/ir/a.cc": "x\n" * 801}))
    assert finding == "src/ir/a.cc: 801 lines, at most 800 are allowed: it holds two concepts"


def test_what_builds_leave_behind_is_not_ours(tree):
    root = tree({"python/tilewright/__pycache__/a.py": "x\n" * 900, "build/a.cc": "x\n" * 900})
    (root / "python/tilewright/libtilewright.so").write_bytes(b"\xff\n" * 900)
    assert list(check_sizes.check(root)) == []


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("src/ir/a.cc", cpp_function(101), "src/ir/a.cc:3: 101 lines"),
        ("src/ir/a.cc", cpp_method(100), "src/ir/a.cc:5: 100 lines"),
        ("src/ir/a.h", cpp_method(140), "src/ir/a.h:5: 140 lines"),
        ("tools/a.py", python_function(100), "tools/a.py:2: 100 lines"),
    ],
)
def test_long_function(tree, name, text, place):
    (finding,) = check_sizes.check(tree({name: text}))
    assert finding.startswith(place)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/ir/a.cc", cpp_function(99)),
        ("src/ir/a.cc", cpp_method(99)),
        ("src/ir/a.cc", "class S {\n" + "  int f() {\n    return 1;\n  }\n" * 50 + "};\n"),
        ("src/ir/a.cc", "struct S {\n" + "  int f();\n" * 120 + "};\n"),
        ("src/ir/a.cc", "const int kTable[] = {\n" + "    1,\n" * 120 + "};\n"),
        ("tools/a.py", python_function(99)),
    ],
)
def test_short_function(tree, name, text):
    assert list(check_sizes.check(tree({name: text}))) == []
