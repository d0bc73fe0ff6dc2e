// Types, ranges, annotations and constants.
#include <algorithm>

#include "ir/build.h"
#include "ir/json.h"
#include "ir/numeric.h"
#include "ir/structural.h"
#include "script/interval.h"
#include "script/printer_state.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

/// Longer arrays go to the metadata.
constexpr size_t kMaxInlineElements = 200;

constexpr std::string_view kIterTypeNames[] = {"DataPar",  "ThreadIndex", "CommReduce",   "Ordered",   "Opaque",
                                               "Unrolled", "Vectorized",  "Parallelized", "Tensorized"};

}  // namespace

void Printer::dtype_name(DataType dtype) { tir(dtype.str()); }

void Printer::type(const Type& type) {
  if (!type.defined()) return text("None");
  if (const PrimType* prim = type.as<PrimType>()) return dtype_name(prim->dtype);
  if (const PointerType* pointer = type.as<PointerType>()) {
    tir("handle(");
    const PrimType* element = pointer->element_type.as<PrimType>();
    if (element) {
      dtype_string(element->dtype);
    } else {
      this->type(pointer->element_type);
    }
    if (!pointer->storage_scope.empty()) {
      text(", ");
      string_literal(pointer->storage_scope);
    }
    return text(")");
  }
  const TupleType* tuple = type.as<TupleType>();
  if (!tuple || tuple->fields.empty()) return text("None");
  tir("Tuple(");
  list(tuple->fields, [&](const Type& field) { this->type(field); });
  text(")");
}

void Printer::var_creation(const Ref<Var>& var) {
  bool is_call = var->type_annotation.is<PointerType>();
  type(var->type_annotation);
  if (is_call && !var->is_size) return;
  if (is_call) out_.pop_back();
  text(is_call ? ", is_size_var=True)" : var->is_size ? "(is_size_var=True)" : "()");
}

void Printer::bounds(const Expr& min, const Expr& extent, std::string_view separator) {
  expr(min);
  text(separator);
  Marking mark(*this, extent);
  expr(stop_of(min, extent));
}

void Printer::range(const Range& range) {
  text(ir_);
  text("Range(");
  bounds(range.min, range.extent, ", ");
  text(")");
}

void Printer::region_bounds(const std::vector<Ref<Range>>& region) {
  out_ += '[';
  if (region.empty()) text("()");
  list(region, [&](const Ref<Range>& range) {
    Marking mark(*this, range);
    if (is_const_int(range->extent, 1) && range->extent.is<IntImm>()) return expr(range->min);
    bounds(range->min, range->extent, ":");
  });
  out_ += ']';
}

void Printer::region(const BufferRegion& region) {
  text(name_of(region.buffer));
  region_bounds(region.region);
}

void Printer::iter_var(const IterVar& iter_var) {
  const std::string name = name_of(iter_var.var);
  tir("iter_var(");
  text(name);
  text(", ");
  if (iter_var.dom.defined()) {
    tir("Range(");
    bounds(iter_var.dom->min, iter_var.dom->extent, ", ");
    text(")");
  } else {
    text("None");
  }
  text(", ");
  string_literal(kIterTypeNames[std::min<size_t>(static_cast<size_t>(iter_var.iter_type), 8)]);
  text(", ");
  string_literal(iter_var.thread_tag);
  text(")");
}

void Printer::index_map(const IndexMap& map) {
  push_frame();
  tir("index_map(lambda ");
  list(map.initial_indices, [&](const Ref<Var>& var) { text(define_var(var)); });
  if (map.initial_indices.empty()) out_.pop_back();
  text(": ");
  tuple(map.final_indices);
  pop_frame();
  if (map.inverse_index_map.defined()) {
    text(", inverse_index_map=");
    inline_node(map.inverse_index_map);
  }
  text(")");
}

void Printer::annotations(const Annotations& attrs) {
  out_ += '{';
  list(attrs.entries(), [&](const Annotations::Entry& entry) {
    string_literal(entry.first);
    text(": ");
    Marking mark(*this, entry.second);
    without_slices([&] { inline_node(entry.second); });
  });
  out_ += '}';
}

void Printer::tensor_data(const Ref<TensorData>& data) {
  size_t size = static_cast<size_t>(std::max(data->dtype.bytes(), 1));
  size_t count = data->bytes.size() / size;
  if (count > kMaxInlineElements) return metadata("TensorData", data);
  out_ += '[';
  bool is_float = data->dtype.is_float();
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text(", ");
    const char* at = data->bytes.data() + i * size;
    if (is_float) {
      double value = load_float(data->dtype, at);
      std::optional<DataType> outer = std::exchange(float_dtype_, data->dtype);
      float_imm(data->dtype, value);
      float_dtype_ = outer;
    } else {
      std::optional<DataType> outer = std::exchange(int_dtype_, data->dtype);
      int_imm(data->dtype, load_int(data->dtype, at));
      int_dtype_ = outer;
    }
  }
  out_ += ']';
}

void Printer::string_value(const Ref<StringImm>& value) {
  // Print text of several lines as metadata, like TVM: it would be hard to read inside a line.
  if (value->value.find('\n') != std::string::npos) return metadata("tir.StringImm", value);
  string_literal(value->value);
}

void Printer::metadata(std::string_view key, const NodeRef& value) {
  auto group = find_if(metadata_, [&](const auto& entry) { return entry.first == key; });
  if (group == metadata_.end()) group = metadata_.insert(group, {std::string(key), {}});
  auto& values = group->second;
  auto it = find_if(values, [&](const NodeRef& v) { return structural_equal(v, value); });
  if (it == values.end()) it = values.insert(it, value);
  text("metadata[");
  string_literal(key);
  text("][");
  number(it - values.begin());
  text("]");
}

std::string Printer::metadata_lines() const {
  if (!options_.show_meta) return "# Metadata omitted. Use show_meta=True in script() method to show it.\n\n";
  Dict all;
  for (const auto& [key, values] : metadata_) all.items.set(key, make<List>({values}));
  Printer writer(options_);
  writer.string_literal(to_json(make(std::move(all))));
  return "metadata = " + ir_ + "load_json(" + writer.out_ + ")\n\n";
}

}  // namespace tilewright::script
