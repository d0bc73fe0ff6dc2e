#include <fmt/format.h>
#include <array>

#include "codegen/c_writer/functions.h"

namespace tilewright::codegen {
namespace {

class OpenCl final : public Dialect {
 public:
  std::string_view name() const override { return "OpenCL C"; }

  std::string type(DataType type) const override {
    if (type.is_bool()) return "bool";
    if (type.is_float()) return type.bits == 64 ? "double" : "float";
    const char* name = type.bits <= 8 ? "char" : type.bits <= 16 ? "short" : type.bits <= 32 ? "int" : "long";
    return std::string(type.is_uint() ? "u" : "") + name;
  }

  std::string_view function_head() const override { return "static "; }
  std::string_view restrict_word() const override { return "restrict"; }

  std::string address_space(const std::string& scope) const override {
    if (scope.empty() || scope.starts_with("global")) return "__global ";
    if (scope.starts_with("shared")) return "__local ";
    return scope == "constant" ? "__constant " : "__private ";
  }

  bool has_addresses() const override { return false; }

  std::string kernel_head(const std::string& name, const std::vector<std::string>& parameters,
                          const std::array<int64_t, 3>& threads) const override {
    std::string attribute;
    if (threads[0] > 0 && threads[1] > 0 && threads[2] > 0) {
      attribute =
          fmt::format("__attribute__((reqd_work_group_size({}, {}, {})))\n", threads[0], threads[1], threads[2]);
    }
    return fmt::format("__kernel {}void {}({})", attribute, name, fmt::join(parameters, ", "));
  }

  std::string thread_index(const std::string& tag) const override {
    return fmt::format("(int){}({})", tag.starts_with("block") ? "get_group_id" : "get_local_id", tag.back() - 'x');
  }

  std::string barrier(bool of_global) const override {
    return of_global ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);" : "barrier(CLK_LOCAL_MEM_FENCE);";
  }

  /// Works around a defect of PoCL 3.1, which splits a kernel into regions at its barriers. If a branch contains a
  /// barrier, one region includes the end of the branch and the statements after it, and some threads read wrong
  /// elements of shared memory there (tests/sparse/test_threads_of_rows.py). A barrier at the end of the branch avoids
  /// such a region.
  bool ends_branches_with_barriers() const override { return true; }

  std::string note_failure() const override {
    return "  if (atomic_cmpxchg((volatile __global int*)error, 0, number) == 0) ((__global long*)error)[1] = value;\n";
  }

  std::string shared_array(const std::string& type, const std::string& name, int64_t count) const override {
    return fmt::format("__local {} {}[{}] __attribute__((aligned(16)));", type, name, count);
  }

  int64_t max_static_shared_bytes() const override { return INT64_MAX; }
  std::string dynamic_shared_array(const std::string&, const std::string&) const override { return ""; }

  /// Elements, not vectors, have to be aligned for vload and vstore.
  bool requires_vector_alignment() const override { return false; }
  VectorCopy vector_copy(const std::string&, int lanes, int64_t, const std::string& to,
                         const std::string& from) const override {
    return {fmt::format("vstore{0}(vload{0}(0, {1}), 0, {2})", lanes, from, to), "", ""};
  }

  std::string load_word(const std::string& pointer) const override {
    return fmt::format("as_uint(vload4(0, {}))", pointer);
  }

  /// PoCL 3.1 cuts a kernel at its loops. A private value that is set in one loop under a condition and read in another
  /// one is lost there, unless it has been set before.
  std::string_view private_initializer() const override { return " = {0}"; }

  std::string constant_array(const std::string& type, const std::string& name, int64_t count) const override {
    return fmt::format("__constant {} {}[{}]", type, name, count);
  }

  std::string math(Intrinsic intrinsic, DataType) const override { return std::string(c_math(intrinsic)); }

  std::string infinity(DataType type) const override { return type.bits == 64 ? "((double)INFINITY)" : "INFINITY"; }
  std::string nan(DataType type) const override { return type.bits == 64 ? "((double)NAN)" : "NAN"; }

  /// A choice between values of fewer than 32 bits is an int in C.
  std::string reinterpret(DataType from, DataType to, const std::string& value) const override {
    return fmt::format("as_{}(({})({}))", type(to), type(from), value);
  }

  std::string_view integer_function(const IntegerSpelling& spelling, int) const override { return spelling.opencl; }

  std::string load_half() const override {
    return "  const ushort held[1] = {bits};\n"
           "  return vload_half(0, (const half*)held);\n";
  }
  std::string store_half() const override {
    return "  ushort held[1];\n"
           "  vstore_half_rte(x, 0, (half*)held);\n"
           "  return held[0];\n";
  }

  static const char* atomic_name(Intrinsic intrinsic) {
    switch (intrinsic) {
      case Intrinsic::k_atomic_add:
        return "add";
      case Intrinsic::k_atomic_min:
        return "min";
      case Intrinsic::k_atomic_max:
        return "max";
      case Intrinsic::k_atomic_and:
        return "and";
      case Intrinsic::k_atomic_or:
        return "or";
      case Intrinsic::k_atomic_xor:
        return "xor";
      default:
        return "xchg";
    }
  }

  /// OpenCL C 1.2 has atomics of 32-bit integers. Those of 64 bits are extensions, and floats are compared and
  /// exchanged as integers.
  AtomicFunction atomic_function(Intrinsic intrinsic, DataType type, const std::string& space) const override {
    const bool adds = intrinsic == Intrinsic::k_atomic_add, exchanges = intrinsic == Intrinsic::k_atomic_exchange;
    const bool is_wide = type.bits == 64;
    const char* prefix = is_wide ? "atom" : "atomic";
    const std::string bits = this->type(DataType::uint(type.bits));
    AtomicFunction function;
    if (is_wide) {
      const std::string extension = fmt::format("cl_khr_int64_{}_atomics", adds || exchanges ? "base" : "extended");
      function.front = fmt::format(
          "#ifndef {0}\n#error \"this device has no atomics of 64 bits ({0}): use elements "
          "of 32 bits\"\n#endif\n#pragma OPENCL EXTENSION {0} : enable\n",
          extension);
    }
    if (!type.is_float()) {
      function.body = fmt::format("  return {}_{}(to, value);\n", prefix, atomic_name(intrinsic));
    } else if (exchanges) {
      function.body = fmt::format("  return as_{0}({1}_xchg((volatile {2}{3}*)to, as_{3}(value)));\n", this->type(type),
                                  prefix, space, bits);
    } else if (adds) {
      // Adding 0 to the bits loads them.
      function.body = fmt::format(
          "  volatile {0}{1}* bits = (volatile {0}{1}*)to;\n"
          "  {1} before, now = {2}_add(bits, 0);\n"
          "  do {{\n"
          "    before = now;\n"
          "    now = {2}_cmpxchg(bits, before, as_{1}(as_{3}(before) + value));\n"
          "  }} while (now != before);\n"
          "  return as_{3}(now);\n",
          space, bits, prefix, this->type(type));
    }
    return function;
  }

  std::string prelude(bool is_double) const override {
    return is_double ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "";
  }
};

}  // namespace

const Dialect& opencl_dialect() {
  static const OpenCl dialect;
  return dialect;
}

}  // namespace tilewright::codegen
