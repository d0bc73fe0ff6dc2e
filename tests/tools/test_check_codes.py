import os
import subprocess
import sys

import pytest

import check_codes

SOURCE = 'Status plan() {\n  return schedule_error("split/P1", "the loop is not serial");\n}\n'


def findings(tree, files):
    return list(check_codes.check(tree(files)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/schedule/split_test.cc", 'EXPECT_EQ(r.error().code, "split/P1");'),
        ("tests/schedule/test_split.py", 'pytest.raises(tw.ScheduleError, match="split/P1: the loop")'),
        ("tests/schedule/test_split.py", "# hints are shown\n'split/P1'"),
    ],
)
def test_tested_code(tree, path, text):
    assert findings(tree, {"src/schedule/split.cc": SOURCE, path: text}) == []


def test_code_without_a_test(tree):
    assert findings(tree, {"src/schedule/split.cc": SOURCE, "tests/test_a.py": "'split/P12' 'unsplit/P1'"})[:1] == [
        "src/schedule/split.cc:2: no test raises split/P1"
    ]


def test_codes_of_the_python_package_count(tree):
    text = '\n# "parser/old"\nraise ScriptError(code="parser/unknown-name")\n'
    assert findings(tree, {"python/tilewright/parser.py": text}) == [
        "python/tilewright/parser.py:3: no test raises parser/unknown-name"
    ]


def test_code_that_only_a_test_knows(tree):
    text = '"split/P1"\n"split/P9"\n"out/matmul"\n"a/split/P3"\n"split/P3.py"'
    assert findings(tree, {"src/schedule/split.cc": SOURCE, "tests/schedule/test_split.py": text}) == [
        "tests/schedule/test_split.py:2: split/P9 is not a code of the source"
    ]


def test_an_error_without_a_code(tree):
    files = {
        "python/tilewright/errors.py": "class Error(RuntimeError): ...\nclass ArgumentError(Error): ...\n",
        "python/tilewright/te.py": "def f():\n    raise ArgumentError('no')\n\ndef g():\n    return Error('no')\n"
        "def h():\n    raise ValueError('no')\ndef made():\n    raise ArgumentError.of(*parts)\n",
    }
    assert findings(tree, files) == [
        "python/tilewright/te.py:2: ArgumentError without a code",
        "python/tilewright/te.py:5: Error without a code",
    ]


def test_what_only_looks_like_a_code(tree):
    text = (
        '#include "support/hash"\n// "split/P7"\nauto mime = "text/plain", path = "/proc/self", part = "beside/all";\n'
    )
    assert findings(tree, {"src/schedule/split.cc": text}) == []


def test_what_a_run_has_raised(tree, tmp_path):
    files = {"src/schedule/split.cc": SOURCE, "tests/test_a.py": "'split/P1'"}
    root = tree(files)
    assert list(check_codes.check(root)) == []  # the text names it
    (line,) = check_codes.check_raised(root, tmp_path)
    assert line.endswith("no test run has left what it raised here")
    (tmp_path / "1.txt").write_text("split/P2\n")
    assert list(check_codes.check_raised(root, tmp_path)) == [
        "src/schedule/split.cc:2: split/P1 was not raised by the tests"
    ]
    (tmp_path / "2.txt").write_text("split/P1\n")
    assert list(check_codes.check_raised(root, tmp_path)) == []


def test_a_refusal_needs_a_hint(tree, tmp_path):
    root = tree({"src/schedule/split.cc": SOURCE, "tests/test_a.py": "'split/P1'"})
    (tmp_path / "1.txt").write_text("split/P1\nwithout a hint: split/P1\n")
    (line,) = check_codes.check_raised(root, tmp_path)
    assert line.startswith("src/schedule/split.cc:2: split/P1 was raised without a hint")


def test_what_a_test_only_compares_with_is_not_raised(tree, tmp_path):
    (tmp_path / "1.txt").write_text("other/code\n")
    test = 'EXPECT_EQ(r.error().code, "split/P1");'
    root = tree({"src/schedule/split.cc": SOURCE, "src/schedule/split_test.cc": test})
    assert len(list(check_codes.check_raised(root, tmp_path))) == 1
    (tmp_path / "skipped-1.txt").write_text("def test_it():\n    assert error.code == 'split/P1'\n")
    assert list(check_codes.check_raised(root, tmp_path)) == []


def test_processes_leave_what_they_raise(tmp_path):
    program = "import tilewright as tw\ntry: tw.Target('nothing')\nexcept tw.Error: pass"
    environment = os.environ | {"TILEWRIGHT_RAISED_CODES": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "target/kind\n"
