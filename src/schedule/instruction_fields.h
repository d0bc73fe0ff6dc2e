// The types of instructions' fields: they say what a parameter takes and whether it is an input (handles, sampled
// values) or an attribute. field_traits.h turns them into values and back.
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
/// The blocks under a loop, or blocks next to one another.
struct LoopOrBlocks {
  std::variant<LoopRV, std::vector<BlockRV>> either;
};
/// None: to be inferred. An expression: of T.vscale().
using Factor = std::variant<None, int64_t, ExprRV, NodeRef>;
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
/// The decision of a sampling instruction: the sampled one, or the one that it shall take.
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
/// The value that padding elements are set to: a number, an expression, or an IndexMap from their indices to the value.
struct PadValue {
  std::variant<None, int64_t, double, NodeRef> value;
};
/// A list that is omitted where it is empty.
template <class T>
struct OmitEmpty {
  std::vector<T> items;
};

enum class Family {
  kLookup,     ///< gives handles: the aggregate's kFamily says so
  kSample,     ///< samples a decision: the aggregate has a field of that name
  kTransform,  ///< changes the program: all others
};

}  // namespace tilewright::schedule
