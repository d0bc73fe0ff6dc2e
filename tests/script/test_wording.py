"""Texts in the words of another package, where a runner of its scripts asks for them."""

import threading

import tilewright as tw
from tilewright.script.wording import Wording, present, written_in
from tilewright.testing import workloads

OTHER = Wording(package="other", trace=lambda trace: f"{len(trace)} steps", whole=True)


def test_programs_and_traces():
    func = workloads.matmul(4, 4, 4)
    sch = tw.Schedule(func)
    sch.get_block("C")
    own = [str(func), repr(func), str(sch.trace), str(sch)]
    with written_in(OTHER):
        assert str(func) == own[0].replace("tilewright", "other") == repr(func) == func.script()
        assert str(sch.trace) == "1 steps"
        assert str(sch) == own[3].replace("tilewright", "other")
        assert func.script(package="third").startswith("# from third.script import tir as T")
        with written_in(None):
            assert str(func) == own[0]
    assert [str(func), repr(func), str(sch.trace), str(sch)] == own


def test_schedules_are_shown_in_the_same_words(capsys):
    sch = tw.Schedule(workloads.matmul(4, 4, 4))
    sch.show(ir_prefix="Q")
    shown = capsys.readouterr().out
    assert "import ir as Q" in shown and shown.rstrip().endswith("pass")
    with written_in(OTHER):
        sch.show()
        sch.trace.show()
    assert capsys.readouterr().out.splitlines()[-2:] == ["0 steps", "0 steps"]


def test_other_threads_keep_their_own():
    found = []
    with written_in(OTHER):
        thread = threading.Thread(target=lambda: found.append(present()))
        thread.start()
        thread.join()
    assert found == [None]


def test_places_that_spell_themselves():
    class Body(str):
        def to_text(self, root):
            return "<root>.body" if isinstance(root, tw.ir.PrimFunc) else "<root>"

    func = workloads.matmul(4, 4, 4)
    assert func.script(path_to_underline=[Body("body")]) == func.script(path_to_underline=["<root>.body"])
    assert func.script(path_to_annotate={Body("b"): "x"}) == func.script(path_to_annotate={"<root>.body": "x"})
