// Visits every access to memory in a part of a program, with the loops, blocks and conditions around it. All analyses
// of accesses use this walk.
//
//   for i in range(16):                      an access to A, [i + 1], that reads; around it: the loop i over [0, 15],
//     if i < 15:                             the condition i < 15
//       with T.block("B"):                   an access to B, [i], that writes; the axis vi, bound to i, and the block
//         vi = T.axis.spatial(16, i)         are around both
//         B[vi] = A[vi + 1]
//
// In program order, the value of a store before the store. What a view (match_buffer) shows counts for the buffer it
// is a view of. Shapes of buffers and the regions that blocks declare are no accesses, unless blocks stay closed.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// Something around an access that says for which values, how often, or whether it happens.
struct Surrounding {
  enum class Kind : uint8_t {
    kLoop,         ///< a For: `var` runs over `set`
    kLet,          ///< a LetStmt or Let: `var` is the point `set`; of no integer, nothing is known
    kAxis,         ///< an IterVar of a block: `var` is the point `set` that it is bound to
    kCondition,    ///< an IfThenElse, if_then_else, the predicate of a BlockRealize: `condition` holds, else no access
    kAssertion,    ///< an AssertStmt: `condition` holds, or nothing behind it happens
    kWhile,        ///< a While: any number of times
    kBlock,        ///< a Block
    kDeclaration,  ///< a DeclBuffer
  };
  Kind kind;
  NodeRef node;
  Ref<Var> var;
  arith::IntSet set;
  Expr condition;
};
using Surroundings = std::span<const Surrounding>;

/// Views by their buffer: the region that they show.
using Views = std::unordered_map<NodeRef, Ref<BufferRegion>>;

struct Access {
  enum class Form : uint8_t {
    kElement,  ///< a BufferLoad or BufferStore
    kRegion,   ///< a BufferRegion: an argument of a call, or declared by a block that stays closed
    kView,     ///< a MatchBufferRegion: what accesses through the view may touch
    kAddress,  ///< a Call of address_of: of one element, but more may be reached from there, unless it is atomic
    kPointer,  ///< a use of a pointer: all behind it may be touched
  };
  Form form;
  NodeRef site;       ///< the node named above
  Ref<Buffer> named;  ///< buffer named in the program, perhaps a view; null for a pointer without a known buffer
  Ref<Var> pointer;   ///< for kPointer
  bool reads, writes;
  bool in_init;         ///< inside of the innermost block's init
  Surroundings around;  ///< outermost first; as long as the callback runs
  const Views* views;
  /// Part of an atomic operation (ir/atomic_operation.h): the address that a call updates, or the load and the store of
  /// an update in an atomic block (ir/annotations.h).
  bool is_atomic = false;
  /// Of a buffer that is declared over a pointer (T.decl_buffer) inside of what is visited: the pointer, which may be
  /// that of another buffer. Null where the memory is allocated beside the declaration.
  Ref<Var> alias = {};

  /// The largest region that is accessed, of `named` or the buffer that it views. Null for a pointer without a buffer.
  Ref<BufferRegion> region() const;
  /// The element's indices, as the program spells them; null where the site has none.
  const std::vector<Expr>* indices() const;
  /// The condition on lanes of a load or store; null for none.
  Expr mask() const;
  /// Whether the access may not happen, or not as often as the loops around it run, inside of the innermost block.
  bool is_conditional() const;
};

enum class Nested {
  kEnter,     ///< blocks count by their bodies
  kDeclared,  ///< blocks count by the regions they declare
};
using OnAccess = std::function<void(const Access&)>;

/// Visits a statement, an expression, or the views, init and body of a block, whose axes stay symbolic.
void for_each_access(const NodeRef& root, Nested nested, const OnAccess& found);

// ---- what stands around ----------------------------------------------------------------------------------------

/// Returns the surroundings inside of the innermost block.
Surroundings inside_block(Surroundings around);
const Block* innermost_block(Surroundings around);
/// Loops, lets and axes as variables that run.
arith::Domains domains_of(Surroundings around);
/// Returns the terms of conditions and assertions that hold and that no store can change. `is_constant`: whether
/// nothing writes the buffer meanwhile; by default, no buffer counts as constant.
using IsConstant = std::function<bool(const Ref<Buffer>&)>;
Expr known_conditions(Surroundings around, const IsConstant& is_constant = {});
/// The terms of a conjunction that read no memory, or constant buffers alone.
Expr stable_terms(const Expr& condition, const IsConstant& is_constant = {});

/// The part of its source that a region of a view shows: the view shows the last dimensions of the source one to one;
/// where it has another shape, it may touch all of the source region.
Ref<BufferRegion> behind_views(Ref<BufferRegion> region, const Views& views);
/// The smallest known region that holds the elements: lanes of a vector with constant stride, else the dimension.
Ref<BufferRegion> region_of_element(const Ref<Buffer>& buffer, const std::vector<Expr>& indices);

}  // namespace tilewright::analysis
