// The walk that lowers one function (lower_iterations.h).
#pragma once

#include <optional>
#include <unordered_set>

#include "sparse/nest.h"
#include "support/diagnostic.h"

namespace tilewright::sparse {

class Lowering {
 public:
  Ref<PrimFunc> run(const Ref<PrimFunc>& func);
  /// Why there is no result.
  std::optional<Diagnostic> failure;

 private:
  // lower_iterations.cc
  Stmt lower(const Stmt& stmt);
  Expr lower(const Expr& e);
  Stmt iteration(const Ref<SparseIteration>& node);
  Stmt nest_of(const Ref<SparseIteration>& node, size_t around);
  /// The init by itself, for each point of these variables.
  Stmt init_nest(const SparseIteration& iteration, const std::vector<Ref<SpIterVar>>& iters);
  Stmt guarded(const Ref<IfThenElse>& node);
  Expr guarded(const Ref<Call>& call);
  Stmt owner_nest(const Nest::Owner& owner);
  const Ref<Buffer>& array_of(const Ref<Buffer>& buffer);
  void fail(const char* code, std::string message, const NodeRef& where, std::string hint);

  // locate.cc
  /// Where an element is: indices into the array, and the condition that it exists (null: it does).
  struct Element {
    std::vector<Expr> indices;
    Expr present;
  };
  Element locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates, const NodeRef& where);
  /// Where a coordinate of a sparse axis is searched for: its position, -1 where it is absent.
  Expr search(const Ref<Axis>& axis, const Expr& parent, const Expr& present, const Expr& coordinate,
              const NodeRef& where);
  struct Search {
    Ref<Axis> axis;
    Expr parent, coordinate, guard, position;
  };
  std::vector<size_t> frames_for(const Search& search, std::string& changed) const;
  void add_search_nest(Search& search, const std::vector<size_t>& needed);

  Nest nest_;
  size_t outermost_ = 0;                                  ///< frames outside of the outermost iteration
  bool in_iteration_ = false;                             ///< inside of one
  std::unordered_set<const NodeBase*> written_;           ///< data of buffers that the outermost iteration writes
  std::unordered_set<const NodeBase*> written_anywhere_;  ///< data of those that the function writes
  std::unordered_map<NodeRef, Ref<Buffer>> arrays_;       ///< by sparse buffers
  VarMap values_;                                         ///< of variables of iterations around
  std::vector<Search> searches_;                          ///< of the outermost iteration
  std::vector<Stmt> ahead_;                               ///< what runs before it
  std::vector<Def<Buffer>> allocated_;
  int num_searches_ = 0;
};

/// Data variables of the buffers that are stored to.
std::unordered_set<const NodeBase*> written_in(const NodeRef& root);
/// Both hold; either may be null.
Expr both(const Expr& first, const Expr& then);

}  // namespace tilewright::sparse
