// Visits every access to memory in a part of a program, with the loops, blocks and conditions around it. All analyses
// of accesses use this walk.
//
//   for i in range(16):                      an access to A, [i + 1], that reads; around it: the loop i over [0, 15],
//     if i < 15:                             the condition i < 15
//       with T.block("B"):                   an access to B, [i], that writes; the axis vi, bound to i, and the block
//         vi = T.axis.spatial(16, i)         are around both
//         B[vi] = A[vi + 1]
//
// Accesses are visited in program order: the loads in the value of a store come before the store. An access through a
// view (match_buffer) is an access of the viewed buffer. Shapes of buffers are not accesses. Declared regions of blocks
// are accesses only if nested blocks are not entered (Nested::kDeclared).
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// A construct around an access that determines whether, how often and with which variable values the access happens.
struct Surrounding {
  enum class Kind : uint8_t {
    kLoop,         ///< a For: `var` runs over `set`
    kLet,          ///< a LetStmt or Let: `var` is the point `set` if it is an integer; otherwise it is unknown
    kAxis,         ///< an IterVar of a block: `var` is the point `set` that it is bound to
    kCondition,    ///< an IfThenElse, if_then_else or predicate of a BlockRealize: no access unless `condition` holds
    kAssertion,    ///< an AssertStmt: the program stops unless `condition` holds
    kWhile,        ///< a While: the body runs any number of times
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

/// The viewed region of each view, by the buffer of the view.
using Views = std::unordered_map<NodeRef, Ref<BufferRegion>>;

struct Access {
  enum class Form : uint8_t {
    kElement,  ///< a BufferLoad or BufferStore
    kRegion,   ///< a BufferRegion: an argument of a call, or declared by a block that stays closed
    kView,     ///< a MatchBufferRegion: what accesses through the view may touch
    kAddress,  ///< a Call of address_of: the pointer may be used for other elements, too, unless the call is atomic
    kPointer,  ///< a use of a pointer: it may access anything that the pointer points to
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
  /// If the buffer is declared over a pointer (T.decl_buffer) within the visited statement: the pointer, which may
  /// alias another buffer. Null if the memory is allocated next to the declaration.
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

// ---- surroundings ----------------------------------------------------------------------------------------------

/// Returns the surroundings inside of the innermost block.
Surroundings inside_block(Surroundings around);
const Block* innermost_block(Surroundings around);
/// Returns the ranges of the variables of loops, lets and axes.
arith::Domains domains_of(Surroundings around);
/// Returns the terms of conditions and assertions that hold and that no store can change. `is_constant`: whether
/// nothing writes the buffer meanwhile; by default, no buffer counts as constant.
using IsConstant = std::function<bool(const Ref<Buffer>&)>;
Expr known_conditions(Surroundings around, const IsConstant& is_constant = {});
/// The terms of a conjunction that read no memory, or constant buffers alone.
Expr stable_terms(const Expr& condition, const IsConstant& is_constant = {});

/// Translates a region of a view to a region of the viewed buffer, if the view has the last dimensions of the viewed
/// region. For views of other shapes, returns the whole viewed region.
Ref<BufferRegion> behind_views(Ref<BufferRegion> region, const Views& views);
/// Returns a region that contains the accessed elements. A vector index with a constant stride covers the interval of
/// its lanes; any other vector index covers the whole dimension.
Ref<BufferRegion> region_of_element(const Ref<Buffer>& buffer, const std::vector<Expr>& indices);

}  // namespace tilewright::analysis
