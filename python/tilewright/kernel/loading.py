"""Load kernels from exported libraries and from object code, without their programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tilewright import _core
from tilewright.errors import ResourceError
from tilewright.kernel.exports import VALIDATE
from tilewright.kernel.kernel import Kernel, KernelModule, one_or_many
from tilewright.support.file_names import path_for_core
from tilewright.support.wrong_arguments import explained


@explained
def load(path: str | os.PathLike[str]) -> Kernel | KernelModule:
    """Load the kernels of a shared library that :meth:`Kernel.export` wrote, or of an object file that a builder of a
    search made (``RunnerInput.artifact_path``), for this kind of processor: one kernel, or a :class:`KernelModule` of
    several. ``kernel.strides = "copy"`` makes a kernel accept arrays that are not compact.

    Raises:
        ResourceError: The file cannot be loaded, or has no kernels, or kernels of another version.
    """
    place = os.path.abspath(path_for_core("path", path))
    if place.endswith(".o"):
        try:
            return load_object_code(Path(place).read_bytes())
        except (OSError, ResourceError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message
            hint = "give the path of an object that kernel.export() or a builder of a search wrote"
            raise ResourceError.of("library/open", f"{place} cannot be loaded: {why}", hint) from None
    return one_or_many(kernels_of_library(place))


def load_object_code(code: bytes) -> Kernel | KernelModule:
    """Return the kernels of object code, without their programs."""
    return one_or_many(kernels_of_object(code))


def kernels_of_object(code: bytes) -> dict[str, Kernel]:
    """Return the kernels of object code, by name, with their validators."""
    loaded = _core.load_object(code)
    return _with_validators({name: Kernel(loaded.callable(name), None, code) for name in loaded.names})


def kernels_of_library(path: str) -> dict[str, Kernel]:
    """Return the kernels of a library, by name, with their validators."""
    from tilewright.kernel.omitted_outputs import calls_from

    found, text = _core.load_library(path_for_core("path", path))
    calls = calls_from(text)
    return _with_validators({name: Kernel(base, None, path, calls.get(name)) for name, base in found.items()})


def _with_validators(kernels: dict[str, Kernel]) -> dict[str, Kernel]:
    """Return the kernels that are no validators of others, with their validators."""
    checks = {name: kernels[name + VALIDATE] for name in kernels if _is_validated(kernels, name)}
    for name, check in checks.items():
        kernels[name]._validator = check
    return {name: kernel for name, kernel in kernels.items() if name not in {f"{each}{VALIDATE}" for each in checks}}


def _is_validated(kernels: Mapping[str, Kernel], name: str) -> bool:
    """Whether a kernel has a validator: it takes the same arguments, writes to none, and a library stores no call
    signature of it."""
    check = kernels.get(name + VALIDATE)
    return (
        check is not None
        and check._call is None
        and not any(written for *_, written in check.parameters)
        and [each[:2] for each in check.parameters] == [each[:2] for each in kernels[name].parameters]
    )
