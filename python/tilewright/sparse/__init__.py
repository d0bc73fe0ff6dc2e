"""Sparse matrices: structures that are validated once, and products that are compiled for them.

>>> a = tw.sparse.from_scipy(matrix)
>>> c = tw.sparse.spmm(a, b)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.support.lazy_names import lazy
from tilewright.task.conversions import set_conversion

if TYPE_CHECKING:
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

#: public name -> the module of this package that defines it
_NAMES = {
    "ConvertedStructure": "conversion",
    "StoredAxis": "conversion",
    "StoredPart": "conversion",
    "convert_structure": "conversion",
    "DecomposedProgram": "decompose",
    "decompose_format": "decompose",
    "FormatAxis": "format_rule",
    "FormatRewriteRule": "format_rule",
    "Nonzeros": "format_rule",
    "Rows": "format_rule",
    "compressed": "format_rule",
    "dense": "format_rule",
    "varied": "format_rule",
    "Conversion": "matrix",
    "Matrix": "matrix",
    "from_scipy": "matrix",
    "from_torch": "matrix",
    "conversions": "operators",
    "prepare_spmv": "operators",
    "sddmm": "operators",
    "spmm": "operators",
    "spmv": "operators",
    "extract_preprocess": "preprocess",
    "remove_preprocess": "preprocess",
    "remove_unused_arguments": "preprocess",
    "specialize_buffer": "specialize",
    "Structure": "structure",
    "decomposition_of": "templates",
    "recorded_format": "templates",
    "template_rules": "templates",
}

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

__getattr__ = lazy(__name__, _NAMES)


def _conversions_of_formats(*args: Any) -> Any:
    from tilewright.sparse.format_step import conversions_of_step

    return conversions_of_step(*args)


set_conversion("DecomposeFormat", _conversions_of_formats)
