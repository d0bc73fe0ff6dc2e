"""A program that gathers, and kernels that claim to compute the same and do not: what the measuring helper is for.

`tilewright tune` runs its space, too.
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T

INDICES = np.random.default_rng(0).permutation(1000).astype(np.int32)


@T.prim_func
def gather(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi]]


@tw.space(gather, inputs={"I": INDICES})
def choose(sch: tw.Schedule) -> None:
    int(sch.sample_categorical([1, 2], [0.5, 0.5]))  # read here, so that the function is run for each candidate


@T.prim_func
def reads_beyond(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi] + 10000]


@T.prim_func
def writes_beyond(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[I[vi] + 4000] = X[vi]


@T.prim_func
def writes_one_beyond(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi]]
    for i in range(1000):
        with T.block("Y_again"):
            vi = T.axis.spatial(1000, i)
            Y[I[vi] + 1] = X[I[T.min(I[vi] + 1, 999)]]


@T.prim_func
def hangs(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi]]
            while I[vi] >= 0:
                Y[vi] = Y[vi] + 1.0


@T.prim_func
def exhausts_memory(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    W = T.alloc_buffer((2000000000,), "float32")
    for i in range(2000000000):
        with T.block("W"):
            vi = T.axis.spatial(2000000000, i)
            W[vi] = 1.0
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi]] * W[I[vi]]


@T.prim_func
def forgets_one(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(999):
        with T.block("Y"):
            vi = T.axis.spatial(999, i)
            Y[vi] = X[I[vi]]


@T.prim_func
def subtly_wrong(X: T.Buffer((1000,), "float32"), I: T.Buffer((1000,), "int32"), Y: T.Buffer((1000,), "float32")):
    T.func_attr({"global_symbol": "gather"})
    for i in range(1000):
        with T.block("Y"):
            vi = T.axis.spatial(1000, i)
            Y[vi] = X[I[vi]] * T.float32(1.00001)


#: by program: outcome of the candidate, code, a part of the message
FAULTS = {
    "reads_beyond": (reads_beyond, "run_crash", "measure/run-crash", "bytes behind the end of X"),
    "writes_beyond": (writes_beyond, "run_crash", "measure/run-crash", "bytes behind the end of Y"),
    "writes_one_beyond": (writes_one_beyond, "wrong_result", "measure/wrong-result", "it wrote behind the end of Y"),
    "hangs": (hangs, "run_timeout", "measure/run-timeout", "did not come back in time"),
    "exhausts_memory": (exhausts_memory, "out_of_memory", "measure/memory", "out of memory for a workspace"),
    "forgets_one": (forgets_one, "wrong_result", "measure/wrong-result", "Y[999] was never written"),
    "subtly_wrong": (subtly_wrong, "wrong_result", "measure/wrong-result", "Y[0]: expected"),
}
