"""Devices and arrays on them under the names of TVM."""

import numpy as np
import pytest


def test_arrays_on_devices(python):
    assert python("""
        import tilewright.compat.tvm
        import numpy as np, tvm
        from tvm.script import tir as T

        @T.prim_func
        def double(A: T.Buffer((64,)), B: T.Buffer((64,))):
            for i in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    v = T.axis.spatial(64, i)
                    B[v] = A[v] * T.float32(2)

        built = tvm.build(double, target="opencl")
        dev = tvm.opencl()
        a, b = tvm.nd.array(np.arange(64, dtype="float32"), dev), tvm.nd.empty((64,), "float32", dev)
        built(a, b)
        dev.sync()
        print(type(a).__mro__[2].__name__, b.device, b.dtype, b.shape, tvm.runtime.enabled("opencl"))
        print((b.asnumpy() == 2 * a.numpy()).all(), (b.copyto(tvm.cpu()) == 2 * a.numpy()).all(), b.copyto(dev).device)
        (module,) = built.imported_modules
        print(module.type_key, "__kernel" in module.get_source())
        times = built.time_evaluator("double", tvm.device("opencl", 0), number=2, repeat=2)(a, b)
        print(len(times.results), tvm.device("opencl").device_name == tvm.opencl(0).device_name != None)

        @T.prim_func
        def half(A: T.Buffer((64,))):
            for i in range(64):
                A[i] = A[i] / T.float32(2)

        print(tvm.build(half, target="llvm").imported_modules)
    """) == [
        "DeviceArrayBase opencl(0) float32 (64,) True",
        "True True opencl(0)",
        "opencl True",
        "2 True",
        "[]",
    ]


def test_tests_for_devices_run_where_these_are(monkeypatch):
    import tvm.testing

    from tilewright.compat.tvm.runtime.devices import Device

    def body():
        """A test."""

    def skips(mark):
        return [each.args[0] for each in mark.marks()]

    monkeypatch.setattr(Device, "exist", property(lambda device: device.kind == "cpu"))
    assert [target for target, _ in tvm.testing.enabled_targets()] == ["llvm"]
    assert skips(tvm.testing.requires_cuda) == skips(tvm.testing.requires_gpu) == [True]
    monkeypatch.setattr(Device, "exist", property(lambda device: True))
    assert [(target, str(dev)) for target, dev in tvm.testing.enabled_targets()] == [
        ("llvm", "cpu(0)"),
        ("cuda", "cuda(0)"),
    ]
    assert tvm.testing.device_enabled(tvm.target.Target("cuda -arch=sm_80")) and not tvm.testing.device_enabled("rocm")
    assert skips(tvm.testing.requires_cuda) == [False]
    assert tvm.testing.requires_cuda(body) is body


def test_names_and_numbers_of_devices():
    import tvm

    assert [str(tvm.device(*args)) for args in ((1,), (2, 3), ("cuda:1",), ("llvm -mcpu=haswell",))] == [
        *("cpu(0)", "cuda(3)", "cuda(1)", "cpu(0)")
    ]
    for args in ((99,), ("nobody",), ("cpu", "a")):
        with pytest.raises(ValueError, match="device"):
            tvm.device(*args)
    assert str(tvm.nd.device("cpu")) == str(tvm.nd.cpu()) == str(tvm.runtime.ndarray.cpu())


def test_arrays_of_other_libraries_and_types():
    import tvm

    given = np.arange(3)
    view = tvm.nd.from_dlpack(given)
    given[0] = 7
    assert isinstance(view, tvm.nd.NDArray) and list(view) == [7, 1, 2]
    assert tvm.nd.empty((2,), "bfloat16").dtype.name == "bfloat16" and tvm.nd.empty([2, 3]).shape == (2, 3)
    assert "dltensor" in repr(view.to_dlpack())
    assert tvm.nd.array([1, 2], tvm.cpu(), None).copyto(tvm.cpu(), mem_scope="global").sum() == 3
    with pytest.raises(ValueError, match=r"'global\.texture'"):
        tvm.nd.empty((2,), mem_scope="global.texture")
    with pytest.raises(AttributeError, match="__dlpack__"):
        tvm.nd.from_dlpack([1, 2])
