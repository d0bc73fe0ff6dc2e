// The instructions that a trace is made of, as aggregates. Field names are the parameter names of the Python method,
// field types say what a parameter takes and whether it is an input (handles, sampled values) or an attribute.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/fields.h"
#include "schedule/value.h"

namespace tilewright::schedule {

using BlockOrLoop = std::variant<BlockRV, LoopRV>;
/// None: to be inferred.
using Factor = std::variant<None, int64_t, ExprRV>;
/// Which of a block's reads or writes: its position, the buffer's name, or the Buffer. Recorded as a position.
using BufferIndex = std::variant<int64_t, std::string, NodeRef>;
/// Arguments that Python passes as *args and JSON among the other inputs.
template <class T>
struct Star {
  std::vector<T> items;
};
/// A list that JSON writes among the other inputs.
template <class T>
struct Flat {
  std::vector<T> items;
};
/// What a sampling instruction drew, or shall take.
template <class T>
struct Decision {
  std::optional<T> value;
};
/// One of the buffers that a block touches: by position among its reads or writes, by name, or itself.
struct TouchedBuffer {
  std::string kind;  ///< "read" or "write" with a position, else ""
  BufferIndex index = int64_t{0};
};
/// A function of indices: an IndexMap.
struct IndexFunction {
  NodeRef map;
};
/// A list that is left out where it is empty.
template <class T>
struct OmitEmpty {
  std::vector<T> items;
};

enum class Family {
  kLookup,     ///< gives handles
  kSample,     ///< draws
  kTransform,  ///< changes the program
};

struct SampleCategorical {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  Decision<int64_t> decision;
  using Members = Fields<&SampleCategorical::candidates, &SampleCategorical::probs, &SampleCategorical::decision>;
  using Returns = ExprRV;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kSample;
  static constexpr std::string_view kDoc = R"(Draw one of some integers.

Args:
    candidates: the integers to choose from.
    probs: as many weights, not negative; they need not add up to 1.
    decision: take this position in candidates instead of drawing.

Returns:
    The drawn value, to be passed on (to split, annotate). Reading it with int() ties the Python code to this draw.)";
};

struct SamplePerfectTile {
  LoopRV loop;
  int64_t n = 0;
  int64_t max_innermost_factor = 16;
  Decision<std::vector<int64_t>> decision;
  using Members = Fields<&SamplePerfectTile::loop, &SamplePerfectTile::n, &SamplePerfectTile::max_innermost_factor,
                         &SamplePerfectTile::decision>;
  using Returns = std::vector<std::optional<ExprRV>>;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kSample;
  static constexpr std::string_view kDoc =
      R"(Draw n factors whose product is the extent of a loop, uniformly among all such factors.

Args:
    loop: the loop to tile; it stays as it is.
    n: the number of factors.
    max_innermost_factor: the largest last factor; -1 for no limit.
    decision: take these factors instead of drawing. Factors that do not divide are repaired from the innermost on.

Returns:
    The factors, outermost first, to be passed to split. Where the extent is not constant, the first is None (to be
    inferred) and all others are 1.)";
};

struct GetBlock {
  std::string name;
  std::string func_name;
  using Members = Fields<&GetBlock::name, &GetBlock::func_name>;
  using Returns = BlockRV;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Find the block with a name.

Args:
    name: the block's name; exactly one block of the function has it. The implicit root block is named "root".
    func_name: the function to look in; by default the one being worked on.

Returns:
    A handle that stays valid while the block exists.)";
};

struct GetLoops {
  BlockRV block;
  using Members = Fields<&GetLoops::block>;
  using Returns = std::vector<LoopRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Give the loops around a block, up to the block that encloses it.

Args:
    block: the block.

Returns:
    The loops, outermost first.)";
};

struct GetChildBlocks {
  BlockOrLoop block_or_loop;
  using Members = Fields<&GetChildBlocks::block_or_loop>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr bool kPositional = true;
  static constexpr std::string_view kDoc = R"(Give the blocks directly below a block or a loop.

Args:
    block_or_loop: where to look; blocks inside the found ones are not among the result.

Returns:
    The blocks in program order.)";
};

struct GetProducers {
  BlockRV block;
  using Members = Fields<&GetProducers::block>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Give the blocks of the same scope that write what this block reads.

Args:
    block: the reading block.

Returns:
    The producers in program order.)";
};

struct GetConsumers {
  BlockRV block;
  using Members = Fields<&GetConsumers::block>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Give the blocks of the same scope that read what this block writes.

Args:
    block: the writing block.

Returns:
    The consumers in program order.)";
};

struct GetOutputBlocks {
  BlockRV scope_block;
  using Members = Fields<&GetOutputBlocks::scope_block>;
  using Returns = std::vector<BlockRV>;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc =
      R"(Give the blocks of a scope that write a buffer which is not allocated inside it.

Args:
    scope_block: the enclosing block, often get_block("root").

Returns:
    The output blocks in program order.)";
};

struct Fuse {
  Star<LoopRV> loops;
  bool preserve_unit_iters = true;
  using Members = Fields<&Fuse::loops, &Fuse::preserve_unit_iters>;
  using Returns = LoopRV;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Make one loop out of directly nested ones, in the same order of iterations.

Args:
    *loops: the loops, outermost first, each the only content of the one before.
    preserve_unit_iters: keep block axes of extent 1 bound to loops instead of to constants.

Returns:
    The new loop.)";
};

struct Split {
  LoopRV loop;
  Flat<Factor> factors;
  bool preserve_unit_iters = true;
  bool disable_predication = false;
  using Members = Fields<&Split::loop, &Split::factors, &Split::preserve_unit_iters, &Split::disable_predication>;
  using Returns = std::vector<LoopRV>;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Split a loop into a nest, in the same order of iterations.

Where the product of the factors exceeds the extent, the blocks inside get a condition (T.where) that skips the
iterations beyond it.

Args:
    loop: the loop to split.
    factors: the extents of the new loops, outermost first: integers, sampled values, at most one None to be inferred.
    preserve_unit_iters: keep block axes of extent 1 bound to loops instead of to constants.
    disable_predication: add no condition; accepted only where none is needed.

Returns:
    The new loops, outermost first.)";
};

struct Reorder {
  Star<LoopRV> ordered_loops;
  using Members = Fields<&Reorder::ordered_loops>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Put loops of one nest into another order.

Args:
    *ordered_loops: the loops in their new order, outermost first. Loops of the nest that are not named keep their place.)";
};

struct AddUnitLoop {
  BlockOrLoop block_or_loop;
  using Members = Fields<&AddUnitLoop::block_or_loop>;
  using Returns = LoopRV;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Put a loop of one iteration around a block or a loop.

Args:
    block_or_loop: what to put it around.

Returns:
    The new loop.)";
};

struct Parallel {
  LoopRV loop;
  using Members = Fields<&Parallel::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run on several cores.

Args:
    loop: a loop whose iterations are independent of one another.)";
};

struct Vectorize {
  LoopRV loop;
  using Members = Fields<&Vectorize::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run as the lanes of vector instructions.

Args:
    loop: a loop whose iterations are independent of one another.)";
};

struct Bind {
  LoopRV loop;
  std::string thread_axis;
  using Members = Fields<&Bind::loop, &Bind::thread_axis>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run on the threads of a GPU.

Args:
    loop: a loop whose iterations are independent of one another.
    thread_axis: "blockIdx.x", "threadIdx.y", "vthread.z", ...)";
};

struct Unroll {
  LoopRV loop;
  using Members = Fields<&Unroll::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Write out the iterations of a loop one after another.

Args:
    loop: the loop.)";
};

struct CacheRead {
  BlockRV block;
  BufferIndex read_buffer_index = int64_t{0};
  std::string storage_scope;
  OmitEmpty<BlockRV> consumer_blocks;
  using Members =
      Fields<&CacheRead::block, &CacheRead::read_buffer_index, &CacheRead::storage_scope, &CacheRead::consumer_blocks>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Copy a buffer into a new one, and let readers read the copy.

The copy is a block of its own, right after the producer of the buffer or at the top of the scope; compute_at moves it.

Args:
    block: a block that reads the buffer.
    read_buffer_index: which of its reads: a position, or the buffer's name.
    storage_scope: where the copy lives: "global", "local" (registers on a CPU), "shared", ...
    consumer_blocks: the readers to redirect; all by default.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

struct CacheWrite {
  BlockRV block;
  BufferIndex write_buffer_index = int64_t{0};
  std::string storage_scope;
  OmitEmpty<BlockRV> consumer_blocks;
  using Members = Fields<&CacheWrite::block, &CacheWrite::write_buffer_index, &CacheWrite::storage_scope,
                         &CacheWrite::consumer_blocks>;
  using Returns = BlockRV;
  static constexpr int kRequired = 3;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Let a block write a new buffer, and copy that back to the old one.

The copy is a block of its own; reverse_compute_at moves it.

Args:
    block: the only block that writes the buffer.
    write_buffer_index: which of its writes: a position, or the buffer's name.
    storage_scope: where the new buffer lives: "global", "local" (registers on a CPU), "shared", ...
    consumer_blocks: the readers that shall read the new buffer; none by default.

Returns:
    The copying block, named like the new buffer: BUFFER_SCOPE.)";
};

struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;
  using Members = Fields<&ComputeAt::block, &ComputeAt::loop, &ComputeAt::preserve_unit_loops, &ComputeAt::index>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Move a producer under a loop of its consumers, and compute there only what they need.

Args:
    block: the producer.
    loop: the loop to move it to; all its consumers are below.
    preserve_unit_loops: keep loops of extent 1.
    index: the place among the statements of the loop; -1 for the last possible one, -2 for the first.)";
};

struct ReverseComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;
  using Members = Fields<&ReverseComputeAt::block, &ReverseComputeAt::loop, &ReverseComputeAt::preserve_unit_loops,
                         &ReverseComputeAt::index>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Move a consumer under a loop of its producers, and compute there what they have just produced.

Args:
    block: the consumer.
    loop: the loop to move it to; all its producers are below.
    preserve_unit_loops: keep loops of extent 1.
    index: the place among the statements of the loop; -1 for the last possible one, -2 for the first.)";
};

struct ComputeInline {
  BlockRV block;
  using Members = Fields<&ComputeInline::block>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Put the expression that a block stores in place of every load of it, and drop the block.

Args:
    block: the producer.)";
};

struct ReverseComputeInline {
  BlockRV block;
  using Members = Fields<&ReverseComputeInline::block>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Put the only consumer of a block into it, and drop the consumer.

Args:
    block: the consumer.)";
};

struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;
  using Members = Fields<&DecomposeReduction::block, &DecomposeReduction::loop>;
  using Returns = BlockRV;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Make the init of a reduction a block of its own, before a loop.

Args:
    block: the reduction block; afterwards it is named BLOCK_update and has no init.
    loop: the loop to put the new block before; no loop around it drives the reduction.

Returns:
    The new block, named BLOCK_init.)";
};

struct Annotate {
  BlockOrLoop block_or_loop;
  std::string ann_key;
  Value ann_val;
  using Members = Fields<&Annotate::block_or_loop, &Annotate::ann_key, &Annotate::ann_val>;
  using Returns = None;
  static constexpr int kRequired = 3;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Attach a value to a block or a loop.

Args:
    block_or_loop: what to annotate.
    ann_key: the key; it must be free.
    ann_val: a string, an integer, a float, a sampled value, a list or a dict of these.)";
};

struct Unannotate {
  BlockOrLoop block_or_loop;
  std::string ann_key;
  using Members = Fields<&Unannotate::block_or_loop, &Unannotate::ann_key>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Remove what annotate attached.

Args:
    block_or_loop: what was annotated.
    ann_key: the key.)";
};

struct TransformLayout {
  BlockRV block;
  TouchedBuffer buffer;
  IndexFunction index_map;
  bool assume_injective_transform = false;
  using Members = Fields<&TransformLayout::block, &TransformLayout::buffer, &TransformLayout::index_map,
                         &TransformLayout::assume_injective_transform>;
  using Returns = None;
  static constexpr int kRequired = 3;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Store the elements of an allocated buffer in another order.

Every access of the buffer follows; loops and blocks stay as they are.

Args:
    block: a block that touches the buffer.
    buffer: ("read", position), ("write", position), the buffer's name, or the buffer.
    index_map: from old indices to new ones, as in lambda i, j: (j // 16, i, j % 16), of +, -, *, // and %; different
        indices must have different images.
    assume_injective_transform: let the new buffer have elements that no access reaches, as where the division leaves a
        remainder.)";
};

struct EnterPostproc {
  using Members = Fields<>;
  using Returns = None;
  static constexpr int kRequired = 0;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Mark where the steps of postprocessing begin: what can be asked for a trace without them stops here.)";
};

namespace detail {
template <class First, class... Kinds>
struct VariantOf {
  using type = std::variant<Kinds...>;
};
}  // namespace detail

using InstructionVariant = detail::VariantOf<void
#define X(kind, method) , kind
#include "schedule/instructions.def"
#undef X
                                             >::type;
/// One of the kinds. A class of its own, so that the names of symbols stay short.
struct Instruction : InstructionVariant {
  using InstructionVariant::InstructionVariant;
  using InstructionVariant::operator=;
};

}  // namespace tilewright::schedule
