"""The table of tensor intrinsics."""

import itertools
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T
from tilewright.tensor_intrin import TensorIntrin, cuda, hexagon, rocm, x86
from tilewright.tensor_intrin.table import register_at_import
from tilewright.testing.check import check_equivalent


@T.prim_func
def double(A: T.Buffer((4,)), B: T.Buffer((4,))):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(B[0:4])
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)


@T.prim_func
def longer(A: T.Buffer((8,)), B: T.Buffer((8,))):
    with T.block("root"):
        T.reads(A[0:8])
        T.writes(B[0:8])
        B[0:8] = A[0:8] * T.float32(2)


@T.prim_func
def alone(A: T.Buffer((4,))):
    with T.block("root"):
        T.reads()
        T.writes(A[0:4])
        A[0:4] = T.broadcast(T.float32(0), 4)


@pytest.mark.parametrize("features", ["avx2", ["avx2"]])
def test_found_by_name(features):
    TensorIntrin.register("test_double", double, double, override=True, features=features)
    found = tw.TensorIntrin.get("test_double")
    assert found.desc.same_as(double) and found.impl.same_as(double) and found.features == ("avx2",)
    assert "test_double" in TensorIntrin.names() and x86.VNNI_DOT_16x4_INTRIN in TensorIntrin.names()


def test_a_name_is_taken_once():
    TensorIntrin.register("test_taken", double, double, override=True)
    with pytest.raises(tw.ArgumentError) as info:
        TensorIntrin.register("test_taken", double, double)
    assert info.value.code == "tensor-intrin/name"


def test_what_is_the_same_is_registered_again_at_an_import():
    @T.prim_func
    def triple(A: T.Buffer((4,)), B: T.Buffer((4,))):
        with T.block("root"):
            T.reads(A[0:4])
            T.writes(B[0:4])
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.remap("S", [i])
                    B[vi] = A[vi] * 3.0

    register_at_import("test_shipped", double, double)
    register_at_import("test_shipped", double, double)
    with pytest.raises(tw.ArgumentError, match="registered already"):
        register_at_import("test_shipped", double, triple)


def test_a_name_that_is_not_there():
    assert TensorIntrin.get("test_missing", allow_missing=True) is None
    with pytest.raises(ValueError, match="no tensor intrinsic 'test_missing'"):
        TensorIntrin.get("test_missing")


@pytest.mark.parametrize(("desc", "impl"), [(double, longer), (double, alone), (longer, double)])
def test_both_take_the_same_buffers(desc, impl):
    with pytest.raises(tw.ArgumentError) as info:
        TensorIntrin.register("test_unfit", desc, impl)
    assert info.value.code == "tensor-intrin/signature"


# ---- those of known processors


@pytest.mark.parametrize("name", TensorIntrin.names())
def test_shipped_descriptions_and_implementations_verify(name):
    if name.startswith("test_"):
        return
    intrin = TensorIntrin.get(name)
    _core.verify(intrin.desc)
    _core.verify(intrin.impl)


@pytest.mark.parametrize(
    ("there", "back", "shape"),
    [
        (cuda.shared_16x16_to_ldmatrix_32x8_layout, cuda.ldmatrix_32x8_to_shared_16x16_layout, (16, 16)),
        (cuda.shared_32x16_to_ldmatrix_32x16_layout, cuda.ldmatrix_32x16_to_shared_32x16_layout_b, (32, 16)),
        *(
            (
                getattr(rocm, f"shared_{rows}x{columns}_to_local_64x{rows * columns // 64}_layout_{operand}"),
                getattr(
                    rocm,
                    f"thread_id_shared_access_64x{rows * columns // 64}_to_{rows}x{columns}_layout_{operand}",
                ),
                (rows, columns),
            )
            for rows, columns, operand in ((16, 4, "A"), (4, 16, "B"), (16, 16, "A"), (16, 16, "B"), (16, 16, "C"))
        ),
    ],
)
def test_layouts_of_warps_turn_around(there, back, shape):
    places = {there(i, j) for i in range(shape[0]) for j in range(shape[1])}
    threads = 64 if there.__name__.startswith("shared") and "_64x" in there.__name__ else 32
    assert places == set(itertools.product(range(threads), range(shape[0] * shape[1] // threads)))
    assert all(back(*there(i, j)) == (i, j) for i in range(shape[0]) for j in range(shape[1]))


def test_groups_of_products_on_gpus():
    for group in (
        cuda.get_wmma_intrin_group("shared.dyn", "shared", "float16", "float32", trans_b=True),
        cuda.get_mma_intrin_group("shared", "global", "float16", "float16", "float32", False, True, False),
        cuda.get_mma_intrin_group("shared.dyn", "shared.dyn", "float16", "float16", "float32", False, False),
        cuda.get_mma_intrin_group(
            "shared", "shared.dyn", "float16", "float16", "float32", False, True, store_to_smem_dtype="float16"
        ),
    ):
        assert sorted(group) == ["compute", "init", "load_a", "load_b", "store"]
        assert all(name in TensorIntrin.names() for name in group.values())
    with pytest.raises(tw.ArgumentError, match="mma_store_16x16_i32_shared_dyn_simple_"):
        cuda.get_mma_intrin_group("shared", "shared.dyn", "int8", "int8", "int32", False, True)


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in TensorIntrin.names() if "mfma_fill" in name or "mfma_load" in name or "mfma_store" in name),
        *(name for name in TensorIntrin.names() if name.endswith("_simple_")),
    ],
)
def test_what_moves_registers_does_what_its_description_says(name):
    intrin = TensorIntrin.get(name)
    check_equivalent(intrin.desc, intrin.impl)


def test_what_other_processors_have_is_found_by_name():
    for module, names in ((rocm, rocm.__all__), (hexagon, hexagon.__all__)):
        found = {getattr(module, name) for name in names if name.endswith("_INTRIN") or name.startswith("DMA_")}
        assert found and found <= set(TensorIntrin.names())
    assert len([name for name in rocm.__all__ if name.startswith("ROCM_MFMA_")]) == 13


def test_an_import_that_ctrl_c_has_ended_can_be_done_again() -> None:
    code = """
import signal
from tilewright import _core

real, left = _core.register_tensor_intrin, [20]

def register(*args):
    left[0] -= 1
    if left[0] == 0:
        signal.raise_signal(signal.SIGINT)
    return real(*args)

_core.register_tensor_intrin = register
try:
    import tilewright.tensor_intrin
except KeyboardInterrupt:
    print("interrupted")
import tilewright.tensor_intrin
print("mma_store_m16n8k8_f32_global" in _core.tensor_intrin_names())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\nTrue\n", done.stderr
