// Targets, and what this machine can do.
#include <fmt/format.h>

#include "python/json_text.h"
#include "python/module.h"
#include "python/node_caster.h"
#include "python/process_exit.h"
#include "runtime/device.h"
#include "runtime/roofs.h"
#include "support/host_cpu.h"
#include "target/target.h"

namespace tilewright::python {
namespace {

/// A target from its text, or from a dict as TVM writes it.
Target make_target(nb::object description) {
  std::string text;
  if (nb::isinstance<nb::dict>(description)) {
    text = json_text(description, "target/json", "a target");
  } else if (nb::isinstance<nb::str>(description)) {
    text = nb::cast<std::string>(description);
  } else if (nb::isinstance<Target>(description)) {
    return nb::cast<Target>(description);
  } else {
    throw Exception(argument_error(
        "target/json",
        fmt::format("a target is text or a dict, not a value of type {}", Py_TYPE(description.ptr())->tp_name),
        "such as \"llvm -num-cores=2\""));
  }
  return Target::parse(text).value_or_throw();
}

nb::dict measure_roofs(int threads) {
  tw_roofs roofs;
  if (gil_released([&] { return tw_measure_roofs(threads, &roofs); }) != 0)
    throw Exception(resource_error("roofs/memory", "no memory for the buffers that are read from",
                                   "free some, or raise the limit on it (ulimit -v)"));
  static constexpr const char* kLevels[TW_NUM_LEVELS] = {"baseline", "avx2", "avx512"};
  nb::dict f32, f64;
  for (int level = 0; level < TW_NUM_LEVELS; ++level) {
    if (roofs.f32_flops[level] > 0) f32[kLevels[level]] = roofs.f32_flops[level];
    if (roofs.f64_flops[level] > 0) f64[kLevels[level]] = roofs.f64_flops[level];
  }
  nb::dict result;
  result["threads"] = roofs.threads;
  result["level"] = kLevels[roofs.best_level];
  result["f32_flops"] = f32;
  result["f64_flops"] = f64;
  const std::pair<const char*, double> rates[] = {
      {"i32_add", roofs.i32_add},   {"i32_mul", roofs.i32_mul},     {"i8_dot", roofs.i8_dot},
      {"bf16_dot", roofs.bf16_dot}, {"l1_read", roofs.l1_read},     {"l2_read", roofs.l2_read},
      {"l3_read", roofs.l3_read},   {"dram_read", roofs.dram_read},
  };
  for (auto [name, rate] : rates) result[name] = rate;
  return result;
}

nb::dict host_cpu() {
  const tw_host_cpu& cpu = *tw_host_cpu_info();
  nb::dict result;
  result["vendor"] = cpu.vendor;
  result["brand"] = cpu.brand;
  result["family"] = cpu.family;
  result["model"] = cpu.model;
  result["processors"] = tw_count_processors();
  result["cores"] = tw_count_cores();
  return result;
}

constexpr const char* kTargetDoc =
    "What a program is compiled for: \"native\", \"interpreter\", or as TVM writes it, \"llvm -mcpu=znver3 "
    "-num-cores=2\",\n"
    "\"cuda -arch=sm_80\", a tag such as \"nvidia/nvidia-a100\", or a mapping of options. Those of llvm: mcpu, mattr, "
    "num-cores,\n"
    "vector-width, l1-bytes, l2-bytes, l3-bytes. Omitted fields follow from the processor's name and from this "
    "machine.\n"
    "A mapping may have a host. str() gives the shortest text with the same meaning here.";

}  // namespace

void bind_machine(nb::module_& m) {
  nb::class_<Target>(m, "Target", kTargetDoc)
      .def(
          "__init__", [](Target* self, nb::object description) { new (self) Target(make_target(description)); },
          "description"_a = "native",
          nb::sig("def __init__(self, description: str | dict[str, Any] | Target = \"native\") -> None"))
      .def_prop_ro(
          "kind", [](const Target& t) { return std::string(t.kind_name()); },
          "Name of the target kind, such as \"llvm\".")
      .def_prop_ro("keys", &Target::keys, "Families of the target, the most specific first.")
      .def_prop_ro(
          "host", [](const Target& t) { return t.launcher ? std::optional(*t.launcher) : std::nullopt; },
          "The target of the code that launches kernels; None if unset.")
      .def("with_host", &Target::with_host, "host"_a,
           "Return a copy whose kernels are launched from `host`, which must be a CPU target.")
      .def_ro("cpu", &Target::cpu, "LLVM's name of the processor.")
      .def_prop_ro("features", &Target::feature_names,
                   "Instruction sets that compiled code may use, in LLVM's spelling.")
      .def_ro("vector_bits", &Target::vector_bits, "Width of the vector registers in use.")
      .def_ro("vector_registers", &Target::vector_registers, "Number of vector registers.")
      .def_ro("num_cores", &Target::num_cores, "Threads of a parallel loop.")
      .def_ro("l1_bytes", &Target::l1_bytes, "Bytes of the L1 data cache of one core.")
      .def_ro("l2_bytes", &Target::l2_bytes, "Bytes of the L2 cache of one core.")
      .def_ro("l3_bytes", &Target::l3_bytes, "Bytes of the L3 cache that one core can use; 0: none.")
      .def_ro("max_threads_per_block", &Target::max_threads_per_block, "Threads that a block of a GPU may have.")
      .def_ro("max_shared_memory_per_block", &Target::max_shared_memory_per_block,
              "Bytes that the threads of a block may share.")
      .def("json", &Target::json, "Return the target as JSON text.")
      .def(
          "with_num_cores",
          [](const Target& t, int64_t cores) {
            if (cores < 1 || cores > 4096)
              throw Exception(argument_error(
                  "target/value", fmt::format("num_cores is {}, which is not an integer from 1 to 4096", cores),
                  "omit it to use all cores"));
            return t.with_num_cores(static_cast<int>(cores));
          },
          "cores"_a, "Return a copy with another number of cores.")
      .def("__str__", &Target::str)
      .def("__repr__", [](const Target& t) { return fmt::format("Target(\"{}\")", t.str()); })
      .def("__reduce__", [](const Target& t) { return nb::make_tuple(nb::type<Target>(), nb::make_tuple(t.json())); })
      .def("__hash__", [](const Target& t) { return static_cast<Py_hash_t>(t.hash().lo >> 1); })
      .def(
          "__eq__",
          [](const Target& t, nb::object other) {
            Target* pointer = nullptr;
            return nb::try_cast(other, pointer) && pointer && t == *pointer;
          },
          "other"_a.none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  m.def("known_cpus", &known_cpus, "Names of processors that a target may have.");
  m.def("known_target_tags", &known_target_tags, "Names of predefined targets.");
  m.def("known_target_kinds", &known_target_kinds, "Names of target kinds, such as \"llvm\".");
  m.def("host_cpu", &host_cpu,
        "What the processor of this machine calls itself, and how much of it this process may use.");
  m.def("measure_roofs", &measure_roofs, "threads"_a = 0,
        "Measures peak rates per second: floating-point operations by instruction set, integer operations, bytes read "
        "from\n"
        "each cache and from memory, with so many threads (0: one per core). Takes a few tenths of a second.");
  m.def(
      "opencl_devices",
      [] {
        std::vector<std::string> devices;
        char text[1024];
        for (int32_t i = 0; tw_opencl_describe(i, text, sizeof text); ++i) devices.emplace_back(text);
        return devices;
      },
      "Devices of OpenCL: name, version, platform and driver, on a line each; none where OpenCL is not installed.");
  m.def(
      "cuda_devices",
      [] {
        std::vector<std::string> devices;
        char text[1024];
        for (int32_t i = 0; tw_cuda_describe(i, text, sizeof text); ++i) devices.emplace_back(text);
        return devices;
      },
      "Devices of CUDA: name, compute capability and version of the driver, on a line each; none without a driver.");
  m.def(
      "opencl_limits",
      []() -> std::optional<std::pair<int64_t, int64_t>> {
        int64_t threads = 0, bytes = 0;
        if (!tw_opencl_limits(tw_opencl_default(), &threads, &bytes)) return std::nullopt;
        return std::pair(threads, bytes);
      },
      "The most threads that a block may have, and the bytes that they may share, on the device of OpenCL that kernels "
      "run on; None where there is none.");
}

}  // namespace tilewright::python
