// How buffers are declared: T.Buffer, T.match_buffer, T.alloc_buffer, T.decl_buffer.
#include <algorithm>

#include "ir/build.h"
#include "ir/substitute.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

DataType index_dtype(const Buffer& buffer) {
  return buffer.shape.empty() ? DataType::int_(32) : buffer.shape[0].dtype();
}

/// The offset that a script means when it gives none.
bool has_default_offset(const Buffer& buffer) {
  const IntImm* offset = buffer.elem_offset.as<IntImm>();
  return !buffer.elem_offset.defined() ||
         (offset && offset->value == 0 && offset->dtype == index_dtype(buffer) && buffer.offset_factor == 1);
}

int count_uses(const Buffer& buffer, const NodeRef& var) {
  int uses = 0;
  auto in = [&](const Expr& e) { uses += e.defined() && uses_var(e, var); };
  std::ranges::for_each(buffer.shape, in);
  std::ranges::for_each(buffer.strides, in);
  in(buffer.elem_offset);
  return uses;
}

}  // namespace

bool Printer::has_default_data(const Buffer& buffer) {
  const PointerType* pointer = buffer.data->type_annotation.as<PointerType>();
  const PrimType* element = pointer ? pointer->element_type.as<PrimType>() : nullptr;
  DataType expected = buffer.dtype.is_bool() ? DataType::int_(8) : buffer.dtype;
  return element && element->dtype == expected && !pointer->storage_scope.empty() && !buffer.data->is_size;
}

bool Printer::is_simple(const Buffer& buffer) {
  return all_of(buffer.shape, [](const Expr& e) { return e.is<IntImm>(); }) && buffer.strides.empty() &&
         has_default_offset(buffer) && buffer.scope() == "global" && buffer.data_alignment == 64 &&
         buffer.buffer_type == BufferKind::kDefault && buffer.axis_separators.empty() && has_default_data(buffer);
}

/// Whether the variable that this stride or offset is can be defined by the call itself, as `A.strides[0]` or
/// `A.elem_offset`.
bool Printer::defines_inline(const Expr& e, const Buffer& buffer) const {
  const Var* var = e.as<Var>();
  return var && !var->is_size && is_identifier(var->name_hint) && !is_defined(e) && e.dtype() == index_dtype(buffer) &&
         count_uses(buffer, e) == 1;
}

void Printer::shape(const Buffer& buffer, BufferRole role) {
  for (const Expr& extent : buffer.shape) {
    if (role != BufferRole::kMatch) break;
    for_each_free_var(extent, [&](const Ref<Var>& var) {
      if (!is_defined(var)) declare_before_line(var);
    });
  }
  tuple(buffer.shape);
}

void Printer::strides(const Ref<Buffer>& buffer, const std::string& name, BufferRole role) {
  if (buffer->strides.empty()) return;
  text(", strides=(");
  bool first = true;
  for (size_t i : indices_of(buffer->strides)) {
    const Expr& stride = buffer->strides[i];
    if (!first) text(", ");
    first = false;
    if (role == BufferRole::kMatch && defines_inline(stride, *buffer)) {
      string_literal(stride.as<Var>()->name_hint);
      define(stride, name + ".strides[" + std::to_string(i) + "]", "", static_cast<int>(frames_.size()) - 1);
      continue;
    }
    if (role == BufferRole::kMatch) {
      for_each_free_var(stride, [&](const Ref<Var>& var) {
        if (!is_defined(var)) declare_before_line(var);
      });
    }
    expr(stride);
  }
  text(buffer->strides.size() == 1 ? ",)" : ")");
}

void Printer::elem_offset(const Ref<Buffer>& buffer, const std::string& name, BufferRole role) {
  bool print_factor = buffer->offset_factor != 1;
  if (!has_default_offset(*buffer)) {
    if (role == BufferRole::kMatch && defines_inline(buffer->elem_offset, *buffer) && buffer->offset_factor != 0) {
      define(buffer->elem_offset, name + ".elem_offset", "", static_cast<int>(frames_.size()) - 1);
      print_factor = true;
    } else {
      if (role == BufferRole::kMatch) {
        for_each_free_var(buffer->elem_offset, [&](const Ref<Var>& var) {
          if (!is_defined(var)) declare_before_line(var);
        });
      }
      text(", elem_offset=");
      expr(buffer->elem_offset);
    }
  }
  const std::string& scope = buffer->scope();
  if (scope != "global") {
    text(", scope=");
    string_literal(scope);
  }
  if (buffer->data_alignment != 64) {
    text(", align=");
    number(buffer->data_alignment);
  }
  if (print_factor) {
    text(", offset_factor=");
    number(buffer->offset_factor);
  }
}

void Printer::buffer_call(const Ref<Buffer>& buffer, const std::string& name, const BufferCall& how, bool omit_data) {
  Marking mark(*this, buffer);
  if (!buffer->axes.empty()) return sparse_buffer_call(*buffer, how);
  // A pointer of an unusual type cannot come from the call.
  if (!omit_data && !is_defined(buffer->data) && !has_default_data(*buffer)) {
    if (how.role == BufferRole::kFree) {
      declare_free(buffer->data);
    } else {
      declare_before_line(buffer->data);
    }
  }
  tir(how.function);
  out_ += '(';
  if (!how.first.empty()) text(how.first + ", ");
  shape(*buffer, how.role);
  if (how.role == BufferRole::kParam || !buffer_dtype_ || buffer->dtype != *buffer_dtype_) {
    text(", ");
    dtype_string(buffer->dtype);
  }
  if (!omit_data && is_defined(buffer->data)) {
    text(", data=");
    text(name_of(buffer->data));
  }
  strides(buffer, name, how.role);
  elem_offset(buffer, name, how.role);
  if (buffer->buffer_type == BufferKind::kAutoBroadcast) text(", buffer_type=\"auto\"");
  if (!buffer->axis_separators.empty()) {
    text(", axis_separators=[");
    list(buffer->axis_separators, [&](int64_t axis) { number(axis); });
    text("]");
  }
  out_ += ')';
}

void Printer::buffer_line(const Ref<Buffer>& buffer, const BufferCall& how) {
  begin_line();
  const std::string& name = names_.take(with_address(buffer->name, buffer), "buffer");
  text(name);
  text(" = ");
  buffer_call(buffer, name, how);
  int frame = static_cast<int>(frames_.size()) - 1;
  define(buffer, name, name, frame);
  if (!is_defined(buffer->data)) define(buffer->data, name + ".data", "", frame);
  end_line();
}

}  // namespace tilewright::script
