"""Targets as Python sees them, and what the machine is found to offer."""

import os
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T


def test_text_dict_and_target_agree():
    text = tw.Target("llvm -mcpu=skylake-avx512 -num-cores=4 -mattr=-avx512bw")
    same = tw.Target({"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4, "mattr": ["-avx512bw"]})
    assert text == same == tw.Target(text) == tw.Target(str(text)) == tw.Target(text.json())
    assert hash(text) == hash(same)
    assert repr(text) == f'Target("{text}")'
    assert (text.kind, text.cpu, text.num_cores) == ("llvm", "skylake-avx512", 4)
    assert (text.vector_bits, text.vector_registers) == (512, 32)
    assert "avx512f" in text.features
    assert "avx512bw" not in text.features


def test_differences():
    base = tw.Target("llvm -mcpu=haswell -num-cores=2")
    assert base != tw.Target("llvm -mcpu=haswell -num-cores=3")
    assert base.with_num_cores(3) == tw.Target("llvm -mcpu=haswell -num-cores=3")
    assert base != "llvm -mcpu=haswell -num-cores=2"
    assert base != None  # noqa: E711
    assert tw.Target("interpreter").kind == "interpreter"


def test_keys():
    arm = tw.Target("llvm -keys=arm_cpu,cpu -mcpu=haswell")
    assert arm.keys == ["arm_cpu", "cpu"] and tw.Target("llvm -mcpu=haswell").keys == ["cpu"]
    assert tw.Target(str(arm)) == arm == tw.Target(arm.json()) != tw.Target("llvm -mcpu=haswell")
    assert tw.Target({"kind": "llvm", "mcpu": "haswell", "keys": ["arm_cpu"]}) == arm


def test_hosts():
    gpu = tw.Target("nvidia/nvidia-a100")
    assert (gpu.kind, gpu.keys, gpu.host) == ("cuda", ["cuda", "gpu"], None)
    launched = gpu.with_host(tw.Target("llvm -mcpu=haswell -num-cores=2"))
    assert launched.host.cpu == "haswell"
    assert launched == tw.Target(str(launched)) == tw.Target(launched.json()) != gpu


@pytest.mark.parametrize(
    "text",
    [
        "llvm -mcpu=x86-64 -mattr=+avx512f,-evex512",
        "llvm -mcpu=skylake-avx512 -mattr=+avx512vnni,-evex512",
        "llvm -mcpu=skylake-avx512 -mattr=-evex512,-avx512bw",
        "llvm -mcpu=znver4 -mattr=-avx512f,+avx512vnni",
    ],
)
def test_short_vectors_of_avx512_stay_short(text):
    target = tw.Target(text)
    assert target.vector_bits == (512 if "evex512" in target.features else 256)
    assert target == tw.Target(str(target)) == tw.Target(target.json())


def test_a_host_has_no_host():
    inner = {"kind": "llvm", "host": "llvm"}
    deep = '{"kind":"llvm","host":' * 50_000 + '{"kind":"llvm"}' + "}" * 50_000
    for launched in ({"kind": "cuda", "host": inner}, deep):
        with pytest.raises(tw.ArgumentError) as error:
            tw.Target(launched)
        assert error.value.code == "target/host"
    with pytest.raises(tw.ArgumentError) as error:
        tw.Target("cuda").with_host(tw.Target(inner))
    assert error.value.code == "target/host"


def test_kinds_without_code():
    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)

    for kind in ("hexagon", "c"):
        with pytest.raises(tw.ArgumentError) as error:
            tw.compile(fill, kind)
        assert error.value.code == "target/no-code"


def test_native_is_the_default():
    native = tw.Target()
    assert native == tw.Target("native")
    assert native.cpu in _core.known_cpus()
    assert native.num_cores == _core.host_cpu()["cores"] <= _core.host_cpu()["processors"]
    assert 0 < native.l1_bytes < native.l2_bytes


@pytest.mark.parametrize(
    ("description", "code"),
    [
        ("metal", "target/kind"),
        ("NVIDIA/Voodoo-2", "target/tag"),
        ({"kind": "llvm", "host": "cuda"}, "target/host"),
        ("llvm -color=red", "target/option"),
        ("llvm -mcpu=z80", "target/cpu"),
        ("llvm -mattr=+neon", "target/feature"),
        ("llvm -num-cores=none", "target/value"),
        ({"kind": "llvm", "device": "a,b"}, "target/value"),
        ({"kind": "hexagon", "mcpu": "hexagon v68"}, "target/value"),
        ("cuda -arch=sm_080", "target/arch"),
        ({"mcpu": "haswell"}, "target/json"),
        ({"kind": "llvm", "num-cores": 1.5}, "target/json"),
        (3, "target/json"),
    ],
)
def test_refusals(description, code):
    with pytest.raises(tw.ArgumentError) as error:
        tw.Target(description)
    assert error.value.code == code


@pytest.mark.parametrize("cores", [0, 5000])
def test_refused_numbers_of_cores(cores):
    with pytest.raises(tw.ArgumentError, match="from 1 to 4096") as error:
        tw.Target().with_num_cores(cores)
    assert error.value.code == "target/value"


def test_roofs():
    roofs = _core.measure_roofs(1)
    assert roofs["threads"] == 1
    assert roofs["level"] in roofs["f32_flops"]
    assert roofs["f32_flops"].keys() == roofs["f64_flops"].keys()
    assert all(roofs[name] > 0 for name in ("i32_add", "l1_read", "dram_read"))


def test_roofs_without_memory():
    program = """
import resource, tilewright as tw
from tilewright import _core
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), -1))
try:
    _core.measure_roofs(1)
except tw.ResourceError as error:
    print(error.code)
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("needs /proc")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "roofs/memory", run.stderr


@pytest.mark.parametrize(
    ("written", "meant"), [("zen5", "znver5"), ("Zen4", "znver4"), ("skylake512", "skylake-avx512")]
)
def test_the_processor_that_was_meant(written: str, meant: str) -> None:
    with pytest.raises(tw.ArgumentError, match=f"did you mean {meant}[?] known are native"):
        tw.Target(f"llvm -mcpu={written}")
