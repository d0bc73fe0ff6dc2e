"""Postprocessors: steps that are applied to a schedule after all its decisions."""

from __future__ import annotations

from tilewright._core import (
    DisallowAsyncStridedMemCopy,
    DisallowDynamicLoop,
    Postproc,
    RewriteCooperativeFetch,
    RewriteLayout,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
    RewriteTensorize,
    RewriteUnboundBlock,
    VerifyGPUCode,
    VerifyVTCMLimit,
)

__all__ = [
    "DisallowAsyncStridedMemCopy",
    "DisallowDynamicLoop",
    "Postproc",
    "PyPostproc",
    "RewriteCooperativeFetch",
    "RewriteLayout",
    "RewriteParallelVectorizeUnroll",
    "RewriteReductionBlock",
    "RewriteTensorize",
    "RewriteUnboundBlock",
    "VerifyGPUCode",
    "VerifyVTCMLimit",
]

PyPostproc = Postproc
