// Statements, functions and modules.
#pragma once

#include "ir/expr.h"

namespace tilewright {

struct LetStmt {
  Def<Var> var;  ///< scope: body
  Expr value;
  Stmt body;
  using Members = Fields<&LetStmt::var, &LetStmt::value, &LetStmt::body>;
};
/// The node for T.attr of TVM v0.20. Passes of Tilewright add no keys of their own.
struct AttrStmt {
  NodeRef node;
  std::string attr_key;
  NodeRef value;
  Stmt body;
  using Members = Fields<&AttrStmt::node, &AttrStmt::attr_key, &AttrStmt::value, &AttrStmt::body>;
};
struct AssertStmt {
  Expr condition, message;  ///< message: StringImm
  Stmt body;
  using Members = Fields<&AssertStmt::condition, &AssertStmt::message, &AssertStmt::body>;
};
struct BufferStore {
  Ref<Buffer> buffer;
  Expr value;
  std::vector<Expr> indices;  ///< the last one may be a vector
  Expr predicate;             ///< null, or a bool vector: lanes that are false are not written
  using Members = Fields<&BufferStore::buffer, &BufferStore::value, &BufferStore::indices, &BufferStore::predicate>;
};
struct BufferRealize {
  Ref<Buffer> buffer;
  std::vector<Ref<Range>> bounds;
  Expr condition;
  Stmt body;
  using Members =
      Fields<&BufferRealize::buffer, &BufferRealize::bounds, &BufferRealize::condition, &BufferRealize::body>;
};
struct Allocate {
  Def<Var> buffer_var;  ///< scope: body
  DataType dtype;
  std::vector<Expr> extents;
  Expr condition;
  Stmt body;
  Annotations annotations;
  using Members = Fields<&Allocate::buffer_var, &Allocate::dtype, &Allocate::extents, &Allocate::condition,
                         &Allocate::body, &Allocate::annotations>;
};
struct AllocateConst {
  Def<Var> buffer_var;  ///< scope: body
  Ref<TensorData> data;
  DataType dtype;
  std::vector<Expr> extents;
  Stmt body;
  Annotations annotations;
  using Members = Fields<&AllocateConst::buffer_var, &AllocateConst::data, &AllocateConst::dtype,
                         &AllocateConst::extents, &AllocateConst::body, &AllocateConst::annotations>;
};
/// Declares a view; allocates nothing. Its data variable is defined elsewhere.
struct DeclBuffer {
  Def<Buffer> buffer;  ///< scope: body
  Stmt body;
  using Members = Fields<&DeclBuffer::buffer, &DeclBuffer::body>;
};
/// make() flattens nested sequences; use seq() of ir/build.h, which also returns a single statement as itself.
struct SeqStmt {
  std::vector<Stmt> seq;
  using Members = Fields<&SeqStmt::seq>;
};
struct Evaluate {
  Expr value;
  using Members = Fields<&Evaluate::value>;
};
struct IfThenElse {
  Expr condition;
  Stmt then_case;
  Stmt else_case;  ///< may be null
  using Members = Fields<&IfThenElse::condition, &IfThenElse::then_case, &IfThenElse::else_case>;
};
enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding };
/// for loop_var in range(min, min + extent): body
/// `kind` says how the iterations are executed, not which iterations there are.
struct For {
  Def<Var> loop_var;  ///< scope: body
  Expr min, extent;
  ForKind kind = ForKind::kSerial;
  Ref<IterVar> thread_binding;  ///< with kThreadBinding only, else null
  Annotations annotations;
  Stmt body;
  using Members =
      Fields<&For::loop_var, &For::min, &For::extent, &For::kind, &For::thread_binding, &For::annotations, &For::body>;
};
struct While {
  Expr condition;
  Stmt body;
  using Members = Fields<&While::condition, &While::body>;
};
/// The unit of scheduling: an isolated computation over its own iteration variables.
struct Block {
  std::vector<Ref<IterVar>> iter_vars;  ///< scope: the whole block
  std::vector<Ref<BufferRegion>> reads, writes;
  std::string name_hint;
  std::vector<Def<Buffer>> alloc_buffers;
  std::vector<Ref<MatchBufferRegion>> match_buffers;
  Annotations annotations;
  Stmt init;  ///< null, or what runs before the first iteration of the reduction
  Stmt body;
  Identity id;
  using Members = Fields<&Block::iter_vars, &Block::alloc_buffers, &Block::match_buffers, &Block::reads, &Block::writes,
                         &Block::name_hint, &Block::annotations, &Block::init, &Block::body, &Block::id>;
};
/// Runs `block` with its iteration variables bound to iter_values, if the predicate holds.
struct BlockRealize {
  std::vector<Expr> iter_values;
  Expr predicate;
  Ref<Block> block;
  using Members = Fields<&BlockRealize::iter_values, &BlockRealize::predicate, &BlockRealize::block>;
};
/// Prefetches a region into the cache. It has no other effect.
struct Prefetch {
  Ref<BufferRegion> region;
  using Members = Fields<&Prefetch::region>;
};

/// An iteration variable whose values are the coordinates of an axis.
struct SpIterVar {
  Def<Var> var;                             ///< scope: the iteration
  IterType iter_type = IterType::kDataPar;  ///< kDataPar or kCommReduce
  Ref<Axis> axis;
  bool fused = false;  ///< shares one loop with the variable before it
  using Members = Fields<&SpIterVar::var, &SpIterVar::iter_type, &SpIterVar::axis, &SpIterVar::fused>;
};
/// Runs `body` for all coordinates that the axes store; the first variable is the outermost loop. The parent of each
/// axis comes before it, or belongs to an enclosing iteration.
struct SparseIteration {
  std::vector<Ref<SpIterVar>> iter_vars;  ///< scope: the whole iteration
  std::string name_hint;
  Annotations annotations;
  Stmt init;  ///< null, or what runs first for each point of the spatial variables, even if there is no reduction step
  Stmt body;
  using Members = Fields<&SparseIteration::iter_vars, &SparseIteration::name_hint, &SparseIteration::annotations,
                         &SparseIteration::init, &SparseIteration::body>;
};

// ---- functions -------------------------------------------------------------------------------------------------

/// A function on buffers and scalars. `buffer_map` has the buffers of parameters of handle type. A shape, stride or
/// offset of these buffers that is an undefined variable defines that variable.
struct PrimFunc {
  std::vector<Def<Var>> params;
  std::vector<std::pair<Ref<Var>, Def<Buffer>>> buffer_map;  ///< in the order of the parameters
  Type ret_type;                                             ///< TupleType{} for nothing
  Annotations attrs;                                         ///< "global_symbol": the exported name, absent if private
  Stmt body;
  std::vector<Ref<Axis>> axes = {};  ///< in the order of their declarations, parents first
  using Members = Fields<&PrimFunc::params, &PrimFunc::buffer_map, &PrimFunc::ret_type, &PrimFunc::attrs,
                         &PrimFunc::body, &PrimFunc::axes>;

  /// Returns the buffer of a parameter; null if it is a scalar or an opaque handle.
  Ref<Buffer> buffer_of(const Ref<Var>& param) const {
    for (const auto& [var, buffer] : buffer_map) {
      if (var == param) return buffer;
    }
    return {};
  }
};
/// Functions, sorted by name.
struct Module {
  std::vector<std::pair<std::string, Func>> functions;
  Annotations attrs;
  using Members = Fields<&Module::functions, &Module::attrs>;

  Func get(std::string_view name) const {
    for (const auto& [key, func] : functions) {
      if (key == name) return func;
    }
    return {};
  }
};

}  // namespace tilewright
