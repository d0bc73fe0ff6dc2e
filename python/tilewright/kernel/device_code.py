"""Device code of kernels: finding the CUDA compiler, its reports, and the source text."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from tilewright import _core
from tilewright.errors import ArgumentError, ResourceError
from tilewright.kernel.memory_plan import memory_text
from tilewright.kernel.occupancy import occupancy

#: views of :meth:`Kernel.inspect`
View = Literal["tir", "llvm", "asm", "opencl", "cuda", "ptx", "sass", "memory", "schedule"]
#: environment variable of the core with the folder of NVRTC
NVRTC = "TILEWRIGHT_NVRTC"


def find_nvrtc(target: Any) -> None:
    """Put the folder of the package ``nvidia-cuda-nvrtc`` into the environment, for this process and its helpers.

    The environment is unchanged if the variable is set or the package is not installed. The core then searches NVRTC
    with the dynamic linker, and uses ``nvcc`` if there is none.
    """
    if target.kind != "cuda" or NVRTC in os.environ:
        return
    for package in _packages():
        for folder in (package / "cu13" / "lib", package / "cuda_nvrtc" / "lib"):
            if any(folder.glob("libnvrtc.so*")):
                os.environ[NVRTC] = str(folder)
                return


def _packages() -> Iterator[Path]:
    """Yield the folders of NVIDIA's installed packages."""
    spec = importlib.util.find_spec("nvidia")
    yield from map(Path, (spec.submodule_search_locations or ()) if spec else ())


def find_disassembler() -> str | None:
    """Return the path of ``nvdisasm``: of the package ``nvidia-cuda-nvdisasm``, or from ``PATH``, or None."""
    found = [str(path) for package in _packages() for path in package.glob("*/bin/nvdisasm")]
    return found[0] if found else shutil.which("nvdisasm")


def _sass_of_kernels(code: Any, name: str) -> str:
    """Return the disassembled machine code of the kernels of ``name``, one architecture after the other.

    Raises:
        ArgumentError: NVRTC generated no machine code.
        ResourceError: There is no ``nvdisasm``, or it fails.
    """
    cubins = [(arch, binary) for arch, binary in code.binaries if arch.startswith("sm_") and "," not in arch]
    if not cubins:
        hint = 'NVRTC makes it, of kernels for the target "cuda"'
        raise ArgumentError.of("kernel/inspect", f"kernel {name} has no machine code of a GPU", hint)
    program = find_disassembler()
    if program is None:
        hint = "pip install nvidia-cuda-nvdisasm"
        raise ResourceError.of("kernel/no-disassembler", "there is no nvdisasm, which shows machine code of GPUs", hint)
    texts = []
    for arch, binary in cubins:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(binary)
            file.flush()
            outcome = subprocess.run([program, "-c", file.name], capture_output=True, text=True)
        if outcome.returncode:
            raise ResourceError.of("kernel/no-disassembler", f"nvdisasm cannot read code for {arch}: {outcome.stderr}")
        texts.append(f"// {arch}\n{outcome.stdout}")
    return "\n".join(texts)


def report_on_kernels(report: dict[str, Any], code: Any, target: Any, module: Any, lowered: Any) -> None:
    """Add the resource usage of kernels of a device to the report of the compilation.

    ``report["kernels"]`` has an entry for each ``kernel``. For OpenCL, it has ``threads`` and ``shared_bytes`` per
    block, and ``barriers``, from the lowered program. For CUDA, it has for each ``arch`` the compiler's ``registers``
    per thread; ``spill_stores``, ``spill_loads`` and ``stack`` in bytes per thread; ``shared_bytes`` per block;
    and ``occupancy``, the fraction of a multiprocessor's warps that blocks of the kernel can fill, or None for an
    unknown architecture.
    """
    if target.kind == "opencl":
        report["kernels"] = [
            {**sizes, "kernel": _core.kernel_symbol(sizes["kernel"])} for sizes in _core.kernel_sizes(lowered)
        ]
    if target.kind == "cuda":
        report["kernels"] = _uses_of_kernels(code, lowered)
        report["notes"] += _notes_of_kernels(code, module, report["kernels"])


def _uses_of_kernels(code: Any, lowered: Any) -> list[dict[str, Any]]:
    """Return the compiler's resource report of each kernel, with dynamic shared memory and the occupancy added."""
    planned = {_core.kernel_symbol(sizes["kernel"]): sizes for sizes in _core.kernel_sizes(lowered)}
    uses = []
    for use in code.kernels:
        sizes = planned[use["kernel"]]
        # The compiler does not report shared memory that a launch allocates.
        use = {**use, "shared_bytes": max(use["shared_bytes"], sizes["shared_bytes"])}
        use["occupancy"] = occupancy(use["arch"], sizes["threads"], use["registers"], use["shared_bytes"])
        uses.append(use)
    return uses


def text_of_kernels(code: Any, target: str, name: str, what: str, lowered: Any) -> str:
    """Return the kernels of ``name`` in a language, as ``"ptx"`` or as ``"sass"``; or their ``"memory"`` table.

    Raises:
        ArgumentError: The program was compiled for another target, or there is no PTX or machine code.
        ResourceError: There is no ``nvdisasm``, or it fails.
    """
    if what == "sass":
        return _sass_of_kernels(code, name)
    if what == "ptx":
        texts = [binary for arch, binary in code.binaries if arch.startswith("compute_")]
        if texts:
            return str(texts[0].rstrip(b"\0").decode())
        hint = 'NVRTC makes it, of kernels for an architecture such as "cuda -arch=sm_80"'
        raise ArgumentError.of("kernel/inspect", f"kernel {name} has no PTX", hint)
    if what == "memory":
        if text := memory_text(lowered):
            return text
        message = f"kernel {name} is compiled for {target}, and has no kernels of a device"
        raise ArgumentError.of("kernel/inspect", message, 'compile it for "opencl" or "cuda"')
    if _core.Target(target).kind != what:
        language = "OpenCL C" if what == "opencl" else "CUDA C++"
        message = f"kernel {name} is compiled for {target}, and has no text in {language}"
        raise ArgumentError.of("kernel/inspect", message, f'compile it for "{what}"')
    return str(code.device_source)


def _notes_of_kernels(code: Any, module: Any, uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return notes: warnings of the device compiler, register spills, blocks that do not fit, or a missing compiler."""
    name = next((str(f.attrs.get("global_symbol", key)) for key, f in module.functions.items()), "")
    if not code.binaries:
        message = (
            "there is no compiler for CUDA, so the module holds only the text of its kernels: install NVRTC "
            "(pip install nvidia-cuda-nvrtc) or nvcc"
        )
        return [_core.make_note("codegen/no-device-compiler", name, message)]
    notes = [_core.make_note("codegen/device-compiler-warning", name, line.strip()) for line in code.device_warnings]
    for use in uses:
        if use["occupancy"] == 0:
            message = (
                f"no block of kernel {use['kernel']} fits on a multiprocessor of {use['arch']}: it has "
                f"{use['registers']} registers in a thread and {use['shared_bytes']} bytes of shared memory"
            )
            notes.append(_core.make_note("codegen/occupancy", name, message))
        if use["spill_stores"] or use["spill_loads"]:
            message = (
                f"a thread of kernel {use['kernel']} spills {use['spill_stores']} bytes of registers on {use['arch']}: "
                "give it smaller tiles"
            )
            notes.append(_core.make_note("codegen/spills", name, message))
    return notes
