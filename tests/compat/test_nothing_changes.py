"""Importing the alias changes nothing that Tilewright's own users see, but that nodes have further attributes."""

import subprocess
import sys

PROGRAM = '''
import importlib, inspect, sys
from pathlib import Path
import numpy as np
import tilewright as tw
from tilewright import _core, te
from tilewright.testing import workloads
from tilewright.script import tir as T



def import_all(folder, package):
    for path in sorted(Path(folder).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] != "__main__" and (package != "tilewright" or parts[0] != "compat"):
            module = importlib.import_module(".".join((package, *(part for part in parts if part != "__init__"))))
            for name in getattr(module, "__all__", ()):
                getattr(module, name, None)  # names that are found when they are asked for


def own(module):
    return module.startswith("tilewright") and not module.startswith("tilewright.compat")


def snapshot():
    """Every attribute of every module and class, by identity; a module's lazy names stay what they were."""
    seen = {}
    for name, module in list(sys.modules.items()):
        if not own(name):
            continue
        for key, value in vars(module).items():
            seen[name, key] = value
            if inspect.isclass(value) and own(value.__module__ or ""):
                for attribute, member in vars(value).items():
                    seen[name, key, attribute] = member
    return seen


def texts():
    """What users read: programs, traces, targets, kernels, errors."""
    func = workloads.matmul(4, 4, 4)
    sch = tw.Schedule(func, seed=1)
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 2])
    kernel = tw.compile(func, target="llvm")
    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    shown = [func, sch, sch.mod, sch.trace, sch.get(k), sch.state, A, kernel, tw.Target("llvm -mcpu=haswell"),
             tw.Target("llvm").kind, tw.meta_schedule.space_generator.PostOrderApply(), sch.mod.functions]
    result = [show(value) for value in shown for show in (str, repr) if "0x" not in show(value)]
    result.append(func.script())
    refused = [lambda: sch.vectorize(i), lambda: sch.get_block("D"), lambda: sch.reorder(j, j), lambda: A + B,
               lambda: T.alloc_buffer((4, 4), "int32", strides=[1]), lambda: kernel(1), lambda: tw.Target("nothing"),
               lambda: func.attrs["no"], lambda: sch.rfactor(j, 0), lambda: sch.mod["other"]]
    for attempt in refused:
        try:
            attempt()
            result.append("accepted")
        except Exception as error:
            result.append(f"{type(error).__name__}: {error}")
    reduction = tw.Schedule(workloads.matmul(4, 4, 8), seed=1)
    reduction.vectorize(reduction.get_loops("C")[2])  # what TVM refuses
    return [*result, reduction.mod.script(), str(reduction.trace)]


import_all(tw.__path__[0], "tilewright")
words = texts()
before = snapshot()
import tilewright.compat.tvm
import_all(tilewright.compat.tvm.__path__[0], "tilewright.compat.tvm")
after = snapshot()
import tvm
for old, new in zip(words, texts(), strict=True):
    assert old == new, f"{old}\\n=>\\n{new}"
changed = [place for place, value in before.items() if place not in after or after[place] is not value]
assert not changed, changed
nodes = [place for place in after if place not in before]
more = [place for place in nodes if len(place) == 2 and place[1] not in ("compat",) or len(place) == 3
        and not issubclass(getattr(sys.modules[place[0]], place[1]), _core.Node)]
assert not more, more
print(sorted({".".join(place[1:]) for place in nodes if len(place) == 3}))
'''


def test_attributes_texts_and_errors(tmp_path):
    """In a process of its own, since it looks at how things were before."""
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == str(
        [
            "Axis.is_sparse",
            "Axis.is_variable",
            "Buffer.READ",
            "Buffer.WRITE",
            "Buffer.flattened",
            "Buffer.get_flattened_buffer",
            "Expr.equal",
            "IRModule.__delitem__",
            "IRModule.__setitem__",
            "IRModule.clone",
            "IRModule.functions_items",
            "IRModule.get_attr",
            "IRModule.replace_global_vars",
            "IRModule.update",
            "IRModule.update_func",
            "IRModule.with_attrs",
            "IndexMap.map_ndarray",
            "IterVar.dtype",
            "Module.__delitem__",
            "Module.__setitem__",
            "Module.clone",
            "Module.functions_items",
            "Module.get_attr",
            "Module.replace_global_vars",
            "Module.update",
            "Module.update_func",
            "Module.with_attrs",
            "PrimFunc.sp_axes",
            "PrimFunc.specialize",
            "PrimFunc.with_attrs",
            "SpIterVar.is_reduction",
            "SparseIteration.name",
            "SparseIteration.sp_iter_vars",
        ]
    )
