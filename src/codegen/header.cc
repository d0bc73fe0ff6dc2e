// The C header of exported kernels.
#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <optional>
#include <sstream>

#include "codegen/c_names.h"
#include "codegen/export.h"
#include "codegen/package.h"
#include "codegen/signature.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// The C type of an element; null where C has none and the bits are passed as an integer.
struct CType {
  const char* name;
  bool is_bits;
};

CType c_type(DataType type) {
  if (type.is_bool()) return {"uint8_t", true};
  if (type.is_float() && type.bits == 64) return {"double", false};
  if (type.is_float() && type.bits == 32) return {"float", false};
  if (type.is_float()) return {type.bits == 16 ? "uint16_t" : "uint8_t", true};
  if (type.is_handle()) return {"void*", false};
  switch (type.bits) {
    case 64:
      return {type.is_int() ? "int64_t" : "uint64_t", false};
    case 32:
      return {type.is_int() ? "int32_t" : "uint32_t", false};
    case 16:
      return {type.is_int() ? "int16_t" : "uint16_t", false};
    default:
      return {type.is_int() ? "int8_t" : "uint8_t", type.bits != 8};
  }
}

/// Writes what concerns one kernel.
class KernelHeader {
 public:
  KernelHeader(const Signature& signature, std::string name, std::ostream& out)
      : s_(signature), name_(std::move(name)), out_(out) {
    used_.reserve(name_);  // the typed function calls it
    for (const Signature::Param& param : s_.params) names_.push_back(used_.take(param.name, "arg"));
    for (size_t i : indices_of(s_.symbols)) symbols_.push_back(symbol_name(i));
  }

  void write() {
    out_ << "/* ---- " << name_ << " ";
    for (size_t i = name_.size(); i < 106; ++i) out_ << '-';
    out_ << " */\n\n/* Parameters, in order:\n *\n";
    for (size_t i : indices_of(s_.params)) out_ << " *   " << describe(i) << "\n";
    out_
        << " *\n * `tensors` holds the tensors and `scalars` the scalars, each in this order. A NULL context means the "
           "calling\n * thread's own. */\n";
    out_ << "int32_t " << name_ << "(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);\n\n";
    out_ << "/* What went wrong in the calling thread's last call with a NULL context that did not return TW_OK. */\n";
    out_ << "const char* " << name_ << "_last_error(void);\n\n";
    if (is_compact()) write_typed();
  }

 private:
  std::string symbol_name(size_t slot) {
    for (size_t i : indices_of(s_.params)) {
      if (s_.params[i].symbol == static_cast<int>(slot)) return names_[i];
    }
    return s_.symbols[slot].var.defined() ? used_.take(s_.symbols[slot].name, "size") : "";
  }

  /// Returns the size as a C expression, or (`exact` off) as text for people. Nothing if C cannot compute it.
  std::optional<std::string> size_text(const Signature::Dim& dim, bool exact = true) const {
    if (dim.kind == TW_DIM_CONSTANT) return std::to_string(dim.value);
    size_t slot = static_cast<size_t>(dim.value);
    if (!symbols_[slot].empty()) return symbols_[slot];
    const auto found = find_if(s_.checks, [&](const Signature::Check& check) { return check.slot == dim.value; });
    return found == s_.checks.end() ? std::nullopt : c_expression(found->value, exact);
  }

  std::optional<size_t> slot_of(const Expr& variable) const {
    for (size_t i : indices_of(s_.symbols)) {
      if (s_.symbols[i].var == variable) return i;
    }
    return std::nullopt;
  }

  std::optional<std::string> c_expression(const Expr& e, bool exact) const {
    bool is_known = true;
    NamesInC names;
    names.name_of = [&](const Expr& v) -> std::string {
      const std::optional<size_t> slot = slot_of(v);
      is_known = is_known && slot;
      if (!slot) return "";
      // Kernels compute extents in 64 bits; sizes have them.
      const bool is_short = v.dtype().is_int() && v.dtype().bits < 64 && !is_size(*slot);
      return (exact && is_short ? "(int64_t)" : "") + symbols_[*slot];
    };
    if (exact) {
      names.may_be_negative = [&](const Ref<Var>& v) {
        const std::optional<size_t> slot = slot_of(v);
        return slot && !is_size(*slot);
      };
    }
    auto text = infix_text(e, names);
    return is_known ? text : std::nullopt;
  }

  std::string describe(size_t i) const {
    const Signature::Param& param = s_.params[i];
    if (!param.buffer.defined()) return names_[i] + ": " + param.var.dtype().str();
    std::string text = names_[i] + ": " + param.buffer->dtype.str() + "[";
    for (size_t d : indices_of(param.shape)) text += (d ? ", " : "") + size_text(param.shape[d], false).value_or("...");
    return text + (param.written ? "], written" : "], read");
  }

  /// Plain pointers say enough about every tensor.
  bool is_compact() const {
    bool compact = true;
    for (const Signature::Param& param : s_.params) {
      compact &= param.strides.empty() && param.elem_offset.kind == TW_DIM_CONSTANT && param.elem_offset.value == 0;
      for (const Signature::Dim& dim : param.shape) compact &= size_text(dim).has_value();
    }
    return compact;
  }

  void write_typed() {
    out_ << "/* The same for compact row-major arrays";
    bool has_sizes = false;
    for (size_t i : indices_of(s_.symbols)) has_sizes |= is_size(i);
    out_ << (has_sizes ? "; sizes follow the parameters. */\n" : ". */\n");
    out_ << "static inline int32_t " << name_ << "_arrays(";
    std::string list;
    for (size_t i : indices_of(s_.params)) {
      const Signature::Param& param = s_.params[i];
      list += list.empty() ? "" : ", ";
      if (param.buffer.defined()) {
        list += std::string(param.written ? "" : "const ") + c_type(param.buffer->dtype).name + "* " + names_[i];
      } else {
        DataType type = param.var.dtype();
        bool is_small = type.is_float() && type.bits < 32;
        list += std::string(is_small ? "float" : c_type(type).name) + " " + names_[i];
      }
    }
    for (size_t i : indices_of(s_.symbols)) {
      if (is_size(i)) list += (list.empty() ? "" : ", ") + ("int64_t " + symbols_[i]);
    }
    out_ << (list.empty() ? "void" : list) << ") {\n";
    for (size_t i : indices_of(s_.params)) {
      if (s_.params[i].buffer.defined()) write_tensor(i);
    }
    write_lists();
    out_ << "}\n\n";
  }

  bool is_size(size_t slot) const {
    if (!s_.symbols[slot].var.defined()) return false;
    return none_of(s_.params, [&](const Signature::Param& p) { return p.symbol == static_cast<int>(slot); });
  }

  /// Returns the extent as an element of a list of int64_t, to which C++ does not convert unsigned 64-bit numbers.
  std::string extent_text(const Signature::Dim& dim) const {
    const auto is_unsigned = [](const Signature::Symbol& symbol) {
      return symbol.var.defined() && symbol.var.dtype().is_uint() && symbol.var.dtype().bits == 64;
    };
    const std::string text = *size_text(dim);
    return dim.kind != TW_DIM_CONSTANT && any_of(s_.symbols, is_unsigned) ? "(int64_t)(" + text + ")" : text;
  }

  void write_tensor(size_t i) {
    const Signature::Param& param = s_.params[i];
    std::string number = std::to_string(param.position);
    DLDataType type = dlpack_type(param.buffer->dtype);
    out_ << "  int64_t tw_shape" << number << "[] = {";
    for (size_t d : indices_of(param.shape)) out_ << (d ? ", " : "") << extent_text(param.shape[d]);
    out_ << (param.shape.empty() ? "0};\n" : "};\n");
    out_ << "  DLTensor tw_tensor" << number << " = {(void*)" << names_[i] << ", {kDLCPU, 0}, " << param.shape.size()
         << ", {" << int{type.code} << ", " << int{type.bits} << ", " << type.lanes << "}, tw_shape" << number
         << ", NULL, 0};\n";
  }

  void write_lists() {
    if (s_.num_tensors) {
      out_ << "  const DLTensor* tw_tensors[] = {";
      for (int i = 0; i < s_.num_tensors; ++i) out_ << (i ? ", &tw_tensor" : "&tw_tensor") << i;
      out_ << "};\n";
    }
    if (s_.num_scalars) {
      out_ << "  tw_scalar tw_scalars[" << s_.num_scalars << "];\n";
      for (size_t i = 0; i < s_.params.size(); ++i) {
        const Signature::Param& param = s_.params[i];
        if (param.buffer.defined()) continue;
        DataType type = param.var.dtype();
        out_ << "  tw_scalars[" << param.position << "]."
             << (type.is_float()    ? "f = "
                 : type.is_handle() ? "p = "
                                    : "i = (int64_t)")
             << names_[i] << ";\n";
      }
    }
    out_ << "  return " << name_ << "(NULL, " << (s_.num_tensors ? "tw_tensors" : "NULL") << ", "
         << (s_.num_scalars ? "tw_scalars" : "NULL") << ");\n";
  }

  const Signature& s_;
  const std::string name_;
  std::ostream& out_;
  CNames used_;
  std::vector<std::string> names_, symbols_;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return resource_error("export/package", "'" + path + "' cannot be read",
                          "it belongs to the installed package: install Tilewright again");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Result<std::string> write_header(const Ref<Module>& lowered, const std::string& name) {
  TW_TRY(folder, package_folder());
  TW_TRY(abi, read_text(folder + "/include/runtime/abi.h"));
  std::ostringstream out;
  // Different names have different guards, so that a program may include all of their headers.
  std::string guard = "TILEWRIGHT_EXPORT_";
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) ? std::string(1, c) : c == '_' ? "__" : fmt::format("_{:02X}", byte);
  }
  guard += "_H_";
  out << "/* Kernels of lib " << name << ", compiled by Tilewright " << TILEWRIGHT_VERSION << ". For C11 and C++.\n *\n"
      << " *   cc program.c " << name << ".so        # or " << name << ".o with libtilewright_runtime.a\n *\n"
      << " * Each kernel checks its arguments and returns TW_OK or a code of `tw_error`; KERNEL_last_error() says "
         "what is\n"
      << " * wrong. A processor that lacks an instruction set which the kernel uses gets TW_ERROR_CPU_FEATURE. "
         "Parallel\n"
      << " * loops use one thread a core, or as many as the environment variable TILEWRIGHT_NUM_THREADS says. */\n"
      << "#ifndef " << guard << "\n#define " << guard << "\n\n"
      << abi << "\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  const std::map<std::string, std::string> names = c_kernel_names(lowered);
  for (const auto& [key, func] : lowered->functions) {
    const PrimFunc* prim = func.as<PrimFunc>();
    const NodeRef symbol = prim ? prim->attrs.get("global_symbol") : NodeRef();
    if (!symbol.is<StringImm>()) continue;
    TW_TRY(signature, signature_of(func.cast<PrimFunc>(), symbol.as<StringImm>()->value, lowered));
    KernelHeader(signature, names.at(signature.name), out).write();
  }
  out << "#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return out.str();
}

}  // namespace tilewright::codegen
