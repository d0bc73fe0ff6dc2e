#include <fmt/format.h>
#include <array>

#include "codegen/c_writer/functions.h"
#include "codegen/cuda/mma.h"
#include "codegen/cuda/wmma.h"

namespace tilewright::codegen {
namespace {

/// The text includes no headers, because NVRTC has none; float16 conversions are inline PTX.
class Cuda final : public Dialect {
 public:
  std::string_view name() const override { return "CUDA C++"; }

  std::string type(DataType type) const override {
    if (type.is_bool()) return "bool";
    if (type.is_float()) return type.bits == 64 ? "double" : "float";
    const char* name = type.bits <= 8 ? "char" : type.bits <= 16 ? "short" : type.bits <= 32 ? "int" : "long";
    if (type.is_uint()) return std::string("unsigned ") + name;
    return type.bits <= 8 ? "signed char" : name;
  }

  std::string_view function_head() const override { return "static __device__ __forceinline__ "; }
  std::string_view restrict_word() const override { return "__restrict__"; }
  std::string address_space(const std::string&) const override { return ""; }

  std::string kernel_head(const std::string& name, const std::vector<std::string>& parameters,
                          const std::array<int64_t, 3>& threads) const override {
    std::string bounds;
    if (threads[0] > 0 && threads[1] > 0 && threads[2] > 0) {
      bounds = fmt::format("__launch_bounds__({}) ", threads[0] * threads[1] * threads[2]);
    }
    return fmt::format("extern \"C\" __global__ void {}{}({})", bounds, name, fmt::join(parameters, ", "));
  }

  std::string thread_index(const std::string& tag) const override { return "(int)" + tag; }

  /// __syncthreads() also orders accesses to global memory within the block.
  std::string barrier(bool) const override { return "__syncthreads();"; }

  std::string any_of_block(const std::string& value) const override {
    return fmt::format("__syncthreads_or({})", value);
  }
  std::string note_failure() const override {
    return "  if (atomicCAS(error, 0, number) == 0) ((long*)error)[1] = value;\n";
  }

  std::string shared_array(const std::string& type, const std::string& name, int64_t count) const override {
    return fmt::format("__shared__ __align__(128) {} {}[{}];", type, name, count);
  }

  int64_t max_static_shared_bytes() const override { return 48 * 1024; }
  std::string dynamic_shared_array(const std::string& type, const std::string& name) const override {
    return fmt::format("extern __shared__ __align__(128) unsigned char tw_dynamic[];\n  {0}* {1} = ({0}*)tw_dynamic;",
                       type, name);
  }

  VectorCopy vector_copy(const std::string&, int, int64_t bytes, const std::string& to,
                         const std::string& from) const override {
    const char* vector = bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : "unsigned int";
    const std::string name = fmt::format("tw_copy_{}", bytes);
    return {fmt::format("{}({}, {})", name, to, from), name,
            fmt::format("void {0}(void* to, const void* from) {{ *({1}*)to = *(const {1}*)from; }}\n", name, vector)};
  }

  /// Not __constant__: constant memory has 64 KiB, and a warp reads one address of it at a time.
  std::string constant_array(const std::string& type, const std::string& name, int64_t count) const override {
    return fmt::format("static __device__ const {} {}[{}]", type, name, count);
  }

  std::string math(Intrinsic intrinsic, DataType type) const override {
    const std::string_view name = c_math(intrinsic);
    return std::string(name) + (name.empty() || type.bits == 64 ? "" : "f");
  }

  std::string infinity(DataType type) const override {
    return type.bits == 64 ? "__longlong_as_double(0x7FF0000000000000LL)" : "__int_as_float(0x7F800000)";
  }
  std::string nan(DataType type) const override {
    return type.bits == 64 ? "__longlong_as_double(0x7FF8000000000000LL)" : "__int_as_float(0x7FC00000)";
  }

  std::string reinterpret(DataType from, DataType to, const std::string& value) const override {
    const bool is_wide = to.bits == 64;
    if (to.is_float() && !from.is_float()) {
      return is_wide ? fmt::format("__longlong_as_double((long long)({}))", value)
                     : fmt::format("__int_as_float((int)({}))", value);
    }
    if (from.is_float() && !to.is_float()) {
      return fmt::format("(({}){}({}))", type(to), is_wide ? "__double_as_longlong" : "__float_as_int", value);
    }
    return fmt::format("(({})({}))", type(to), value);
  }

  std::string_view integer_function(const IntegerSpelling& spelling, int bits) const override {
    return bits == 64 ? spelling.cuda_64 : spelling.cuda;
  }

  std::string load_half() const override {
    return "  float x;\n"
           "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));\n"
           "  return x;\n";
  }
  std::string store_half() const override {
    return "  unsigned short bits;\n"
           "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
           "  return bits;\n";
  }

  std::pair<std::string, std::string> async_function(Intrinsic step, int64_t number) const override {
    if (step == Intrinsic::k_ptx_commit_group) {
      return {"tw_commit_group",
              "void tw_commit_group() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n"};
    }
    if (step == Intrinsic::k_ptx_wait_group) {
      const std::string name = fmt::format("tw_wait_group_{}", number);
      return {name,
              fmt::format("void {}() {{ asm volatile(\"cp.async.wait_group {};\" ::: \"memory\"); }}\n", name, number)};
    }
    if (step != Intrinsic::k_ptx_cp_async || (number != 4 && number != 8 && number != 16)) return {};
    const std::string name = fmt::format("tw_cp_async_{}", number);
    // Copies of 16 bytes bypass L1, where nothing reads them. Bytes that are not read become zeros.
    return {name,
            fmt::format("void {0}(void* to, const void* from, bool holds) {{\n"
                        "  asm volatile(\"{{ .reg .u64 s; .reg .u64 g; cvta.to.shared.u64 s, %0; \"\n"
                        "               \"cvta.to.global.u64 g, %1; cp.async.{1}.shared.global [s], [g], {2}, %2; "
                        "}}\"\n"
                        "               :: \"l\"(to), \"l\"(from), \"r\"(holds ? {2} : 0) : \"memory\");\n}}\n",
                        name, number == 16 ? "cg" : "ca", number)};
  }

  std::string shuffle(Intrinsic intrinsic, const std::vector<std::string>& arguments) const override {
    if (intrinsic == Intrinsic::k_tvm_warp_activemask) return "__activemask()";
    const char* way = intrinsic == Intrinsic::k_tvm_warp_shuffle_up     ? "_up"
                      : intrinsic == Intrinsic::k_tvm_warp_shuffle_down ? "_down"
                                                                        : "";
    return fmt::format("__shfl{}_sync({})", way, fmt::join(arguments, ", "));
  }

  static const char* atomic_name(Intrinsic intrinsic) {
    switch (intrinsic) {
      case Intrinsic::k_atomic_add:
        return "Add";
      case Intrinsic::k_atomic_min:
        return "Min";
      case Intrinsic::k_atomic_max:
        return "Max";
      case Intrinsic::k_atomic_and:
        return "And";
      case Intrinsic::k_atomic_or:
        return "Or";
      case Intrinsic::k_atomic_xor:
        return "Xor";
      default:
        return "Exch";
    }
  }

  AtomicFunction atomic_function(Intrinsic intrinsic, DataType type, const std::string&) const override {
    const bool compares = intrinsic == Intrinsic::k_atomic_min || intrinsic == Intrinsic::k_atomic_max;
    const char* step = atomic_name(intrinsic);
    if (type.is_float() && type.bits == 64 && intrinsic == Intrinsic::k_atomic_exchange) {
      return {
          "  return __longlong_as_double((long long)atomicExch((unsigned long long*)to, (unsigned long "
          "long)__double_as_longlong(value)));\n",
          ""};
    }
    // But for minima and maxima, numbers of 64 bits are unsigned alone, whose results have the same bits.
    const bool is_unsigned = type.is_uint() || (!compares && type.bits == 64);
    const std::string taken =
        type.is_float() ? this->type(type)
                        : fmt::format("{}{}", is_unsigned ? "unsigned " : "", type.bits == 64 ? "long long" : "int");
    return {fmt::format("  return ({0})atomic{1}(({2}*)to, ({2})value);\n", this->type(type), step, taken), ""};
  }

  std::string load_word(const std::string& pointer) const override {
    return fmt::format("*(const unsigned int*)({})", pointer);
  }
  std::string dot4(DataType a, DataType b) const override {
    // A sum of products of unsigned bytes is unsigned; it wraps to the same bits as a signed one.
    return fmt::format(
        "  unsigned int sum;\n"
        "  asm(\"dp4a.{0}32.{1}32 %0, %1, %2, %3;\" : \"=r\"(sum) : \"r\"(a), \"r\"(b), \"r\"((unsigned int)c));\n"
        "  return sum;\n",
        a.is_uint() ? "u" : "s", b.is_uint() ? "u" : "s");
  }

  std::pair<std::string, std::string> warp_function(const Expr& step) const override { return mma_function(step); }
  std::string_view private_array_alignment() const override { return "__align__(16) "; }

  std::string prelude(bool) const override { return ""; }

  int64_t fragment_registers(const FragmentShape& shape) const override { return wmma_registers(shape); }
  std::string fragment_type(const FragmentShape& shape) const override { return wmma_type(shape); }
  std::pair<std::string, std::string> fragment_function(const FragmentStep& step) const override {
    return wmma_function(step);
  }
};

}  // namespace

const Dialect& cuda_dialect() {
  static const Cuda dialect;
  return dialect;
}

}  // namespace tilewright::codegen
