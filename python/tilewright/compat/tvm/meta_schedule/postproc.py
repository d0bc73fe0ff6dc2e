"""tvm.meta_schedule.postproc."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to, supported
from tilewright.meta_schedule.postproc import (
    DisallowAsyncStridedMemCopy,
    DisallowDynamicLoop,
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
    "create",
]


def create(kind: str) -> list[_core.Postproc]:
    """Return the default postprocessors of a kind of target."""
    return _core.Postproc.defaults(supported(kind, "postproc"))


class Postproc(metaclass=Renamed):
    """A postprocessor."""

    node = _core.Postproc
    make = _core.Postproc
    create = staticmethod(create)


@delegates_to(_core.Postproc)
class PyPostproc:
    """The base of postprocessors in Python, to be decorated with derived_object."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise NotImplementedError

    def apply(self, sch: Any) -> bool:
        """Postprocess the candidate in place; return whether it is valid."""
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a copy of the postprocessor."""
        raise NotImplementedError
