"""Tensor intrinsics of x86: products of bytes in groups of four, and a register tile of a float product."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.script import tir as T
from tilewright.tensor_intrin.programs import on_three, tile
from tilewright.tensor_intrin.table import register_at_import
from tilewright.tensor_intrin.words import dot_of_rows, on_rows, word, words

__all__ = [
    "AVX2_DOT_16x4_INTRIN",
    "AVX512_DOT_16x4_INTRIN",
    "AVXVNNI_DOT_16x4_INTRIN",
    "FMA_GEMM_6x16_INTRIN",
    "VNNI_DOT_16x4_INTRIN",
    "best_dot",
    "best_dot_16x4",
    "dot_product_16x4_u8i8i32_desc",
]


_BYTES = ("uint8", "int8", "int32")
#: Sixteen sums, each of four products of bytes: a row of A against sixteen rows of B.
dot_product_16x4_u8i8i32_desc = dot_of_rows(16, _BYTES)


def _dot(types: tuple[str, str, str], bits: int, sums: Any, a: Any, b: Any) -> Any:
    """Return a call of the dot-product instruction for these types, with vectors of this many bits."""
    lanes = bits // 32
    name = _core.dot_instruction(*types, lanes=lanes)
    return T.call_llvm_pure_intrin(f"{types[2]}x{lanes}", name, sums, a, b)


def _in_groups(bits: int, sums: Any, a: Any, b: Any) -> Any:
    return _dot(_BYTES, bits, sums, T.broadcast(a, bits // 32), b)


def _upcast(bits: int, sums: Any, a: Any, b: Any) -> Any:
    """Add products of 16 bits, exactly: vpmaddubsw would saturate, 255 * 127 + 255 * 127 for instance.

    Bytes 0 and 2 of each group, then bytes 1 and 3, are upcast in place, and vpmaddwd adds two products each.
    """
    lanes = bits // 32
    wide = f"int16x{2 * lanes}"
    name = "llvm.x86.avx512.pmaddw.d.512" if bits == 512 else "llvm.x86.avx2.pmadd.wd"
    b = T.reinterpret(wide, b)
    eight = T.broadcast(T.int16(8), 2 * lanes)
    even_b, odd_b = T.shift_right(T.shift_left(b, eight), eight), T.shift_right(b, eight)
    # In vectors: a load fills one at no cost, and each number that comes from an integer register takes two steps.
    a = T.reinterpret(f"u{wide}", T.broadcast(a, lanes))
    even_a = T.bitwise_and(a, T.broadcast(T.uint16(0xFF), 2 * lanes))
    odd_a = T.shift_right(a, T.broadcast(T.uint16(8), 2 * lanes))

    def products(x: Any, y: Any) -> Any:
        return T.call_llvm_pure_intrin(f"int32x{lanes}", name, T.reinterpret(wide, x), y)

    return sums + (products(even_a, even_b) + products(odd_a, odd_b))


def _in_groups_signed(bits: int, sums: Any, a: Any, b: Any) -> Any:
    """Return dot products of signed bytes: add 128 to each byte of A, which makes it unsigned, and subtract 128 times
    the bytes of B. Rows of one tile share the latter."""
    top = T.int32(-0x7F7F7F80)  # 128 in each byte
    more = _in_groups(bits, T.broadcast(T.int32(0), bits // 32), top, b)
    return _in_groups(bits, sums, T.bitwise_xor(a, top), b) - more


def _upcast_signed(bits: int, sums: Any, a: Any, b: Any) -> Any:
    """Return dot products of signed bytes by 16-bit products of upcast operands."""
    lanes = bits // 32
    wide = f"int16x{2 * lanes}"
    name = "llvm.x86.avx512.pmaddw.d.512" if bits == 512 else "llvm.x86.avx2.pmadd.wd"
    eight = T.broadcast(T.int16(8), 2 * lanes)

    def even_and_odd(x: Any) -> tuple[Any, Any]:
        x = T.reinterpret(wide, x)
        return T.shift_right(T.shift_left(x, eight), eight), T.shift_right(x, eight)

    products = [
        T.call_llvm_pure_intrin(f"int32x{lanes}", name, x, y)
        for x, y in zip(even_and_odd(T.broadcast(a, lanes)), even_and_odd(b), strict=True)
    ]
    return sums + (products[0] + products[1])


def _in_one(step: Any, dtype: str = "uint8") -> Any:
    return on_rows(16, (dtype, "int8", "int32"), lambda a, b, sums: step(512, sums, word(a), words(b, 0, 16)))


def _in_halves(step: Any, dtype: str = "uint8") -> Any:
    @T.macro
    def dot(A: Any, B: Any, C: Any) -> None:
        a = word(A)
        low = words(B, 0, 8)
        high = words(B, 8, 8)
        C[0:8] = step(256, C[0:8], a, low)
        C[8:16] = step(256, C[8:16], a, high)

    return on_three("dot", dot, tile((4,), dtype), tile((16, 4), "int8"), tile((16,), "int32"))


dot_product_16x4_u8i8i32_vnni = _in_one(_in_groups)
dot_product_16x4_u8i8i32_avx512 = _in_one(_upcast)
dot_product_16x4_u8i8i32_avxvnni = _in_halves(_in_groups)
dot_product_16x4_u8i8i32_avx2 = _in_halves(_upcast)


@T.macro
def _products(A: Any, B: Any, C: Any) -> None:
    for i, j in T.grid(6, 16):
        with T.block("update"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + A[vi, 0] * B[0, vj]


@T.macro
def _by_fma(A: Any, B: Any, C: Any) -> None:
    for i in T.unroll(6):
        C[i, 0:16] = T.fma(T.broadcast(A[i, 0], 16), B[0, 0:16], C[i, 0:16])


def _on_tile(name: str, body: Any) -> Any:
    """Return the program of one step of a product on a tile of six rows and sixteen columns, which fits into
    registers."""
    return on_three(name, body, *(tile(shape, "float32") for shape in ((6, 1), (1, 16), (6, 16))))


gemm_6x16_f32_desc = _on_tile("gemm_6x16_f32_desc", _products)
gemm_6x16_f32_fma = _on_tile("gemm_6x16_f32_fma", _by_fma)


VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"
AVXVNNI_DOT_16x4_INTRIN = "dot_16x4_avxvnni"
AVX2_DOT_16x4_INTRIN = "dot_16x4_avx2"
FMA_GEMM_6x16_INTRIN = "gemm_6x16_f32_fma"

_BFLOATS = ("bfloat16", "bfloat16", "float32")


def _bfloats_in_pairs(bits: int, sums: Any, a: Any, b: Any) -> Any:
    """Return sums plus two bfloat16 products each. The instruction treats denormal numbers as zeros."""
    lanes = bits // 32
    wide = f"bfloat16x{2 * lanes}"
    return _dot(_BFLOATS, bits, sums, T.reinterpret(wide, T.broadcast(a, lanes)), T.reinterpret(wide, b))


#: by the types of the operands and of sixteen sums, with the products that a sum takes at once; the fastest first
_DOTS = {
    _BYTES: (
        4,
        {
            VNNI_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_vnni,
            AVXVNNI_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_avxvnni,
            AVX512_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_avx512,
            AVX2_DOT_16x4_INTRIN: dot_product_16x4_u8i8i32_avx2,
        },
    ),
    ("int8", "int8", "int32"): (
        4,
        {
            "dot_16x4_i8_vnni": _in_one(_in_groups_signed, "int8"),
            "dot_16x4_i8_avxvnni": _in_halves(_in_groups_signed, "int8"),
            "dot_16x4_i8_avx512": _in_one(_upcast_signed, "int8"),
            "dot_16x4_i8_avx2": _in_halves(_upcast_signed, "int8"),
        },
    ),
    _BFLOATS: (
        2,
        {
            "dot_16x2_bf16": on_rows(
                16,
                _BFLOATS,
                lambda a, b, sums: _bfloats_in_pairs(512, sums, word(a, elements=2), words(b, 0, 16, elements=2)),
                columns=2,
            )
        },
    ),
}
for _types, (_group, _dots) in _DOTS.items():
    for _name, _impl in _dots.items():
        register_at_import(_name, dot_of_rows(16, _types, columns=_group), _impl)
register_at_import(FMA_GEMM_6x16_INTRIN, gemm_6x16_f32_desc, gemm_6x16_f32_fma, features=["fma"])


def best_dot(target: Any, types: tuple[str, str, str]) -> tuple[str, int] | None:
    """Return the fastest dot-product intrinsic of a target with sixteen sums, and the number of products per sum.

    Args:
        target: what has to have the instructions.
        types: data types of the left operand, the right operand, and the sums.
    """
    group, dots = _DOTS.get(types, (0, {}))
    known = set(target.features)
    return next(
        ((name, group) for name, impl in dots.items() if known.issuperset(_core.instruction_features(impl))), None
    )


def best_dot_16x4(target: Any, dtype: str = "uint8") -> str | None:
    """Return the fastest dot-product intrinsic of a target for bytes, with left operands of a type; None if it has
    none."""
    found = best_dot(target, (dtype, "int8", "int32"))
    return found[0] if found is not None else None
