"""Atomic operations: T.atomic_add and its like in the interpreter, on CPUs, in OpenCL and CUDA, judged by NumPy."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.processes import in_process

import tilewright as tw
from codegen.test_cuda import compiled
from codegen.test_sass import needs_disassembler
from samples import seeds
from tilewright import _core
from tilewright.script import from_source

INTEGERS = ["int32", "uint32", "int64", "uint64"]
APPLY: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
KINDS = [(op, dtype) for op in APPLY for dtype in INTEGERS] + [("add", "float32"), ("add", "float64")]
N, BINS = 1000, 13


def scattered(op: str, dtype: str, loop: str) -> Any:
    """Every element of V goes to the bin that data choose, in a `loop` such as ``T.parallel``."""
    threads = "bx * 64 + tx"
    loops = (
        f'for bx in T.thread_binding({-(-N // 64)}, "blockIdx.x"):\n'
        f'        for tx in T.thread_binding(64, "threadIdx.x"):\n            if {threads} < {N}:\n                '
        if loop == "threads"
        else f"for i in {loop}({N}):\n        "
    )
    at = threads if loop == "threads" else "i"
    return from_source(f"""
@T.prim_func
def main(I: T.Buffer(({N},), "int32"), V: T.Buffer(({N},), "{dtype}"), H: T.Buffer(({BINS},), "{dtype}")):
    {loops}T.atomic_{op}(T.address_of(H[I[{at}]]), V[{at}])
""")


def data(dtype: str, seed: int = 1) -> list[np.ndarray]:
    """Return bins, values and starts; sums of integers wrap, and those of floats are exact in any order."""
    draw = np.random.default_rng(seed)
    bins = draw.integers(0, BINS, N).astype("int32")
    if dtype.startswith("float"):
        return [bins, draw.integers(-50, 50, N).astype(dtype), draw.integers(-9, 9, BINS).astype(dtype)]
    info = np.iinfo(dtype)
    values, starts = (draw.integers(info.min, info.max, n, dtype=dtype, endpoint=True) for n in (N, BINS))
    return [bins, values, starts]


def expected(op: str, bins: np.ndarray, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    result = starts.copy()
    APPLY[op].at(result, bins, values)
    return result


def left_by(run: Any, *arrays: np.ndarray) -> np.ndarray:
    """Return what is in the last array after a run on copies of all."""
    copies = [each.copy() for each in arrays]
    run(*copies)
    return copies[-1]


@pytest.mark.parametrize(("op", "dtype"), KINDS)
def test_every_type_on_every_back_end(op, dtype):
    given = data(dtype)
    wanted = expected(op, *given)
    for loop, target in (("T.parallel", "llvm"), ("range", "llvm"), ("threads", "opencl")):
        module = _core.as_module(scattered(op, dtype, loop))
        for name, stage in [("as written", module), *_core.lower_stages(module, target)]:
            found = left_by(lambda *a, stage=stage: _core.interpret(stage, "main", *a), *given)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{loop} {name}\n{stage.script()}")
        kernel = tw.compile(module, target=target, schedule="as written")
        for _ in range(3):
            np.testing.assert_array_equal(left_by(kernel, *given), wanted, err_msg=f"{loop} {target}")


@pytest.fixture(scope="module")
def kernel_of_all_kinds() -> Any:
    """One kernel for CUDA with a step of each kind: its compiler and the disassembler take longer to start than to
    translate a step."""
    buffers = [f'V{at}: T.Buffer(({N},), "{t}"), H{at}: T.Buffer(({BINS},), "{t}")' for at, (_, t) in enumerate(KINDS)]
    steps = [f"T.atomic_{op}(T.address_of(H{at}[I[i]]), V{at}[i])" for at, (op, _) in enumerate(KINDS)]
    program = from_source(f"""
@T.prim_func
def main(I: T.Buffer(({N},), "int32"), {", ".join(buffers)}):
    for i in T.thread_binding({N}, "threadIdx.x"):
        {"; ".join(steps)}
""")
    return compiled(program)


def test_the_compiler_of_cuda_takes_them(kernel_of_all_kinds: Any) -> None:
    text = kernel_of_all_kinds.inspect("cuda")
    for at, (op, dtype) in enumerate(KINDS):
        called = re.search(rf"(\w+)\(&H{at}_", text)
        assert called and re.search(rf" {called[1]}\([^)]*\) {{[^}}]*\batomic{op.title()}\(", text), (op, dtype, text)


@needs_disassembler
def test_steps_whose_results_nobody_uses_are_reductions_in_memory(kernel_of_all_kinds: Any) -> None:
    """RED returns nothing, so threads do not wait for it."""
    text = kernel_of_all_kinds.inspect("sass")
    assert "ATOM" not in text, text
    for part in text.split("// sm_")[1:]:
        assert Counter(re.findall(r"REDG?\.E\.(\w+)", part)) == Counter(op.upper() for op, _ in KINDS), part


@pytest.mark.parametrize(("op", "dtype"), KINDS)
def test_drivers_without_atomics_of_64_bits_refuse_the_text_and_say_why(op, dtype):
    text = tw.compile(scattered(op, dtype, "threads"), target="opencl").inspect("opencl")
    extension = f"cl_khr_int64_{'base' if op == 'add' else 'extended'}_atomics"
    assert (f"#ifndef {extension}\n#error" in text) == dtype.endswith("64")


EXCHANGED = [*INTEGERS, "float32", "float64"]
IN_SHARED_MEMORY = """for bx in T.thread_binding(1, "blockIdx.x"):
        S = T.alloc_buffer((1,), "TYPE", scope="shared")
        for tx in T.thread_binding(64, "threadIdx.x"):
            if tx == 0:
                S[0] = H[0]
        for tx in T.thread_binding(64, "threadIdx.x"):
            B[tx] = T.atomic_exchange(S[0], V[tx])
        for tx in T.thread_binding(64, "threadIdx.x"):
            if tx == 0:
                H[0] = S[0]"""


def exchanges(dtype: str, loop: str) -> Any:
    """Every iteration leaves its value in H[0], and takes the one that was there; "shared" does so in shared memory."""
    body = f"for i in {loop}:\n        B[i] = T.atomic_exchange(H[0], V[i])"
    if loop == "shared":
        body = IN_SHARED_MEMORY.replace("TYPE", dtype)
    return from_source(f"""
@T.prim_func
def main(V: T.Buffer((64,), "{dtype}"), B: T.Buffer((64,), "{dtype}"), H: T.Buffer((1,), "{dtype}")):
    {body}
""")


BLOCKS = 'T.thread_binding(64, "blockIdx.x")'
EXCHANGES = [("T.parallel(64)", "llvm"), ("range(64)", "llvm"), (BLOCKS, "opencl"), ("shared", "opencl")]


@pytest.mark.parametrize(("loop", "target"), EXCHANGES)
@pytest.mark.parametrize("dtype", EXCHANGED)
def test_each_value_that_is_exchanged_is_taken_once(dtype: str, loop: str, target: str) -> None:
    """The element holds one value at a time: no value is lost, and none is taken twice."""
    values = np.arange(1, 65).astype(dtype)
    if dtype.endswith("64"):
        values = values * values.dtype.type(2**40)
    module = _core.as_module(exchanges(dtype, loop))
    runs: list[Any] = [tw.compile(module, target=target, schedule="as written")]
    runs += [lambda *a, m=m: _core.interpret(m, "main", *a) for _, m in _core.lower_stages(module, target)]
    for run in runs:
        taken, left = np.zeros(64, dtype), np.zeros(1, dtype)
        run(values, taken, left)
        np.testing.assert_array_equal(np.sort([*taken, *left]), [0, *values])
        if loop == "range(64)":
            np.testing.assert_array_equal(taken, [0, *values[:-1]])


@pytest.mark.parametrize("loop", ["shared", BLOCKS])
@pytest.mark.parametrize("dtype", EXCHANGED)
def test_the_compiler_of_cuda_exchanges(dtype: str, loop: str) -> None:
    assert "atomicExch(" in compiled(exchanges(dtype, loop)).inspect("cuda")


def test_exchanges_have_an_order() -> None:
    """The last one decides, so no schedule may run them in another order."""
    sch = tw.Schedule(
        from_source("""
@T.prim_func
def main(V: T.Buffer((64,), "int32"), H: T.Buffer((1,), "int32")):
    for p in range(64):
        with T.block("last"):
            vp = T.axis.spatial(64, p)
            T.atomic_exchange(T.address_of(H[0]), V[vp])
""")
    )
    with pytest.raises(tw.ScheduleError) as error:
        sch.parallel(sch.get_loops("last")[0])
    assert error.value.code.startswith("parallel/")


def compaction(loop: str) -> Any:
    """Copies the positive elements to neighbors, in any order; C counts them."""
    at = "bx * 64 + tx" if loop == "threads" else "i"
    head = (
        'for bx in T.thread_binding(16, "blockIdx.x"):\n        for tx in T.thread_binding(64, "threadIdx.x"):\n    '
        if loop == "threads"
        else "for i in T.parallel(1024):\n"
    )
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((1024,), "int32"), C: T.Buffer((1,), "int32"), B: T.Buffer((1024,), "int32")):
    {head}        if A[{at}] > 0:
                    place = T.atomic_add(T.address_of(C[0]), 1)
                    B[place] = A[{at}]
""")


@pytest.mark.parametrize("target", ["interpreter", "llvm", "opencl"])
def test_the_result_is_the_element_before(target):
    values = np.random.default_rng(5).integers(-100, 100, 1024).astype("int32")
    for loop in ("threads",) if target == "opencl" else ("parallel", "threads") if target != "llvm" else ("parallel",):
        kernel = tw.compile(compaction(loop), target=target, schedule="as written")
        count, found = np.zeros(1, "int32"), np.zeros(1024, "int32")
        kernel(values, count, found)
        positive = values[values > 0]
        assert count[0] == len(positive)
        np.testing.assert_array_equal(np.sort(found[: count[0]]), np.sort(positive))
        assert not found[count[0] :].any()
    text = compiled(compaction("threads")).inspect("cuda")
    assert "const int place_ = tw_atomic_add_i32(&C[0], 1);" in text


def team(body: str, *, blocks: int = 2, threads: int = 64) -> Any:
    """A block of threads with shared memory for 16 counters: `lin` counts all threads."""
    lines = "\n".join(" " * 12 + line for line in body.replace("lin", f"(bx * {threads} + tx)").splitlines())
    return from_source(f"""
@T.prim_func
def main(I: T.Buffer(({blocks * threads},), "int32"), H: T.Buffer((16,), "int32")):
    for bx in T.thread_binding({blocks}, "blockIdx.x"):
        S = T.alloc_buffer((16,), "int32", scope="shared")
        for tx in T.thread_binding({threads}, "threadIdx.x"):
{lines}
""")


COUNTED = """if tx < 16:
    S[tx] = 0
T.tvm_storage_sync("shared")
T.atomic_add(T.address_of(S[I[lin]]), 1)
T.atomic_add(T.address_of(S[I[lin] // 2]), 1)
T.tvm_storage_sync("shared")
if tx < 16:
    T.atomic_add(T.address_of(H[tx]), S[tx])"""


def counted(bins: np.ndarray) -> np.ndarray:
    return np.bincount(bins, minlength=16) + np.bincount(bins // 2, minlength=16)


def test_counters_in_shared_memory_wait_for_loads_and_stores_and_not_for_one_another():
    bins = np.random.default_rng(2).integers(0, 16, 128).astype("int32")
    given, program = (bins, np.zeros(16, "int32")), team(COUNTED)
    for target in ("opencl", "cuda"):
        for name, stage in _core.lower_stages(_core.as_module(program), target):
            found = left_by(lambda *a, stage=stage: _core.interpret(stage, "main", *a), *given)
            np.testing.assert_array_equal(found, counted(bins), err_msg=name)
    kernel = tw.compile(program, target="opencl")
    np.testing.assert_array_equal(left_by(kernel, *given), counted(bins))
    assert kernel.report["kernels"][0]["barriers"] == 2, kernel.inspect("opencl")
    assert compiled(program).inspect("cuda").count("__syncthreads") == 2


@needs_disassembler
def test_shared_memory_has_instructions_of_its_own():
    assert "ATOMS" in compiled(team(COUNTED)).inspect("sass")


PROGRAM = """
import numpy as np, tilewright as tw
from codegen.test_atomics import COUNTED, counted, data, expected, scattered, team
bins = np.random.default_rng(2).integers(0, 16, 128).astype("int32")
found = np.zeros(16, "int32")
tw.compile(team(COUNTED), target="opencl")(bins, found)
assert (found == counted(bins)).all()
for op, dtype in (("add", "float32"), ("max", "uint32")):
    given = data(dtype)
    wanted = expected(op, *given)
    tw.compile(scattered(op, dtype, "threads"), target="opencl")(*given)
    assert (given[-1] == wanted).all()
print("ran")
"""


@pytest.mark.preloads
def test_a_simulated_device_finds_no_race():
    outcome = in_process(PROGRAM, "oclgrind", "--data-races")
    report = outcome.stdout + outcome.stderr
    assert outcome.returncode == 0 and "ran" in outcome.stdout, report
    assert not any(word in report for word in ("race", "Invalid", "divergen", "Oclgrind")), report


# ---- races

STEP = "T.atomic_add(T.address_of(H[0]), i)"
RACES = {
    "a load after steps": f"{STEP}\n            B[i] = H[0]",
    "a load before steps": f"B[i] = H[0]\n            {STEP}",
    "a store after steps": f"{STEP}\n            if i == 63:\n                H[0] = 7",
    "a store before steps": f"if i == 0:\n                H[0] = 7\n            {STEP}",
    "a load in the first iteration": f"if i == 0:\n                B[0] = H[0]\n            {STEP}",
    "a load by one iteration": f"if i == 3:\n                B[0] = H[0]\n            else:\n                {STEP}",
    "a store by the last": f"if i == 63:\n                H[0] = 0\n            else:\n                {STEP}",
}
NO_RACES = {
    "steps": STEP,
    "of two operations": f"{STEP}\n            T.atomic_max(T.address_of(H[0]), i)",
    "results": "before = T.atomic_add(T.address_of(H[0]), i)\n            B[i] = before",
    "other elements": f"{STEP}\n            B[i] = H[i + 1]",
}


def racing(body: str, kind: str = "T.parallel(64)") -> Any:
    return from_source(f"""
@T.prim_func
def main(H: T.Buffer((80,), "int32"), B: T.Buffer((64,), "int32")):
    for o in range(2):
        for i in {kind}:
            {body}
""")


def race_of(program: Any) -> str:
    try:
        _core.interpret(_core.as_module(program), "main", np.zeros(80, "int32"), np.zeros(64, "int32"))
    except tw.ScriptError as error:
        assert error.code == "interpret/race"
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["T.parallel(64)", 'T.thread_binding(64, "blockIdx.x")'])
@pytest.mark.parametrize("which", RACES)
def test_loads_and_stores_race_with_steps(which, kind):
    found = race_of(racing(RACES[which], kind))
    assert "updates H[0]" in found or "updates it" in found, found


@pytest.mark.parametrize(
    "kind", ["T.parallel(64)", 'T.thread_binding(64, "blockIdx.x")', "T.vectorized(64)", "range(64)"]
)
@pytest.mark.parametrize("which", NO_RACES)
def test_steps_do_not_race_with_one_another(which, kind):
    assert not race_of(racing(NO_RACES[which], kind))


@pytest.mark.parametrize("which", RACES)
def test_such_races_are_refused_before_code_is_generated(which):
    with pytest.raises(tw.ScriptError) as error:
        tw.compile(racing(RACES[which]), schedule="as written")
    assert error.value.code == "lower/race"


@pytest.mark.parametrize("which", [which for which in NO_RACES if which != "other elements"])
def test_steps_are_not_reported_as_possible_races(which):
    kernel = tw.compile(racing(NO_RACES[which]), schedule="as written")
    assert not [note for note in kernel.notes if "race" in note.code or "parallel" in note.code], kernel.notes


def test_bins_that_data_choose_have_no_unproved_iterations():
    kernel = tw.compile(scattered("add", "int32", "T.parallel"), schedule="as written")
    assert not [note for note in kernel.notes if "unproved" in note.code or "race" in note.code], kernel.notes


OPERATIONS = {"load": "B[i] = B[i] + H[{}]", "store": "H[{}] = i", "step": "T.atomic_add(T.address_of(H[{}]), 1)"}


def races_by_pairs(kinds: list[str], elements: np.ndarray) -> bool:
    """Whether two iterations meet in an element where the order matters; elements below 0 are not accessed."""
    iterations = elements.shape[1]
    touched = [
        {(int(e), kind) for kind, e in zip(kinds, elements[:, i], strict=True) if e >= 0} for i in range(iterations)
    ]
    return any(
        element == other and {kind, kind_of_other} not in ({"load"}, {"step"})
        for i in range(iterations)
        for j in range(i)
        for element, kind in touched[i]
        for other, kind_of_other in touched[j]
    )


@pytest.mark.parametrize("kind", ["T.parallel(6)", 'T.thread_binding(6, "blockIdx.x")'])
@pytest.mark.parametrize("part", range(2))
def test_random_races(part, kind):
    """The interpreter keeps only the last access of each kind, and finds a race wherever two iterations have one."""
    counts = {True: 0, False: 0}
    for seed in seeds(part, 40):
        draw = np.random.default_rng(seed)
        kinds = [str(each) for each in draw.choice(list(OPERATIONS), draw.integers(1, 5), p=[0.25, 0.15, 0.6])]
        elements = draw.integers(0, int(draw.choice([2, 5, 12])), (len(kinds), 6)).astype("int32")
        elements[draw.random(elements.shape) < draw.choice([0.2, 0.6])] = -1
        body = "\n".join(
            f"            if E[{number}, i] >= 0:\n                {OPERATIONS[each].format(f'E[{number}, i]')}"
            for number, each in enumerate(kinds)
        )
        program = from_source(f"""
@T.prim_func
def main(E: T.Buffer(({len(kinds)}, 6), "int32"), H: T.Buffer((12,), "int32"), B: T.Buffer((6,), "int32")):
    for o in range(2):
        for i in {kind}:
{body}
""")
        expected_race = races_by_pairs(kinds, elements)
        counts[expected_race] += 1
        try:
            _core.interpret(_core.as_module(program), "main", elements, np.zeros(12, "int32"), np.zeros(6, "int32"))
            found = False
        except tw.ScriptError as error:
            assert error.code == "interpret/race"
            found = True
        assert found == expected_race, f"{seed} {kinds}\n{elements}\n{program.script()}"
    assert min(counts.values()) > 3, counts


# ---- random programs


@pytest.mark.parametrize("part", range(2))
def test_random_steps(part):
    """Steps on shared and global memory in any order, with barriers where a load or store comes between."""
    for seed in seeds(part, 6):
        draw = np.random.default_rng(seed)
        threads, blocks = int(draw.choice([16, 32, 48, 64])), int(draw.integers(1, 4))
        bins = draw.integers(0, 16, blocks * threads).astype("int32")
        lines, shared, totals = ["if tx < 16:", "    S[tx] = 0"], np.zeros((blocks, 16), "int64"), np.zeros(16, "int64")
        by_block = bins.reshape(blocks, threads)
        for _ in range(int(draw.integers(1, 5))):
            shift, weight = int(draw.integers(0, 16)), int(draw.integers(-3, 4))
            at = (by_block + shift) % 16
            if draw.integers(0, 2):
                lines.append(f"T.atomic_add(S[(I[lin] + {shift}) % 16], {weight})")
                for block in range(blocks):
                    np.add.at(shared[block], at[block], weight)
            else:
                lines.append(f"T.atomic_add(H[(I[lin] + {shift}) % 16], {weight})")
                np.add.at(totals, at, weight)
        lines += ["if tx < 16:", "    T.atomic_add(H[tx], S[tx])"]
        program = team("\n".join(lines), blocks=blocks, threads=threads)
        given = bins, np.zeros(16, "int32")
        kernel = tw.compile(program, target="opencl")
        wanted = totals + shared.sum(axis=0)
        np.testing.assert_array_equal(left_by(kernel, *given), wanted, err_msg=str(seed))
        last = list(_core.lower_stages(_core.as_module(program), "opencl"))[-1][1]
        found = left_by(lambda *a, last=last: _core.interpret(last, "main", *a), *given)
        np.testing.assert_array_equal(found, wanted, err_msg=str(seed))


# ---- spelling


def test_an_element_may_stand_for_its_address_and_a_number_takes_its_type():
    program = from_source("""
@T.prim_func
def main(H: T.Buffer((4,), "uint64"), F: T.Buffer((4,), "float32")):
    for i in T.parallel(100):
        T.atomic_add(H[i % 4], 2)
        T.atomic_add(T.address_of(F[i % 4]), 0.5)
""")
    again = from_source(program.script())
    tw.ir.assert_structural_equal(again, program)
    assert "T.atomic_add(T.address_of(H[i % 4]), T.uint64(2))" in program.script()
    integers, floats = np.zeros(4, "uint64"), np.zeros(4, "float32")
    tw.compile(again, schedule="as written")(integers, floats)
    assert (integers == 50).all() and (floats == 12.5).all()


def test_a_result_is_stored_as_another_type():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int64")):
    for i in T.parallel(64):
        B[i] = T.Cast("int64", T.atomic_add(C[0], -1))
""")
    count, found = np.full(1, 5, "int32"), np.zeros(64, "int64")
    tw.compile(program, schedule="as written")(count, found)
    assert count[0] == -59 and sorted(found) == list(range(-58, 6))


# ---- refusals


def refusal(body: str, target: str | None = None) -> tw.Error:
    with pytest.raises(tw.Error) as error:
        program = from_source(f"""
@T.prim_func
def main(H: T.Buffer((16,), "int32"), F: T.Buffer((16,), "float32"), G: T.Buffer((16,), "float16")):
    {body}
""")
        tw.compile(program, target=target or "llvm", schedule="as written")
    return error.value


REFUSED = {
    "T.atomic_add(H.data, 1)": ("verify/atomic", "not an element"),
    "T.atomic_add(1, 1)": ("verify/atomic", "not an element"),
    "T.atomic_add(T.address_of(G[0]), 1)": ("verify/atomic", "float16"),
    "T.atomic_min(T.address_of(F[0]), 1.0)": ("verify/atomic", "float32"),
    "T.atomic_or(T.address_of(F[0]), T.float32(1))": ("verify/atomic", "float32"),
    "T.atomic_exchange(T.address_of(G[0]), T.float16(1))": ("verify/atomic", "float16"),
    "T.atomic_add(T.address_of(H[0]), F[0])": ("verify/atomic", "takes a value of that type, not float32"),
    "T.atomic_add(T.address_of(H[T.Ramp(0, 1, 4)]), 1)": ("verify/atomic", "more than one element"),
    "H[1] = T.atomic_add(T.address_of(H[0]), 1) + 1": ("verify/atomic-value", "part of an expression"),
    "H[T.atomic_add(T.address_of(H[0]), 1)] = 1": ("verify/atomic-value", "part of an expression"),
    "T.atomic_add(T.address_of(H[0]), T.atomic_add(T.address_of(H[1]), 1))": ("verify/atomic-value", "expression"),
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_step_is_refused(body):
    error = refusal(body)
    code, words = REFUSED[body]
    assert error.code == code and words in str(error), str(error)
    assert error.hint and body.split("(")[0] in str(error)


def test_private_memory_is_refused():
    body = """for bx in T.thread_binding(1, "blockIdx.x"):
        x = T.alloc_buffer((1,), "int32", scope="local")
        for tx in T.thread_binding(32, "threadIdx.x"):
            x[0] = 0
            T.atomic_add(T.address_of(x[0]), 1)
            H[0] = 0"""
    for target in ("opencl", "cuda"):
        error = refusal(body, target)
        assert error.code == "codegen/not-on-device" and "each thread has for itself" in str(error)


def test_a_result_that_all_threads_would_need_is_refused():
    body = """for bx in T.thread_binding(1, "blockIdx.x"):
        before = T.atomic_add(T.address_of(H[0]), 1)
        for tx in T.thread_binding(16, "threadIdx.x"):
            F[tx] = T.Cast("float32", before)"""
    error = refusal(body, "opencl")
    assert error.code == "lower/atomic-result" and error.hint


def test_a_step_outside_of_the_threads_happens_once():
    program = from_source("""
@T.prim_func
def main(F: T.Buffer((128,), "int32"), H: T.Buffer((1,), "int32")):
    for bx in T.thread_binding(4, "blockIdx.x"):
        T.atomic_add(T.address_of(H[0]), 1)
        for tx in T.thread_binding(32, "threadIdx.x"):
            F[bx * 32 + tx] = tx
""")
    for target in ("interpreter", "opencl"):
        kernel = tw.compile(program, target=target, schedule="as written")
        assert left_by(kernel, np.zeros(128, "int32"), np.zeros(1, "int32")) == 4
