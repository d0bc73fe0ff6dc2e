#include "codegen/cuda/mma.h"

#include <fmt/format.h>

namespace tilewright::codegen {
namespace {

std::string element_name(DataType type, bool is_tf32) {
  if (type.code == TypeCode::kBFloat) return "bf16";
  if (type.is_float()) return type.bits == 16 ? "f16" : is_tf32 ? "tf32" : "f32";
  return type.bits == 32 ? "s32" : type.is_uint() ? "u8" : "s8";
}

/// "%4, %5", `count` operands from number `first` on.
std::string numbered(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}%{}", i ? ", " : "", first + i);
  return text;
}

/// "\"r\"(a[0]), \"r\"(a[1])"
std::string bound(const std::string& constraint, const std::string& array, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}\"{}\"({}[{}])", i ? ", " : "", constraint, array, i);
  return text;
}

/// Registers of 32 bits.
int64_t words(const Registers& registers) { return registers.count * registers.dtype.bits / 32; }

std::pair<std::string, std::string> product_function(const WarpProduct& product) {
  const std::string a = element_name(product.a.dtype, product.is_tf32),
                    b = element_name(product.b.dtype, product.is_tf32);
  const std::string sums = element_name(product.sums.dtype, false);
  const bool saturates = product.is_saturating && sums == "s32";
  const std::string name =
      fmt::format("tw_mma_m16n8k{}_{}_{}_{}{}", product.k, sums, a, b, saturates ? "_satfinite" : "");
  const std::string type = sums == "f32" ? "float" : "unsigned int";
  const int64_t of_sums = words(product.sums), of_a = words(product.a), of_b = words(product.b);
  std::string text = fmt::format("void {}(void* sums, const void* a, const void* b) {{\n", name);
  text += fmt::format("  {0}* d = ({0}*)sums;\n", type);
  text += "  const unsigned int* x = (const unsigned int*)a;\n  const unsigned int* y = (const unsigned int*)b;\n";
  text += fmt::format(
      "  asm volatile(\"mma.sync.aligned.m16n8k{}.row.col{}.{}.{}.{}.{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\"\n", product.k,
      saturates ? ".satfinite" : "", sums, a, b, sums, numbered(0, of_sums), numbered(of_sums, of_a),
      numbered(of_sums + of_a, of_b), numbered(0, of_sums));
  text += fmt::format("               : {}\n               : {}, {});\n}}\n",
                      bound(sums == "f32" ? "+f" : "+r", "d", of_sums), bound("r", "x", of_a), bound("r", "y", of_b));
  return {name, text};
}

std::pair<std::string, std::string> load_function(const WarpLoad& load) {
  if (load.by_elements) return {};
  const std::string trans = load.is_transposed ? ".trans" : "";
  const std::string name = fmt::format("tw_ldmatrix_x{}{}", load.matrices, load.is_transposed ? "_trans" : "");
  std::string text = fmt::format("void {}(void* to, const void* row) {{\n", name);
  text += "  unsigned int* r = (unsigned int*)to;\n";
  text += fmt::format("  asm volatile(\"{{ .reg .u64 s; cvta.to.shared.u64 s, %{}; \"\n", load.matrices);
  text += fmt::format("               \"ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [s]; }}\"\n", load.matrices,
                      trans, numbered(0, load.matrices));
  text += fmt::format("               : {}\n               : \"l\"(row)\n               : \"memory\");\n}}\n",
                      bound("=r", "r", load.matrices));
  return {name, text};
}

}  // namespace

std::pair<std::string, std::string> mma_function(const Expr& step) {
  if (auto product = WarpProduct::of(step)) return product_function(*product);
  auto load = WarpLoad::of(step);
  return load ? load_function(*load) : std::pair<std::string, std::string>();
}

}  // namespace tilewright::codegen
