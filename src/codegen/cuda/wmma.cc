#include "codegen/cuda/wmma.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::codegen {
namespace {

/// The PTX name of an element type; empty if fragments do not support the type.
std::string ptx_type(DataType type) {
  if (type.is_vector()) return "";
  if (type.code == TypeCode::kBFloat) return type.bits == 16 ? "bf16" : "";
  if (type.is_float()) return type.bits == 16 ? "f16" : type.bits == 32 ? "f32" : "";
  if (type.bits == 8) return type.is_uint() ? "u8" : "s8";
  return type.is_int() && type.bits == 32 ? "s32" : "";
}

bool is_sum(const FragmentShape& shape) { return shape.operand == 'c'; }

std::string tile(const FragmentShape& shape) { return fmt::format("m{}n{}k{}", shape.m, shape.n, shape.k); }
std::string layout(bool is_col_major) { return is_col_major ? "col" : "row"; }

/// "{%0, %1, ...}": `count` operands, beginning with number `first`.
std::string braces(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}%{}", i ? ", " : "", first + i);
  return text + "}";
}

/// "\"=r\"(to[0]), ..."
std::string operands(const std::string& constraint, const std::string& array, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}\"{}\"({}[{}])", i ? ", " : "", constraint, array, i);
  return text;
}

/// The name of the function that executes an instruction.
std::string function_for(const std::string& instruction) {
  std::string name = "tw_" + instruction;
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string letter(const FragmentShape& shape) { return wmma_type(shape) == "float" ? "f" : "r"; }

std::pair<std::string, std::string> fill(const FragmentStep& step) {
  const FragmentShape& shape = step.shapes[0];
  if (!is_sum(shape)) return {};
  const std::string name = fmt::format("tw_wmma_fill_{}_{}", tile(shape), ptx_type(shape.dtype));
  // A register holds two float16 elements.
  const bool is_half = shape.dtype.is_float() && shape.dtype.bits == 16;
  const std::string from = is_half || wmma_type(shape) == "float" ? "float" : "int";
  std::string text = fmt::format("void {}({}* to, {} value) {{\n", name, wmma_type(shape), from);
  std::string filled = "value";
  if (is_half) {
    text += "  unsigned short bits;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));\n";
    filled = "bits * 0x10001u";
  }
  text +=
      fmt::format("#pragma unroll\n  for (int i = 0; i < {}; ++i) to[i] = {};\n}}\n", wmma_registers(shape), filled);
  return {name, text};
}

std::pair<std::string, std::string> load_or_store(const FragmentStep& step) {
  const FragmentShape& shape = step.shapes[0];
  const bool loads = step.intrinsic == Intrinsic::k_tvm_load_matrix_sync;
  if (!loads && !is_sum(shape)) return {};
  const int64_t count = wmma_registers(shape);
  const std::string what = fmt::format("wmma.{}.{}.sync.aligned.{}.{}.{}", loads ? "load" : "store",
                                       loads ? std::string(1, shape.operand) : "d", layout(step.is_col_major),
                                       tile(shape), ptx_type(shape.dtype));
  const std::string name = function_for(what);
  const std::string memory = fmt::format("[%{}]", loads ? count : 0);
  const std::string registers = braces(loads ? 0 : 1, count), stride = fmt::format("%{}", count + 1);
  const std::string both = loads ? registers + ", " + memory : memory + ", " + registers;
  std::string text = fmt::format("void {}({}* {}, {}void* memory, int stride) {{\n", name, wmma_type(shape),
                                 loads ? "to" : "from", loads ? "const " : "");
  text += fmt::format("  asm volatile(\"{} {}, {};\"\n", what, both, stride);
  text += loads ? fmt::format("               : {}\n               : \"l\"(memory), \"r\"(stride)\n",
                              operands("=" + letter(shape), "to", count))
                : fmt::format("               :\n               : \"l\"(memory), {}, \"r\"(stride)\n",
                              operands(letter(shape), "from", count));
  return {name, text + "               : \"memory\");\n}\n"};
}

std::pair<std::string, std::string> product(const FragmentStep& step) {
  const FragmentShape &d = step.shapes[0], &a = step.shapes[1], &b = step.shapes[2], &c = step.shapes[3];
  const bool same = tile(d) == tile(a) && tile(d) == tile(b) && tile(d) == tile(c);
  if (!same || a.operand != 'a' || b.operand != 'b' || !is_sum(d) || !is_sum(c) || a.dtype != b.dtype) return {};
  const std::string in = ptx_type(a.dtype), out = ptx_type(d.dtype), before = ptx_type(c.dtype);
  const bool of_floats = a.dtype.is_float();
  if (of_floats != d.dtype.is_float() || of_floats != c.dtype.is_float()) return {};
  // For float16 operands, PTX names only the types of the accumulators.
  const std::string types = in == "f16" ? out + "." + before : fmt::format("{}.{}.{}.{}", out, in, in, before);
  const std::string what =
      fmt::format("wmma.mma.sync.aligned.{}.{}.{}.{}", layout(a.is_col_major), layout(b.is_col_major), tile(d), types);
  const std::string name = function_for(what);
  const int64_t counts[] = {wmma_registers(d), wmma_registers(a), wmma_registers(b), wmma_registers(c)};
  std::string text = fmt::format("void {}({}* d, const unsigned int* a, const unsigned int* b, const {}* c) {{\n", name,
                                 wmma_type(d), wmma_type(c));
  text +=
      fmt::format("  asm volatile(\"{} {}, {}, {}, {};\"\n", what, braces(0, counts[0]), braces(counts[0], counts[1]),
                  braces(counts[0] + counts[1], counts[2]), braces(counts[0] + counts[1] + counts[2], counts[3]));
  text +=
      fmt::format("               : {}\n               : {}, {}, {});\n}}\n", operands("=" + letter(d), "d", counts[0]),
                  operands("r", "a", counts[1]), operands("r", "b", counts[2]), operands(letter(c), "c", counts[3]));
  return {name, text};
}

}  // namespace

int64_t wmma_registers(const FragmentShape& shape) {
  const std::string type = ptx_type(shape.dtype), size = tile(shape);
  const bool is_tall = size == "m32n8k16", is_wide = size == "m8n32k16";
  if (size != "m16n16k16" && !is_tall && !is_wide) return 0;
  if (is_sum(shape)) return type == "f16" ? 4 : type == "f32" || type == "s32" ? 8 : 0;
  if (type == "f16") return 8;  // each element is in two threads
  const int64_t elements = shape.rows() * shape.columns() / 32;
  return type == "bf16" ? elements / 2 : type == "s8" || type == "u8" ? elements / 4 : 0;
}

std::string wmma_type(const FragmentShape& shape) {
  return is_sum(shape) && shape.dtype.is_float() && shape.dtype.bits == 32 ? "float" : "unsigned int";
}

std::pair<std::string, std::string> wmma_function(const FragmentStep& step) {
  for (const FragmentShape& shape : step.shapes) {
    if (wmma_registers(shape) == 0) return {};
  }
  switch (step.intrinsic) {
    case Intrinsic::k_tvm_fill_fragment:
      return fill(step);
    case Intrinsic::k_tvm_mma_sync:
      return product(step);
    default:
      return load_or_store(step);
  }
}

}  // namespace tilewright::codegen
