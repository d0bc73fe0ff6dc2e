// The walk that lowers one function (lower_iterations.h).
#pragma once

#include <optional>
#include <unordered_set>

#include "sparse/lower_iterations.h"
#include "sparse/nest.h"
#include "support/diagnostic.h"

namespace tilewright::sparse {

class Lowering {
 public:
  explicit Lowering(Form form) : is_published_(form == Form::kPublished), nest_(num_searches_, is_published_) {}
  Ref<PrimFunc> run(const Ref<PrimFunc>& func);
  /// The error of run(), if there is one.
  std::optional<Diagnostic> failure;

 private:
  // lower_iterations.cc
  Stmt lower(const Stmt& stmt);
  Expr lower(const Expr& e);
  Stmt iteration(const Ref<SparseIteration>& node);
  Stmt nest_of(const Ref<SparseIteration>& node, size_t around);
  /// Lowered statements refer to variables of the frames from `first` on by their coordinates.
  void bind_variables(size_t first);
  /// A loop nest of its own for the init, over these variables.
  Stmt init_nest(const SparseIteration& iteration, const std::vector<Ref<SpIterVar>>& iters);
  Stmt guarded(const Ref<IfThenElse>& node);
  Expr guarded(const Ref<Call>& call);
  Stmt parent_indices_nest(const Nest::ParentIndices& indices);
  /// The same by a search for each position.
  Stmt parent_indices_search(const Nest::ParentIndices& indices);
  const Ref<Buffer>& array_of(const Ref<Buffer>& buffer);
  /// Replaces a sparse buffer by its array.
  void to_array(Ref<Buffer>& buffer);
  void redeclare(Block& root);
  void fail(const char* code, std::string message, const NodeRef& where, std::string hint);

  // locate.cc
  /// The location of an element: indices into the array, and the condition that it is stored (null: always).
  struct Element {
    std::vector<Expr> indices;
    Expr present;
  };
  Element locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates, const NodeRef& where);
  /// The position of a coordinate of a sparse axis, -1 if it is absent. Emits a search ahead of the iteration.
  Expr search(const Ref<Axis>& axis, const Expr& parent, const Expr& present, const Expr& coordinate,
              const NodeRef& where);
  struct Search {
    Ref<Axis> axis;
    Expr parent, coordinate, guard, position;
  };
  std::vector<size_t> frames_for(const Search& search, std::string& changed) const;
  void add_search_nest(Search& search, const std::vector<size_t>& needed);

  const bool is_published_;
  int num_searches_ = 0;
  Nest nest_;
  size_t outermost_ = 0;                             ///< number of frames outside of the outermost iteration
  bool in_iteration_ = false;                        ///< whether lowering is inside of one
  std::unordered_set<const NodeBase*> written_;      ///< data variables of buffers that the outermost iteration writes
  std::unordered_map<NodeRef, Ref<Buffer>> arrays_;  ///< arrays that replace sparse buffers
  VarMap values_;                                    ///< coordinates of variables of enclosing iterations
  std::vector<Search> searches_;                     ///< the searches that the outermost iteration needs
  std::vector<Stmt> ahead_;                          ///< their loop nests, which run before it
  std::vector<Def<Buffer>> allocated_;
};

/// The annotation of auxiliary blocks, whose results can be reused by later calls (sparse/preprocess.py).
Annotations preprocess();
/// Data variables of the buffers that are written.
std::unordered_set<const NodeBase*> written_in(const NodeRef& root);
/// The conjunction of conditions, of which either may be null.
Expr both(const Expr& first, const Expr& then);

}  // namespace tilewright::sparse
