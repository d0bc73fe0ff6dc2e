"""Programs as users of SparseTIR's implementation write them."""

# ruff: noqa: F841 axes and buffers of formats are declared, and not used
from tvm.script import tir as T


@T.prim_func
def csrmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    num_tiles: T.int32,
    nnz: T.int32,
    cwm: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K1 = T.dense_fixed(num_tiles)
    K2 = T.dense_fixed(cwm)
    K3 = T.dense_fixed(4)
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K1, K2, K3), "float32")
    C = T.match_sparse_buffer(c, (I, K1, K2, K3), "float32")
    with T.sp_iter([I, J, K1, K2, K3], "SRSSS", "csrmm") as [i, j, k1, k2, k3]:
        with T.init():
            C[i, k1, k2, k3] = T.float32(0)
        C[i, k1, k2, k3] = C[i, k1, k2, k3] + A[i, j] * B[j, k1, k2, k3]


@T.prim_func
def csrmm_dense_iter(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (I, K), "float32")
    with T.iter([I, J_detach, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]


@T.prim_func
def segment_reduce(a: T.handle, b: T.handle, indptr: T.handle, n: T.int32, nnz: T.int32) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.dense_variable(I, (100, nnz), indptr, "int32")
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (I,), "float32")
    with T.iter([I, J], "SR", "segment_reduce") as [i, j]:
        with T.init():
            B[i] = 0.0
        B[i] = B[i] + A[i, j]


@T.prim_func
def csr_element_wise(
    a: T.handle, b: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (I, J), "float32")
    with T.iter([I, J], "SS", "csr_element_wise") as [i, j]:
        B[i, j] = A[i, j] * 2.5


@T.prim_func
def bsrmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    nb: T.int32,
    mb: T.int32,
    nnzb: T.int32,
    blk: T.int32,
    feat_size: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(nb)
    J = T.sparse_variable(I, (mb, nnzb), (indptr, indices), "int32")
    J_detach = T.dense_fixed(mb)
    BI = T.dense_fixed(blk)
    BJ = T.dense_fixed(blk)
    F = T.dense_fixed(feat_size)
    A = T.match_sparse_buffer(a, (I, J, BI, BJ), "float32")
    B = T.match_sparse_buffer(b, (J_detach, BJ, F), "float32")
    C = T.match_sparse_buffer(c, (I, BI, F), "float32")
    with T.iter([I, BI, BJ, F, J], "SSRSR", "bsrmm") as [i, bi, bj, f, j]:
        with T.init():
            C[i, bi, f] = 0.0
        C[i, bi, f] = C[i, bi, f] + A[i, j, bi, bj] * B[j, bj, f]


@T.prim_func
def ellmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indices: T.handle,
    nb: T.int32,
    mb: T.int32,
    feat_size: T.int32,
    nnz_cols: T.int32,
    blk: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(nb)
    J = T.sparse_fixed(I, (mb, nnz_cols), indices, "int32")
    J_detach = T.dense_fixed(mb)
    F = T.dense_fixed(feat_size)
    BI = T.dense_fixed(blk)
    BJ = T.dense_fixed(blk)
    A = T.match_sparse_buffer(a, (I, J, BI, BJ), "float32")
    B = T.match_sparse_buffer(b, (J_detach, BJ, F), "float32")
    C = T.match_sparse_buffer(c, (I, BI, F), "float32")
    with T.iter([I, J, BI, BJ, F], "SRSRS", "ellmm") as [i, j, bi, bj, f]:
        with T.init():
            C[i, bi, f] = 0.0
        C[i, bi, f] = C[i, bi, f] + A[i, j, bi, bj] * B[j, bj, f]


@T.prim_func
def batch_matmul(
    x: T.handle,
    y: T.handle,
    z: T.handle,
    indptr_i: T.handle,
    indptr_j: T.handle,
    indptr_k: T.handle,
    indptr_ij: T.handle,
    indptr_jk: T.handle,
    indptr_ik: T.handle,
    batch: T.int32,
    nnz_i: T.int32,
    nnz_j: T.int32,
    nnz_k: T.int32,
    nnz_ij: T.int32,
    nnz_jk: T.int32,
    nnz_ik: T.int32,
) -> None:
    """Rows of the three matrices of a batch are ragged: nobody proves that they are as long as loops are."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    B = T.dense_fixed(batch)
    I = T.dense_variable(B, (32768, nnz_i), indptr_i, "int32")
    J = T.dense_variable(B, (32768, nnz_j), indptr_j, "int32")
    K = T.dense_variable(B, (32768, nnz_k), indptr_k, "int32")
    IJ = T.dense_variable(I, (32768, nnz_ij), indptr_ij, "int32")
    JK = T.dense_variable(J, (32768, nnz_jk), indptr_jk, "int32")
    IK = T.dense_variable(I, (32768, nnz_ik), indptr_ik, "int32")
    X = T.match_sparse_buffer(x, (B, I, IJ), "float32")
    Y = T.match_sparse_buffer(y, (B, J, JK), "float32")
    Z = T.match_sparse_buffer(z, (B, I, IK), "float32")
    with T.iter([B, I, J, K], "SSRS", "bmm") as [b, i, j, k]:
        with T.init():
            Z[b, i, k] = 0.0
        Z[b, i, k] = Z[b, i, k] + X[b, i, j] * Y[b, j, k]


@T.prim_func
def sddmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    A = T.match_sparse_buffer(a, (I, K), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (I, J), "float32")
    with T.iter([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            C[i, j] = 0.0
        C[i, j] = C[i, j] + A[i, k] * B[j, k]


@T.prim_func
def fused_sddmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    A = T.match_sparse_buffer(a, (I, K), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (I, J), "float32")
    with T.iter([T.fuse(I, J), K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            C[i, j] = 0.0
        C[i, j] = C[i, j] + A[i, k] * B[j, k]


@T.prim_func
def fused_csr_reduce(
    a: T.handle, b: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (I,), "float32")
    with T.iter([T.fuse(I, J)], "SR", "csr_reduce") as [i, j]:
        with T.init():
            B[i] = 0.0
        B[i] = B[i] + A[i, j]


@T.prim_func
def square_sum(
    a: T.handle,
    b: T.handle,
    indptr_j: T.handle,
    indices_j: T.handle,
    indptr_k: T.handle,
    indices_k: T.handle,
    nnz_j: T.int32,
    nnz_k: T.int32,
    m: T.int32,
    n1: T.int32,
    n2: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n1, nnz_j), (indptr_j, indices_j), "int32")
    K = T.sparse_variable(J, (n2, nnz_k), (indptr_k, indices_k), "int32")
    A = T.match_sparse_buffer(a, (I, J, K), "float32")
    B = T.match_sparse_buffer(b, (I,), "float32")
    with T.iter([I, J, K], "SRR", "square_sum") as [i, j, k]:
        with T.init():
            B[i] = 0.0
        B[i] = B[i] + A[i, j, k]


@T.prim_func
def square_sum_two_k(
    a: T.handle,
    b: T.handle,
    indptr_j: T.handle,
    indices_j: T.handle,
    indptr_k0: T.handle,
    indices_k0: T.handle,
    indptr_k1: T.handle,
    indices_k1: T.handle,
    nnz_j: T.int32,
    nnz_k: T.int32,
    m: T.int32,
    n1: T.int32,
    n2: T.int32,
) -> None:
    """Elements of one structure, where another one has coordinates."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n1, nnz_j), (indptr_j, indices_j), "int32")
    K0 = T.sparse_variable(J, (n2, nnz_k), (indptr_k0, indices_k0), "int32")
    K1 = T.sparse_variable(J, (n2, nnz_k), (indptr_k1, indices_k1), "int32")
    A = T.match_sparse_buffer(a, (I, J, K0), "float32")
    B = T.match_sparse_buffer(b, (I,), "float32")
    with T.iter([I, J, K1], "SRR", "square_sum") as [i, j, k]:
        with T.init():
            B[i] = 0.0
        B[i] = B[i] + A[i, j, k]


@T.prim_func
def masked_rows(
    a: T.handle,
    b: T.handle,
    indptr_i: T.handle,
    indices_i: T.handle,
    indptr_j: T.handle,
    indices_j: T.handle,
    m: T.int32,
    n: T.int32,
    rows: T.int32,
    nnz: T.int32,
) -> None:
    """DCSR: rows that are not empty."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    O = T.dense_fixed(1)
    I = T.sparse_variable(O, (m, rows), (indptr_i, indices_i), "int32")
    J = T.sparse_variable(I, (n, nnz), (indptr_j, indices_j), "int32")
    I_detach = T.dense_fixed(m)
    A = T.match_sparse_buffer(a, (O, I, J), "float32")
    B = T.match_sparse_buffer(b, (I_detach,), "float32")
    with T.iter([O, I, J], "SSR", "masked_rows") as [o, i, j]:
        B[i] = B[i] + A[o, i, j]


@T.prim_func
def softmax(
    a: T.handle, b: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (I, J), "float32")
    TMP = T.alloc_sparse_buffer((I,), "float32")
    TMP1 = T.alloc_sparse_buffer((I,), "float32")
    with T.iter([I], "S", "sparse_softmax") as [i]:
        with T.iter([J], "R", "computer_max") as [j]:
            with T.init():
                TMP[i] = T.min_value("float32")
            TMP[i] = T.max(TMP[i], A[i, j])
        with T.iter([J], "R", "exp_and_sum") as [j]:
            with T.init():
                TMP1[i] = T.float32(0)
            TMP1[i] = TMP1[i] + T.exp(A[i, j] - TMP[i], dtype="float32")
        with T.iter([J], "S", "div") as [j]:
            B[i, j] = T.exp(A[i, j] - TMP[i], dtype="float32") / TMP1[i]


@T.prim_func
def rgcn_hetero(
    etype: T.handle,
    w: T.handle,
    x: T.handle,
    y: T.handle,
    indptr: T.handle,
    indices: T.handle,
    n: T.int32,
    r: T.int32,
    feat_size: T.int32,
    nnz: T.int32,
) -> None:
    """Each edge has a type that selects a matrix: an index that is loaded."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    R = T.dense_fixed(r)
    F_in = T.dense_fixed(feat_size)
    F_out = T.dense_fixed(feat_size)
    E = T.match_sparse_buffer(etype, (I, J), "int32")
    W = T.match_sparse_buffer(w, (R, F_out, F_in), "float32")
    X = T.match_sparse_buffer(x, (J_detach, F_in), "float32")
    Y = T.match_sparse_buffer(y, (I, F_out), "float32")
    with T.iter([I, F_out, J, F_in], "SSRR", "rgcn-forward") as [i, fo, j, fi]:
        with T.init():
            Y[i, fo] = 0.0
        Y[i, fo] = Y[i, fo] + W[E[i, j], fo, fi] * X[j, fi]


@T.prim_func
def rgms(
    w: T.handle,
    x: T.handle,
    y: T.handle,
    indptr_i: T.handle,
    indices_i: T.handle,
    indptr_j: T.handle,
    indices_j: T.handle,
    m: T.int32,
    n: T.int32,
    r: T.int32,
    feat_size: T.int32,
    nnz_i: T.int32,
    nnz_j: T.int32,
) -> None:
    """A product for each relation, added up: structures in CSF."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    R = T.dense_fixed(r)
    I = T.sparse_variable(R, (m, nnz_i), (indptr_i, indices_i), "int32")
    J = T.sparse_variable(I, (n, nnz_j), (indptr_j, indices_j), "int32")
    I_detach = T.dense_fixed(m)
    J_detach = T.dense_fixed(n)
    F_in = T.dense_fixed(feat_size)
    F_out = T.dense_fixed(feat_size)
    W = T.match_sparse_buffer(w, (R, F_in, F_out), "float32")
    X = T.match_sparse_buffer(x, (J_detach, F_in), "float32")
    Y = T.match_sparse_buffer(y, (I_detach, F_out), "float32")
    with T.iter([F_out, R, I, J, F_in], "SRSRR", "rgms") as [fo, r, i, j, fi]:
        Y[i, fo] = Y[i, fo] + X[j, fi] * W[r, fi, fo]


@T.prim_func
def rgcn_forward(
    a: T.handle, w: T.handle, x: T.handle, y: T.handle, indptr_i: T.handle, indices_i: T.handle, indptr_j: T.handle,
    indices_j: T.handle, m: T.int32, n: T.int32, num_rels: T.int32, feat_size: T.int32, nnz_i: T.int32, nnz_j: T.int32,
) -> None:  # fmt: skip
    """As rgms, with the relation as a spatial axis and an init, although relations add to the same rows."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    R = T.dense_fixed(num_rels)
    I = T.sparse_variable(R, (m, nnz_i), (indptr_i, indices_i), "int32")
    J = T.sparse_variable(I, (n, nnz_j), (indptr_j, indices_j), "int32")
    I_detach = T.dense_fixed(m)
    J_detach = T.dense_fixed(n)
    F_in = T.dense_fixed(feat_size)
    F_out = T.dense_fixed(feat_size)
    A = T.match_sparse_buffer(a, (R, I, J), "float32")
    W = T.match_sparse_buffer(w, (R, F_out, F_in), "float32")
    X = T.match_sparse_buffer(x, (J_detach, F_in), "float32")
    Y = T.match_sparse_buffer(y, (I_detach, F_out), "float32")
    with T.sp_iter([F_out, R, I, J, F_in], "SSSRR", "rgcn-forward") as [fo, r, i, j, fi]:
        with T.init():
            Y[i, fo] = 0.0
        Y[i, fo] = Y[i, fo] + A[r, i, j] * W[r, fo, fi] * X[j, fi]


@T.prim_func
def sparse_conv(
    kernel_map: T.handle,
    in_feat: T.handle,
    weight: T.handle,
    out_feat: T.handle,
    indptr: T.handle,
    out_ids: T.handle,
    m: T.int32,
    n: T.int32,
    offsets: T.int32,
    c_in: T.int32,
    c_out: T.int32,
    nnz: T.int32,
) -> None:
    """For each offset of a kernel, pairs of a voxel of the input and one of the output."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    R = T.dense_fixed(offsets)
    P = T.sparse_variable(R, (m, nnz), (indptr, out_ids), "int32")
    M = T.dense_fixed(m)
    N = T.dense_fixed(n)
    CI = T.dense_fixed(c_in)
    CO = T.dense_fixed(c_out)
    S = T.match_sparse_buffer(kernel_map, (R, P), "int32")
    X = T.match_sparse_buffer(in_feat, (N, CI), "float32")
    W = T.match_sparse_buffer(weight, (R, CI, CO), "float32")
    Y = T.match_sparse_buffer(out_feat, (M, CO), "float32")
    with T.sp_iter([R, P, CO, CI], "RRSR", "sparse_conv") as [r, p, co, ci]:
        Y[p, co] = Y[p, co] + X[S[r, p], ci] * W[r, ci, co]


@T.prim_func
def mttkrp(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    d: T.handle,
    indptr_j: T.handle,
    indices_j: T.handle,
    indptr_k: T.handle,
    indices_k: T.handle,
    m: T.int32,
    n: T.int32,
    o: T.int32,
    rank: T.int32,
    nnz_j: T.int32,
    nnz_k: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz_j), (indptr_j, indices_j), "int32")
    K = T.sparse_variable(J, (o, nnz_k), (indptr_k, indices_k), "int32")
    J_detach = T.dense_fixed(n)
    K_detach = T.dense_fixed(o)
    F = T.dense_fixed(rank)
    A = T.match_sparse_buffer(a, (I, J, K), "float32")
    B = T.match_sparse_buffer(b, (J_detach, F), "float32")
    C = T.match_sparse_buffer(c, (K_detach, F), "float32")
    D = T.match_sparse_buffer(d, (I, F), "float32")
    with T.sp_iter([I, J, K, F], "SRRS", "mttkrp") as [i, j, k, f]:
        with T.init():
            D[i, f] = 0.0
        D[i, f] = D[i, f] + A[i, j, k] * B[j, f] * C[k, f]


@T.prim_func
def two_hops(
    x: T.handle,
    y: T.handle,
    indptr: T.handle,
    indices: T.handle,
    n: T.int32,
    nnz: T.int32,
) -> None:
    """Sums over neighbors of neighbors: an attached axis stands below the coordinate of another one."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    X = T.match_sparse_buffer(x, (I,), "float32")
    Y = T.match_sparse_buffer(y, (I,), "float32")
    with T.sp_iter([I, J, T.attach(J, J)], "SRR", "two_hops") as [i, j, k]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + X[k]


@T.prim_func
def reduction_of_four_to_two(
    x: T.handle,
    y: T.handle,
    indptr_j: T.handle,
    indptr_k: T.handle,
    indptr_l: T.handle,
    n: T.int32,
    nnz_j: T.int32,
    nnz_k: T.int32,
    nnz_l: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.dense_variable(I, (32768, nnz_j), indptr_j, "int32")
    K = T.dense_variable(J, (32768, nnz_k), indptr_k, "int32")
    L = T.dense_variable(K, (32768, nnz_l), indptr_l, "int32")
    X = T.match_sparse_buffer(x, (I, J, K, L), "float32")
    Y = T.match_sparse_buffer(y, (I, J), "float32")
    with T.iter([T.fuse(I, J), K, L], "SSRR", "reduction") as [i, j, k, l]:
        with T.init():
            Y[i, j] = 0.0
        Y[i, j] = Y[i, j] + X[i, j, k, l]


@T.prim_func
def reduction_of_four_to_three(
    x: T.handle,
    y: T.handle,
    indptr_j: T.handle,
    indptr_k: T.handle,
    indptr_l: T.handle,
    n: T.int32,
    nnz_j: T.int32,
    nnz_k: T.int32,
    nnz_l: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.dense_variable(I, (32768, nnz_j), indptr_j, "int32")
    K = T.dense_variable(J, (32768, nnz_k), indptr_k, "int32")
    L = T.dense_variable(K, (32768, nnz_l), indptr_l, "int32")
    X = T.match_sparse_buffer(x, (I, J, K, L), "float32")
    Y = T.match_sparse_buffer(y, (I, J, K), "float32")
    with T.iter([T.fuse(I, J, K), L], "SSSR", "reduction") as [i, j, k, l]:
        with T.init():
            Y[i, j, k] = 0.0
        Y[i, j, k] = Y[i, j, k] + X[i, j, k, l]


@T.prim_func
def fusedmm(
    q: T.handle,
    kk: T.handle,
    v: T.handle,
    o: T.handle,
    indptr: T.handle,
    indices: T.handle,
    n: T.int32,
    d: T.int32,
    nnz: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(n)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    Jd = T.dense_fixed(n)
    D = T.dense_fixed(d)
    Q = T.match_sparse_buffer(q, [I, D], "float32")
    Kb = T.match_sparse_buffer(kk, [Jd, D], "float32")
    V = T.match_sparse_buffer(v, [Jd, D], "float32")
    O = T.match_sparse_buffer(o, [I, D], "float32")
    score = T.alloc_sparse_buffer([I, J], "float32", extra_storage=0)
    mx = T.alloc_sparse_buffer([I], "float32")
    sm = T.alloc_sparse_buffer([I], "float32")
    with T.sp_iter([I], "S", "fusedmm") as [i]:
        with T.sp_iter([J, D], "SR", "qk") as [j, d0]:
            with T.init():
                score[i, j] = 0.0
            score[i, j] = score[i, j] + Q[i, d0] * Kb[j, d0]
        with T.sp_iter([J], "R", "mx") as [j]:
            with T.init():
                mx[i] = T.min_value("float32")
            mx[i] = T.max(mx[i], score[i, j])
        with T.sp_iter([J], "R", "sm") as [j]:
            with T.init():
                sm[i] = 0.0
            sm[i] = sm[i] + T.exp(score[i, j] - mx[i], dtype="float32")
        with T.sp_iter([J, D], "RS", "out") as [j, d0]:
            with T.init():
                O[i, d0] = 0.0
            O[i, d0] = O[i, d0] + T.exp(score[i, j] - mx[i], dtype="float32") / sm[i] * V[j, d0]


@T.prim_func
def sums_of_selected_rows(
    x: T.handle, y: T.handle, si: T.handle, ip: T.handle, n: T.int32, w: T.int32, m: T.int32, z: T.int32
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    G = T.dense_fixed(m)
    R = T.dense_variable(G, (n, z), ip, "int32")
    I = T.dense_fixed(n)
    J = T.sparse_fixed(I, (m, w), si, "int32")
    X = T.match_sparse_buffer(x, (G, R), "float32")
    Y = T.match_sparse_buffer(y, (I,), "float32")
    with T.sp_iter([I, J, T.attach(R, J)], "SRR", "sums") as [i, j, r]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + X[j, r]


# ---- formats -----------------------------------------------------------------------------------------------------


@T.prim_func
def bsr(
    a: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    nnz: T.int32,
    blk: T.int32,
) -> None:
    IO = T.dense_fixed(m)
    JO = T.sparse_variable(IO, (n, nnz), (indptr, indices), "int32")
    II = T.dense_fixed(blk)
    JI = T.dense_fixed(blk)
    A = T.match_sparse_buffer(a, (IO, JO, II, JI), "float32")
    T.evaluate(0)


@T.prim_func
def ell(
    a: T.handle,
    indptr_i: T.handle,
    indices_i: T.handle,
    indices_j: T.handle,
    m: T.int32,
    n: T.int32,
    num_rows: T.int32,
    nnz_cols: T.int32,
) -> None:
    O = T.dense_fixed(1)
    I = T.sparse_variable(O, (m, num_rows), (indptr_i, indices_i), "int32")
    J = T.sparse_fixed(I, (n, nnz_cols), indices_j, "int32")
    A = T.match_sparse_buffer(a, (O, I, J), "float32")
    T.evaluate(0)


@T.prim_func
def ell_of_relations(
    a: T.handle, indptr_io: T.handle, indices_ii: T.handle, indices_j: T.handle, d0: T.int32, d1: T.int32, d2: T.int32,
    nnz: T.int32, nnz_rows: T.int32, nnz_cols: T.int32,
) -> None:  # fmt: skip
    """Groups of rows of a relation, each with as many columns."""
    R = T.dense_fixed(d0, idtype="int32")
    IO = T.dense_variable(R, (d1, nnz), indptr_io, idtype="int32")
    II = T.sparse_fixed(IO, (d2, nnz_rows), indices_ii, idtype="int32")
    J = T.sparse_fixed(II, (d2, nnz_cols), indices_j, idtype="int32")
    A = T.match_sparse_buffer(a, (R, IO, II, J), dtype="float32")
    T.evaluate(0)


@T.prim_func
def padded_csr(
    a: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    nnz_chunks: T.int32,
    pad_size: T.int32,
) -> None:
    I = T.dense_fixed(m)
    JO = T.dense_variable(I, (n, nnz_chunks), indptr, "int32")
    JI = T.sparse_fixed(JO, (n, pad_size), indices, "int32")
    A = T.match_sparse_buffer(a, (I, JO, JI), "float32")
    T.evaluate(0)


@T.prim_func
def csr_sum(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, k: T.int32,
    nnz: T.int32,
) -> None:  # fmt: skip
    """C = A B, added to what C holds: formats are composed without an init."""
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (I, K), "float32")
    with T.sp_iter([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = T.float32(0)
        C[i, k] = C[i, k] + A[i, j] * B[j, k]


@T.prim_func
def sr_bcrs(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle, mt: T.int32, n: T.int32, t: T.int32,
    g: T.int32, groups: T.int32, k: T.int32,
) -> None:  # fmt: skip
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    IO = T.dense_fixed(mt)
    JO = T.dense_variable(IO, (n, groups), indptr, "int32")
    II = T.dense_fixed(t)
    JI = T.sparse_fixed(JO, (n, g), indices, "int32", sorted=False)
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    A = T.match_sparse_buffer(a, (IO, JO, II, JI), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (IO, II, K), "float32")
    with T.sp_iter([IO, JO, II, JI, K], "SRSRS", "tcspmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = 0.0
        C[io, ii, k] = C[io, ii, k] + A[io, jo, ii, ji] * B[ji, k]


@T.prim_func
def ell3d(
    a: T.handle, w: T.handle, x: T.handle, y: T.handle, indptr: T.handle, row_indices: T.handle,
    column_indices: T.handle, r: T.int32, m: T.int32, n: T.int32, groups: T.int32, rows: T.int32, width: T.int32,
    f: T.int32,
) -> None:  # fmt: skip
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    R = T.dense_fixed(r)
    IO = T.dense_variable(R, (m, groups), indptr, "int32")
    II = T.sparse_fixed(IO, (m, rows), row_indices, "int32", sorted=False)
    J = T.sparse_fixed(II, (n, width), column_indices, "int32", sorted=False)
    I_detach = T.dense_fixed(m)
    J_detach = T.dense_fixed(n)
    F_in = T.dense_fixed(f)
    F_out = T.dense_fixed(f)
    A = T.match_sparse_buffer(a, (R, IO, II, J), "float32")
    W = T.match_sparse_buffer(w, (R, F_in, F_out), "float32")
    X = T.match_sparse_buffer(x, (J_detach, F_in), "float32")
    Y = T.match_sparse_buffer(y, (I_detach, F_out), "float32")
    with T.sp_iter([T.fuse(R, IO), II, F_out, J, F_in], "SSRSRR", "rgms") as [r, io, ii, fo, j, fi]:
        Y[ii, fo] = Y[ii, fo] + A[r, io, ii, j] * X[j, fi] * W[r, fi, fo]


@T.prim_func
def band(a: T.handle, x: T.handle, y: T.handle, indices: T.handle, m: T.int32, n: T.int32, width: T.int32) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_fixed(I, (n, width), indices, "int32")
    J_detach = T.dense_fixed(n)
    A = T.match_sparse_buffer(a, (I, J), "float32")
    X = T.match_sparse_buffer(x, (J_detach,), "float32")
    Y = T.match_sparse_buffer(y, (I,), "float32")
    with T.sp_iter([I, J], "SR", "band") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
