"""Programs over formats without a schedule: rows run in parallel where each occurs once, on a CPU and on devices."""

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from tilewright.sparse import convert_structure, decompose_format, formats

from .test_decompose import spmm

M, N = 300, 200

#: formats in whose loops over rows each row occurs once, or in one bucket alone
FORMATS = {
    "csr": formats.csr(M, N),
    "ell": formats.ell(M, N, 30),
    "bsr": formats.bsr(M, N, 4),
    "dcsr": formats.dcsr(M, N),
    "padded_csr": formats.padded_csr(M, N, 4),
    "ragged": formats.ragged(M, N),
    "hyb": formats.hyb(M, N, 1, 3, cut=False),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["native -num-cores=4", "opencl"])
def test_rows_run_in_parallel(name: str, target: str) -> None:
    rules = FORMATS[name]
    matrix = scipy.sparse.random(M, N, 0.05, "csr", dtype="float32", random_state=0)
    matrix.sort_indices()
    program = decompose_format(spmm, "A", rules)
    kernel = tw.compile(program.function, target)
    step = "sch.parallel(" if target.startswith("native") else '"blockIdx.x")'
    assert str(kernel.inspect("schedule")).count(step) == 1 + len(rules)  # with the initialization
    converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
    more = program.arguments(converted, converted.convert_values(matrix.data))
    dense, out = np.random.default_rng(0).random((N, 5), "float32"), np.full((M, 5), np.nan, "float32")
    for threads in (1, 2):
        kernel.threads = threads
        kernel(dense, out, matrix.indptr, matrix.indices, M, N, 5, matrix.nnz, *more)
        np.testing.assert_allclose(out, matrix @ dense, rtol=1e-4, atol=1e-5)
