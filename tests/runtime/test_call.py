"""Calling kernels: what is accepted, what is refused and with which words."""

import array
import os
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.testing import everyday

NATIVE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NATIVE += ["float16", "float32", "float64", "complex64"]
EXTENDED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4"]


def floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def refusal(kernel, *args, **named):
    with pytest.raises(tw.ArgumentError) as error:
        kernel(*args, **named)
    assert isinstance(error.value, ValueError)
    return error.value


# ---- what is accepted


def test_writes_the_result_and_returns_none(kernels):
    a, b, c = floats(3, 4), floats(3, 4), np.empty((3, 4), np.float32)
    assert kernels["add"](a, b, c) is None
    np.testing.assert_array_equal(c, a + b)


def test_arguments_by_name(kernels):
    a, b, c = floats(2, 2), floats(2, 2), np.empty((2, 2), np.float32)
    kernels["add"](a, C=c, B=b)
    np.testing.assert_array_equal(c, a + b)
    kernels["add"](*[a], **{"B": b, "C": c})


@pytest.mark.parametrize("dtype", NATIVE)
def test_element_types_of_numpy(kernels, dtype):
    source = np.random.default_rng(0).integers(0, 2, 17).astype(dtype)
    target = np.zeros_like(source)
    kernels[f"copy_{dtype}"](source, target)
    np.testing.assert_array_equal(source, target)
    wrong = "float32" if dtype != "float32" else "float64"
    assert refusal(kernels[f"copy_{wrong}"], source, target).message == (
        f"copy_{wrong}: argument A: expected dtype {wrong}, got {dtype}"
    )


@pytest.mark.parametrize("dtype", EXTENDED)
def test_element_types_of_ml_dtypes(kernels, dtype):
    source = np.arange(20).astype(getattr(ml_dtypes, dtype))
    target = np.zeros_like(source)
    kernels[f"copy_{dtype}"](source, target)
    assert source.tobytes() == target.tobytes()
    assert refusal(kernels["copy_float32"], source, target).code == "call/dtype"
    source.flags.writeable = False
    assert refusal(kernels[f"copy_{dtype}"], target, source).code == "call/read-only"
    with pytest.raises(tw.ArgumentError, match="expected compact row-major data"):
        kernels[f"copy_{dtype}"](target[::2], np.zeros_like(target[::2]))


def test_other_objects_with_a_buffer(kernels):
    source, target = array.array("d", [1, 2, 3]), bytearray(24)
    kernels["copy_float64"](source, memoryview(target).cast("d"))
    assert memoryview(target).cast("d").tolist() == [1, 2, 3]
    kernels["copy_uint8"](b"abc", memoryview(target)[:3])
    assert target[:3] == b"abc"


def test_views(kernels):
    base = floats(6, 8)
    for view in (base, base.T, base[::2, 1:5], base[::-1, ::-1], np.broadcast_to(base[0], (4, 8)), base[:, :0]):
        out = np.empty(1, np.float32)
        kernels["total"](view, out)
        rows, columns = np.indices(view.shape)
        assert out[0] == (view * (10 * rows + columns)).sum()


def test_many_dimensions_and_arguments(kernels):
    a = np.arange(5, dtype=np.float32)
    c = np.zeros_like(a)
    kernels["ten"](a.reshape((1,) * 9 + (5,)), c)
    np.testing.assert_array_equal(a, c)
    points = [np.array(float(i), np.float32) for i in range(12)]
    kernels["first_of_twelve"](*points)
    assert points[11] == 0


class Producer:
    """Shares an array through DLPack alone."""

    def __init__(self, owner, **fixed):
        self.owner = owner
        self.fixed = fixed
        self.calls = []

    def __dlpack__(self, **arguments):
        self.calls.append(arguments)
        return self.owner.__dlpack__(**{**arguments, **self.fixed})

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


class OldProducer(Producer):
    def __dlpack__(self):
        return self.owner.__dlpack__()


def test_dlpack(kernels):
    a, b, c = floats(3, 4), floats(3, 4), np.zeros((3, 4), np.float32)
    for wrap in (Producer, OldProducer):
        c[:] = 0
        references = sys.getrefcount(c)
        kernels["add"](wrap(a), b, wrap(c))
        np.testing.assert_array_equal(c, a + b)
        assert sys.getrefcount(c) == references
    producer = Producer(a)
    kernels["add"](producer, b, c)
    assert producer.calls == [{"max_version": (1, 1)}]


def test_scalars_arrive(kernels):
    def echo(*scalars):
        integers, reals = np.zeros(8, np.int64), np.zeros(4)
        kernels["echo"](*scalars, integers, reals)
        return integers.tolist() + reals.tolist()

    low = [False, -128, 0, -(2**31), 0, -(2**63), 0, 0, -65504.0, -1.5, -3.0e38, float("-inf")]
    assert echo(*low) == low
    high = [True, 127, 255, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**63, 2**40, 65504, 2, 3e38, 1e308]
    assert echo(*high) == [1, 127, 255, 2**31 - 1, 2**32 - 1, 2**63 - 1, -(2**63), 2**40, 65504, 2, 3e38, 1e308]
    numpy = [np.True_, np.int8(-3), np.uint8(4), np.int64(5), np.int16(6), np.array(7), True, 8]
    assert echo(*numpy, np.float16(1.5), 3, np.float32(2.5), np.array(0.25)) == [
        1,
        -3,
        4,
        5,
        6,
        7,
        1,
        8,
        1.5,
        3,
        2.5,
        0.25,
    ]
    assert np.isnan(echo(*low[:8], float("nan"), 0, 0, 0)[8])
    assert echo(1, *low[1:])[0] == 1


# ---- what is refused


@pytest.mark.parametrize(
    ("at", "value", "expected", "got"),
    [
        (0, 2, "bool", "2"),
        (0, "yes", "bool", "'yes'"),
        (0, 1.0, "bool", "1.0"),
        (1, 128, "int8", "128"),
        (1, -129, "int8", "-129"),
        (2, -1, "uint8", "-1"),
        (2, 256, "uint8", "256"),
        (3, 2**31, "int32", "2147483648"),
        (3, 1.0, "int32", "1.0"),
        (3, None, "int32", "None"),
        (4, 2**32, "uint32", "4294967296"),
        (5, 2**63, "int64", "9223372036854775808"),
        (6, 2**64, "uint64", "18446744073709551616"),
        (6, -1, "uint64", "-1"),
        (7, "p", "handle", "'p'"),
        (8, 65505.0, "float16", "65505.0"),
        (9, 3.4e38, "bfloat16", "3.4e+38"),
        (10, 1e39, "float32", "1e+39"),
        (10, "1.0", "float32", "'1.0'"),
        (11, 10**400, "float64", "1" + "0" * 56 + "..."),
        (11, [1.0], "float64", "[1.0]"),
    ],
)
def test_numbers_outside_the_range(kernels, at, value, expected, got):
    scalars = [0] * 12
    scalars[at] = value
    error = refusal(kernels["echo"], *scalars, np.zeros(8, np.int64), np.zeros(4))
    assert error.code == "call/scalar"
    name = kernels["echo"].parameters[at][0]
    assert error.message == f"echo: argument {name}: expected {expected}, got {got}"
    assert error.hint


def test_an_array_for_a_handle_without_a_buffer(kernels):
    error = refusal(kernels["echo"], *[0] * 7, floats(3), *[0] * 4, np.zeros(8, np.int64), np.zeros(4))
    assert error.code == "call/scalar" and "expected handle, got array(" in error.message
    assert "no buffer of the program is bound to this T.handle" in error.hint and "T.match_buffer" in error.hint


def test_number_of_arguments(kernels):
    a = floats(2, 2)
    for args, named, got in [
        ((), {}, "0"),
        ((a, a), {}, "2"),
        ((a,) * 4, {}, "4"),
        ((a, a), {"A": a}, "A twice"),
        ((a, a), {"D": a}, "an unknown one, D"),
        ((a,), {"B": a}, "none for C"),
        ((a, a, a), {"C": a}, "C twice"),
    ]:
        error = refusal(kernels["add"], *args, **named)
        assert error.code == "call/count"
        assert error.hint
        assert error.message == f"add takes 3 arguments (A, B, C), got {got}"


READ_ONLY = floats(2, 2)
READ_ONLY.flags.writeable = False
BACKWARD = floats(2, 2).astype(">f4")
RECORDS = np.zeros((2, 2), [("x", "f4"), ("y", "i2")])


@pytest.mark.parametrize(
    ("name", "value", "code", "text"),
    [
        ("A", None, "call/argument", "expected float32 (n, m), got None"),
        ("A", [[1.0]], "call/argument", "expected float32 (n, m), got a value of type list"),
        ("A", 1.0, "call/argument", "expected float32 (n, m), got a value of type float"),
        ("A", object(), "call/argument", "expected float32 (n, m), got a value of type object"),
        ("A", floats(2, 2).astype(np.float64), "call/dtype", "expected dtype float32, got float64"),
        ("A", BACKWARD, "call/dtype", "expected numbers in this machine's byte order, got the opposite order"),
        ("A", np.zeros((2, 2), object), "call/dtype", "expected float32 (n, m), got elements of format 'O'"),
        ("A", RECORDS, "call/dtype", "expected float32 (n, m), got elements of format 'T{"),
        (
            "A",
            np.zeros((2, 2), "M8[s]"),
            "call/argument",
            "expected float32 (n, m), got a numpy.ndarray that cannot be",
        ),
        ("A", RECORDS["x"], "call/strides", "expected strides that are whole elements, got 6 bytes in dimension 1"),
        ("A", floats(4), "call/ndim", "expected 2 dimensions with shape (n, m), got 1 with shape (4,)"),
        ("B", floats(3, 2), "call/shape", "expected shape (n, m), got (3, 2)"),
        ("B", floats(2, 2).T, "call/strides", "expected compact row-major data, got strides (1, 2) (in elements)"),
        ("C", READ_ONLY, "call/read-only", "expected an array that may be written, since the kernel writes to it, got"),
    ],
)
def test_arrays_that_do_not_fit(kernels, name, value, code, text):
    arguments = {"A": floats(2, 2), "B": floats(2, 2), "C": floats(2, 2), name: value}
    error = refusal(kernels["add"], **arguments)
    assert error.code == code
    assert error.message.startswith(f"add: argument {name}: {text}")
    assert error.hint or code == "call/argument"
    assert str(error).startswith(f"[{code}] add: argument {name}: ")


def test_more_refusals_of_the_check(kernels):
    a, c = floats(2, 2), floats(2, 2)
    assert refusal(kernels["add"], a, c, c).code == "call/overlap"
    assert refusal(kernels["add"], a, a, c[:1].repeat(2, 0)[::-1]).code == "call/strides"
    huge = np.lib.stride_tricks.as_strided(a, (2**31, 2), (0, 4), writeable=False)
    assert refusal(kernels["add"], huge, a, c).code == "call/size"
    memory = np.zeros(256, np.uint8)
    start = -memory.ctypes.data % 64
    aligned, skewed = (memory[start + k : start + k + 16].view(np.float32) for k in (0, 16))
    kernels["strict"](aligned, np.zeros(4, np.float32))
    error = refusal(kernels["strict"], skewed, np.zeros(4, np.float32))
    assert error.code == "call/alignment"
    assert "the script asks for this alignment" in error.hint


class Failing:
    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **arguments):
        if isinstance(self.error, Exception):
            raise self.error
        return self.error


@pytest.mark.parametrize(
    ("producer", "text"),
    [
        (Failing(BufferError("it is elsewhere\nwith a trace")), "got a Failing that cannot be shared: it is elsewhere"),
        (Failing(ValueError()), "got a Failing that cannot be shared: ValueError"),
        (Failing(3), "got a Failing whose __dlpack__() returns no tensor"),
    ],
)
def test_producers_that_fail(kernels, producer, text):
    error = refusal(kernels["add"], producer, floats(2, 2), floats(2, 2))
    assert error.code == "call/argument"
    assert error.message == f"add: argument A: expected float32 (n, m), {text}"
    assert error.__cause__ is (producer.error if isinstance(producer.error, Exception) else None)


def test_read_only_dlpack(kernels):
    source = floats(2, 2)
    source.flags.writeable = False
    kernels["add"](Producer(source), floats(2, 2), np.empty((2, 2), np.float32))
    assert refusal(kernels["add"], floats(2, 2), floats(2, 2), Producer(source)).code == "call/read-only"


# ---- what a kernel itself reports


@pytest.mark.parametrize(
    ("number", "error", "code"),
    [
        (1, tw.ResourceError, "call/version"),
        (2, tw.ResourceError, "call/cpu-feature"),
        (3, tw.ResourceError, "call/memory"),
        (4, tw.ArgumentError, "call/assertion"),
        (32, tw.ArgumentError, "call/null"),
        (37, tw.ArgumentError, "call/offset"),
        (39, tw.ArgumentError, "call/device"),
        (5, tw.InternalError, "call/failed"),
        (1000, tw.InternalError, "call/failed"),
        (-7, tw.InternalError, "call/failed"),
    ],
)
def test_codes_become_errors(kernels, number, error, code):
    with pytest.raises(error, match="what went wrong") as raised:
        kernels["fail"](number)
    assert (raised.value.code, raised.value.hint) == (code, "what to do")
    kernels["fail"](0)


# ---- threads, processes, lifetime


def test_other_threads_run_during_a_call(kernels):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(0)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    kernels["linger"](200)
    during = len(ticks) - before
    done.set()
    thread.join()
    assert during > 3


def test_calls_from_many_threads(kernels):
    failures = []

    def work(seed):
        a = np.full((8, 8), seed, np.float32)
        c = np.empty_like(a)
        for _ in range(300):
            kernels["add"](a, a, c)
            if not (c == 2 * seed).all():
                failures.append(seed)
            try:
                kernels["add"](a, a, c[:4])
            except tw.ArgumentError as error:
                if error.code != "call/shape":
                    failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_number_of_threads(kernels):
    before = tw.get_num_threads()
    try:
        for count in (1, 3):
            tw.set_num_threads(count)
            assert tw.get_num_threads() == count
            numbers = np.zeros(1000, np.int64)
            kernels["fill"](numbers)
            np.testing.assert_array_equal(numbers, np.arange(1000))
        tw.set_num_threads(0)
        assert tw.get_num_threads() == before
        with pytest.raises(tw.ArgumentError, match="count is None; it is a number of threads"):
            tw.set_num_threads(None)
        for count in (-1, 5000):
            with pytest.raises(tw.ArgumentError, match=f"the number of threads is {count}") as error:
                tw.set_num_threads(count)
            assert error.value.code == "call/threads"
    finally:
        tw.set_num_threads(0)


def test_limit_of_one_kernel(kernels):
    kernel = tw.Kernel(kernels["limit"])
    limit = np.zeros(1, np.int64)
    for threads in (0, 1, 7):
        kernel.threads = threads
        kernel(limit)
        assert limit[0] == threads == kernel.threads
    kernels["limit"](limit)
    assert limit[0] == 0
    for wrong in (-1, 5000, "all", None):
        with pytest.raises(tw.ArgumentError, match="from 0 \\(all\\) to 4096"):
            kernel.threads = wrong
    with pytest.raises(tw.ArgumentError):
        del kernel.threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_survives_fork(kernels):
    numbers = np.zeros(500, np.int64)
    tw.set_num_threads(3)
    try:
        kernels["fill"](numbers)
        for _ in range(3):
            child = os.fork()
            if child == 0:
                numbers[:] = 0
                kernels["fill"](numbers)
                os._exit(0 if (numbers == np.arange(500)).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        tw.set_num_threads(0)


def test_a_thread_count_in_the_environment(library_path):
    program = f"import tilewright as tw; tw.load({str(library_path)!r}); print(tw.get_num_threads())"
    for value, expected in (("3", "3"), ("", None), ("nonsense", None), ("0", None), ("4 ", None), ("9" * 30, None)):
        environment = {**os.environ, "TILEWRIGHT_NUM_THREADS": value}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == (expected or str(tw.get_num_threads()))
        ignored = f"tilewright: TILEWRIGHT_NUM_THREADS={value} is ignored: it is not a number from 1 to 4096\n"
        assert run.stderr == (ignored if value and not expected else "")


def test_arguments_are_given_back(kernels):
    a, b, c = floats(4, 4), floats(4, 4), floats(4, 4)
    before = [sys.getrefcount(x) for x in (a, b, c)]
    for _ in range(10):
        kernels["add"](a, b, c)
        with pytest.raises(tw.ArgumentError):
            kernels["add"](a, b, None)
        with pytest.raises(tw.ArgumentError):
            kernels["add"](a, b.T, c)
    assert [sys.getrefcount(x) for x in (a, b, c)] == before
    resizable = bytearray(8)
    kernels["copy_uint8"](resizable, bytearray(8))
    resizable.append(1)  # a buffer still held would forbid it


def test_kernels_are_not_made_by_hand(kernels):
    for arguments in ((), (3,), (kernels["add"], 1)):
        with pytest.raises(TypeError, match="kernels are made by"):
            _core.KernelBase(*arguments)
    again = _core.KernelBase(kernels["add"])
    c = np.empty((2, 2), np.float32)
    again(floats(2, 2), floats(2, 2), c)
    assert c[1, 1] == 6


def test_a_kernel_has_no_other_settings() -> None:
    kernel = tw.compile(everyday.attention(1, 4, 4))
    with pytest.raises(AttributeError, match="a kernel has no 'num_threads' to set; `threads` is"):
        kernel.num_threads = 1  # type: ignore[attr-defined]
    kernel.threads = 1
