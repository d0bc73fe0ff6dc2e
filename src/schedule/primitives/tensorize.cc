// Let a block be computed by a tensor intrinsic; here by "copy_4", whose implementation is W[0:4] = V[0:4].
//
//   Before                          After  sch.tensorize(i, "copy_4")
//   for i in range(4):              with T.block("B_o"):
//     with T.block("B"):              vi_o = T.axis.spatial(1, 0)
//       vi = T.axis.spatial(4, i)     T.reads(A[0:4])
//       B[vi] = A[vi]                 T.writes(B[0:4])
//                                     V = T.match_buffer(A[0:4], (4,))
//                                     W = T.match_buffer(B[0:4], (4,))
//                                     W[0:4] = V[0:4]
//
// The description and the block do the same to the same elements; the implementation takes the place of the block's
// body, over views of the parts that the description's buffers are.
//
// Requires  P1 an intrinsic of this name is registered
//           P2 the block has no init, allocates nothing and makes no views, and the inits in it run wherever a step
//              of their reductions does; a loop can be blockized
//           P3 the block computes what the description says, for some part of a buffer for each of its parameters
//           P4 each part is within what the block declares, and inside of its buffer; dimensions from which elements
//              of an array select are whole, as of an intrinsic for B[I[k]]
//           P5 a part that is written shares no memory with another one
//           P6 a part has the memory layout that the implementation declares

#include "schedule/primitives/tensorize.h"
#include "analysis/block_facts.h"
#include "arith/int_set.h"
#include "ir/build.h"
#include "ir/regions.h"
#include "ir/substitute.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/inits.h"
#include "schedule/match_description.h"
#include "schedule/primitive.h"
#include "schedule/primitives/blockize.h"
#include "support/closest.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// A parameter of the implementation with what it stands for.
struct Argument {
  Ref<Buffer> buffer;
  Ref<BufferRegion> region;  ///< region with the dimensions of the program's buffer; the last ones are the parameter's
  bool written;
};

class Replacement {
 public:
  Replacement(const Tree& tree, int at, const TensorIntrin& intrin)
      : tree_(tree), at_(at), intrin_(intrin), desc_(intrin.desc), impl_(renew_defs(intrin.impl)) {
    analyzer_ = analysis::analyzer_above(tree, at);
    if (const BlockRealize* realize = tree.realize_at(at)) analysis::assume_all(in_axes(*realize), analyzer_);
  }

  Result<Block> run() {
    const Block& block = tree_.block_at(at_);
    TW_RETURN_IF_ERROR(check_block(block));
    if (has_wide_loops(block) && intrin_.wide_desc.defined()) desc_ = intrin_.wide_desc;
    auto matched = match_description(block.body, TensorIntrin::block_of(desc_)->body, analyzer_);
    if (const Difference* difference = std::get_if<Difference>(&matched)) {
      return refuse("tensorize/P3",
                    describe_block(block) + " does not compute what '" + intrin_.name + "' does: " + difference->why,
                    {tree_.stmt(at_), difference->where},
                    "the description of the intrinsic is tilewright.TensorIntrin.get(\"" + intrin_.name + "\").desc");
    }
    const Parts& parts = std::get<Parts>(matched);
    bool wide = any_of(parts, [](const auto& part) { return has_wide_indices(part.second); });
    if (wide && intrin_.wide_impl.defined()) impl_ = renew_defs(intrin_.wide_impl);
    TW_RETURN_IF_ERROR(find_arguments(parts, block));
    TW_RETURN_IF_ERROR(check_memory());
    return replaced(block);
  }

 private:
  static bool has_wide_indices(const Part& part) {
    return any_of(part.start, [](const Expr& e) { return e.dtype() == DataType::int_(64); });
  }

  static bool has_wide_loops(const Block& block) {
    return any_node(block.body, [](const Ref<For>& loop) { return loop->loop_var.dtype() == DataType::int_(64); });
  }

  /// The condition of the block where it speaks of whole axes.
  static Expr in_axes(const BlockRealize& realize) {
    VarMap map;
    for (size_t i : indices_of(realize.iter_values)) {
      if (realize.iter_values[i].is<Var>()) map[realize.iter_values[i]] = realize.block->iter_vars[i]->var;
    }
    return substitute(realize.predicate, map);
  }

  Status check_block(const Block& block) {
    const char* why = block.init.defined()               ? "it has an init"
                      : !block.alloc_buffers.empty()     ? "it allocates a buffer"
                      : !block.match_buffers.empty()     ? "it makes a view of a buffer"
                      : tree_[at_].parent == Tree::kNone ? "it is the body of the function"
                                                         : nullptr;
    if (!why) return Ok{};
    return refuse("tensorize/P2", describe_block(block) + " cannot be computed by an intrinsic: " + why,
                  {tree_.stmt(at_)},
                  block.init.defined() ? "decompose_reduction() makes the init a block of its own" : "");
  }

  Status find_arguments(const Parts& parts, const Block& block) {
    const auto& said = desc_->params;
    const Ref<Block> contract = TensorIntrin::block_of(desc_);
    for (size_t i : indices_of(said)) {
      Ref<Buffer> described = desc_->buffer_of(said[i]);
      auto* found = find_value(parts, described);
      if (!found) {
        return refuse("tensorize/P3",
                      "nothing in " + describe_block(block) + " is '" + described->name + "' of the description of '" +
                          intrin_.name + "'",
                      {tree_.stmt(at_)},
                      "the block has to touch a buffer for each one of the description; cache_read() and cache_write() "
                      "make them");
      }
      const Part& part = *found;
      TW_RETURN_IF_ERROR(check_gathered(part, described));
      std::vector<Ref<Range>> region;
      size_t leading = part.start.size() - described->shape.size();
      for (size_t d : indices_of(part.start)) {
        DataType dtype = part.start[d].dtype();
        Expr extent = d < leading ? one(dtype) : cast(dtype, described->shape[d - leading]);
        region.push_back(range(part.start[d], extent));
      }
      auto touches = [&](const std::vector<Ref<BufferRegion>>& regions) {
        return any_of(regions, [&](const Ref<BufferRegion>& r) { return r->buffer == described; });
      };
      Argument argument{impl_->buffer_of(impl_->params[i]), make<BufferRegion>({part.buffer, std::move(region)}),
                        touches(contract->writes)};
      TW_RETURN_IF_ERROR(check_within(argument, touches(contract->reads), block));
      arguments_.push_back(std::move(argument));
    }
    return Ok{};
  }

  /// Values that select are known to be inside of the buffer only.
  Status check_gathered(const Part& part, const Ref<Buffer>& described) {
    size_t leading = part.start.size() - described->shape.size();
    for (size_t d = leading; d < part.start.size(); ++d) {
      const Expr &extent = part.buffer->shape[d], &said = described->shape[d - leading];
      if (!part.gathered[d] || analyzer_.can_prove_equal(cast(extent.dtype(), said), extent)) continue;
      return refuse("tensorize/P4",
                    "the intrinsic selects from " + analysis::brief(said) + " positions of '" + part.buffer->name +
                        "', which has " + analysis::brief(extent) + " in dimension " + std::to_string(d),
                    {tree_.stmt(at_)},
                    "the description of an intrinsic that gathers has all positions of the dimension");
    }
    return Ok{};
  }

  /// The intrinsic touches all of a part, also where the block has a condition on what it reads.
  Status check_within(const Argument& argument, bool read, const Block& block) {
    const arith::Box whole = arith::box_of(whole_region(argument.region->buffer->shape));
    arith::Box part = arith::box_of(argument.region->region);
    if (!arith::proves_subset(part, whole, analyzer_)) {
      return refuse("tensorize/P4",
                    "the intrinsic touches " + analysis::brief(argument.region) +
                        ", which is not known to be inside of '" + argument.region->buffer->name + "'",
                    {tree_.stmt(at_)}, "pad the buffer, or leave such tiles to a loop of their own");
    }
    auto within = [&](const std::vector<Ref<BufferRegion>>& declared) {
      return any_of(declared, [&](const Ref<BufferRegion>& outer) {
        return outer->buffer == argument.region->buffer &&
               arith::proves_subset(part, arith::box_of(outer->region), analyzer_);
      });
    };
    bool reads = !read || within(block.reads);
    if (reads && (!argument.written || within(block.writes))) return Ok{};
    return refuse("tensorize/P4",
                  "the intrinsic " + std::string(reads ? "writes " : "reads ") + analysis::brief(argument.region) +
                      ", and " + describe_block(block) + " is not known to " + (reads ? "write" : "read") +
                      " all of it",
                  {tree_.stmt(at_)}, "tiles have to be whole: pad, or split so that nothing is left over");
  }

  Status check_memory() {
    for (const Argument& argument : arguments_) {
      for (const Argument& other : arguments_) {
        if (&other == &argument || !argument.written) continue;
        if (!tree_.same_memory(other.region->buffer, argument.region->buffer)) continue;
        return refuse("tensorize/P5",
                      "'" + argument.buffer->name + "' of the intrinsic is written, and '" + other.buffer->name +
                          "' would be in the same buffer '" + other.region->buffer->name + "'",
                      {tree_.stmt(at_)}, "give the operand a buffer of its own with cache_read() or cache_write()");
      }
      TW_RETURN_IF_ERROR(check_layout(argument));
    }
    return Ok{};
  }

  /// The strides that the implementation states are those that the part has; where it takes a pointer and states none,
  /// it means compact memory.
  Status check_layout(const Argument& argument) {
    const Buffer &mine = *argument.region->buffer, &own = *argument.buffer;
    std::vector<Expr> actual = strides_of(mine), stated = own.strides;
    if (stated.empty()) {
      if (!intrin_.compact || !takes_pointer(argument.buffer)) return Ok{};
      stated = strides_of(own);
    }
    size_t leading = actual.size() - stated.size();
    for (size_t d : indices_of(stated)) {
      if (stated[d].is<Var>() || is_const_int(own.shape[d], 1)) continue;
      if (analyzer_.can_prove_equal(cast(DataType::int_(64), stated[d]),
                                    cast(DataType::int_(64), actual[d + leading]))) {
        continue;
      }
      return refuse("tensorize/P6",
                    "'" + own.name + "' of the intrinsic has a stride of " + analysis::brief(stated[d]) +
                        " in dimension " + std::to_string(d) + ", " + analysis::brief(argument.region) + " one of " +
                        analysis::brief(actual[d + leading]),
                    {tree_.stmt(at_)}, "transform_layout() or a cached copy can bring the tiles together");
    }
    return Ok{};
  }

  static std::vector<Expr> strides_of(const Buffer& buffer) {
    if (!buffer.strides.empty()) return buffer.strides;
    std::vector<Expr> strides(buffer.shape.size());
    Expr stride = i64(1);
    for (size_t d = buffer.shape.size(); d-- > 0;) {
      strides[d] = stride;
      stride = stride * cast(DataType::int_(64), buffer.shape[d]);
    }
    return strides;
  }

  /// The implementation reaches the buffer other than by loads and stores.
  bool takes_pointer(const Ref<Buffer>& buffer) const {
    bool found = false;
    visit(
        impl_->body,
        [&](const Ref<Call>& call) {
          for (const NodeRef& arg : call->args) {
            found |= arg == buffer->data;
            const BufferLoad* load = arg.as<BufferLoad>();
            found |= load && load->buffer == buffer && intrinsic_of(*call) == Intrinsic::k_address_of;
          }
        },
        [&](const Ref<DeclBuffer>& decl) { found |= decl->buffer->data == buffer->data; });
    return found;
  }

  Result<Block> replaced(const Block& block) {
    const Block& inside = *TensorIntrin::block_of(impl_);
    Block result = block;
    // A view of memory in another place than the parameter's is as good, where it is not reached by its pointer.
    VarMap moved;
    for (Argument& argument : arguments_) {
      const std::string& scope = argument.region->buffer->scope();
      if (scope == argument.buffer->scope()) continue;
      if (takes_pointer(argument.buffer) || argument.buffer->scope() != "global") {
        return refuse("tensorize/P6",
                      "'" + argument.buffer->name + "' of the intrinsic is in \"" + argument.buffer->scope() +
                          "\" memory, '" + argument.region->buffer->name + "' in \"" + scope + "\"",
                      {tree_.stmt(at_)}, "cache_read(), cache_write() and set_scope() bring it there");
      }
      moved[argument.buffer->data] = pointer_var(argument.buffer->name, argument.buffer->dtype, scope);
    }
    Ref<PrimFunc> impl = moved.empty() ? impl_ : substitute(impl_, moved);
    const Block& body = moved.empty() ? inside : *TensorIntrin::block_of(impl);
    std::unordered_map<NodeRef, const Argument*> by_buffer;
    result.match_buffers.clear();
    for (size_t i : indices_of(arguments_)) {
      Ref<Buffer> buffer = impl->buffer_of(impl->params[i]);
      by_buffer[buffer] = &arguments_[i];
      result.match_buffers.push_back(make<MatchBufferRegion>({buffer, arguments_[i].region}));
    }
    append_range(result.match_buffers, body.match_buffers);
    result.alloc_buffers = body.alloc_buffers;
    auto shown = [&](const std::vector<Ref<BufferRegion>>& regions) {
      std::vector<Ref<BufferRegion>> all;
      for (const Ref<BufferRegion>& r : regions) {
        if (auto* found = find_value(by_buffer, r->buffer)) all.push_back(behind(**found, *r));
      }
      return all;
    };
    result.reads = shown(body.reads);
    result.writes = shown(body.writes);
    for (const auto& [key, value] : body.annotations.entries()) {
      if (!result.annotations.has(key)) result.annotations.set(key, value);
    }
    result.body = body.body;
    return result;
  }

  Ref<BufferRegion> behind(const Argument& argument, const BufferRegion& part) {
    BufferRegion result = *argument.region;
    size_t leading = result.region.size() - part.region.size();
    for (size_t d : indices_of(part.region)) {
      const Ref<Range>& start = argument.region->region[d + leading];
      DataType dtype = start->min.dtype();
      result.region[d + leading] =
          range(analyzer_.simplify(start->min + cast(dtype, part.region[d]->min)), cast(dtype, part.region[d]->extent));
    }
    return make(std::move(result));
  }

  const Tree& tree_;
  int at_;
  const TensorIntrin& intrin_;
  Ref<PrimFunc> desc_, impl_;  ///< with indices of 64 bits where the block has such ones
  arith::Analyzer analyzer_;
  std::vector<Argument> arguments_;
};

}  // namespace

Result<Plan> plan(const State& state, const Tensorize& tensorize) {
  auto intrin = find_tensor_intrin(tensorize.tensor_intrin);
  TW_TRY(place, state.find(tensorize.block_or_loop));
  if (!intrin) {
    const std::string meant = closest_name(tensorize.tensor_intrin, tensor_intrin_names());
    return refuse(
        "tensorize/P1", "no tensor intrinsic '" + tensorize.tensor_intrin + "' is registered", {},
        (meant.empty() ? "" : "did you mean '" + meant + "'? ") +
            "import tilewright.tensor_intrin has those of known processors; TensorIntrin.register() adds one");
  }
  Ref<Block> root = place.tree->block_ref(0);
  int at = place.at;
  if (!(*place.tree)[at].is_loop) {
    TW_RETURN_IF_ERROR(require_inits_run(place, "tensorize/P2"));
  }
  if (const LoopRV* loop = std::get_if<LoopRV>(&tensorize.block_or_loop)) {
    TW_TRY(blockized, plan(state, Blockize{{*loop}, tensorize.preserve_unit_iters}));
    root = blockized.root;
    const auto& made = std::get<Handle::BlockId>(blockized.outputs[0]->target);
    at = Tree::of(root).block(made.identity);
  }
  const Tree& tree = Tree::of(root);
  TW_TRY(block, Replacement(tree, at, *intrin).run());
  BlockRealize realize = *tree.realize_at(at);
  realize.block = make(std::move(block), tree.block_ref(at).span());
  TreeEdit edit(tree);
  edit.replace(at, make(std::move(realize), tree.stmt(at).span()));
  return give_loops(place.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
