// Blocks, their axes and regions, and the implicit root block of a function.
#include <algorithm>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/block_access_region.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "script/interval.h"
#include "script/ir_builder.h"
#include "script/ir_builder_frames.h"
#include "support/ranges.h"

namespace tilewright::script {
namespace {

struct BlockInitFrame final : Frame {
  BlockInitFrame() : Frame(FrameKind::kBlockInit) {}
  void check_place(IRBuilder& builder) override {
    Stmt* init = init_of(builder.innermost());
    if (init == nullptr)
      refuse("builder/place", "T.init belongs directly inside T.block or T.sp.iteration",
             "it is the start of the reduction of a block");
    if (init->defined()) refuse("builder/twice", "T.init is given twice", "put all statements into one T.init");
  }
  void finish(IRBuilder& builder) override { *init_of(builder.innermost()) = body(); }

 private:
  static Stmt* init_of(Frame* frame) {
    if (auto* block = dynamic_cast<BlockFrame*>(frame)) return &block->init;
    auto* iteration = dynamic_cast<SparseIterationFrame*>(frame);
    return iteration ? &iteration->init : nullptr;
  }
};

BlockFrame& block_frame(std::string_view caller) { return expect_inside<BlockFrame>(caller, FrameKind::kBlock); }

bool contains_block(const Stmt& body) { return has_node<Block>(body); }

std::string_view axis_name(IterType type) {
  switch (type) {
    case IterType::kDataPar:
      return "T.axis.spatial";
    case IterType::kCommReduce:
      return "T.axis.reduce";
    case IterType::kOrdered:
      return "T.axis.scan";
    default:
      return "T.axis.opaque";
  }
}

/// The buffer that the script sees at this place and whose pointer this is, or null.
Ref<Buffer> buffer_behind(const IRBuilder& builder, const Ref<Var>& pointer) {
  auto find_in = [&](const std::vector<Def<Buffer>>& buffers) {
    auto it = find_if(buffers, [&](const Ref<Buffer>& b) { return b->data == pointer; });
    return it == buffers.end() ? Ref<Buffer>() : Ref<Buffer>(*it);
  };
  for (const FramePtr& frame : builder.frames()) {
    if (auto* block = dynamic_cast<BlockFrame*>(frame.get())) {
      if (Ref<Buffer> own = find_in(block->alloc_buffers); own.defined()) return own;
      for (const auto& match : block->match_buffers) {
        if (match->buffer->data == pointer) return match->buffer;
      }
    } else if (auto* function = dynamic_cast<PrimFuncFrame*>(frame.get())) {
      if (Ref<Buffer> own = find_in(function->root_alloc_buffers); own.defined()) return own;
      for (const auto& [param, buffer] : function->buffer_map) {
        if (buffer->data == pointer) return buffer;
      }
    }
  }
  return {};
}

void add_whole(std::vector<Ref<BufferRegion>>& regions, const Ref<Buffer>& buffer) {
  std::vector<Ref<Range>> whole;
  for (const Expr& extent : buffer->shape) whole.push_back(range(zero(extent.dtype()), extent));
  Ref<BufferRegion> region = make<BufferRegion>({buffer, std::move(whole)});
  auto known = find_if(regions, [&](const auto& r) { return r->buffer == buffer; });
  if (known == regions.end()) {
    regions.push_back(std::move(region));
  } else {
    *known = std::move(region);
  }
}

/// access_ptr() says whether what is behind the pointer is read or written, as do loads and stores of a buffer that is
/// declared over it: all of the buffer may be.
void add_regions_behind(const Ref<Block>& block, const Ref<Buffer>& buffer, analysis::BlockAccess& access) {
  analysis::for_each_access(block, analysis::Nested::kDeclared, [&](const analysis::Access& use) {
    if (use.alias.defined() && use.alias == buffer->data) {
      if (use.reads) add_whole(access.reads, buffer);
      if (use.writes) add_whole(access.writes, buffer);
      return;
    }
    if (use.form != analysis::Access::Form::kPointer || use.pointer != buffer->data) return;
    if (use.site.is<DeclBuffer>()) return;
    const Call* call = use.site.as<Call>();
    if (!call || intrinsic_of(*call) != Intrinsic::k_tvm_access_ptr) {
      refuse("builder/opaque-access",
             "block '" + block->name_hint + "' uses the pointer of buffer '" + buffer->name +
                 "', so its regions cannot be computed",
             "say what it reads and writes with T.reads(...) and T.writes(...)");
    }
    if (use.reads) add_whole(access.reads, buffer);
    if (use.writes) add_whole(access.writes, buffer);
  });
}

/// A call with effects may write to what it gets the address of: all of the buffer.
void add_regions_of_addresses(const Ref<Block>& block, analysis::BlockAccess& access) {
  std::unordered_set<NodeRef> given;
  visit(block, [&](const Ref<Call>& call) {
    const Intrinsic intrinsic = intrinsic_of(*call);
    if (intrinsic == Intrinsic::kUnknown || intrinsic_row(intrinsic).effect == Effect::kUpdateState) {
      given.insert(call->args.begin(), call->args.end());
    }
  });
  analysis::for_each_access(block, analysis::Nested::kDeclared, [&](const analysis::Access& use) {
    const bool is_given = use.form == analysis::Access::Form::kAddress && !use.is_atomic && given.contains(use.site);
    if (!is_given || use.alias.defined()) return;
    const Ref<Buffer> buffer = use.region()->buffer;
    if (!is_contained(block->alloc_buffers, buffer)) add_whole(access.writes, buffer);
  });
}

/// The block, with the regions that the script omitted.
Ref<Block> complete_regions(const IRBuilder& builder, const Ref<Block>& block, const BlockFrame& frame) {
  analysis::BlockAccess access = analysis::block_access_region(block);
  for (const Ref<Var>& pointer : access.opaque) {
    Ref<Buffer> buffer = buffer_behind(builder, pointer);
    bool own = is_contained(block->alloc_buffers, buffer);
    if (buffer.defined() && !own) add_regions_behind(block, buffer, access);
  }
  add_regions_of_addresses(block, access);
  Block complete = *block;
  if (!frame.reads) complete.reads = std::move(access.reads);
  if (!frame.writes) complete.writes = std::move(access.writes);
  return make(std::move(complete), block.span());
}

}  // namespace

void BlockFrame::check_place(IRBuilder& builder) {
  if (builder.innermost() && builder.innermost()->kind == FrameKind::kModule) {
    refuse("builder/place", "T.block directly inside I.ir_module", "put it into a function");
  }
  if (builder.find<SparseIterationFrame>()) {
    refuse("builder/place", "T.block inside T.sp.iteration", "an iteration becomes blocks when it is lowered");
  }
}

void BlockFrame::finish(IRBuilder& builder) {
  if (no_realize) {
    bool bound = any_of(iter_values, [](const Expr& e) { return e.defined(); });
    if (bound)
      refuse("builder/no-realize", "block '" + name + "' has no realize, yet its axes are bound",
             "leave no_realize=True out");
    if (predicate.defined())
      refuse("builder/no-realize", "block '" + name + "' has no realize, yet T.where", "leave no_realize=True out");
  } else {
    for (size_t i : indices_of(iter_values)) {
      if (iter_values[i].defined()) continue;
      refuse("builder/missing-binding",
             "axis '" + iter_vars[i]->var->name_hint + "' of block '" + name + "' is not bound to anything",
             "give the loop variable as second argument: " + std::string(axis_name(iter_vars[i]->iter_type)) +
                 "(extent, i)");
    }
  }
  Annotations attrs = annotations.value_or(Annotations{});
  for (const BufferDomain& domain : domains) declare(attrs, domain);
  for (const DisjointBuffers& group : disjoint) declare(attrs, group);
  if ((!reads || !writes) && !builder.find<PrimFuncFrame>()) {
    // A lone block keeps the note that TVM leaves for whoever completes it: 1 reads, 2 writes.
    attrs.set("tir.script_parsing_detect_access", i64((reads ? 0 : 1) + (writes ? 0 : 2)));
  }
  Ref<Block> block = make<Block>({.iter_vars = iter_vars,
                                  .reads = reads.value_or(std::vector<Ref<BufferRegion>>{}),
                                  .writes = writes.value_or(std::vector<Ref<BufferRegion>>{}),
                                  .name_hint = name,
                                  .alloc_buffers = alloc_buffers,
                                  .match_buffers = match_buffers,
                                  .annotations = std::move(attrs),
                                  .init = init,
                                  .body = body(),
                                  .id = {}});
  if ((!reads || !writes) && builder.find<PrimFuncFrame>()) {
    auto* function = dynamic_cast<PrimFuncFrame*>(builder.innermost());
    if (function && iter_vars.empty()) function->without_axes = block;
    block = complete_regions(builder, block, *this);
  }
  if (no_realize) {
    builder.add(block);
    return;
  }
  Expr guard = predicate.defined() ? predicate : Expr(bool_imm(true));
  builder.add(make<BlockRealize>({iter_values, guard, block}));
}

Stmt complete_root(Stmt body, const std::vector<Def<Buffer>>& alloc_buffers, const Annotations& annotations,
                   const Ref<Block>& as_said) {
  bool needs_root = !alloc_buffers.empty() || !annotations.empty();
  if (!needs_root && contains_block(body)) {
    const BlockRealize* realize = body.as<BlockRealize>();
    needs_root = realize == nullptr || !realize->block->iter_vars.empty();
  }
  const BlockRealize* own = body.as<BlockRealize>();
  if (!needs_root && own && as_said.defined() && own->block->id.value == as_said->id.value) {
    // Nobody asks what the root touches: it keeps what is said of it.
    return make<BlockRealize>({own->iter_values, own->predicate, as_said}, body.span());
  }
  if (!needs_root) return body;
  Ref<Block> root = make<Block>({.iter_vars = {},
                                 .reads = {},
                                 .writes = {},
                                 .name_hint = "root",
                                 .alloc_buffers = alloc_buffers,
                                 .match_buffers = {},
                                 .annotations = annotations,
                                 .init = {},
                                 .body = std::move(body),
                                 .id = {}});
  return realized(root);
}

FramePtr block(const std::string& name, bool no_realize) { return std::make_shared<BlockFrame>(name, no_realize); }
FramePtr init() { return std::make_shared<BlockInitFrame>(); }

void where(Expr predicate) {
  BlockFrame& frame = block_frame("T.where");
  if (frame.predicate.defined()) {
    refuse("builder/twice", "T.where is given twice", "join the conditions with T.And, or `and`");
  }
  predicate = as_condition(std::move(predicate));
  if (!predicate.dtype().is_bool()) {
    refuse("builder/condition", "the condition of T.where is " + predicate.dtype().str(),
           "it must be bool, or one number");
  }
  frame.predicate = std::move(predicate);
}

void reads(std::vector<Ref<BufferRegion>> regions) {
  BlockFrame& frame = block_frame("T.reads");
  if (frame.reads) refuse("builder/twice", "T.reads is given twice", "list all regions in one T.reads");
  frame.reads = std::move(regions);
}

void writes(std::vector<Ref<BufferRegion>> regions) {
  BlockFrame& frame = block_frame("T.writes");
  if (frame.writes) refuse("builder/twice", "T.writes is given twice", "list all regions in one T.writes");
  frame.writes = std::move(regions);
}

void block_attr(const Annotations& attrs) {
  BlockFrame& frame = block_frame("T.block_attr");
  if (frame.annotations) refuse("builder/twice", "T.block_attr is given twice", "put all annotations into one dict");
  frame.annotations = attrs;
}

void assume_buffer_domain(const Ref<Buffer>& buffer, Expr min, Expr end, const std::string& order,
                          const NodeRef& segments, Expr longest) {
  IRBuilder& builder = IRBuilder::require("T.assume_buffer_domain");
  auto* block = dynamic_cast<BlockFrame*>(builder.innermost());
  auto* function = dynamic_cast<PrimFuncFrame*>(builder.innermost());
  if (!block && !function) {
    refuse("builder/place", "T.assume_buffer_domain belongs directly inside a block or a function",
           "declare it where the block begins that reads the buffer");
  }
  BufferDomain domain{buffer, std::move(min), std::move(end)};
  if (segments.defined() && segments.is<Buffer>()) domain.segments = segments.borrow<Buffer>();
  if (segments.defined() && segments.sort() == Sort::kExpr) domain.segment_length = Expr(segments);
  if (segments.defined() && !domain.has_segments()) {
    refuse("builder/domain", "segments are neither a buffer nor a number",
           "give the buffer of their offsets, or the length of each: segments=indptr, segments=3");
  }
  for (const Ref<Buffer>& declared : {buffer, domain.segments}) {
    if (!declared.defined() || declared->dtype.is_integral()) continue;
    refuse("builder/domain", "the values of buffer '" + declared->name + "' are " + declared->dtype.str(),
           "domains are those of buffers of integers");
  }
  domain.longest = std::move(longest);
  for (const Expr& limit : {domain.min, domain.end}) {
    if (limit.dtype().is_integral() && limit.dtype().is_scalar()) continue;
    refuse("builder/domain", "an end of the domain is " + limit.dtype().str(), "the ends are integers: [0, n]");
  }
  for (const Expr& length : {domain.segment_length, domain.longest}) {
    if (!length.defined() || (length.dtype().is_integral() && length.dtype().is_scalar())) continue;
    refuse("builder/domain", "the length of segments is " + length.dtype().str(), "it is an integer: segments=3");
  }
  if (!parse_order(order, &domain.order)) {
    refuse("builder/domain", "there is no order \"" + order + "\"",
           R"(use "nondecreasing", "increasing", "distinct" or "offsets")");
  }
  const bool is_ordered = domain.order != ValueOrder::kNone;
  if (is_ordered && buffer->shape.size() != 1) {
    refuse("builder/domain",
           "buffer '" + buffer->name + "' has " + std::to_string(buffer->shape.size()) + " dimensions",
           "an order is that of a buffer of one dimension");
  }
  if (domain.has_segments() && (!is_ordered || (domain.segments.defined() && domain.segments->shape.size() != 1))) {
    refuse("builder/domain", "segments without an order, or of more than one dimension",
           R"(say how the values follow one another in each segment: order="increasing", segments=indptr)");
  }
  if (domain.has_segments() && domain.order == ValueOrder::kDistinct) {
    refuse("builder/domain", "the values of '" + buffer->name + "' are distinct in each segment",
           R"(use order="increasing" for segments, or declare that no value occurs twice in all of the buffer)");
  }
  if (domain.has_segments() && domain.order == ValueOrder::kOffsets) {
    refuse("builder/domain", "the values of '" + buffer->name + "' are offsets in each segment",
           R"(use order="nondecreasing" for segments)");
  }
  const bool are_offsets = domain.order == ValueOrder::kNondecreasing || domain.order == ValueOrder::kOffsets;
  if (domain.longest.defined() && (!are_offsets || domain.has_segments())) {
    refuse("builder/domain", "the values of '" + buffer->name + "' are no offsets, whose segments have a longest one",
           R"(declare order="nondecreasing" or "offsets" of all of the buffer, or leave longest= out)");
  }
  if (block) {
    block->domains.push_back(std::move(domain));
  } else {
    declare(function->root_annotations, domain);
  }
}

void assume_disjoint(const std::vector<Ref<Buffer>>& buffers) {
  IRBuilder& builder = IRBuilder::require("T.assume_disjoint");
  auto* block = dynamic_cast<BlockFrame*>(builder.innermost());
  auto* function = dynamic_cast<PrimFuncFrame*>(builder.innermost());
  if (!block && !function) {
    refuse("builder/place", "T.assume_disjoint belongs directly inside a block or a function",
           "declare it where the block begins that reads the buffers");
  }
  if (buffers.size() < 2) {
    refuse("builder/domain", "T.assume_disjoint takes at least two buffers",
           "name all buffers that have no value in common");
  }
  for (const Ref<Buffer>& buffer : buffers) {
    if (std::ranges::count(buffers, buffer) == 1) continue;
    refuse("builder/domain", "buffer '" + buffer->name + "' is named twice", "name each buffer once");
  }
  if (block) {
    block->disjoint.push_back(buffers);
  } else {
    declare(function->root_annotations, buffers);
  }
}

Ref<Var> axis(IterType type, const Ref<Range>& dom, Expr binding, DataType dtype) {
  BlockFrame& frame = block_frame(axis_name(type));
  if (frame.init.defined()) {
    refuse("builder/axis-order", std::string(axis_name(type)) + " after T.init", "declare the axes first");
  }
  const Expr min = as_index(dom->min), extent = as_index(dom->extent);
  int bits = std::max<int>({min.dtype().bits, extent.dtype().bits, dtype.bits});
  if (binding.defined()) {
    if (!binding.dtype().is_integral() || !binding.dtype().is_scalar()) {
      refuse("builder/axis-dtype", "an axis is bound to a value of " + binding.dtype().str(),
             "bindings of axes are integers");
    }
    if (!binding.is<IntImm>()) bits = std::max<int>(bits, as_index(binding).dtype().bits);
  }
  DataType type_of_axis = DataType::int_(bits);
  Ref<Var> variable = var("v", type_of_axis);
  IRBuilder::current()->adopt(variable);
  Ref<Range> own = range(cast(type_of_axis, min), cast(type_of_axis, extent));
  frame.iter_vars.push_back(make<IterVar>({own, variable, type, ""}));
  frame.iter_values.push_back(binding.defined() ? cast(type_of_axis, binding) : binding);
  return variable;
}

std::vector<Ref<Var>> remap(std::string_view kinds, const std::vector<Expr>& loop_vars) {
  block_frame("T.axis.remap");
  if (kinds.size() != loop_vars.size()) {
    refuse("builder/remap",
           "T.axis.remap(\"" + std::string(kinds) + "\", ...) names " + std::to_string(kinds.size()) + " axes for " +
               std::to_string(loop_vars.size()) + " loops",
           "one letter for each loop");
  }
  std::vector<Ref<Var>> result;
  for (size_t i : indices_of(kinds)) {
    if (kinds[i] != 'S' && kinds[i] != 'R') {
      refuse("builder/remap", std::string("the letter '") + kinds[i] + "' in T.axis.remap",
             "'S' is a spatial axis, 'R' one of a reduction");
    }
    const ForFrame::Loop* loop = nullptr;
    for (const FramePtr& frame : IRBuilder::current()->frames()) {
      auto* loops = dynamic_cast<ForFrame*>(frame.get());
      if (loops == nullptr) continue;
      for (const ForFrame::Loop& candidate : loops->loops) {
        if (candidate.var == loop_vars[i]) loop = &candidate;
      }
    }
    if (loop == nullptr) {
      refuse("builder/remap",
             "argument " + std::to_string(i + 1) + " of T.axis.remap is not the variable of a loop around",
             "bind an expression with T.axis.spatial(extent, expression) or T.axis.reduce");
    }
    result.push_back(axis(kinds[i] == 'S' ? IterType::kDataPar : IterType::kCommReduce, range(loop->min, loop->extent),
                          loop->var, loop->var.dtype()));
  }
  return result;
}

}  // namespace tilewright::script
