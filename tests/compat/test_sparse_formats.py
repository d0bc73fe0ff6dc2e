"""tvm.sparse: formats as SparseTIR's users compose them, and how they schedule what follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tests.compat import sparse_scripts as scripts
from tests.compat.test_sparse_programs import TARGETS, K, M, N, csf, random_csr, run, whole
from tvm.sparse import (
    FormatRewriteRule,
    column_part_hyb,
    condense,
    csf_to_ell3d,
    format_decompose,
    lower_sparse_buffer,
    lower_sparse_iter,
    specialize_buffer,
)


def csr2bsr(blk: int) -> tuple[Any, Any]:
    def csr2bsr_index_map(i: Any, j: Any) -> Any:
        return i // blk, j // blk, i % blk, j % blk

    def csr2bsr_inv_index_map(io: Any, jo: Any, ii: Any, ji: Any) -> Any:
        return io * blk + ii, jo * blk + ji

    return csr2bsr_index_map, csr2bsr_inv_index_map


def bsr_rule(name: str, blk: int, mb: int, nb: int, nnzb: int) -> FormatRewriteRule:
    given = dict(zip(scripts.bsr.params[-4:], [mb, nb, nnzb, blk], strict=True))
    maps = csr2bsr(blk)
    axis_map = {"I": ["IO", "II"], "J": ["JO", "JI"]}
    desc = scripts.bsr.specialize(given).with_attr("global_symbol", "bsr")
    return FormatRewriteRule(name, desc, ["A"], ["I", "J"], ["IO", "JO", "II", "JI"], axis_map, *maps)


def ell_rule(name: str, m: int, n: int, rows: int, width: int) -> FormatRewriteRule:
    given = dict(zip(scripts.ell.params[-4:], [m, n, rows, width], strict=True))
    return FormatRewriteRule(
        name,
        scripts.ell.specialize(given),
        ["A"],
        ["I", "J"],
        ["O", "I", "J"],
        {"I": ["O", "I"], "J": ["J"]},
        lambda i, j: (0, i, j),
        lambda o, i, j: (i, j),
    )


def csr_product(nnz: int) -> Any:
    m, n, k, z = scripts.csr_sum.params[-4:]
    return tvm.IRModule.from_expr(scripts.csr_sum.specialize({m: M, n: N, k: K, z: nnz}))


@pytest.mark.parametrize("target", TARGETS)
def test_bsr(target: str) -> None:
    blk = 2
    a = random_csr(M + 1, N + 1)
    m, n, k, z = scripts.csr_sum.params[-4:]
    mod = tvm.IRModule.from_expr(scripts.csr_sum.specialize({m: M + 1, n: N + 1, k: K, z: a.nnz}))
    blocks = a.tobsr((blk, blk))
    blocks.sort_indices()
    sizes = (M + 1) // blk, (N + 1) // blk, len(blocks.indices)
    mod = format_decompose(mod, [bsr_rule("bsr", blk, *sizes)])
    conversion = lower_sparse_buffer(lower_sparse_iter(tvm.tir.transform.ExtractPreprocess()(mod)))
    compute = lower_sparse_buffer(lower_sparse_iter(tvm.tir.transform.RemovePreprocess()(mod)))
    stored = np.full(blocks.data.shape, np.nan, "float32")
    x, y = whole((N + 1, K)), np.full((M + 1, K), np.nan, "float32")
    arguments = [a.data, x, y, a.indptr, a.indices, stored, blocks.indptr, blocks.indices]
    run(conversion, target, *arguments)
    np.testing.assert_array_equal(stored, blocks.data)
    run(compute, target, *arguments)
    np.testing.assert_array_equal(y, a @ x)


def in_buckets(a: Any, parts: int, buckets: list[int]) -> tuple[list[FormatRewriteRule], list[np.ndarray]]:
    """Rules and arrays of hyb as examples make them; the mask stands for the values of an unweighted graph."""
    arrays = [tvm.nd.array(each.astype("int32")) for each in (a.indptr, a.indices)]
    rows, columns, masks = column_part_hyb(*a.shape, *arrays, parts, buckets)
    rules, more = [], []
    for part in range(parts):
        for number, width in enumerate(buckets):
            r, c, mask = (each[part][number].numpy() for each in (rows, columns, masks))
            rules.append(ell_rule(f"{part}_{number}", *a.shape, len(r), width))
            more += [mask.astype("float32"), r, c]
    return rules, more


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parts", [1, 2])
def test_hyb(target: str, parts: int) -> None:
    """As published: results are zeroed by the caller and added up, since each format would set them again."""
    a = random_csr()
    a.data[:] = 1
    # Long rows are cut, and occur several times; the interpreter reports that axes say otherwise.
    rules, more = in_buckets(a, parts, [1, 2, 4] if target == "llvm" else [1, 2, 4, 16])
    source = scripts.csr_sum.script().split("with T.init():")
    text = source[0] + source[1].split("\n", 2)[2]
    func = tvm.script.from_source(text)
    m, n, k, z = func.params[-4:]
    mod = tvm.IRModule.from_expr(func.specialize({m: M, n: N, k: K, z: a.nnz}))
    mod = tvm.tir.transform.RemovePreprocess()(format_decompose(mod, rules))
    sch = tvm.tir.Schedule(mod)
    for rule in rules:
        iteration = sch.get_sparse_iteration(f"csrmm_{rule.name}")
        o, i, j, k = sch.get_sp_iters(iteration)
        sch.sparse_fuse(iteration, [o, i])
    mod = lower_sparse_iter(sch.mod)
    sch = tvm.tir.Schedule(mod)
    for rule in rules:
        block = sch.get_block(f"csrmm_{rule.name}0")
        i, j, k = sch.get_loops(block)
        sch.reorder(i, k, j)  # buckets may be empty
        sch.unroll(j)
    mod = tvm.tir.transform.RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    assert "a" not in [param.name for param in mod["main"].params]
    x, y = whole((N, K)), np.zeros((M, K), "float32")
    run(mod, target, x, y, *more)
    np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["sddmm", "fused_sddmm"])
def test_results_in_blocks(name: str, target: str) -> None:
    """A sparse result, which is written in the format; blocks are whole."""
    m, n, blk = 8, 10, 2
    a = random_csr(m, n)
    blocks = a.tobsr((blk, blk))
    blocks.sort_indices()
    func = getattr(scripts, name)
    mod = tvm.IRModule.from_expr(func.specialize(dict(zip(func.params[-4:], [m, n, K, a.nnz], strict=True))))
    rule = bsr_rule("bsr", blk, m // blk, n // blk, len(blocks.indices))
    rule.buffers_to_rewrite = ["C"]
    mod = lower_sparse_buffer(lower_sparse_iter(format_decompose(mod, [rule], include_format_rewrite_blks=False)))
    x, y = whole((m, K)), whole((n, K), 2)
    out = np.full(blocks.data.shape, np.nan, "float32")
    unused = np.zeros(a.nnz, "float32")
    run(mod, target, x, y, unused, a.indptr, a.indices, out, blocks.indptr, blocks.indices)
    rows, product = np.repeat(np.arange(m // blk), np.diff(blocks.indptr)), x @ y.T
    tiles = product.reshape(m // blk, blk, n // blk, blk).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(out, tiles[rows, blocks.indices])


@pytest.mark.parametrize("target", TARGETS)
def test_bsr_and_ell_together(target: str) -> None:
    """Two formats of one tensor: names, attributes, and arguments in their order."""
    mod = format_decompose(csr_product(5), [bsr_rule("x", 1, M, N, 3), ell_rule("y", M, N, 2, 1)], False)
    assert int(mod["main"].attrs["composable"]) == 1
    assert [each.name_hint for each in mod["main"].body.seq] == ["csrmm_x", "csrmm_y"]
    names = [param.name for param in mod["main"].params]
    assert names == [
        *("a", "b", "c", "indptr", "indices"),
        *("a_x", "indptr_x", "indices_x", "a_y", "indptr_i_y", "indices_i_y", "indices_j_y"),
    ]
    lower_sparse_buffer(lower_sparse_iter(mod))


@pytest.mark.parametrize("target", TARGETS)
def test_strips_of_condensed_columns(target: str) -> None:
    """SR-BCRS as arrays: the columns of a group are coordinates of a fixed axis."""
    a = random_csr(8, 9)
    t, g = 4, 2
    indptr, tiles, mask = (each.numpy() for each in condense(a.indptr, a.indices, t, g))
    dense = a.toarray()
    strips = np.repeat(np.arange(2), np.diff(indptr))
    values = np.stack([dense[s * t : s * t + t][:, tiles[p]] for p, s in enumerate(strips)]) * mask
    x, y = whole((9, K)), np.full((2, t, K), np.nan, "float32")
    sizes = {"mt": 2, "n": 9, "t": t, "g": g, "groups": len(tiles), "k": K}
    given = {param: sizes[param.name] for param in scripts.sr_bcrs.params if param.name in sizes}
    mod = lower_sparse_buffer(lower_sparse_iter(tvm.IRModule.from_expr(scripts.sr_bcrs.specialize(given))))
    run(mod, target, values.astype("float32"), x, y, indptr, tiles)
    np.testing.assert_array_equal(y.reshape(-1, K), a @ x)


@pytest.mark.parametrize("target", TARGETS)
def test_relations_in_buckets(target: str) -> None:
    """RGMS over the three-dimensional format: a relation, its groups of rows, and the columns of a row."""
    dense, _, *structure = csf((3, 6, 8), 0.3)
    rows, widths = [2, 1], [1, 4]
    w, x, y = whole((3, K, K)), whole((8, K), 2), np.zeros((6, K), "float32")
    for bucket, (indptr, row, column, mask) in enumerate(zip(*csf_to_ell3d(*structure, rows, widths), strict=True)):
        indptr, row, column, mask = (each.numpy() for each in (indptr, row, column, mask))
        sizes = {"r": 3, "m": 6, "n": 8, "groups": len(row), "rows": rows[bucket], "width": widths[bucket], "f": K}
        given = {param: sizes[param.name] for param in scripts.ell3d.params if param.name in sizes}
        mod = lower_sparse_buffer(lower_sparse_iter(tvm.IRModule.from_expr(scripts.ell3d.specialize(given))))
        run(mod, target, mask.astype("float32"), w, x, y, indptr, row, column)
    np.testing.assert_array_equal(y, np.einsum("rij,jf,rfo->io", dense != 0, x, w))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("indices", [1, 2])
def test_banded_matrices_without_indices(target: str, indices: int) -> None:
    m, width, n = 6, 3, 8
    (formula,) = [lambda i, j: (i + j,)] if indices == 2 else [lambda p: (p // width + p % width,)]
    given = dict(zip(scripts.band.params[-3:], [m, n, width], strict=True))
    mod = lower_sparse_iter(tvm.IRModule.from_expr(scripts.band.specialize(given)))
    mod = lower_sparse_buffer(specialize_buffer(mod, "J_indices", formula))
    a, x, y = whole((m, width)), whole(n), np.full(m, np.nan, "float32")
    run(mod, target, a, x, y)
    np.testing.assert_array_equal(y, [a[i] @ x[i : i + width] for i in range(m)])


@pytest.mark.parametrize("target", TARGETS)
def test_indices_of_ragged_rows_by_a_formula(target: str) -> None:
    """Of row and position, as the published buffer of indices has two dimensions."""
    indptr = np.array([0, 2, 2, 5], "int32")
    mod = lower_sparse_iter(tvm.IRModule.from_expr(scripts.csr_sum))
    mod = specialize_buffer(mod, "J_indices", lambda i, j: (i + 2 * j,))
    a, x, y = whole(5), whole((9, K)), np.full((3, K), np.nan, "float32")
    run(lower_sparse_buffer(mod), target, a, x, y, indptr, 3, 9, K, 5)
    want = [sum((a[p] * x[i + 2 * (p - indptr[i])] for p in range(indptr[i], indptr[i + 1])), np.zeros(K))
            for i in range(3)]  # fmt: skip
    np.testing.assert_array_equal(y, want)


def test_rules_that_do_not_fit_together() -> None:
    desc = ell_rule("e", M, N, 3, 2).new_format_desc
    fields: dict[str, Any] = {
        "name": "e",
        "new_format_desc": desc,
        "buffers_to_rewrite": ["A"],
        "axes_before_rewrite": ["I", "J"],
        "axes_after_rewrite": ["O", "I", "J"],
        "axis_map": {"I": ["O", "I"], "J": ["J"]},
        "idx_map": lambda i, j: (0, i, j),
        "inv_idx_map": lambda o, i, j: (i, j),
    }
    mod = tvm.IRModule.from_expr(scripts.csrmm)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"axes_after_rewrite": ["O", "I", "Q"]}, "axes_after_rewrite"),
        ({"axis_map": {"I": ["O", "Z"], "J": ["J"]}}, "axis_map leads to axes of the format"),
        ({"idx_map": lambda i: (0, i, i)}, r"idx_map takes \['I', 'J'\] and returns \['O', 'I', 'J'\]"),
        ({"inv_idx_map": lambda o, i, j: (i,)}, "inv_idx_map takes"),
        ({"buffers_to_rewrite": ["A", "B"]}, r"\['A_e'\] stand for \['A', 'B'\]"),
        ({"buffers_to_rewrite": ["Z"]}, "no buffer 'Z'"),
    ]
    for change, message in wrong:
        with pytest.raises(ValueError, match=message):
            format_decompose(mod, [FormatRewriteRule(**{**fields, **change})])
    with pytest.raises(TypeError, match="new_format_desc is a function"):
        FormatRewriteRule(**{**fields, "new_format_desc": None})
    with pytest.raises(ValueError, match="at least one rule"):
        format_decompose(mod, [])
    indptr, indices = tvm.nd.array(np.array([0, 2, 3], "int32")), tvm.nd.array(np.array([0, 1, 1], "int32"))
    for rows, parts, buckets in ((3, 1, [1]), (2, 0, [1]), (2, 1, []), (2, 1, [4, 2])):
        with pytest.raises(ValueError, match=r"offsets|parts and buckets"):
            column_part_hyb(rows, 2, indptr, indices, parts, buckets)
