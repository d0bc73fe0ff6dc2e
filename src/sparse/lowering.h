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
  /// Error of run(), if there is one.
  std::optional<Diagnostic> failure;

 private:
  // lower_iterations.cc
  Stmt lower(const Stmt& stmt);
  Expr lower(const Expr& e);
  template <class Node>
  Node lower_node(const Node& node);
  /// Returns the lowered statement, and the buffers of its searches, which the block around it allocates.
  std::pair<Stmt, std::vector<Def<Buffer>>> lower_with_buffers(const Stmt& stmt);
  /// Runs a function that lowers the expressions of a statement, but not the statements inside of it, and puts the
  /// searches of these expressions in front of the statement that it returns.
  template <class F>
  Stmt with_searches(F&& lower_expressions);
  /// Lowers a statement inside of another one, and inside of the frame.
  Stmt lower_inside(const Stmt& stmt);
  Stmt lower_inside(const Frame& frame, const Stmt& stmt);
  Stmt lower_store(const Ref<BufferStore>& node);
  Stmt lower_loop(const Ref<For>& node);
  Stmt iteration(const Ref<SparseIteration>& node);
  Stmt nest_of(const Ref<SparseIteration>& node, size_t around);
  /// Makes lowered statements refer to variables of the frames from `first` on by their coordinates.
  void bind_variables(size_t first);
  /// Returns a separate loop nest for the init, over these variables.
  Stmt init_nest(const SparseIteration& iteration, const std::vector<Ref<SpIterVar>>& iters);
  Stmt guarded(const Ref<IfThenElse>& node);
  Expr guarded(const Ref<Call>& call);
  /// Lowers an expression that is evaluated only where the condition holds.
  Expr lower_where(const Expr& condition, const Expr& e);
  Stmt guarded(const Ref<While>& loop);
  /// The leading operands of a conjunction that do not change while the outermost iteration runs; null if there are
  /// none.
  Expr lasting_part(const Expr& condition) const;
  /// Returns a loop nest that stores the parent of each position.
  Stmt parent_indices_nest(const Nest::ParentIndices& indices);
  /// Returns a loop nest that searches for the parent of each position.
  Stmt parent_indices_search(const Nest::ParentIndices& indices);
  const Ref<Buffer>& array_of(const Ref<Buffer>& buffer);
  /// Replaces a sparse buffer by its array.
  void to_array(Ref<Buffer>& buffer);
  void redeclare(Block& root);
  /// Calls must have arrays of structure that are long enough, where the types of parameters do not say so.
  void require_sizes(const PrimFunc& func, Block& root);
  void fail(const char* code, std::string message, const NodeRef& where, std::string hint);

  // locate.cc
  /// The location of an element: indices into the array, and the condition that it is stored (null: always).
  struct Element {
    std::vector<Expr> indices;
    Expr present;
  };
  Element locate(const Ref<Buffer>& buffer, const std::vector<Expr>& coordinates, const NodeRef& where);
  struct Search {
    Ref<Axis> axis;
    Expr parent, coordinate;
    Expr own;  ///< the position that is meant if it is below the parent: of a variable over the axis; may be null
    Expr guard, position;
  };
  /// The position of a coordinate of a sparse axis, -1 if it is absent. Emits a search ahead of the iteration. `here`:
  /// what is searched for, in terms of the statement.
  Expr search(const Search& here, const Expr& present, const NodeRef& where);
  /// The searches that run just in front of one statement, since they cannot run ahead of the iteration.
  struct Place {
    size_t first_frame;  ///< number of frames around the statement
    std::vector<Search> known;
    std::vector<Stmt> searches;
  };
  static bool is_same(const Search& a, const Search& b);
  bool can_run_ahead(const std::vector<size_t>& needed, const std::string& changed) const;
  /// Searches in front of the statement that is lowered. `search`: the axis, the parent and the coordinate.
  Expr search_in_place(Search search, const Expr& present);
  /// What the lets of the frames from `first` on stand for.
  VarMap lets_from(size_t first) const;
  /// Whether the extent of a loop is the same wherever in the function it is evaluated.
  bool is_known_at_entry(const Expr& extent) const;
  Expr guard_of(const Search& search) const;
  std::vector<size_t> frames_for(const Search& search, std::string& changed) const;
  /// A loop nest that computes the positions of a search for all values of the variables that it uses.
  struct SearchNest {
    std::vector<Level> levels;
    std::vector<Frame> frames;  ///< copies of the frames of those variables, in order
    VarMap values;              ///< those variables, in terms of the variables of the nest
  };
  SearchNest clone_frames(const std::vector<Frame>& sources);
  struct SearchBuffers {
    Ref<Buffer> low, high, positions;
  };
  static Stmt search_body(const Search& search, const VarMap& values, const SearchBuffers& buffers,
                          const std::vector<Expr>& indices);
  void add_search_nest(Search& search, const std::vector<size_t>& needed);

  const bool is_published_;
  int num_searches_ = 0;
  Nest nest_;
  size_t outermost_ = 0;       ///< number of frames outside of the outermost iteration
  bool in_iteration_ = false;  ///< whether lowering is inside of one
  std::unordered_set<const NodeBase*> written_by_function_;
  std::unordered_set<const NodeBase*> written_;      ///< data variables of buffers that the outermost iteration writes
  std::unordered_map<NodeRef, Ref<Buffer>> arrays_;  ///< arrays that replace sparse buffers
  VarMap values_;                                    ///< coordinates of variables of enclosing iterations
  std::vector<Search> searches_;                     ///< the searches that the outermost iteration needs
  Place* place_ = nullptr;                           ///< in front of the statement that is lowered; null: none there
  std::vector<Def<Buffer>> buffers_in_place_;        ///< buffers of searches in front of statements of one block
  std::vector<Stmt> hoisted_;                        ///< loop nests of searches, which run before the iteration
  std::vector<Def<Buffer>> allocated_;
};

/// The annotation of auxiliary blocks, whose results can be reused by later calls (sparse/preprocess.py).
Annotations preprocess();
/// Data variables of the buffers that are written.
std::unordered_set<const NodeBase*> written_in(const NodeRef& root);
/// The conjunction of conditions, of which either may be null.
Expr both(const Expr& first, const Expr& then);

}  // namespace tilewright::sparse
