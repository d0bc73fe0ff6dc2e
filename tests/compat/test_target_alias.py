"""tvm.target: targets as TVM's programs write and read them.."""

import pytest
import tvm
from tvm.target import Target


def test_a_processor():
    target = Target("llvm -mcpu=haswell -num-cores=3")
    assert (target.kind.name, target.keys, target.host) == ("llvm", ["cpu"], None)
    assert target.attrs["mcpu"] == "haswell"
    assert target.attrs["num-cores"] == 3
    assert target == Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 3}) == Target(target)
    assert Target(target.export()) == target


def test_keys():
    target = Target("llvm -keys=arm_cpu,cpu -mcpu=haswell")
    assert target.keys == target.export()["keys"] == ["arm_cpu", "cpu"]
    assert "keys" not in target.attrs and Target(target.export()) == target


def test_hosts():
    cuda, cpu = Target("cuda -arch=sm_80"), Target("llvm -mcpu=haswell -num-cores=2")
    assert cuda.host is None
    for launched in (
        Target("cuda -arch=sm_80", "llvm -mcpu=haswell -num-cores=2"),
        Target(cuda, cpu),
        Target({"kind": "cuda", "arch": "sm_80"}, host={"kind": "llvm", "mcpu": "haswell", "num-cores": 2}),
        Target({"kind": "cuda", "arch": "sm_80", "host": cpu.export()}),
        cuda.with_host(cpu),
    ):
        assert launched.host == cpu
        assert launched.attrs == cuda.attrs
        assert Target(launched.export()) == launched
    with pytest.raises(tvm.TVMError, match="cannot be a host"):
        Target(cpu, cuda)


def test_tags_and_kinds():
    gpu = Target("nvidia/nvidia-a100")
    assert (gpu.kind.name, gpu.keys) == ("cuda", ["cuda", "gpu"])
    assert gpu.attrs["arch"] == "sm_80"
    assert gpu.attrs["max_threads_per_block"] == 1024
    assert any(tag.endswith("rtx-3090") for tag in Target.list_tags())
    assert "cuda" in Target.list_kinds()
    with pytest.raises(tvm.TVMError, match="nvidia/nvidia-a100"):
        Target("NVIDIA/Voodoo-2")


def test_the_current_target():
    assert Target.current() is None
    with pytest.raises(ValueError, match="no current target"):
        Target.current(allow_none=False)
    with Target("llvm") as outer:
        with Target("cuda") as inner:
            assert Target.current() == inner
        assert Target.current() == outer
    assert Target.current() is None


def test_options_that_are_not_said():
    target = Target("llvm")
    assert (target.arch, target.libs, target.mattr, target.model, target.vtcm_capacity) == ("", [], [], "unknown", 0)
    with pytest.raises(AttributeError, match="has no nobody"):
        _ = target.nobody
    assert [Target(kind).get_target_device_type() for kind in ("llvm", "cuda", "opencl")] == [1, 2, 4]
    sums = [
        Target(f"cuda -arch={arch}").supports_integer_dot_product for arch in ("sm_60", "sm_61", "sm_90a", "sm_100f")
    ]
    assert sums == [False, True, True, True]


def test_targets_of_whatever_is_given():
    cuda = tvm.target.cuda(arch="sm_80", options="-max_threads_per_block=512")
    assert (cuda.arch, cuda.max_threads_per_block) == ("sm_80", 512)
    assert Target.canon_target(cuda) is cuda and Target.canon_target(None) is None
    launched, host = Target.canon_target_and_host("cuda", "llvm")
    assert launched.host == host == tvm.target.create("llvm")
    assert Target.canon_target_and_host(None) == (None, None)
    with Target("llvm") as outer:
        assert Target.target_or_current(None) is outer
        assert Target.target_or_current("c").kind.name == "c"
    with pytest.raises(ValueError, match="no current target"):
        Target.target_or_current(None)
    assert Target.from_device("cpu").kind.name == "llvm"
