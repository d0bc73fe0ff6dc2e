// Describes a scheduled program by flat tables of loops, buffers and stores: the one walk for features of candidates
// and for the analytical model.
//
//   for i in T.parallel(8):                 loops    i: extent 8, parallel; j: 4; k: 64, parent of j's body
//     for j, k in T.grid(4, 64):            stores   C at [i, j, k], with reads of C [4 i + j] and A [4 i + j, k], one
//       with T.block("C"):                           addition of floats
//         vi, vk = ...                      buffers  A, C
//         C[vi] = C[vi] + A[vi, vk]
//
// A model of the lowered program: block axes are replaced by their bindings, views by their sources. A buffer is
// allocated at the innermost location that contains its accesses, as large as what is accessed there. Serial loops of
// one iteration are removed; a loop bound to a thread axis that an outer loop is bound to is that loop. It exists for
// every program, builds no nodes, and takes microseconds: an estimate where the passes of lower/ prove.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analysis/loop_sums.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// Number of operations for computing a value, by the type of the result.
struct Operations {
  enum Op : uint8_t { kMad, kAddSub, kMul, kDivMod, kCompare, kMath, kOther, kNumOps };
  std::array<double, kNumOps> floats{}, ints{};
  double logic = 0, selects = 0;
  double elementary = 0;  ///< operations of calls to functions like exp, which take tens of them

  void add(const Operations& other);
  double all_floats() const;
};

struct LoopFact {
  int parent = -1;  ///< the loop around it
  int depth = 0;
  uint32_t atom = 0;    ///< its variable in `sums`
  int64_t extent = -1;  ///< not negative; -1: no constant
  ForKind kind = ForKind::kSerial;
  std::string thread_tag;        ///< thread axis of a bound loop
  int64_t auto_unroll_step = 0;  ///< pragma of the loop, for all loops inside
  /// Returns the factor for products of extents; an unknown extent counts as 1.
  int64_t count() const { return extent < 0 ? 1 : extent; }
};

struct BufferFact {
  const Buffer* buffer = nullptr;
  std::vector<int64_t> full_shape;  ///< -1: no constant
  std::vector<int64_t> shape;       ///< extents of the allocation; -1: not constant
  bool is_parameter = false;
  int location = -1;  ///< the innermost loop around its allocation

  int element_bytes() const { return buffer->dtype.bytes() * buffer->dtype.lanes; }
};

struct AccessFact {
  int buffer = -1;
  bool writes = false;
  std::vector<LoopSum> index;  ///< into the allocated buffer
};

struct StoreFact {
  const BufferStore* store = nullptr;
  int loop = -1;                     ///< the innermost around it
  std::vector<AccessFact> accesses;  ///< the store itself, then the loads of its value
  Operations work;                   ///< operations of one execution
  bool is_constant = false;          ///< writes a number
  bool is_init = false;              ///< runs only where a reduction begins
  Levels reduction = 0;              ///< loops that drive reductions of the block around it
};

struct LoopProgram {
  Ref<Module> module;               ///< keeps alive what the facts point to
  std::vector<LoopFact> loops;      ///< in program order, outer ones first
  std::vector<BufferFact> buffers;  ///< in order of first appearance
  std::vector<StoreFact> stores;    ///< in program order
  LoopSums sums;

  /// The loops around a statement, outermost first.
  std::vector<int> nest(int innermost) const;
};

LoopProgram loop_program(const Ref<Module>& module);

}  // namespace tilewright::analysis
