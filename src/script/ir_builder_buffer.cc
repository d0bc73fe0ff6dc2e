// Buffers of functions and blocks, and the frames that allocate or declare them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/structural.h"
#include "script/interval.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

constexpr int64_t kDefaultAlignment = 64;

struct AllocateFrame final : Frame {
  AllocateFrame() : Frame(FrameKind::kAllocate) {}
  DataType dtype;
  std::vector<Expr> extents;
  Expr condition;
  Annotations annotations;
  void finish(IRBuilder& builder) override {
    builder.add(make<Allocate>({values[0].cast<Var>(), dtype, extents, condition, body(), annotations}));
  }
};

struct AllocateConstFrame final : Frame {
  AllocateConstFrame() : Frame(FrameKind::kAllocateConst) {}
  Ref<TensorData> data;
  DataType dtype;
  std::vector<Expr> extents;
  Annotations annotations;
  void finish(IRBuilder& builder) override {
    builder.add(make<AllocateConst>({values[0].cast<Var>(), data, dtype, extents, body(), annotations}));
  }
};

struct DeclBufferFrame final : Frame {
  DeclBufferFrame() : Frame(FrameKind::kDeclBuffer) {}
  bool allocates = false;
  void finish(IRBuilder& builder) override {
    Ref<Buffer> buffer = values[0].cast<Buffer>();
    Stmt declared = make<DeclBuffer>({buffer, body()});
    if (allocates) {
      declared = make<Allocate>({buffer->data, buffer->dtype, buffer->shape, bool_imm(true), declared, {}});
    }
    builder.add(std::move(declared));
  }
};

struct RealizeFrame final : Frame {
  RealizeFrame() : Frame(FrameKind::kRealize) {}
  Ref<BufferRegion> region;
  std::optional<std::string> scope;
  Expr condition;
  void finish(IRBuilder& builder) override {
    Stmt realized = make<BufferRealize>({region->buffer, region->region, condition, body()});
    if (scope) realized = make<AttrStmt>({region->buffer, "realize_scope", string_imm(*scope), realized});
    builder.add(std::move(realized));
  }
};

void check_shape(const BufferSpec& spec) {
  for (const Expr& extent : spec.shape) {
    if (!extent.dtype().is_integral() || !extent.dtype().is_scalar()) {
      refuse("builder/shape", "an extent of a buffer is " + extent.dtype().str(), "extents are integers");
    }
    if (auto value = const_int(extent); value && *value < 0) {
      refuse("builder/shape", "a buffer with the extent " + std::to_string(*value), "extents are at least 0");
    }
  }
  if (spec.strides.size() > spec.shape.size()) {
    refuse("builder/strides",
           "a buffer of " + std::to_string(spec.shape.size()) + " dimensions with " +
               std::to_string(spec.strides.size()) + " strides",
           "give one stride for each dimension, or none");
  }
}

}  // namespace

Ref<Buffer> make_buffer(const BufferSpec& spec, const std::string& name) {
  check_shape(spec);
  IRBuilder* builder = IRBuilder::current();
  DataType index = spec.shape.empty() ? DataType::int_(32) : spec.shape[0].dtype();
  Buffer buffer;
  buffer.dtype = spec.dtype;
  buffer.shape = spec.shape;
  buffer.axis_separators = spec.axis_separators;
  buffer.strides = spec.strides;
  buffer.name = name;
  buffer.data_alignment = spec.align > 0 ? spec.align : kDefaultAlignment;
  buffer.offset_factor = std::max<int64_t>(spec.offset_factor, 1);
  buffer.buffer_type = spec.buffer_type;
  buffer.data = spec.data;
  if (!buffer.data.defined()) {
    buffer.data = pointer_var(name, spec.dtype, spec.scope);
    if (builder) builder->adopt(buffer.data);
  }
  buffer.elem_offset = spec.elem_offset;
  if (!buffer.elem_offset.defined()) {
    if (spec.offset_factor > 0) {
      buffer.elem_offset = var(name + "_elem_offset", index);
      if (builder) builder->adopt(buffer.elem_offset);
    } else {
      buffer.elem_offset = zero(index);
    }
  }
  Ref<Buffer> result = make(std::move(buffer));
  if (builder) builder->adopt(result);
  return result;
}

Ref<Buffer> match_buffer(const Ref<Var>& param, const BufferSpec& spec) {
  auto* function = IRBuilder::require("T.match_buffer").find<PrimFuncFrame>();
  if (function == nullptr)
    refuse("builder/place", "T.match_buffer belongs inside T.prim_func",
           "it gives a parameter its shape; T.decl_buffer makes other buffers");
  if (!function->is_param(param)) {
    refuse("builder/not-a-parameter", "T.match_buffer of '" + param->name_hint + "', which is not a parameter",
           "name a parameter of type T.handle, or a region of a buffer");
  }
  if (!param.dtype().is_handle()) {
    refuse("builder/not-a-handle",
           "T.match_buffer of the parameter '" + param->name_hint + "', which is " + param.dtype().str(),
           "annotate it with T.handle");
  }
  for (const auto& [bound, buffer] : function->buffer_map) {
    if (bound == param) {
      refuse("builder/twice", "the parameter '" + param->name_hint + "' has a buffer already ('" + buffer->name + "')",
             "use that one, or match another parameter");
    }
  }
  Ref<Buffer> buffer = make_buffer(spec);
  function->buffer_map.emplace_back(param, buffer);
  return buffer;
}

namespace {

/// The view has the last dimensions of the region; the others must be single elements.
void check_view(const BufferRegion& source, const BufferSpec& spec) {
  const Buffer& buffer = *source.buffer;
  auto mismatch = [&](const std::string& what) {
    refuse("builder/match-region", "the view of '" + buffer.name + "' " + what,
           "the region of a view has the view's shape");
  };
  if (spec.dtype != buffer.dtype) mismatch("is " + spec.dtype.str() + ", the buffer " + buffer.dtype.str());
  if (!spec.data.defined() && spec.scope != buffer.scope()) {
    mismatch("is in '" + spec.scope + "', the buffer in '" + buffer.scope() + "'");
  }
  if (spec.shape.size() > source.region.size()) {
    mismatch("has " + std::to_string(spec.shape.size()) + " dimensions, the region " +
             std::to_string(source.region.size()));
  }
  size_t leading = source.region.size() - spec.shape.size();
  for (size_t i : indices_of(source.region)) {
    auto have = const_int(source.region[i]->extent);
    auto want = i < leading ? std::optional<int64_t>(1) : const_int(spec.shape[i - leading]);
    if (have && want && *have != *want) {
      mismatch("has the extent " + std::to_string(*want) + " where the region has " + std::to_string(*have));
    }
  }
}

bool is_whole(const BufferRegion& region) {
  for (size_t d : indices_of(region.region)) {
    if (!same_expr(region.region[d]->extent, region.buffer->shape[d])) return false;
  }
  return true;
}

}  // namespace

Ref<Buffer> match_buffer(const Ref<BufferRegion>& source, const BufferSpec& spec) {
  const IRBuilder& builder = IRBuilder::require("T.match_buffer");
  const auto* function = dynamic_cast<const PrimFuncFrame*>(builder.innermost());
  for (const auto& [param, buffer] : function ? function->buffer_map : decltype(function->buffer_map)()) {
    if (buffer != source->buffer || !is_whole(*source)) continue;
    refuse("builder/twice", "T.match_buffer of '" + buffer->name + "', which is a buffer already",
           "use '" + buffer->name +
               "' itself; T.match_buffer gives a shape to a parameter of type T.handle, or, inside "
               "of T.block, makes a view of a region");
  }
  auto& block = expect_inside<BlockFrame>("T.match_buffer of a region", FrameKind::kBlock);
  check_view(*source, spec);
  Ref<Buffer> buffer = make_buffer(spec);
  block.match_buffers.push_back(make<MatchBufferRegion>({buffer, source}));
  return buffer;
}

namespace {

/// Returns the list of allocated buffers of the innermost block, or of the function's root block.
std::vector<Def<Buffer>>& allocated_buffers() {
  IRBuilder& builder = IRBuilder::require("T.alloc_buffer");
  auto* block = builder.find<BlockFrame>();
  auto* function = builder.find<PrimFuncFrame>();
  if (block == nullptr && function == nullptr) {
    refuse("builder/place", "T.alloc_buffer belongs inside a function or a block",
           "allocate in the function that uses it");
  }
  return block ? block->alloc_buffers : function->root_alloc_buffers;
}

}  // namespace

Ref<Buffer> alloc_buffer(const BufferSpec& spec) {
  std::vector<Def<Buffer>>& buffers = allocated_buffers();
  Ref<Buffer> buffer = make_buffer(spec);
  buffers.emplace_back(buffer);
  return buffer;
}

void alloc_existing(const Ref<Buffer>& buffer) { allocated_buffers().emplace_back(buffer); }

void match_existing(const std::string& name_hint, const Ref<Buffer>& buffer) {
  Ref<Var> param = arg(name_hint, var(name_hint, DataType::handle()));
  IRBuilder::require("T.arg").find<PrimFuncFrame>()->buffer_map.emplace_back(param, buffer);
}

Ref<Buffer> buffer_at(const Ref<Var>& data) {
  IRBuilder& builder = IRBuilder::require("a pointer");
  auto flat = [&](const std::vector<Expr>& shape, DataType dtype) {
    Expr elements = shape.empty() ? i32(1) : shape[0];
    for (size_t d = 1; d < shape.size(); ++d) elements = elements * shape[d];
    BufferSpec spec;
    spec.shape = {elements};
    spec.dtype = dtype;
    spec.data = data;
    return make_buffer(spec, data->name_hint);
  };
  auto of = [&](const std::vector<Def<Buffer>>& buffers) -> Ref<Buffer> {
    for (const Def<Buffer>& buffer : buffers) {
      if (buffer->data == data && buffer->strides.empty()) return flat(buffer->shape, buffer->dtype);
    }
    return {};
  };
  for (const FramePtr& frame : reversed(builder.frames())) {
    Ref<Buffer> found;
    if (const auto* allocate = dynamic_cast<const AllocateFrame*>(frame.get())) {
      if (allocate->values[0].get() == data.get()) found = flat(allocate->extents, allocate->dtype);
    } else if (const auto* block = dynamic_cast<const BlockFrame*>(frame.get())) {
      found = of(block->alloc_buffers);
    } else if (const auto* function = dynamic_cast<const PrimFuncFrame*>(frame.get())) {
      found = of(function->root_alloc_buffers);
      for (const auto& [param, buffer] : function->buffer_map) {
        if (!found.defined()) found = of({buffer});
      }
    }
    if (found.defined()) return found;
  }
  refuse("builder/pointer", "nothing says how many elements are behind pointer '" + data->name_hint + "'",
         "declare a buffer: A = T.Buffer((n,), \"float32\", data=" + data->name_hint + "), and write A[i]");
}

void replace_parameter(const Ref<Buffer>& buffer, const Ref<Buffer>& by) {
  auto* function = IRBuilder::require("T.preflattened_buffer").find<PrimFuncFrame>();
  if (function == nullptr)
    refuse("builder/place", "T.preflattened_buffer belongs inside T.prim_func", "it describes a parameter");
  for (auto& [param, known] : function->buffer_map) {
    if (known == buffer) {
      known = by;
      return;
    }
  }
  refuse("builder/pointer", "'" + buffer->name + "' is not the buffer of a parameter",
         "name a buffer that a parameter of the function has");
}

FramePtr decl_buffer(const BufferSpec& spec) {
  auto frame = std::make_shared<DeclBufferFrame>();
  frame->allocates = !spec.data.defined();
  frame->values = {make_buffer(spec)};
  frame->single_value = true;
  return frame;
}

FramePtr allocate(std::vector<Expr> extents, DataType dtype, const std::string& scope, Expr condition,
                  Annotations annotations) {
  auto frame = std::make_shared<AllocateFrame>();
  frame->dtype = dtype;
  frame->extents = std::move(extents);
  frame->condition = condition.defined() ? cast(DataType::bool_(), condition) : bool_imm(true);
  frame->annotations = std::move(annotations);
  frame->values = {pointer_var("v", dtype, scope.empty() ? "global" : scope)};
  frame->single_value = true;
  if (IRBuilder* builder = IRBuilder::current()) builder->adopt(frame->values[0]);
  return frame;
}

FramePtr allocate_const(Ref<TensorData> data, DataType dtype, std::vector<Expr> extents, Annotations annotations) {
  int64_t want = 1, have = 1;
  for (const Expr& extent : extents) {
    auto value = const_int(extent);
    if (!value) refuse("builder/shape", "T.allocate_const needs constant extents", "its shape is made of numbers");
    want *= *value;
  }
  for (int64_t extent : data->shape) have *= extent;
  if (want != have) {
    refuse("builder/shape",
           "T.allocate_const of " + std::to_string(want) + " elements with " + std::to_string(have) + " values",
           "give one value for each element");
  }
  if (data->dtype != dtype) {
    refuse("builder/dtype", "T.allocate_const of " + dtype.str() + " with values of " + data->dtype.str(),
           "give an array of that type");
  }
  auto frame = std::make_shared<AllocateConstFrame>();
  frame->data = std::move(data);
  frame->dtype = dtype;
  frame->extents = std::move(extents);
  frame->annotations = std::move(annotations);
  frame->values = {pointer_var("v", dtype)};
  frame->single_value = true;
  if (IRBuilder* builder = IRBuilder::current()) builder->adopt(frame->values[0]);
  return frame;
}

FramePtr realize(const Ref<BufferRegion>& region, std::optional<std::string> scope, Expr condition) {
  auto frame = std::make_shared<RealizeFrame>();
  frame->region = region;
  frame->scope = std::move(scope);
  frame->condition = condition.defined() ? cast(DataType::bool_(), condition) : bool_imm(true);
  return frame;
}

namespace {

bool fits(const Expr& constant, DataType type) {
  if (type.is_float() || type.is_handle()) return true;
  int bits = type.is_bool() ? 1 : type.is_uint() ? type.bits : type.bits - 1;
  bool is_signed = !type.is_bool() && !type.is_uint();
  if (auto number = const_int(constant)) {
    bool huge = constant.dtype().is_uint() && *number < 0;  // an unsigned constant beyond int64
    if (huge || *number < 0) return huge ? bits == 64 : is_signed && (bits == 63 || *number >= -(int64_t{1} << bits));
    return bits >= 63 || *number < int64_t{1} << bits;
  }
  auto number = const_float(constant);
  // A fraction is cut off, with a warning; NaN and infinities fit nowhere.
  return !number || (*number < std::ldexp(1.0, bits) && *number > (is_signed ? -std::ldexp(1.0, bits) - 1 : -1.0));
}

/// A number that is written down and would be stored as another one.
void check_fits(const Expr& value, DataType type, const Buffer& buffer) {
  if (const Broadcast* all = value.as<Broadcast>()) return check_fits(all->value, type, buffer);
  if (const Select* either = value.as<Select>()) {
    check_fits(either->true_value, type, buffer);
    return check_fits(either->false_value, type, buffer);
  }
  if (const Call* call = value.as<Call>(); call && intrinsic_of(*call) == Intrinsic::k_if_then_else) {
    for (int branch : {1, 2}) check_fits(call->arg(branch), type, buffer);
    return;
  }
  if (fits(value, type)) return;
  auto number = const_int(value);
  std::string text = number ? std::to_string(*number) : fmt::format("{}", *const_float(value));
  if (number && value.dtype().is_uint()) text = std::to_string(static_cast<uint64_t>(*number));
  refuse("builder/constant", text + " does not fit into '" + buffer.name + "', which holds " + type.str(),
         "give the buffer a wider type, or write T.Cast(\"" + type.str() + "\", T." + value.dtype().str() +
             "(...)) for the bits that are left");
}

/// A tree of numbers with such a value.
void check_range(const Operand& value, DataType type, const Buffer& buffer) {
  const auto range = integers_of(value);
  if (!range || !type.is_integral() || type.is_bool() || holds(type, *range)) return;
  refuse("builder/constant",
         "values of this choice between integers do not fit into '" + buffer.name + "', which holds " + type.str(),
         "give the buffer a wider type, or write T.Cast(\"" + type.str() + "\", ...) for the bits that are left");
}

}  // namespace

Stmt store_node(const Ref<Buffer>& buffer, const Operand& given, std::vector<Expr> indices, Expr predicate) {
  DataType type = buffer->dtype;
  if (!indices.empty()) {
    DataType index = indices.back().dtype();
    type.lanes = static_cast<uint16_t>(type.lanes * index.lanes);
    type.scalable = index.scalable;
  }
  bool is_float = given.is_number && type.is_float();
  Expr value = is_float ? number_as(type.element(), given) : exact(given);
  DataType from = value.dtype();
  if (from != type) {
    auto what = [&] {
      return "a value of type " + from.str() + " is stored to '" + buffer->name + "', which holds " + type.str();
    };
    bool lanes_fit = from.is_scalar() || (from.lanes == type.lanes && from.scalable == type.scalable);
    if (!lanes_fit || from.is_handle() || type.is_handle() || from.is_void()) {
      const bool is_slice = !from.is_scalar() && type.is_scalar();
      refuse("builder/store-dtype", what(),
             is_slice
                 ? "a slice such as A[i, 0:4] is a vector of elements: loop over them, or store as many, B[0:4] = ..."
                 : "cast the value: x.astype(dtype); a vector has as many lanes as the index");
    }
    check_fits(value, type.element(), *buffer);
    check_range(given, type.element(), *buffer);
    value = cast(type, std::move(value));
  }
  return make<BufferStore>({buffer, std::move(value), std::move(indices), std::move(predicate)});
}

void buffer_store(const Ref<Buffer>& buffer, const Operand& value, std::vector<Expr> indices, Expr predicate) {
  IRBuilder::require("a store to a buffer").add(store_node(buffer, value, std::move(indices), std::move(predicate)));
}

Ref<Range> range_between(Expr start, Expr stop) {
  start = as_index(start);
  stop = as_index(stop);
  promote(start, stop);
  Expr extent = extent_of(start, stop);
  return make<Range>({std::move(start), std::move(extent)});
}

Ref<BufferRegion> region_of(const Ref<BufferLoad>& load) {
  std::vector<Ref<Range>> region;
  for (const Expr& index : load->indices) {
    if (const Ramp* ramp = index.as<Ramp>()) {
      if (!is_const_int(ramp->stride, 1))
        refuse("builder/region", "a region with a stride", "regions are contiguous: A[0:8]");
      region.push_back(range(ramp->base, ramp->lanes));
    } else {
      region.push_back(range(index, one(index.dtype())));
    }
  }
  return make<BufferRegion>({load->buffer, std::move(region)});
}

Ref<BufferRegion> region_of(const Ref<Buffer>& buffer) {
  if (!buffer->axes.empty()) {
    refuse("builder/region", "a region of the sparse buffer '" + buffer->name + "'",
           "sparse programs have no regions; blocks get theirs when they are lowered");
  }
  std::vector<Ref<Range>> region;
  for (const Expr& extent : buffer->shape) region.push_back(range_of(extent));
  return make<BufferRegion>({buffer, std::move(region)});
}

}  // namespace tilewright::script
