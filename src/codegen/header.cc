// The C header of exported kernels.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "codegen/export.h"
#include "codegen/package.h"
#include "codegen/signature.h"
#include "ir/build.h"

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
  KernelHeader(const Signature& signature, std::ostream& out) : s_(signature), out_(out) {
    for (const Signature::Param& param : s_.params) names_.push_back(unique(param.name));
    for (size_t i = 0; i < s_.symbols.size(); ++i) symbols_.push_back(symbol_name(i));
  }

  void write() {
    out_ << "/* ---- " << s_.name << " ";
    for (size_t i = s_.name.size(); i < 106; ++i) out_ << '-';
    out_ << " */\n\n/* Parameters, in order:\n *\n";
    for (size_t i = 0; i < s_.params.size(); ++i) out_ << " *   " << describe(i) << "\n";
    out_
        << " *\n * `tensors` holds the tensors and `scalars` the scalars, each in this order. A NULL context means the "
           "calling\n * thread's own. */\n";
    out_ << "int32_t " << s_.name << "(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);\n\n";
    out_ << "/* What went wrong in the calling thread's last call with a NULL context that did not return TW_OK. */\n";
    out_ << "const char* " << s_.name << "_last_error(void);\n\n";
    if (is_compact()) write_typed();
  }

 private:
  static bool is_identifier(const std::string& name) {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
  }
  /// A name that C and the code below leave free.
  std::string unique(const std::string& wanted) {
    std::string name = is_identifier(wanted) ? wanted : "arg";
    static constexpr const char* kTaken[] = {
        "tensors",  "scalars", "int",    "float",     "double",    "char",     "short",  "long",   "void",   "if",
        "else",     "for",     "while",  "do",        "return",    "const",    "static", "inline", "struct", "union",
        "enum",     "switch",  "case",   "default",   "break",     "continue", "goto",   "sizeof", "signed", "unsigned",
        "register", "extern",  "auto",   "volatile",  "typedef",   "class",    "new",    "delete", "this",   "template",
        "operator", "private", "public", "protected", "namespace", "using",    "bool",   "true",   "false",  "try",
        "catch",    "throw",   "and",    "or",        "not",       "xor"};
    if (std::find(std::begin(kTaken), std::end(kTaken), name) != std::end(kTaken)) name += "_";
    std::string candidate = name;
    for (int i = 1; std::find(used_.begin(), used_.end(), candidate) != used_.end(); ++i) {
      candidate = name + "_" + std::to_string(i);
    }
    used_.push_back(candidate);
    return candidate;
  }

  std::string symbol_name(size_t slot) {
    for (size_t i = 0; i < s_.params.size(); ++i) {
      if (s_.params[i].symbol == static_cast<int>(slot)) return names_[i];
    }
    return s_.symbols[slot].var.defined() ? unique(s_.symbols[slot].name) : "";
  }

  std::string size_text(const Signature::Dim& dim) const {
    if (dim.kind == TW_DIM_CONSTANT) return std::to_string(dim.value);
    size_t slot = static_cast<size_t>(dim.value);
    if (!symbols_[slot].empty()) return symbols_[slot];
    for (const Signature::Check& check : s_.checks) {
      if (check.slot == dim.value) return c_expression(check.value);
    }
    return "0";
  }

  std::string c_expression(const Expr& e) const {
    auto text = infix_text(e, [&](const Expr& v) -> std::string {
      for (size_t i = 0; i < s_.symbols.size(); ++i) {
        if (s_.symbols[i].var == v) return symbols_[i];
      }
      expressible_ = false;
      return "0";
    });
    expressible_ &= text.has_value();
    return text.value_or("0");
  }

  std::string describe(size_t i) const {
    const Signature::Param& param = s_.params[i];
    if (!param.buffer.defined()) return names_[i] + ": " + param.var.dtype().str();
    std::string text = names_[i] + ": " + param.buffer->dtype.str() + "[";
    for (size_t d = 0; d < param.shape.size(); ++d) text += (d ? ", " : "") + size_text(param.shape[d]);
    return text + (param.written ? "], written" : "], read");
  }

  /// Plain pointers say enough about every tensor.
  bool is_compact() const {
    bool compact = true;
    for (const Signature::Param& param : s_.params) {
      compact &= param.strides.empty() && param.elem_offset.kind == TW_DIM_CONSTANT;
      for (const Signature::Dim& dim : param.shape) size_text(dim);
    }
    return compact && expressible_;
  }

  void write_typed() {
    out_ << "/* The same for arrays that lie row-major and without gaps";
    bool has_sizes = false;
    for (size_t i = 0; i < s_.symbols.size(); ++i) has_sizes |= is_size(i);
    out_ << (has_sizes ? "; sizes follow the parameters. */\n" : ". */\n");
    out_ << "static inline int32_t " << s_.name << "_arrays(";
    std::string list;
    for (size_t i = 0; i < s_.params.size(); ++i) {
      const Signature::Param& param = s_.params[i];
      list += list.empty() ? "" : ", ";
      if (param.buffer.defined()) {
        list += std::string(param.written ? "" : "const ") + c_type(param.buffer->dtype).name + "* " + names_[i];
      } else {
        DataType type = param.var.dtype();
        bool narrow = type.is_float() && type.bits < 32;
        list += std::string(narrow ? "float" : c_type(type).name) + " " + names_[i];
      }
    }
    for (size_t i = 0; i < s_.symbols.size(); ++i) {
      if (is_size(i)) list += (list.empty() ? "" : ", ") + ("int64_t " + symbols_[i]);
    }
    out_ << (list.empty() ? "void" : list) << ") {\n";
    for (size_t i = 0; i < s_.params.size(); ++i) {
      if (s_.params[i].buffer.defined()) write_tensor(i);
    }
    write_lists();
    out_ << "}\n\n";
  }

  bool is_size(size_t slot) const {
    if (!s_.symbols[slot].var.defined()) return false;
    return std::none_of(s_.params.begin(), s_.params.end(),
                        [&](const Signature::Param& p) { return p.symbol == static_cast<int>(slot); });
  }

  void write_tensor(size_t i) {
    const Signature::Param& param = s_.params[i];
    std::string number = std::to_string(param.position);
    DLDataType type = dlpack_type(param.buffer->dtype);
    out_ << "  int64_t shape" << number << "[] = {";
    for (size_t d = 0; d < param.shape.size(); ++d) out_ << (d ? ", " : "") << size_text(param.shape[d]);
    out_ << (param.shape.empty() ? "0};\n" : "};\n");
    out_ << "  DLTensor tensor" << number << " = {(void*)" << names_[i] << ", {kDLCPU, 0}, " << param.shape.size()
         << ", {" << int{type.code} << ", " << int{type.bits} << ", " << type.lanes << "}, shape" << number
         << ", NULL, 0};\n";
  }

  void write_lists() {
    if (s_.num_tensors) {
      out_ << "  const DLTensor* tensors[] = {";
      for (int i = 0; i < s_.num_tensors; ++i) out_ << (i ? ", &tensor" : "&tensor") << i;
      out_ << "};\n";
    }
    if (s_.num_scalars) {
      out_ << "  tw_scalar scalars[" << s_.num_scalars << "];\n";
      for (size_t i = 0; i < s_.params.size(); ++i) {
        const Signature::Param& param = s_.params[i];
        if (param.buffer.defined()) continue;
        DataType type = param.var.dtype();
        out_ << "  scalars[" << param.position << "]."
             << (type.is_float()    ? "f = "
                 : type.is_handle() ? "p = "
                                    : "i = (int64_t)")
             << names_[i] << ";\n";
      }
    }
    out_ << "  return " << s_.name << "(NULL, " << (s_.num_tensors ? "tensors" : "NULL") << ", "
         << (s_.num_scalars ? "scalars" : "NULL") << ");\n";
  }

  const Signature& s_;
  std::ostream& out_;
  std::vector<std::string> used_, names_, symbols_;
  mutable bool expressible_ = true;
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
  std::string guard = "TILEWRIGHT_EXPORT_";
  for (char c : name) guard += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
  guard += "_H_";
  out << "/* Kernels of lib " << name << ", compiled by Tilewright " << TILEWRIGHT_VERSION << ". For C11 and C++.\n *\n"
      << " *   cc program.c " << name << ".so        # or " << name << ".o with libtilewright_runtime.a\n *\n"
      << " * Each kernel checks its arguments and returns TW_OK or a code of `tw_error`; KERNEL_last_error() tells "
         "what is\n"
      << " * wrong. A processor that lacks an instruction set which the kernel uses gets TW_ERROR_CPU_FEATURE. "
         "Parallel\n"
      << " * loops use one thread a core, or as many as the environment variable TILEWRIGHT_NUM_THREADS says. */\n"
      << "#ifndef " << guard << "\n#define " << guard << "\n\n"
      << abi << "\n"
      << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  for (const auto& [key, func] : lowered->functions) {
    const PrimFunc* prim = func.as<PrimFunc>();
    const NodeRef symbol = prim ? prim->attrs.get("global_symbol") : NodeRef();
    if (!symbol.is<StringImm>()) continue;
    TW_TRY(signature, signature_of(func.cast<PrimFunc>(), symbol.as<StringImm>()->value));
    KernelHeader(signature, out).write();
  }
  out << "#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return out.str();
}

}  // namespace tilewright::codegen
