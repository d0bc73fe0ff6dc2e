// The interpreter's code: a function is a list of instructions over slots. A value of n lanes takes n slots. Negative
// slots are constants, copied in front of each frame.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "ir/stmt.h"
#include "ir/warp_steps.h"
#include "target/memory_scope.h"

namespace tilewright::interpreter {

union Slot {
  int64_t i;  // integers (wrapped to their type), bool, pointers (see memory.h)
  double f;   // floating point of every type, rounded to it
};

inline constexpr int kNone = std::numeric_limits<int>::min();

// Operands: dst, a, b, c are slots unless said otherwise; `lanes` values each.
enum class Op : uint8_t {
  kMove,
  kBroadcast,  // dst[k] = a
  kRamp,       // dst[k] = a + k * b
  kAddInt,
  kSubInt,
  kMulInt,
  kMulSize,  // products of element counts: an overflow stays an overflow
  kDivInt,
  kModInt,
  kFloorDivInt,
  kFloorModInt,
  kMinInt,
  kMaxInt,
  kEqInt,
  kNeInt,
  kLtInt,
  kLeInt,
  kAddFloat,
  kSubFloat,
  kMulFloat,
  kDivFloat,
  kFloorDivFloat,
  kFloorModFloat,
  kMinFloat,
  kMaxFloat,
  kEqFloat,
  kNeFloat,
  kLtFloat,
  kLeFloat,
  kAnd,
  kOr,
  kNot,
  kSelect,    // a ? b : c; extra: 1 if the condition is a scalar
  kIntToInt,  // from type `from` in extra
  kIntToFloat,
  kFloatToInt,
  kFloatToFloat,
  kToBool,         // extra: 1 if from floating point
  kLoad,           // a: number of the Access
  kStore,          // a: number of the Access, b: value; extra: 1 if it arrives when its group is waited for
  kMath,           // extra: Intrinsic; arguments in a, b, c (lanes each)
  kReinterpret,    // extra: type of a
  kAddress,        // dst = address of the first element of Access a
  kAtomic,         // dst = element of Access a, which becomes that and b; dst + 1 is scratch; extra: Intrinsic
  kSearch,         // dst = the place in [b, c) where Access a, at dst, holds the value of slot extra, or -1; dst + 1 is
                   // scratch
  kJump,           // to a
  kJumpIfZero,     // dst == 0: to a
  kJumpIfDiffer,   // a != b: to c
  kLoop,           // ++dst < a: to b
  kCheckAxis,      // a in [b, b + c); extra: number of the Site
  kCheckEqual,     // a == b; extra: number of the Message
  kAllocate,       // dst: pointer, a: number of elements, b: number of the AllocationSite
  kFree,           // dst: pointer, b: number of the AllocationSite
  kAllocateConst,  // dst: pointer, a: number of the constant
  kAssert,         // a; extra: number of the Message
  kAssume,         // a; extra: number of the Site; of element b of a buffer, whose value is c, or kNone
  kEnter,          // a parallel loop over dst; extra: number of the LoopSite
  kIterate,        // next iteration of the innermost parallel loop
  kLeave,
  kFork,  // threads over dst from a, b of them, run up to kJoin, then continue at c; extra: LoopSite
  kJoin,
  kBarrier,       // extra: number of the Site
  kCloseGroup,    // commits a group of asynchronous stores
  kWaitGroup,     // until all groups but the last a have arrived
  kWarp,          // dst: results, a: what the thread gives; extra: number of the WarpSite
  kCall,          // a: number of the CallSite
  kReturn,        // a: value or kNone
  kArgDimension,  // dst = shape[b] of argument a
  kArgStride,     // dst = strides[b] of argument a
  kCheckArg,      // a: number of the ArgCheck
  kPrint,         // a: number of the PrintSite
  kFail,          // extra: number of the Message
};

struct Insn {
  Op op;
  uint8_t bits = 64;         // bits of the type of the operation
  bool is_unsigned = false;  // integers; of floating point: not IEEE single or double
  TypeCode code = TypeCode::kInt;
  int lanes = 1;
  int dst = kNone, a = kNone, b = kNone, c = kNone;
  int extra = 0;
};

/// One load, store or address in the program.
struct Access {
  struct Dimension {
    int index, extent;
    int stride = kNone;  // kNone: row-major
    bool vector = false;
  };
  int data = kNone;
  int offset = kNone;
  int mask = kNone;
  std::vector<Dimension> dimensions;
  DataType dtype;         // type of one element of the buffer
  int bytes = 0;          // bytes of one element, all its lanes
  int element_lanes = 1;  // lanes of the buffer's type
  int lanes = 1;          // lanes of the index
  int site = 0;
};

/// Location in the program that messages refer to.
struct Site {
  NodeRef node;
  Ref<Block> block;  // null outside of blocks
  Ref<Buffer> buffer;
  std::string what;  // name of an axis
  static constexpr int kInit = -1;
  int operation = 0;  // operation of the reduction step that the access is part of; 0: none, kInit: an init
  int lanes =
      kNone;  // the loop over lanes whose body this is part of, with no loop or memory of a block between; else kNone
  bool is_atomic = false;  // whether it is part of an atomic operation
};
/// An error that the code itself finds.
struct Message {
  std::string code, text;
  int site = 0;
  std::string hint = {};
};
struct AllocationSite {
  std::string name;
  DataType dtype;
  const MemoryScope* scope;
  int node = 0;  ///< index into `sites`
};
struct LoopSite {
  NodeRef node;
  Ref<Var> var;
  std::string kind;  // "parallel", "vectorized", "threadIdx.x"
  std::optional<ThreadAxis> axis = {};
  bool is_thread = false;  // whether it is a thread of a team
  bool is_vector = false;
};
/// An instruction that the threads of a warp execute together: one of these, or T.tvm_warp_activemask().
struct WarpSite {
  std::optional<WarpProduct> product = {};
  std::optional<WarpLoad> load = {};
  std::optional<WarpShuffle> shuffle = {};  ///< threads give the value, the lane and the mask
  int site = 0;
};
struct CallSite {
  std::string callee;
  std::vector<int> args;
  int dst = kNone;
  int lanes = 1;
  int site = 0;
};
/// A parameter's buffer is what the script says.
struct ArgCheck {
  int arg = 0;
  enum class What { kDimension, kStride } what = What::kDimension;
  int dimension = 0;
  int expected = kNone;
};
struct PrintSite {
  std::vector<std::pair<int, DataType>> values;
  std::vector<std::string> texts;  // values of strings, by position; empty for other values
};

struct Function {
  std::string name;
  Ref<PrimFunc> func;
  std::vector<Insn> code;
  std::vector<Slot> constants;  // constants[k] is slot -1 - k
  int frame_size = 0;
  std::vector<int> param_slots;
};

struct Program {
  std::vector<std::unique_ptr<Function>> functions;
  std::unordered_map<std::string, int> by_name;
  std::vector<Access> accesses;
  std::vector<Site> sites;
  std::vector<AllocationSite> allocations;
  std::vector<LoopSite> loops;
  std::vector<CallSite> calls;
  std::vector<WarpSite> warp_steps;
  std::vector<ArgCheck> arg_checks;
  std::vector<PrintSite> prints;
  std::vector<Ref<TensorData>> constants;
  std::vector<Message> messages;
  /// For each reduction block, the loops over threads, by number, whose iterations are steps of its sums.
  std::unordered_map<const NodeBase*, std::set<int>> combined_by;
};

}  // namespace tilewright::interpreter
