"""Sparse matrices: structures that are validated once, and products that are compiled for them.

>>> a = tw.sparse.from_scipy(matrix)
>>> c = tw.sparse.spmm(a, b)
"""

from tilewright.sparse import format_step as _format_step
from tilewright.sparse import formats, programs
from tilewright.sparse.conversion import ConvertedStructure, StoredAxis, StoredPart, convert_structure
from tilewright.sparse.decompose import DecomposedProgram, decompose_format
from tilewright.sparse.format_rule import FormatAxis, FormatRewriteRule, Nonzeros, Rows, compressed, dense, varied
from tilewright.sparse.matrix import Conversion, Matrix, from_scipy, from_torch
from tilewright.sparse.operators import conversions, prepare_spmv, sddmm, spmm, spmv
from tilewright.sparse.preprocess import extract_preprocess, remove_preprocess, remove_unused_arguments
from tilewright.sparse.specialize import specialize_buffer
from tilewright.sparse.structure import Structure
from tilewright.sparse.templates import decomposition_of, recorded_format, template_rules

_format_step.install()

__all__ = [
    "Conversion",
    "ConvertedStructure",
    "DecomposedProgram",
    "FormatAxis",
    "FormatRewriteRule",
    "Matrix",
    "Nonzeros",
    "Rows",
    "StoredAxis",
    "StoredPart",
    "Structure",
    "compressed",
    "conversions",
    "convert_structure",
    "decompose_format",
    "decomposition_of",
    "dense",
    "extract_preprocess",
    "formats",
    "from_scipy",
    "from_torch",
    "prepare_spmv",
    "programs",
    "recorded_format",
    "remove_preprocess",
    "remove_unused_arguments",
    "sddmm",
    "specialize_buffer",
    "spmm",
    "spmv",
    "template_rules",
    "varied",
]
