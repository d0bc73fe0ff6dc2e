#include <fmt/format.h>
#include <array>

#include "codegen/c_writer/c_writer.h"

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

  std::string address_space(const std::string& scope) const override {
    if (scope.empty() || scope.starts_with("global")) return "__global ";
    if (scope.starts_with("shared")) return "__local ";
    return scope == "constant" ? "__constant " : "__private ";
  }

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

  std::string shared_array(const std::string& type, const std::string& name, int64_t count) const override {
    return fmt::format("__local {} {}[{}] __attribute__((aligned(16)));", type, name, count);
  }

  std::string_view math(Intrinsic intrinsic) const override {
    switch (intrinsic) {
      case Intrinsic::k_exp:
      case Intrinsic::k_exp2:
      case Intrinsic::k_exp10:
      case Intrinsic::k_expm1:
      case Intrinsic::k_log:
      case Intrinsic::k_log2:
      case Intrinsic::k_log10:
      case Intrinsic::k_log1p:
      case Intrinsic::k_sqrt:
      case Intrinsic::k_cbrt:
      case Intrinsic::k_tanh:
      case Intrinsic::k_tan:
      case Intrinsic::k_cos:
      case Intrinsic::k_cosh:
      case Intrinsic::k_sin:
      case Intrinsic::k_sinh:
      case Intrinsic::k_asin:
      case Intrinsic::k_acos:
      case Intrinsic::k_atan:
      case Intrinsic::k_asinh:
      case Intrinsic::k_acosh:
      case Intrinsic::k_atanh:
      case Intrinsic::k_erf:
      case Intrinsic::k_floor:
      case Intrinsic::k_ceil:
      case Intrinsic::k_round:
      case Intrinsic::k_trunc:
      case Intrinsic::k_fabs:
      case Intrinsic::k_atan2:
      case Intrinsic::k_copysign:
      case Intrinsic::k_fmod:
      case Intrinsic::k_hypot:
      case Intrinsic::k_nextafter:
      case Intrinsic::k_pow:
      case Intrinsic::k_fma:
        return intrinsic_row(intrinsic).name;
      case Intrinsic::k_nearbyint:
        return "rint";
      default:
        return "";
    }
  }

  std::string reinterpret(DataType to, const std::string& value) const override {
    return fmt::format("as_{}({})", type(to), value);
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
