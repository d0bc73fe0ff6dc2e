#include "codegen/signature.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "codegen/in_place.h"
#include "codegen/tile_loads.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// Data pointers of buffers that the function may write: stores, and pointers that leave our sight.
std::unordered_set<NodeRef> written_pointers(const Stmt& body, const Ref<Module>& module) {
  std::unordered_set<NodeRef> written;
  std::vector<std::pair<NodeRef, NodeRef>> views;  // pairs of a view and its source; inner views come later
  auto note_pointers = [&](const NodeRef& node) {
    visit(node, [&](const Ref<Var>& v) {
      if (v.dtype().is_handle()) written.insert(v);
    });
  };
  visit(
      body, [&](const Ref<BufferStore>& store) { written.insert(store->buffer->data); },
      [&](const Ref<Call>& call, Visitor& v) {
        switch (intrinsic_of(*call)) {
          case Intrinsic::k_address_of:
            if (const BufferLoad* load = call->args[0].as<BufferLoad>()) written.insert(load->buffer->data);
            break;
          case Intrinsic::k_prefetch:
            return;
          case Intrinsic::k_tvm_access_ptr: {
            // (type, data, offset, extent, mask): bit 1 of the mask stands for writing
            auto mask = call->args.size() == 5 ? const_int(call->arg(4)) : std::nullopt;
            if (!mask || *mask & 2) note_pointers(call->args[1]);
            break;
          }
          case Intrinsic::kUnknown:
            if (const PrimFunc* kernel = launched_kernel(*call, module)) {
              const auto stored = written_pointers(kernel->body, module);
              for (size_t i = 0; i < kernel->params.size() && i < call->args.size(); ++i) {
                if (stored.contains(kernel->params[i])) note_pointers(call->args[i]);
              }
              break;
            }
            [[fallthrough]];
          case Intrinsic::k_call_extern:
            for (const NodeRef& arg : call->args) note_pointers(arg);
            break;
          default:
            break;
        }
        v.descend(call);
      },
      [&](const Ref<Block>& block) {
        for (const Ref<MatchBufferRegion>& match : block->match_buffers) {
          views.emplace_back(match->buffer->data, match->source->buffer->data);
        }
      });
  for (const auto& [view, source] : reversed(views)) {
    if (written.contains(view)) written.insert(source);
  }
  return written;
}

class SignatureBuilder {
 public:
  SignatureBuilder(const std::string& name, const Ref<Module>& module) : module_(module) { result_.name = name; }

  Status add(const Ref<PrimFunc>& func) {
    for (const Ref<Var>& v : func->params) {
      Signature::Param param;
      param.var = v;
      param.buffer = func->buffer_of(v);
      if (!param.buffer.defined()) {
        TW_RETURN_IF_ERROR(check_scalar(v));
        param.name = v->name_hint;
        param.position = result_.num_scalars++;
        if (v.dtype().is_integral() && !v.dtype().is_bool()) param.symbol = new_symbol(v, v->name_hint, v.dtype().bits);
      } else {
        param.name = param.buffer->name;
        param.position = result_.num_tensors++;
      }
      result_.params.push_back(std::move(param));
    }
    std::unordered_set<NodeRef> written = written_pointers(func->body, module_);
    std::unordered_map<NodeRef, double> loaded = bytes_of_tile_loads(func->body);
    std::unordered_set<NodeRef> in_place = parameters_in_place(func, module_);
    for (Signature::Param& param : result_.params) {
      if (!param.buffer.defined()) continue;
      const Ref<Buffer>& buffer = param.buffer;
      param.written = written.count(buffer->data) != 0;
      param.in_place = in_place.count(buffer->data) != 0;
      // 64 is the default alignment of a buffer.
      param.alignment = buffer->data_alignment == 64 ? 0 : buffer->data_alignment;
      for (size_t d : indices_of(buffer->shape)) {
        param.shape.push_back(dim(buffer->shape[d], param.position, static_cast<int>(d)));
      }
      param.strides.resize(buffer->strides.size());
      const size_t ndim = buffer->shape.size();
      for (size_t d = buffer->strides.size(); d-- > 0;) {
        param.strides[d] = dim(buffer->strides[d], param.position, static_cast<int>(ndim + d));
      }
      if (auto* tiles = find_value(loaded, buffer->data); tiles && !param.written) {
        param.aligned_copy = bytes_worth_aligning(*buffer, *tiles);
      }
      if (buffer->elem_offset.defined()) {
        param.elem_offset = dim(buffer->elem_offset, param.position, static_cast<int>(2 * ndim));
      }
    }
    return check_defined();
  }

  Signature take() { return std::move(result_); }

 private:
  static Status check_scalar(const Ref<Var>& v) {
    DataType type = v.dtype();
    if (type.is_scalar() && (type.is_integral() || type.is_float())) return Ok{};
    if (type.is_handle()) return Ok{};
    return script_error("codegen/parameter-type", "parameter '" + v->name_hint + "' is of type " + type.str(),
                        "parameters are buffers or scalars");
  }

  int new_symbol(const Ref<Var>& v, const std::string& name, int bits) {
    int slot = static_cast<int>(result_.symbols.size());
    result_.symbols.push_back({v, name, bits});
    if (v.defined()) slots_.emplace(v, slot);
    return slot;
  }

  Signature::Dim dim(const Expr& e, int tensor, int index) {
    if (auto value = const_int(e)) return {TW_DIM_CONSTANT, *value};
    if (Ref<Var> v = e.cast<Var>(); v.defined()) {
      if (auto* found = find_value(slots_, v)) return {TW_DIM_SYMBOL, *found};
      return {TW_DIM_BIND, new_symbol(v, v->name_hint, v.dtype().bits)};
    }
    int slot = new_symbol({}, "size", 64);
    auto text = infix_text(e, {[](const Expr& v) { return v.as<Var>()->name_hint; }});
    result_.checks.push_back({tensor, index, slot, e, text.value_or("its value")});
    return {TW_DIM_BIND, slot};
  }

  Status check_defined() {
    for (const Signature::Check& check : result_.checks) {
      Ref<Var> missing;
      visit(check.value, [&](const Ref<Var>& v) {
        if (!slots_.count(v)) missing = v;
      });
      if (missing.defined()) {
        return script_error(
            "codegen/unbound-size",
            "no argument determines '" + missing->name_hint + "', which a shape of '" + result_.name + "' mentions",
            "use it alone as a dimension of some parameter, or make it a scalar parameter");
      }
    }
    return Ok{};
  }

  const Ref<Module>& module_;
  Signature result_;
  std::unordered_map<NodeRef, int> slots_;
};

/// Whether index arithmetic subtracts, or has a part that may be negative.
bool may_be_negative(const Expr& e, const NamesInC& names) {
  return e.dtype().is_int() && any_node(
                                   e, [](const Ref<Sub>&) { return true; },
                                   [](const Ref<IntImm>& number) { return number->value < 0; }, names.may_be_negative);
}

}  // namespace

std::vector<int> Signature::shape_slots() const {
  std::vector<int> slots;
  for (size_t i : indices_of(symbols)) {
    bool is_scalar = false;
    for (const Param& param : params) is_scalar |= param.symbol == static_cast<int>(i);
    if (!is_scalar && symbols[i].var.defined()) slots.push_back(static_cast<int>(i));
  }
  return slots;
}

Result<Signature> signature_of(const Ref<PrimFunc>& func, const std::string& name, const Ref<Module>& module) {
  SignatureBuilder builder(name, module);
  TW_RETURN_IF_ERROR(builder.add(func));
  return builder.take();
}

std::optional<std::string> infix_text(const Expr& e, const NamesInC& names) {
  const bool exact = names.may_be_negative != nullptr;
  auto group = [&](Expr part, const std::string& text) {
    while (!exact && part.is<Cast>()) part = part.as<Cast>()->value;  // the text has none
    return part.is<Var>() || part.is<IntImm>() || part.is<Cast>() ? text : "(" + text + ")";
  };
  auto both = [&](const Expr& a, const char* sign, const Expr& b) -> std::optional<std::string> {
    auto left = infix_text(a, names), right = infix_text(b, names);
    if (!left || !right) return std::nullopt;
    return group(a, *left) + sign + group(b, *right);
  };
  // C rounds towards zero, and its remainder has the sign of the dividend. {0}: quotient or remainder of C, {1}:
  // remainder of C, {2}: divisor.
  auto rounded_down = [&](const Expr& a, const char* sign, const Expr& b, const char* by_positive,
                          const char* by_any) -> std::optional<std::string> {
    constexpr size_t kLongest = 1000;  // each such quotient doubles the text
    auto value = both(a, sign, b);
    const bool has_sign = exact && may_be_negative(b, names);
    if (!value || !exact || (!has_sign && !may_be_negative(a, names))) return value;
    if (value->size() > kLongest) return std::nullopt;
    const std::string remainder = *both(a, " % ", b), divisor = group(b, *infix_text(b, names));
    return fmt::format(fmt::runtime(has_sign ? by_any : by_positive), *value, remainder, divisor);
  };
  if (auto value = const_int(e)) return std::to_string(*value);
  if (const Add* x = e.as<Add>()) return both(x->a, " + ", x->b);
  if (const Sub* x = e.as<Sub>()) return both(x->a, " - ", x->b);
  if (const Mul* x = e.as<Mul>()) return both(x->a, " * ", x->b);
  if (const FloorDiv* x = e.as<FloorDiv>()) {
    return rounded_down(x->a, " / ", x->b, "{0} - ({1} < 0)", "{0} - ({1} != 0 && ({1} < 0) != ({2} < 0))");
  }
  if (const FloorMod* x = e.as<FloorMod>()) {
    return rounded_down(x->a, " % ", x->b, "{0} + ({1} < 0 ? {2} : 0)",
                        "{0} + ({1} != 0 && ({1} < 0) != ({2} < 0) ? {2} : 0)");
  }
  if (const Cast* x = e.as<Cast>()) {
    auto value = infix_text(x->value, names);
    if (!value || !exact || (x->value.is<Var>() && x->value.dtype().is_int())) return value;  // has 64 bits then
    return (e.dtype().bits == 64 ? "(int64_t)" : "") + group(x->value, *value);
  }
  if (e.is<Var>()) return names.name_of(e);
  return std::nullopt;
}

DLDataType dlpack_type(DataType type) {
  auto code = [&]() -> int {
    switch (type.code) {
      case TypeCode::kInt:
        return kDLInt;
      case TypeCode::kUInt:
        return type.is_bool() ? kDLBool : kDLUInt;
      case TypeCode::kFloat:
        return kDLFloat;
      case TypeCode::kHandle:
        return kDLOpaqueHandle;
      case TypeCode::kBFloat:
        return kDLBfloat;
      case TypeCode::kFloat8E4M3FN:
        return kDLFloat8_e4m3fn;
      case TypeCode::kFloat8E5M2:
        return kDLFloat8_e5m2;
      case TypeCode::kFloat4E2M1FN:
        return kDLFloat4_e2m1fn;
    }
    return kDLOpaqueHandle;
  }();
  // A bool occupies a byte, and DLPack counts its bits so.
  uint8_t bits = type.is_bool() ? 8 : type.bits;
  return {static_cast<uint8_t>(code), bits, type.lanes};
}

}  // namespace tilewright::codegen
