"""The table of tensor intrinsics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError

__all__ = ["TensorIntrin", "add_named", "all_known", "register_at_import"]


@dataclass(frozen=True)
class TensorIntrin:
    """An instruction on tensors: what it computes (desc), and how it is written (impl).

    Both are functions of the same buffers, whose body is one block without axes. ``sch.tensorize`` puts the
    implementation where a block computes the same as the description.
    """

    name: str
    desc: _core.PrimFunc
    impl: _core.PrimFunc
    #: Instruction sets that the implementation needs, by the names of targets.
    features: tuple[str, ...] = ()

    @staticmethod
    def register(
        name: str,
        desc: _core.PrimFunc,
        impl: _core.PrimFunc,
        override: bool = False,
        *,
        features: str | Iterable[str] = (),
        compact: bool = True,
    ) -> TensorIntrin:
        """Add an intrinsic to the table of this process. That desc and impl compute the same is not checked.

        >>> TensorIntrin.register("dot_4x4", desc, impl, features=["avx2"])  # doctest: +SKIP

        Args:
            name: for `tensorize`.
            desc: what it computes.
            impl: how it is written.
            override: the name may be taken; the new one replaces the old one.
            features: instruction sets that the implementation needs.
            compact: buffers that the implementation takes by pointer, without stating strides, have to be compact in
                memory; otherwise it copes with any.
        """
        features = (features,) if isinstance(features, str) else tuple(features)
        _core.register_tensor_intrin(name, desc, impl, list(features), override, compact)
        return TensorIntrin(name, desc, impl, features)

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """Return the intrinsic with this name. If there is none, return None with `allow_missing`, else raise
        ArgumentError."""
        found: Any = _core.find_tensor_intrin(name)
        if found is not None:
            return TensorIntrin(name, found[0], found[1], tuple(found[2]))
        if allow_missing:
            return None
        raise ArgumentError.of("tensor-intrin/name", f"no tensor intrinsic '{name}' is registered")

    @staticmethod
    def names() -> list[str]:
        """Return the names of all registered intrinsics."""
        names: list[str] = _core.tensor_intrin_names()
        return names


def register_at_import(
    name: str,
    desc: _core.PrimFunc,
    impl: _core.PrimFunc,
    *,
    features: Iterable[str] | None = None,
    compact: bool = True,
) -> None:
    """Add an intrinsic of this package, which needs the features of the instructions that it calls.

    A module whose import Ctrl-C has ended is imported anew, and what it had added is added once more: that changes
    nothing.
    """
    if features is None:
        features = _core.instruction_features(impl)
    try:
        TensorIntrin.register(name, desc, impl, features=features, compact=compact)
    except ArgumentError as error:
        known = TensorIntrin.get(name, allow_missing=True) if error.code == "tensor-intrin/name" else None
        if known is None or not all(map(_core.structural_equal, (known.desc, known.impl), (desc, impl))):
            raise


def add_named(
    module: dict[str, Any],
    variable: str,
    name: str,
    pair: tuple[_core.PrimFunc, _core.PrimFunc],
    ending: str = "_INTRIN",
) -> None:
    """Add an intrinsic, and its name as a public variable of the module that defines it."""
    register_at_import(name, *pair)
    module[variable + ending] = name
    module["__all__"].append(variable + ending)


def all_known(group: dict[str, str]) -> dict[str, str]:
    """Return the group of names unchanged; raise ArgumentError if one of them is not registered."""
    for name in group.values():
        TensorIntrin.get(name)
    return group
