"""Devices and arrays on them under the names of TVM."""


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
