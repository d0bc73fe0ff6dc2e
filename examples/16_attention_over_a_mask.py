"""Lesson 16: attention over a mask, written over axes as one function, scheduled, exported, and validated.

python examples/16_attention_over_a_mask.py [FOLDER]

The mask of a sparse transformer (Zaheer et al., NeurIPS 2020): each position attends to its neighbors and to a few
global positions. Attention scores, their softmax and the weighted sum of values are computed only for the nonzeros of
the mask. The example exports the kernel as a library to FOLDER (default: the current folder).
"""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse

import tilewright as tw
from tilewright.script import tir as T

LENGTH, WIDTH, REACH, GLOBAL = 512, 32, 8, 4


@T.prim_func
def attention(
    q: T.handle,
    k: T.handle,
    v: T.handle,
    o: T.handle,
    indptr: T.handle,
    indices: T.handle,
    n: T.int32,
    nnz: T.int32,
):
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(n)
    D = T.sp.dense_fixed(WIDTH)
    Q = T.sp.match_buffer(q, (I, D), "float32")
    K = T.sp.match_buffer(k, (J_all, D), "float32")
    V = T.sp.match_buffer(v, (J_all, D), "float32")
    O = T.sp.match_buffer(o, (I, D), "float32")
    S = T.sp.alloc_buffer((I, J), "float32")
    largest = T.sp.alloc_buffer((I,), "float32")
    total = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I], "S", "row") as [i]:
        with T.sp.iteration([J, D], "SR", "scores") as [j, d]:
            with T.init():
                S[i, j] = T.float32(0)
            S[i, j] += Q[i, d] * K[j, d]
        with T.sp.iteration([J], "R", "max") as [j]:
            with T.init():
                largest[i] = T.min_value("float32")
            largest[i] = T.max(largest[i], S[i, j])
        with T.sp.iteration([J], "S", "exp") as [j]:
            S[i, j] = T.exp((S[i, j] - largest[i]) * T.float32(WIDTH**-0.5))
        with T.sp.iteration([J], "R", "sum") as [j]:
            with T.init():
                total[i] = T.float32(0)
            total[i] += S[i, j]
        with T.sp.iteration([J, D], "RS", "values") as [j, d]:
            with T.init():
                O[i, d] = T.float32(0)
            O[i, d] += S[i, j] / total[i] * V[j, d]


def scheduled() -> tw.Schedule:
    """Rows run in parallel, with about as many elements of the mask for each thread."""
    sch = tw.Schedule(attention)
    sch.lower_sparse_iter()
    rows = sch.get_loops("row0")[0]
    sch.parallel(rows)
    sch.balance(rows, "row0", "indptr_data")
    sch.vectorize(sch.get_loops("values0")[-1])
    sch.verify()
    return sch


def mask_of(length: int) -> scipy.sparse.csr_array:
    """Return where a position attends to another one: near it, and to the first ones, which attend to all."""
    at = np.arange(length)
    near = np.abs(at[:, None] - at) <= REACH
    near[:GLOBAL] = True
    near[:, :GLOBAL] = True
    return scipy.sparse.csr_array(near.astype("float32"))


def main(folder: Path) -> None:
    mask = mask_of(LENGTH)
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((LENGTH, WIDTH)).astype("float32") for _ in range(3))
    out = np.empty_like(q)
    kernel = tw.compile(scheduled())
    kernel(q, k, v, out, mask.indptr, mask.indices, LENGTH, mask.nnz)

    scores = np.where(mask.toarray() > 0, q @ k.T / np.sqrt(WIDTH), -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed")
    else:
        given = [torch.from_numpy(each)[None] for each in (q, k, v)]
        there = torch.nn.functional.scaled_dot_product_attention(*given, attn_mask=torch.from_numpy(mask.toarray() > 0))
        np.testing.assert_allclose(out, there[0].numpy(), rtol=1e-4, atol=1e-5)
    print(f"{mask.nnz} scores instead of {LENGTH * LENGTH}, the same result")

    loaded = tw.load(kernel.export(folder, "attention").library)
    again = np.empty_like(out)
    loaded.validate(q, k, v, again, mask.indptr, mask.indices, LENGTH, mask.nnz)
    loaded(q, k, v, again, mask.indptr, mask.indices, LENGTH, mask.nnz)
    np.testing.assert_array_equal(again, out)
    damaged = mask.indices.copy()
    damaged[100] = LENGTH
    try:
        loaded.validate(q, k, v, again, mask.indptr, damaged, LENGTH, mask.nnz)
    except tw.Error as error:
        print(f"validated: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
