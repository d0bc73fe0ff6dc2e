// The IRBuilder for Python: frames as context managers, what T.* calls, subscripts of buffers, and the boundary that
// keeps our own frames out of tracebacks.

#include <algorithm>

#include "ir/strides.h"
#include "ir/verify.h"
#include "python/fields.h"
#include "python/module.h"
#include "python/operand.h"
#include "python/process_exit.h"
#include "python/schedule_objects.h"
#include "script/interval.h"
#include "script/intrinsic_spelling.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::python {
namespace {

/// Per intrinsic, columns of the table as it spells them.
struct Columns {
  const char *typing, *script, *cost;
};
constexpr Columns kColumns[] = {
#define X(name, arity, effect, typing, script, folds, cost) {#typing, #script, #cost},
#include "ir/intrinsics.def"
#undef X
};

using script::BufferSpec;
using script::Frame;
using script::FramePtr;
using script::IRBuilder;

/// Returns the value that `with ... as x` or a concise assignment binds.
nb::object frame_value(const Frame& frame) {
  if (frame.values.empty()) return nb::none();
  if (frame.single_value) return node_to_python(frame.values[0]);
  return field_to_python(frame.values);
}

nb::object enter_frame(const FramePtr& frame, bool concise) {
  IRBuilder::require(script::frame_name(frame->kind)).open(frame, concise);
  return frame_value(*frame);
}

/// An exception that passes through drops the frame: it would only hide the cause with an error of its own.
void exit_frame(const FramePtr& frame, nb::handle exception) {
  IRBuilder& builder = IRBuilder::require(script::frame_name(frame->kind));
  if (!exception.is_none()) {
    builder.abandon(frame);
    return;
  }
  try {
    builder.close(frame);
  } catch (...) {
    builder.abandon(frame);
    throw;
  }
}

void bind_builder(nb::module_& m) {
  nb::class_<Frame>(m, "Frame")
      .def_prop_ro("kind", [](const Frame& self) { return script::frame_name(self.kind); })
      .def_prop_ro("values", [](const Frame& self) { return nb::tuple(field_to_python(self.values)); })
      .def("open", [](const FramePtr& self) { return enter_frame(self, true); })
      .def("__enter__", [](const FramePtr& self) { return enter_frame(self, false); })
      .def(
          "__exit__", [](const FramePtr& self, nb::handle type, nb::handle, nb::handle) { exit_frame(self, type); },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
  nb::class_<IRBuilder>(m, "IRBuilder")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::object self) {
             nb::cast<IRBuilder&>(self).enter();
             self.inc_ref();  // it is the current one until it is left, whatever becomes of the user's own reference
             return self;
           })
      .def(
          "__exit__",
          [](nb::object self, nb::handle, nb::handle, nb::handle) {
            if (nb::cast<IRBuilder&>(self).leave()) self.dec_ref();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("get", &IRBuilder::get)
      .def("depth", [](const IRBuilder& self) { return self.frames().size(); })
      .def_static(
          "current",
          []() -> IRBuilder& {
            if (IRBuilder* builder = IRBuilder::current()) return *builder;
            throw Exception(argument_error("builder/none", "no IRBuilder is entered here",
                                           "use it inside `with IRBuilder():`, or ask IRBuilder.is_in_scope()"));
          },
          nb::rv_policy::reference)
      .def_static("is_in_scope", [] { return IRBuilder::current() != nullptr; })
      .def_static("name",
                  [](const std::string& name, const NodeRef& node) {
                    IRBuilder::require("IRBuilder.name").name(name, node);
                    return node;
                  })
      .def_static("name_many", [](const std::vector<std::string>& names, const std::vector<NodeRef>& nodes) {
        if (names.size() != nodes.size()) throw nb::value_error("as many names as nodes are needed");
        for (size_t i : indices_of(names)) IRBuilder::require("IRBuilder.name_many").name(names[i], nodes[i]);
        return nodes;
      });
  m.def("is_unnamed", [](const NodeRef& node) {
    IRBuilder* builder = IRBuilder::current();
    return builder && builder->is_unnamed(node);
  });
  m.def("is_axis", [](const Ref<Var>& var) {
    IRBuilder* builder = IRBuilder::current();
    const auto* block = builder ? builder->find<script::BlockFrame>() : nullptr;
    return block && any_of(block->iter_vars, [&](const Ref<IterVar>& axis) { return axis->var.get() == var.get(); });
  });
  m.def("discard", []() -> FramePtr { return std::make_shared<script::DiscardFrame>(); });
}

// ---- buffers

/// A region for anything that names one: a slice, an element, a whole buffer.
Ref<BufferRegion> to_region(const NodeRef& node) {
  if (node.is<BufferRegion>()) return node.borrow<BufferRegion>();
  if (node.is<BufferLoad>()) return script::region_of(node.borrow<BufferLoad>());
  if (node.is<Buffer>()) return script::region_of(node.borrow<Buffer>());
  throw Exception(script_error(
      "builder/region", "a region of a buffer is expected, not " + (node.defined() ? kind_name(node.kind()) : "None"),
      "write A[i, j] or A[0:n, j]"));
}
std::vector<Ref<BufferRegion>> to_regions(const std::vector<NodeRef>& nodes) {
  std::vector<Ref<BufferRegion>> regions;
  for (const NodeRef& node : nodes) regions.push_back(to_region(node));
  return regions;
}

Expr need_index(nb::handle object, const Ref<Buffer>& buffer) {
  Expr e;
  if (!nb::try_cast(object, e) || !e.defined()) {
    throw Exception(script_error(
        "builder/index", "a value of type " + class_name(object) + " is used as an index of '" + buffer->name + "'",
        "indices are integers, slices or expressions"));
  }
  if (e.is<IterVar>()) e = Expr(e.as<IterVar>()->var);
  return e;
}

struct SliceParts {
  nb::object start, stop, step;
};
SliceParts parts_of(nb::handle slice) { return {slice.attr("start"), slice.attr("stop"), slice.attr("step")}; }

/// A[i, j:k]: a load; with a slice the region; with a slice that has a step (or with `vectors`) a load of a vector.
NodeRef subscript(const Ref<Buffer>& buffer, nb::handle key, bool vectors) {
  std::vector<nb::object> keys;
  if (nb::isinstance<nb::tuple>(key) || nb::isinstance<nb::list>(key)) {
    for (nb::handle item : nb::borrow<nb::object>(key)) keys.push_back(nb::borrow(item));
  } else {
    keys.push_back(nb::borrow(key));
  }
  bool has_slice = false, has_step = false;
  for (const nb::object& item : keys) {
    if (!PySlice_Check(item.ptr())) continue;
    has_slice = true;
    has_step |= vectors || !item.attr("step").is_none();
  }
  if (has_slice && !buffer->axes.empty()) {
    throw Exception(script_error("builder/region", "a slice of the sparse buffer '" + buffer->name + "'",
                                 "access one element at a time, at coordinates"));
  }
  if (keys.size() != buffer->rank()) {
    throw Exception(script_error("ir/index-count",
                                 "buffer '" + buffer->name + "' has " + std::to_string(buffer->rank()) +
                                     " dimensions and is accessed with " + std::to_string(keys.size()) + " indices",
                                 "one index for each dimension, all in one pair of brackets: A[i, j]"));
  }
  std::vector<Expr> indices;
  std::vector<Ref<Range>> region;
  for (size_t i : indices_of(keys)) {
    if (!PySlice_Check(keys[i].ptr())) {
      Expr index = need_index(keys[i], buffer);
      if (has_slice && !has_step) region.push_back(range(index, one(index.dtype())));
      indices.push_back(std::move(index));
      continue;
    }
    SliceParts slice = parts_of(keys[i]);
    Expr start = slice.start.is_none() ? zero(buffer->shape[i].dtype()) : need_index(slice.start, buffer);
    Expr stop = slice.stop.is_none() ? buffer->shape[i] : need_index(slice.stop, buffer);
    if (!has_step) {
      region.push_back(script::range_between(start, stop));
      continue;
    }
    promote(start, stop);
    Expr step = slice.step.is_none() ? Expr() : need_index(slice.step, buffer);
    Expr index = script::ramp_of_slice(start, stop, step);
    if (!index.defined()) {
      throw Exception(
          script_error("builder/vector-slice",
                       "a slice that is a vector needs a constant number of elements, a multiple of its step",
                       "without a step, a slice is a region"));
    }
    indices.push_back(std::move(index));
  }
  if (has_slice && !has_step) return make<BufferRegion>({buffer, std::move(region)});
  return make<BufferLoad>({buffer, std::move(indices), {}});
}

/// A name stands for a fresh variable, so that match_buffer can define it.
std::vector<Expr> to_extents(nb::handle object, DataType index = DataType::int_(32)) {
  std::vector<Expr> result;
  auto add = [&](nb::handle item) {
    Expr e;
    if (PyUnicode_Check(item.ptr()) && PyUnicode_IsIdentifier(item.ptr())) {
      std::string name = nb::cast<std::string>(item);
      if (IRBuilder* builder = IRBuilder::current()) {
        e = script::fresh_var(make<PrimType>({index}));
        builder->name(name, e);
      } else {
        e = var(name, index);
      }
    } else if (!nb::try_cast(item, e) || !e.defined()) {
      throw Exception(script_error("builder/shape", "an extent is of the Python type " + class_name(item),
                                   "an extent is a number or an integer expression"));
    }
    result.push_back(std::move(e));
  };
  if (object.is_none()) return result;
  if (PyUnicode_Check(object.ptr()) || nb::isinstance<NodeBase>(object) || PyLong_Check(object.ptr())) {
    add(object);
  } else if (nb::hasattr(object, "__iter__") && !PyType_Check(object.ptr())) {
    for (nb::handle item : nb::borrow<nb::object>(object)) add(item);
  } else {
    throw Exception(script_error("builder/shape", "a shape is of the Python type " + class_name(object),
                                 "give its extents as a tuple, such as (128, 64)"));
  }
  return result;
}

BufferSpec buffer_spec(nb::handle shape, DataType dtype, Ref<Var> data, nb::handle strides, Expr elem_offset,
                       const std::string& scope, int64_t align, int64_t offset_factor, const std::string& buffer_type,
                       std::vector<int64_t> axis_separators) {
  BufferSpec spec;
  spec.shape = to_extents(shape);
  spec.dtype = dtype;
  spec.data = std::move(data);
  spec.strides = to_extents(strides, spec.shape.empty() ? DataType::int_(32) : spec.shape[0].dtype());
  spec.elem_offset = std::move(elem_offset);
  spec.scope = scope.empty() ? "global" : scope;  // TVM spells it both ways
  spec.align = align;
  spec.offset_factor = offset_factor;
  if (buffer_type == "auto_broadcast" || buffer_type == "auto") {
    spec.buffer_type = BufferKind::kAutoBroadcast;
  } else if (!buffer_type.empty() && buffer_type != "default") {
    throw Exception(script_error("builder/buffer-type", "'" + buffer_type + "' is not a kind of buffer",
                                 "'default' or 'auto_broadcast'"));
  }
  spec.axis_separators = std::move(axis_separators);
  return spec;
}

/// A fraction would be lost without notice.
void warn_of_rounding(const Ref<Buffer>& buffer, const Expr& value) {
  if (!value.defined() || !value.dtype().is_float() || buffer->dtype.is_float()) return;
  std::optional<double> number = const_float(value);
  if (number && *number == static_cast<double>(static_cast<int64_t>(*number))) return;
  std::string type = buffer->dtype.element().str();
  std::string text = "a value of type " + value.dtype().str() + " is stored to '" + buffer->name + "', which holds " +
                     buffer->dtype.str() + ": it is cut off; say how to round, as in T.Cast(\"" + type +
                     "\", T.floor(value))";
  const Span place = span_of(current_span());  // while a script is parsed: the user's line
  int failed = place.line > 0 ? PyErr_WarnExplicit(PyExc_RuntimeWarning, text.c_str(), place.file.c_str(), place.line,
                                                   nullptr, nullptr)
                              : PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1);
  if (failed != 0) throw nb::python_error();
}

#define TW_SPEC_PARAMS                                                                                      \
  nb::object shape, DataType dtype, Ref<Var> data, nb::object strides, Expr elem_offset, std::string scope, \
      int64_t align, int64_t offset_factor, std::string buffer_type, std::optional<std::vector<int64_t>> separators
#define TW_SPEC                                                                                   \
  buffer_spec(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, \
              separators.value_or(std::vector<int64_t>{}))
#define TW_SPEC_ARGS                                                                                    \
  "dtype"_a = "float32", "data"_a = nb::none(), "strides"_a = nb::none(), "elem_offset"_a = nb::none(), \
  "scope"_a = "global", "align"_a = 0, "offset_factor"_a = 0, "buffer_type"_a = "", "axis_separators"_a = nb::none()

#define TW_SPEC_DOC                                                                                               \
  "\n\nArgs:\n    shape: the extents, expressions too.\n    dtype: of an element.\n    data: the pointer to its " \
  "memory.\n    strides: elements between neighbors of each dimension; omitted: rows are contiguous.\n"           \
  "    elem_offset: elements in front of the first one.\n    scope: which memory: global, local, shared, ...\n"   \
  "    align: bytes of which the address of the first element is a multiple.\n"                                   \
  "    offset_factor: elements of which elem_offset is a multiple.\n"                                             \
  "    buffer_type: \"default\", or \"auto_broadcast\".\n    axis_separators: dimensions before which flat ones " \
  "begin."

void bind_buffers(nb::module_& m) {
  m.def(
      "buffer", [](TW_SPEC_PARAMS, const std::string& name) { return script::make_buffer(TW_SPEC, name); }, "shape"_a,
      TW_SPEC_ARGS, "name"_a = "buffer");
  m.def("alloc_existing", &script::alloc_existing);
  m.def("match_existing", &script::match_existing);
  m.def("buffer_at", &script::buffer_at, "data"_a);
  m.def("replace_parameter", &script::replace_parameter, "buffer"_a, "by"_a);
  m.def(
      "alloc_buffer", [](TW_SPEC_PARAMS) { return script::alloc_buffer(TW_SPEC); }, "shape"_a, TW_SPEC_ARGS,
      "Memory of the innermost block, or of the function." TW_SPEC_DOC);
  m.def(
      "decl_buffer", [](TW_SPEC_PARAMS) { return script::decl_buffer(TW_SPEC); }, "shape"_a, TW_SPEC_ARGS,
      "A buffer on a pointer, or without `data` on memory of its own." TW_SPEC_DOC);
  m.def(
      "match_buffer",
      [](const NodeRef& param, TW_SPEC_PARAMS) {
        if (param.is<Var>()) {
          if (shape.is_none()) {
            throw Exception(script_error("builder/shape", "T.match_buffer of a parameter needs the shape",
                                         "A = T.match_buffer(a, (16, 8), \"float32\")"));
          }
          return script::match_buffer(param.borrow<Var>(), TW_SPEC);
        }
        Ref<BufferRegion> source = to_region(param);
        if (shape.is_none()) {
          nb::list extents;
          for (const Ref<Range>& range : source->region) extents.append(range->extent);
          shape = extents;
        }
        return script::match_buffer(source, TW_SPEC);
      },
      "param"_a, "shape"_a = nb::none(), TW_SPEC_ARGS);
  m.def(
      "allocate",
      [](nb::object extents, DataType dtype, const std::string& scope, Expr condition, Annotations annotations) {
        return script::allocate(to_extents(extents), dtype, scope.empty() ? "global" : scope, std::move(condition),
                                std::move(annotations));
      },
      "extents"_a, "dtype"_a, "scope"_a = "global", "condition"_a = nb::none(), "annotations"_a = nb::none(),
      "A pointer to fresh memory of these extents, for the statements that follow.");
  m.def(
      "allocate_const",
      [](Ref<TensorData> data, DataType dtype, nb::object extents, Annotations annotations) {
        return script::allocate_const(std::move(data), dtype, to_extents(extents), std::move(annotations));
      },
      "data"_a, "dtype"_a, "extents"_a, "annotations"_a = nb::none());
  m.def(
      "realize",
      [](const NodeRef& region, std::optional<std::string> scope, Expr condition) {
        if (region.is<Buffer>()) {
          throw Exception(script_error("builder/region", "T.realize of a whole buffer", "write A[0:n, 0:m]"));
        }
        return script::realize(to_region(region), std::move(scope), std::move(condition));
      },
      "buffer_slice"_a, "scope"_a.none(), "condition"_a = nb::none());
  m.def("to_region", &to_region);
  m.def(
      "buffer_store",
      [](const Ref<Buffer>& buffer, const Operand& value, nb::handle key, Expr predicate) {
        NodeRef target = subscript(buffer, key, true);
        if (!value.is_expr()) {
          const BufferRegion* region = value.node.as<BufferRegion>();
          const std::string what =
              region ? "a region of '" + region->buffer->name + "'" : "a " + kind_name(value.node.kind());
          throw Exception(script_error("builder/store-value", what + " is stored to '" + buffer->name + "'",
                                       region ? "a store takes one element: loop over each dimension that is sliced, "
                                                "for j in range(n): B[i, j] = A[i, j]"
                                              : "store a number or an expression"));
        }
        warn_of_rounding(buffer, Expr(value.node));
        script::buffer_store(buffer, value, target.as<BufferLoad>()->indices, std::move(predicate));
      },
      "buffer"_a, "value"_a, "indices"_a.none(), "predicate"_a = nb::none());
}

/// The indices of a load or store of `lanes` elements that starts at `begin`.
std::vector<Expr> vector_indices(const Ref<Buffer>& buffer, nb::object begin, std::optional<DataType> dtype) {
  std::vector<Expr> indices = to_extents(begin);
  int lanes = dtype ? dtype->lanes / std::max<int>(buffer->dtype.lanes, 1) : 1;
  if (lanes > 1 && !indices.empty() && indices.back().dtype().is_scalar()) {
    indices.back() = ramp(indices.back(), one(indices.back().dtype()), lanes);
  }
  return indices;
}

int access_mask(nb::object mask) {
  if (PyLong_Check(mask.ptr())) return nb::cast<int>(mask);
  auto letters = nb::cast<std::string>(mask);
  int bits = 0;
  for (char c : letters) {
    if (c != 'r' && c != 'w') {
      throw Exception(argument_error("ir/access-mask", "an access mask has no letter '" + std::string(1, c) + "'",
                                     "\"r\" reads, \"w\" writes, \"rw\" does both"));
    }
    bits |= c == 'r' ? 1 : 2;
  }
  return bits;
}

/// Elements between the start of the data and the element at `indices`.
Expr offset_of(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
  if (indices.size() != buffer->shape.size()) {
    throw Exception(script_error("ir/index-count",
                                 "buffer '" + buffer->name + "' has " + std::to_string(buffer->shape.size()) +
                                     " dimensions and is accessed with " + std::to_string(indices.size()) + " indices",
                                 "give one index for each dimension"));
  }
  Expr offset = buffer->elem_offset.defined() ? buffer->elem_offset : Expr(i32(0));
  Expr stride = i32(1);
  const std::vector<Expr> strides = all_strides(*buffer);
  for (size_t i = indices.size(); i-- > 0;) {
    offset = offset + indices[i] * (strides.empty() ? stride : strides[i]);
    stride = stride * buffer->shape[i];
  }
  return offset;
}

/// A pointer to elements of a buffer; of `lanes` elements each, where they are accessed as vectors.
Expr access_ptr(const Ref<Buffer>& buffer, nb::object mask, DataType pointer, int lanes, const Expr& offset,
                Expr extent) {
  Expr count = i32(1);
  for (const Expr& e : buffer->shape) count = count * e;
  if (const std::vector<Expr> strides = all_strides(*buffer); !strides.empty()) count = strides[0] * buffer->shape[0];
  Expr start = buffer->elem_offset.defined() ? buffer->elem_offset + offset : offset;
  const bool vectors = lanes > 1;
  if (vectors) start = floordiv(start, int64_t{lanes});
  if (!extent.defined()) {
    extent = count - offset;
    if (vectors) extent = floordiv(extent, int64_t{lanes});
  }
  Expr type = call(vectors ? buffer->dtype.with_lanes(lanes) : buffer->dtype, "tir.type_annotation", {});
  return call(pointer, "tir.tvm_access_ptr", {type, buffer->data, start, extent, i32(access_mask(mask))});
}

void bind_buffer_methods() {
  add_method<Buffer>("__getitem__",
                     [](const Ref<Buffer>& self, nb::handle key) { return subscript(self, key, false); });
  auto cls = nb::borrow<nb::object>(nb::type<NodeOf<Buffer>>());
  nb::setattr(cls, "__iter__", nb::none());  // else Python would try A[0], A[1], ... without end
  add_method<Buffer>("scope", [](const Ref<Buffer>& self) { return self->scope(); });
  add_method<Buffer>(
      "vload",
      [](const Ref<Buffer>& self, nb::object begin, std::optional<DataType> dtype, Expr predicate) {
        if (dtype && dtype->element() != self->dtype.element()) {
          throw Exception(
              script_error("builder/dtype",
                           "a load of " + dtype->str() + " from '" + self->name + "', which holds " + self->dtype.str(),
                           "name the type of its elements, with the number of lanes"));
        }
        return make<BufferLoad>({self, vector_indices(self, begin, dtype), std::move(predicate)});
      },
      "begin"_a, "dtype"_a = nb::none(), "predicate"_a = nb::none());
  add_method<Buffer>(
      "vstore",
      [](const Ref<Buffer>& self, nb::object begin, const Operand& value, Expr predicate) {
        std::optional<DataType> dtype;
        std::vector<Expr> indices = to_extents(begin);
        if (!indices.empty() && indices.back().dtype().is_scalar()) dtype = Expr(value.node).dtype();
        indices = vector_indices(self, begin, dtype);
        return script::store_node(self, value, std::move(indices), std::move(predicate));
      },
      "begin"_a, "value"_a, "predicate"_a = nb::none());
  add_method<Buffer>(
      "access_ptr",
      [](const Ref<Buffer>& self, nb::object mask, DataType pointer, int lanes, const Expr& offset, Expr extent) {
        return access_ptr(self, mask, pointer, lanes, offset, std::move(extent));
      },
      "access_mask"_a, "ptr_type"_a = "handle", "content_lanes"_a = 1, "offset"_a = 0, "extent"_a = nb::none());
  add_method<Buffer>("offset_of",
                     [](const Ref<Buffer>& self, nb::object indices) { return offset_of(self, to_extents(indices)); });
  // The name under which a script defined it, as Python functions have.
  auto func = nb::borrow<nb::object>(nb::type<NodeOf<PrimFunc>>());
  nb::object get_name = nb::cpp_function([](const Ref<PrimFunc>& self) {
    const NodeRef symbol = self->attrs.get("global_symbol");
    const StringImm* name = symbol.as<StringImm>();
    return name ? name->value : std::string("main");
  });
  nb::object property = nb::module_::import_("builtins").attr("property")(get_name);
  // Not by setattr: that would name the class.
  auto* type = reinterpret_cast<PyTypeObject*>(func.ptr());
#if PY_VERSION_HEX >= 0x030C0000
  nb::object members = nb::steal(PyType_GetDict(type));
#else
  nb::object members = nb::borrow(type->tp_dict);
#endif
  PyDict_SetItemString(members.ptr(), "__name__", property.ptr());
  PyType_Modified(type);
  add_method<GlobalVar>("__call__", [](const Ref<GlobalVar>& self, nb::args args) {
    std::vector<NodeRef> items;
    for (nb::handle arg : args) items.push_back(nb::cast<NodeRef>(arg));
    return script::call_function(self, std::move(items));
  });
}

// ---- expressions

void bind_expressions(nb::module_& m) {
  m.def("intrinsic", &script::intrinsic);
  m.def("operator_node", [](const std::string& name, const Operand& a, const Operand& b) {
    for (int kind = static_cast<int>(Kind::kAdd); kind <= static_cast<int>(Kind::kOr); ++kind) {
      if (kind_name(static_cast<Kind>(kind)) == name) return script::operator_node(static_cast<Kind>(kind), a, b);
    }
    throw nb::value_error("no operator of that name");
  });
  m.def("select_node", &script::select_node);
  m.def("as_condition", &script::as_condition);
  m.def("cast_node", &script::cast_node);
  m.def("call",
        [](DataType dtype, const std::string& op, const std::vector<NodeRef>& args) { return call(dtype, op, args); });
  m.def("ramp", [](const Expr& base, const Expr& stride, const Expr& lanes) {
    Expr step = stride;
    if (step.dtype() != base.dtype()) step = cast(base.dtype(), step);
    return make<Ramp>({base, step, lanes});
  });
  m.def("broadcast", [](const Operand& value, const Expr& lanes) {
    bool keeps = !value.is_huge && keeps_digits(value.node);
    return make<Broadcast>({keeps ? Expr(value.node) : settled(value), lanes});
  });
  m.def(
      "load",
      [](const Ref<Buffer>& buffer, std::vector<Expr> indices, Expr predicate) {
        return make<BufferLoad>({buffer, std::move(indices), std::move(predicate)});
      },
      "buffer"_a, "indices"_a, "predicate"_a = nb::none());
  m.def("tensor_data", [](DataType dtype, std::vector<int64_t> shape, nb::bytes bytes) {
    return make<TensorData>({dtype, std::move(shape), std::string(bytes.c_str(), bytes.size())});
  });
  // (name, number of arguments, where scripts write the dtype: 0 nowhere, 1 first, 2 last, 3 no function of T, and the
  // rules for the type of the result and the cost, as the table calls them)
  m.def("intrinsics", [] {
    nb::list rows;
    for (int i = 0; i < static_cast<int>(Intrinsic::kUnknown); ++i) {
      auto intrinsic = static_cast<Intrinsic>(i);
      const IntrinsicRow& row = intrinsic_row(intrinsic);
      rows.append(nb::make_tuple(std::string(row.name), row.arity, static_cast<int>(script::dtype_place(intrinsic)),
                                 kColumns[i].typing, kColumns[i].script, kColumns[i].cost));
    }
    return rows;
  });
}

// ---- functions, loops, blocks

#define TW_LOOP(name, does)                                                             \
  m.def(                                                                                \
      #name,                                                                            \
      [](Expr start, Expr stop, Annotations annotations) {                              \
        if (!stop.defined()) {                                                          \
          stop = start;                                                                 \
          start = zero(stop.dtype());                                                   \
        }                                                                               \
        return script::name(std::move(start), std::move(stop), std::move(annotations)); \
      },                                                                                \
      "start"_a, "stop"_a = nb::none(), "annotations"_a = nb::none(),                   \
      does " It goes from `start`, 0 by default, up to, not including, `stop`.")

void bind_frames(nb::module_& m) {
  m.def("module", &script::module);
  m.def("module_attrs", &script::module_attrs, "attrs"_a);
  m.def(
      "module_attr",
      [](const Annotations& added, bool overwrite) {
        for (const auto& [name, value] : added.entries()) script::module_attr(name, value, overwrite);
      },
      "added"_a, "overwrite"_a);
  m.def("module_attributes", [] { return script::module_attributes(); });
  m.def(
      "decl_function",
      [](const std::string& name, const NodeRef& signature) {
        const PrimFunc* func = signature.as<PrimFunc>();
        return script::decl_function(name, func ? func->ret_type : Type(signature));
      },
      "name"_a, "signature"_a.none());
  m.def("def_function", &script::def_function, "name"_a, "func"_a);
  m.def("prim_func", &script::prim_func, "is_private"_a = false);
  m.def("func_name", &script::func_name, "name"_a, "The name of a function that is built by calls.");
  m.def("func_attr", &script::func_attr, "attrs"_a, "Attributes of the function, by name.");
  m.def("func_ret", &script::func_ret, "ret_type"_a);
  m.def(
      "arg",
      [](const std::string& name, const NodeRef& node) -> NodeRef {
        if (node.is<Buffer>()) return script::arg(name, node.borrow<Buffer>());
        if (node.is<Var>()) return script::arg(name, node.borrow<Var>());
        throw Exception(script_error("builder/arg", "the parameter '" + name + "' is neither a variable nor a buffer",
                                     "parameters are annotated: A: T.Buffer((8,), \"float32\"), n: T.int32"));
      },
      "name"_a, "obj"_a, "A parameter of a function that is built by calls.");
  TW_LOOP(serial, "A loop.");
  TW_LOOP(parallel, "A loop whose iterations may run at the same time, on several threads.");
  TW_LOOP(vectorized, "A loop that becomes vector instructions.");
  TW_LOOP(unroll, "A loop whose body is repeated in the code.");
  m.def(
      "thread_binding",
      [](Expr start, Expr stop, const std::string& thread, Annotations annotations) {
        return script::thread_binding(std::move(start), std::move(stop), thread, std::move(annotations));
      },
      "start"_a, "stop"_a, "thread"_a, "annotations"_a = nb::none());
  m.def("grid", &script::grid, "extents"_a);
  m.def("while_", &script::while_, "condition"_a, "A loop that runs while the condition holds.");
  m.def("if_", &script::if_, "condition"_a, "A branch; T.Then() and T.Else() stand inside.");
  m.def("then_", &script::then_, "What happens where the condition of T.If holds.");
  m.def("else_", &script::else_, "What happens where the condition of T.If does not hold.");
  m.def("assert_", &script::assert_, "condition"_a, "message"_a,
        "What the statements inside rely on; a call where it does not hold ends with the message.");
  m.def("let", &script::let, "value"_a, "var"_a = nb::none());
  m.def(
      "attr",
      [](nb::handle node, const std::string& key, nb::handle value) {
        return script::attr(node.is_none() ? NodeRef() : value_from_python(node), key, value_from_python(value));
      },
      "node"_a.none(), "key"_a, "value"_a.none());
  m.def("env_thread", &script::env_thread, "thread_tag"_a, "dtype"_a = "int32",
        "The variable of a thread axis, for T.launch_thread.");
  m.def(
      "launch_thread",
      [](const NodeRef& thread, Expr extent) {
        if (const StringImm* tag = thread.as<StringImm>()) return script::launch_thread(tag->value, std::move(extent));
        if (thread.is<Var>()) return script::launch_thread(thread.borrow<Var>(), std::move(extent));
        throw Exception(script_error("builder/thread", "T.launch_thread needs a thread axis or its tag",
                                     "T.launch_thread(\"threadIdx.x\", 32)"));
      },
      "thread"_a, "extent"_a, "The statements inside run on `extent` threads of an axis.");
  m.def("block", &script::block, "name"_a = "", "no_realize"_a = false,
        "A block: a computation with axes of its own, which schedules find by its name.\n\nArgs:\n"
        "    name: for schedules and messages.\n"
        "    no_realize: the block by itself, without values for its axes, as in TVM's scripts.");
  m.def("init", &script::init, "What a reduction does before its first step.");
  m.def("where", &script::where, "predicate"_a, "The block runs only where this holds.");
  m.def("reads", [](const std::vector<NodeRef>& regions) { script::reads(to_regions(regions)); });
  m.def("writes", [](const std::vector<NodeRef>& regions) { script::writes(to_regions(regions)); });
  m.def("block_attr", &script::block_attr, "attrs"_a, "Annotations of the block, by name.");
  m.def("assume_buffer_domain", &script::assume_buffer_domain, "buffer"_a, "min"_a, "end"_a, "order"_a = "",
        "segments"_a.none() = nb::none(), "longest"_a.none() = nb::none());
  m.def("assume_disjoint", &script::assume_disjoint, "buffers"_a);
  m.def(
      "axis",
      [](int type, const Ref<Range>& dom, Expr binding, DataType dtype) {
        return script::axis(static_cast<IterType>(type), dom, std::move(binding), dtype);
      },
      "type"_a, "dom"_a, "binding"_a.none(), "dtype"_a = "int32");
  m.def("remap", &script::remap);
  m.def("range_between", &script::range_between);
  m.def("evaluate", &script::evaluate, "value"_a, "A statement that calculates the value, for what that does.");
  m.def("prefetch", [](const NodeRef& region) { script::prefetch(to_region(region)); }, "region"_a);
  m.def("fresh_var", &script::fresh_var, "type"_a, "is_size"_a = false);
  m.def("add", [](const Stmt& stmt) { IRBuilder::require("a statement").add(stmt); });
}

// ---- spans and tracebacks

/// Source position of the parser of this thread.
struct Cursor {
  uint32_t file = 0;
  SpanId parent = 0;
  std::optional<SpanScope> scope;
};
thread_local Cursor cursor;

void enter_source(const std::string& file, SpanId parent) {
  cursor.file = intern_file(file);
  cursor.parent = parent;
}
void leave_source() { cursor.scope.reset(); }
/// Until the next call, nodes made by this thread come from here.
void set_span(int line, int column, int end_line, int end_column) {
  raise_if_thread_ends();
  cursor.scope.emplace(intern_span(cursor.file, line, column, end_line, end_column, cursor.parent));
}

/// Calls `function`; an exception that it raises leaves as if it came from the caller's own line.
struct Boundary {
  nb::object function;
  nb::object call(nb::args args, nb::kwargs kwargs) const {
    try {
      return function(*args, **kwargs);
    } catch (nb::python_error& error) {
      error.restore();
      PyObject *type, *value, *traceback;
      PyErr_Fetch(&type, &value, &traceback);
      PyErr_NormalizeException(&type, &value, &traceback);
      nb::object keep = nb::steal(value);
      nb::object own = nb::getattr(keep, "script_traceback", nb::none());
      if (own.is_none() && !nb::hasattr(keep, "script_traceback")) {
        PyErr_Restore(type, keep.release().ptr(), traceback);  // not one of ours: nothing is hidden
        throw nb::python_error();
      }
      Py_XDECREF(traceback);
      PyException_SetTraceback(keep.ptr(), own.is_none() ? Py_None : own.ptr());
      PyErr_Restore(type, keep.release().ptr(), own.is_none() ? nullptr : own.release().ptr());
      throw nb::python_error();
    }
  }
};

void bind_sparse(nb::module_& m) {
  m.def("dense_fixed_axis", &script::dense_fixed_axis, "length"_a, "idtype"_a);
  m.def("axis_below", &script::axis_below, "parent"_a, "length"_a, "nnz"_a.none(), "nnz_cols"_a.none(),
        "indptr"_a.none(), "indices"_a.none(), "idtype"_a, "sorted"_a);
  m.def("attached_axis", &script::attached_axis, "axis"_a, "parent"_a);
  m.def("flattened_axis", &script::flattened_axis, "axes"_a, "nnz"_a.none(), "offsets"_a, "idtype"_a);
  m.def("match_sparse_buffer", &script::match_sparse_buffer, "param"_a, "axes"_a, "dtype"_a, "extra_storage"_a.none(),
        "default_value"_a.none());
  m.def("alloc_sparse_buffer", &script::alloc_sparse_buffer, "axes"_a, "dtype"_a, "scope"_a, "default_value"_a.none());
  m.def("sparse_iteration", &script::sparse_iteration, "axes"_a, "fused"_a, "kinds"_a, "name"_a);
  m.def("sparse_iteration_attr", &script::sparse_iteration_attr, "attrs"_a);
}

}  // namespace

void bind_script(nb::module_& m) {
  nb::module_ script = m.def_submodule("_script", "What the parser of scripts and the IRBuilder call.");
  bind_builder(script);
  bind_buffers(script);
  bind_buffer_methods();
  bind_expressions(script);
  bind_frames(script);
  bind_sparse(script);
  script.def(
      "find_ill_formed",
      [](const NodeRef& program) -> nb::object {
        Status status = verify(program, Stage::kSparse, Rules::kLanguage);
        if (status.ok()) return nb::none();
        const Diagnostic& found = status.error();
        return nb::make_tuple(found.code, found.message, found.hint, found.span);
      },
      "Code, message, hint and span of the first rule of the language that the program breaks.");
  script.def("enter_source", &enter_source);
  script.def("leave_source", &leave_source);
  script.def("set_span", &set_span);
  nb::class_<Boundary>(script, "Boundary", nb::dynamic_attr())
      .def("__init__", [](Boundary* self, nb::object function) { new (self) Boundary{std::move(function)}; })
      .def("__call__", &Boundary::call);
}

}  // namespace tilewright::python
