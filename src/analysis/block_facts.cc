#include "analysis/block_facts.h"

#include <unordered_map>
#include <unordered_set>

#include "analysis/accesses.h"
#include "analysis/block_access_region.h"
#include "analysis/cover.h"
#include "analysis/may_fail.h"
#include "analysis/memory_names.h"
#include "analysis/plain_store.h"
#include "analysis/scope.h"
#include "analysis/sure_writes.h"
#include "arith/buffer_values.h"
#include "arith/int_set.h"
#include "arith/join_digits.h"
#include "arith/region_bound.h"
#include "ir/build.h"
#include "ir/reduction_step.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/substitute.h"
#include "ir/tensor_intrin.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using arith::Analyzer;
using Regions = std::vector<Ref<BufferRegion>>;

/// One analysis of one block.
class Examine {
 public:
  Examine(const Ref<Block>& block, BlockFacts& facts) : block_(block), facts_(facts) {
    for (const Ref<IterVar>& axis : block->iter_vars) {
      if (!axis->dom.defined()) continue;
      analyzer_.bind(axis->var, axis->dom);
      // A block with an empty domain accesses nothing.
      const Expr& extent = axis->dom->extent;
      if (!const_int(extent) && effect_of(extent) == Effect::kPure) analyzer_.assume(ge(extent, 1));
    }
    for (const BufferDomain& domain : buffer_domains(*block)) arith::assume(analyzer_, domain);
  }

  void run() {
    if (has_assumed_declarations(*block_)) return assume_declared();
    facts_.undeclared = why_undeclared();
    if (facts_.undeclared.empty() && !by_pointer_.empty()) {
      facts_.undeclared = "it uses the pointer '" + by_pointer_ + "' other than by loads and stores";
      facts_.trusted = "block '" + block_->name_hint + "' touches of '" + by_pointer_ + "' what it declares";
    }
    facts_.live_in = block_->reads;
    std::erase_if(facts_.live_in, [&](const Ref<BufferRegion>& read) { return made_inside(read->buffer); });
    for (const Ref<BufferRegion>& write : block_->writes) {
      bool replaced = any_of(replaced_, [&](const Ref<BufferRegion>& region) {
        return region->buffer == write->buffer && within(write, {region});
      });
      facts_.writes_all.push_back(replaced || surely_writes(block_->body, *block_, write, analyzer_));
    }
    bool init_sets_all = block_->init.defined() && check_init();
    if (!init_sets_all) take_partial_writes();
    facts_.why.clear();
    if (!check_axes()) return check_scatter();
    if (!check_statements() || !check_signature() || !check_own_accesses()) return;
    for (const Ref<BufferRegion>& write : block_->writes) {
      if (!check_disjoint(write)) return;
    }
    if (block_->init.defined()) {
      if (!check_init()) return;
      facts_.role = BlockRole::kReduction;
    } else {
      facts_.role = reads_own_ || !partial_.empty() ? BlockRole::kUpdate : BlockRole::kComplete;
    }
    // An axis of one step has no step that another one could overwrite.
    bool reduces = any_of(block_->iter_vars, [](const Ref<IterVar>& axis) {
      return is_reduction_axis(axis) && !is_const_int(axis->dom->extent, 1);
    });
    if (reduces && !reads_own_) {
      facts_.role = BlockRole::kOther;
      say("it has a reduction axis but does not accumulate: each step overwrites the one before");
    } else if (facts_.role == BlockRole::kUpdate && !reads_own_) {
      say("it may leave elements of '" + partial_ + "' as they were");
    }
    if (reads_own_) facts_.commutative = check_commutative();
  }

 private:
  bool say(std::string why) {
    facts_.why = std::move(why);
    return false;
  }

  /// Classifies the block by its axes and declared regions alone.
  void assume_declared() {
    bool apart = true;
    Regions own;
    for (const Ref<BufferRegion>& write : block_->writes) {
      facts_.writes_all.push_back(is_disjoint(write));
      apart &= facts_.writes_all.back();
      own.push_back(write);
    }
    facts_.live_in = block_->reads;
    take_partial_writes();
    facts_.compound = true;
    if (!check_axes() || !check_signature()) return;
    for (const Ref<BufferRegion>& read : block_->reads) {
      if (!written(read->buffer)) continue;
      reads_own_ = true;
      if (!apart || !within(read, own)) {
        say("it reads and writes '" + read->buffer->name + "' at different elements");
        return;
      }
    }
    if (!reads_own_ && any_of(block_->iter_vars, is_reduction_axis)) {
      say("it has a reduction axis, but does not say that it reads what it writes");
      return;
    }
    facts_.commutative = !reads_own_;
    facts_.role = reads_own_ || !apart ? BlockRole::kUpdate : BlockRole::kComplete;
    if (!reads_own_ && !apart) say("its instances may write the same elements of '" + partial_ + "'");
  }

  bool check_axes() {
    for (const Ref<IterVar>& axis : block_->iter_vars) {
      if (!is_data_parallel(axis) && !is_reduction_axis(axis)) {
        return say("its axis '" + axis->var->name_hint + "' is neither spatial nor reduce");
      }
      if (!is_reduction_axis(axis)) continue;
      for (const Ref<BufferRegion>& write : block_->writes) {
        for (const Ref<Range>& r : write->region) {
          if (uses_var(r, axis->var)) {
            return say("its reduction axis '" + axis->var->name_hint + "' selects what it writes to '" +
                       write->buffer->name + "'");
          }
        }
      }
    }
    return true;
  }

  /// Checks a block whose reduction axes select what it writes. `why` does not change.
  void check_scatter() {
    const std::string why = facts_.why;
    const bool is_usual = all_of(
        block_->iter_vars, [](const Ref<IterVar>& axis) { return is_data_parallel(axis) || is_reduction_axis(axis); });
    if (is_usual && !block_->init.defined() && check_statements() && check_signature() && check_own_accesses()) {
      const bool are_apart = all_of(block_->writes, [&](const auto& write) {
        return all_of(block_->iter_vars, [&](const Ref<IterVar>& axis) {
          return is_reduction_axis(axis) || is_const_int(axis->dom->extent, 1) || is_index(*write, axis);
        });
      });
      facts_.commutative = reads_own_ && check_commutative();
      facts_.scatters = are_apart && facts_.commutative;
    }
    facts_.why = why;
  }

  /// Whether the axis is the index of all that the region holds, in some dimension.
  static bool is_index(const BufferRegion& region, const Ref<IterVar>& axis) {
    return any_of(region.region,
                  [&](const Ref<Range>& r) { return r->min == axis->var && is_const_int(r->extent, 1); });
  }

  /// A call whose effect is on memory behind the pointers that it gets, all of which are views: the block is as good as
  /// its contract, which why_undeclared() compares with what the pointers show.
  static bool is_contract(const Call& call) {
    Intrinsic intrinsic = intrinsic_of(call);
    if (intrinsic != Intrinsic::k_call_extern && intrinsic != Intrinsic::k_call_llvm_intrin) return false;
    return any_of(call.args,
                  [](const NodeRef& arg) { return arg.sort() == Sort::kExpr && arg.get()->dtype.is_handle(); });
  }

  /// Checks that no statement has effects other than its stores and its pointer accesses.
  bool check_statements() {
    const char* found = nullptr;
    auto look = [&](const Stmt& stmt) {
      if (!stmt.defined()) return;
      visit(
          stmt,
          [&](const Ref<Call>& call) {
            if (is_contract(*call)) return;
            Effect effect = intrinsic_row(intrinsic_of(*call)).effect;
            if (effect == Effect::kUpdateState || intrinsic_of(*call) == Intrinsic::kUnknown) {
              found = "it calls something with an effect of its own";
            }
          },
          [&](const Ref<BlockRealize>& inner, Visitor& walk) {
            if (!has_assumed_declarations(*inner->block)) walk.descend(inner);
          },
          [&](const Ref<AssertStmt>&) { found = "it holds an assertion"; },
          [&](const Ref<AttrStmt>&) { found = "it holds an attribute statement"; },
          [&](const Ref<BufferRealize>&) { found = "it holds a buffer realization"; });
    };
    look(block_->init);
    look(block_->body);
    return found ? say(found) : true;
  }

  /// `also`: another bound of the same accesses, or null.
  bool within(const Ref<BufferRegion>& inner, const Regions& declared, const BufferRegion* also = nullptr) {
    return any_of(declared, [&](const Ref<BufferRegion>& outer) {
      return outer->buffer == inner->buffer && (structural_equal(outer, inner) || holds(*outer, *inner, also));
    });
  }

  /// Dimension by dimension; one that is declared as a whole holds every access, whatever data select.
  bool holds(const BufferRegion& outer, const BufferRegion& inner, const BufferRegion* also) {
    const std::vector<Expr>& shape = inner.buffer->shape;
    for (size_t d : indices_of(shape)) {
      arith::IntSet declared = arith::IntSet::of_range(outer.region[d]);
      if (arith::proves_subset(arith::IntSet::of_range(inner.region[d]), declared, analyzer_)) continue;
      if (also && arith::proves_subset(arith::IntSet::of_range(also->region[d]), declared, analyzer_)) continue;
      if (!arith::proves_subset(arith::IntSet::of_range(range_of(shape[d])), declared, analyzer_)) return false;
    }
    return true;
  }

  static bool comes_from_floats(const Expr& index) {
    return any_node(index, [&](const Ref<Cast>& cast) { return cast->value.dtype().is_float(); }) &&
           effect_of(index) == Effect::kPure;
  }

  /// Whether somebody vouches for the region that the block declares to read (annotate_buffer_access): indices that
  /// come from floats are assumed to be in bounds, others are proved to be.
  bool is_vouched_for(const Ref<BufferRegion>& raw, const Ref<BufferRegion>& region) {
    const NodeRef key =
        block_->annotations.has("explicit_read_region") ? block_->annotations.get("explicit_read_region") : NodeRef();
    const List* positions = key.as<List>();
    if (!positions) return false;
    for (const NodeRef& item : positions->items) {
      const IntImm* position = item.as<IntImm>();
      if (!position || position->value < 0 || position->value >= static_cast<int64_t>(block_->reads.size())) continue;
      const Ref<BufferRegion>& declared = block_->reads[position->value];
      if (declared->buffer != region->buffer) continue;
      bool inside = true;
      for (size_t d : indices_of(region->region)) {
        inside &= comes_from_floats(raw->region[d]->min) ||
                  arith::proves_subset(arith::IntSet::of_range(region->region[d]),
                                       arith::IntSet::of_range(declared->region[d]), analyzer_);
      }
      if (inside) return true;
    }
    return false;
  }

  /// Whether the first statement of the body stores to all of it, and reads none of that buffer: the others find what
  /// the block itself made.
  bool is_made_before(const Ref<BufferRegion>& region) {
    const SeqStmt* sequence = block_->body.as<SeqStmt>();
    if (!sequence || block_->init.defined()) return false;
    const Stmt& first = sequence->seq[0];
    auto shows = [&](const Ref<Buffer>& named) {
      return named == region->buffer || any_of(block_->match_buffers, [&](const auto& match) {
               return match->buffer == named && match->source->buffer == region->buffer;
             });
    };
    bool reads = false;
    for_each_access(first, Nested::kDeclared, [&](const Access& access) {
      reads |= access.reads && (!access.named.defined() || shows(access.named));
    });
    return !reads && surely_writes(first, *block_, region, analyzer_);
  }

  /// Returns which access of the body is not declared by the block; empty if all are.
  std::string why_undeclared() {
    std::string why;
    for_each_access(block_, Nested::kDeclared, [&](const Access& access) {
      if (!why.empty() || access.site.is<DeclBuffer>()) return;
      if (access.alias.defined()) {
        if (!is_allocated(access.alias)) why = why_alias_undeclared(access);
        return;
      }
      if (access.form == Access::Form::kView) return;
      if (access.form == Access::Form::kPointer && !access.named.defined()) {
        if (is_declared(access.pointer) && !belies(access)) {
          by_pointer_ = access.pointer->name_hint;
          return;
        }
        why = "it uses the pointer '" + access.pointer->name_hint + "' other than by loads and stores";
        return;
      }
      if (is_own(access)) return;
      Ref<BufferRegion> region = access.region();
      if (is_allocated(region->buffer)) return;  // behind a view
      const Ref<BufferRegion> raw = region;
      region = over_all_iterations(region, access.around);
      const bool init = block_->init.defined();  // with an init, the signature omits the accumulator
      // Use the domains of axes of blocks inside: a condition that reads data may make them shorter than the loops.
      const Ref<BufferRegion> also = over_domains(raw, access.around);
      auto declares = [&](const Regions& regions) {
        return within(region, regions) || (also.defined() && within(region, regions, &*also));
      };
      // An atomic operation writes the element that it reads.
      const bool writes_too = init || access.is_atomic;
      bool reads = !access.reads || declares(block_->reads) || (writes_too && declares(block_->writes)) ||
                   is_vouched_for(raw, region) || is_made_before(region);
      const bool only_address = access.form == Access::Form::kAddress && !access.is_atomic;
      bool writes = !access.writes || only_address || declares(block_->writes);
      if (reads && writes) {
        if (access.form == Access::Form::kPointer) note_pointer(access, region);
        return;
      }
      if ((reads || writes) && access.form == Access::Form::kPointer && !is_access_ptr(access)) {
        by_pointer_ = region->buffer->name;  // a pointer to a view; it may be read or written
        return;
      }
      why = std::string("it ") + (reads ? "writes" : "reads") + " more of '" + region->buffer->name +
            "' than it declares";
    });
    if (!why.empty()) return why;
    // Blocks inside count by what they declare.
    auto look = [&](const Ref<BlockRealize>& inner, Visitor&) {
      if (why.empty()) why = BlockFacts::of(inner->block).undeclared;
    };
    if (block_->init.defined()) visit(block_->init, look);
    visit(block_->body, look);
    return why;
  }

  /// A buffer that is declared over the pointer of another one (T.decl_buffer): which of its elements are accessed is
  /// not known. Nothing is wrong with reads where the block declares to read all of it.
  std::string why_alias_undeclared(const Access& access) {
    is_aliased_ = true;
    const bool writes = access.writes && (access.form != Access::Form::kAddress || access.is_atomic);
    const bool reads_all = any_of(block_->reads, [&](const Ref<BufferRegion>& read) {
      return read->buffer->data == access.alias && within(whole_region(read->buffer), {read});
    });
    if (!writes && reads_all) return "";
    return "it accesses what the pointer '" + access.alias->name_hint + "' points to as '" + access.named->name + "'";
  }

  bool is_declared(const Ref<Var>& pointer) const {
    return is_behind_one_of(block_->reads, pointer) || is_behind_one_of(block_->writes, pointer);
  }
  static bool is_behind_one_of(const Regions& regions, const Ref<Var>& pointer) {
    return any_of(regions, [&](const Ref<BufferRegion>& region) { return region->buffer->data == pointer; });
  }
  static bool is_access_ptr(const Access& access) {
    const Call* call = access.site.as<Call>();
    return call && intrinsic_of(*call) == Intrinsic::k_tvm_access_ptr;
  }
  /// access_ptr() says that what is behind the pointer is read or written, and the block does not.
  bool belies(const Access& access) const {
    if (!is_access_ptr(access)) return false;
    return (access.reads && !is_behind_one_of(block_->reads, access.pointer)) ||
           (access.writes && !is_behind_one_of(block_->writes, access.pointer));
  }

  /// A pointer to a view reads the view, replaces all of it, or both.
  void note_pointer(const Access& access, const Ref<BufferRegion>& region) {
    bool always = !access.is_conditional() &&
                  none_of(access.around, [](const auto& s) { return s.kind == Surrounding::Kind::kLoop; });
    reads_own_ |= access.reads && written(region->buffer);
    accumulates_by_pointer_ |= access.reads && written(region->buffer);
    if (!access.reads && access.writes && always && !access.in_init) replaced_.push_back(region);
  }

  /// Returns the region covered while axes run over their domains, which they never leave, instead of over the values
  /// they are bound to. Null if no axis has a domain that depends on data.
  Ref<BufferRegion> over_domains(const Ref<BufferRegion>& region, Surroundings around) {
    arith::Domains domains = domains_of(around);
    bool any = false;
    for (const Surrounding& s : around) {
      const IterVar* axis = s.node.as<IterVar>();
      if (!axis || !axis->dom.defined() || effect_of(axis->dom->extent) == Effect::kPure) continue;
      domains[s.var] = arith::IntSet::of_range(axis->dom);
      any = true;
    }
    return any ? over(region, domains, around) : Ref<BufferRegion>();
  }

  Ref<BufferRegion> over_all_iterations(const Ref<BufferRegion>& region, Surroundings around) {
    arith::Domains domains = domains_of(around);
    return domains.empty() ? region : over(region, domains, around);
  }

  Ref<BufferRegion> over(const Ref<BufferRegion>& region, const arith::Domains& domains, Surroundings around) {
    // Conditions may read buffers that neither the block nor anything else writes while the block runs.
    auto is_constant = [&](const Ref<Buffer>& buffer) { return !written(buffer) && !is_allocated(buffer); };
    const Expr conditions = known_conditions(around, is_constant);
    arith::Box box = arith::relax_region(region->region, domains, analyzer_, conditions);
    std::vector<Ref<Range>> ranges;
    for (size_t d : indices_of(box)) {
      Ref<Range> range = box[d].to_range(analyzer_);
      ranges.push_back(range.defined() ? range : range_of(region->buffer->shape[d]));
    }
    return make<BufferRegion>({region->buffer, std::move(ranges)});
  }

  bool is_allocated(const Ref<Var>& data) const {
    return any_of(block_->alloc_buffers, [&](const Ref<Buffer>& own) { return own->data == data; });
  }
  bool is_allocated(const Ref<Buffer>& buffer) const { return is_allocated(buffer->data); }
  bool is_own(const Access& access) const {
    auto declares = [&](const Surrounding& s) {
      const DeclBuffer* decl = s.node.as<DeclBuffer>();
      return decl && decl->buffer == access.named;
    };
    return is_allocated(access.named) || any_of(access.around, declares);
  }

  bool check_signature() {
    for (size_t i : indices_of(block_->writes)) {
      for (size_t j = 0; j < i; ++j) {
        const Ref<Buffer>& buffer = block_->writes[i]->buffer;
        if (buffer->data == block_->writes[j]->buffer->data)
          return say("it writes '" + buffer->name + "' in two parts");
      }
    }
    return facts_.undeclared.empty() || say(facts_.undeclared);
  }

  void take_partial_writes() {
    for (size_t i : indices_of(block_->writes)) {
      const Ref<BufferRegion>& write = block_->writes[i];
      if (facts_.writes_all[i]) continue;
      if (partial_.empty()) partial_ = write->buffer->name;
      bool read =
          any_of(facts_.live_in, [&](const Ref<BufferRegion>& region) { return structural_equal(region, write); });
      if (!read) facts_.live_in.push_back(write);
    }
  }

  bool written(const Ref<Buffer>& buffer) const {
    return any_of(block_->writes, [&](const Ref<BufferRegion>& write) { return write->buffer->data == buffer->data; });
  }

  /// Whether blocks inside have written, in the same instance, all that the block reads of its own results. Then it
  /// uses no earlier value.
  bool made_inside(const Ref<Buffer>& buffer) {
    if (!written(buffer) || block_->init.defined()) return false;
    const Scope& scope = Scope::of(*block_);
    std::vector<int> writers = scope.writers(buffer);
    if (scope.bare_statement() || writers.size() != 1) return false;
    const Tree& tree = Tree::of(block_);
    int writer = tree.block(scope.children()[writers[0]]->block->id.value);
    BlockRole role = BlockFacts::of(tree.block_ref(writer)).role;
    if (role != BlockRole::kComplete && role != BlockRole::kReduction) return false;
    std::vector<int> readers = scope.readers(buffer);
    return all_of(readers, [&](int child) {
      int reader = scope.position(tree, child);
      return reader > writer && !why_not_covered(tree, writer, reader, buffer);
    });
  }

  /// Checks that in a buffer which the block writes, an instance reads only elements that it writes itself. If it
  /// declares more than it touches, it must not read elements of other instances.
  bool check_own_accesses() {
    Regions results;
    for (const Ref<BufferRegion>& write : block_->writes) {
      Ref<BufferRegion> apart = disjoint_part(write);
      results.push_back(apart.defined() ? apart : write);
    }
    for (const Ref<BufferRegion>& read : block_->reads) {
      if (!written(read->buffer) || made_inside(read->buffer)) continue;
      reads_own_ = true;
      if (!within(read, results) && !reads_within(read->buffer, results)) {
        return say("it reads and writes '" + read->buffer->name + "' at different elements");
      }
    }
    if (!block_->init.defined()) return true;
    // The signature of a block with an init omits reads of its own results.
    Block body = *block_;
    body.init = {};
    for (const Ref<BufferRegion>& read : block_access_region(make(std::move(body))).reads) {
      if (!written(read->buffer)) continue;
      reads_own_ = true;
      if (!within(read, results)) {
        return say("it reads and writes '" + read->buffer->name + "' at different elements");
      }
    }
    return true;
  }

  /// Whether the reads of the body are within these regions, which are smaller than the declared ones.
  bool reads_within(const Ref<Buffer>& buffer, const Regions& own) {
    if (!by_pointer_.empty() || is_aliased_) return false;
    const Regions reads = block_access_region(block_).reads;
    return all_of(
        reads, [&](const Ref<BufferRegion>& read) { return read->buffer->data != buffer->data || within(read, own); });
  }

  /// Different data-parallel axes, disjoint elements: of what is declared, or else of what the body stores to.
  bool check_disjoint(const Ref<BufferRegion>& write) {
    if (disjoint_part(write).defined()) return true;
    // An empty bucket of a format has no instances, which lists of rows without values do not show.
    for (const Ref<IterVar>& axis : block_->iter_vars) {
      if (is_const_int(axis->dom->extent, 0)) return true;
    }
    return say("instances with different spatial axes may write the same elements of '" + write->buffer->name + "'");
  }

  Ref<BufferRegion> disjoint_part(const Ref<BufferRegion>& write) {
    if (is_disjoint(write)) return write;
    if (!by_pointer_.empty() || is_aliased_) return {};
    for (const Ref<BufferRegion>& stored : block_access_region(block_).writes) {
      if (stored->buffer == write->buffer && is_disjoint(stored)) return stored;
    }
    return {};
  }

  bool is_disjoint(const Ref<BufferRegion>& write) {
    std::vector<Ref<IterVar>> axes;
    for (const Ref<IterVar>& axis : block_->iter_vars) {
      if (is_data_parallel(axis) && !is_const_int(axis->dom->extent, 1)) axes.push_back(axis);
    }
    if (all_of(axes, [&](const auto& axis) { return is_index(*write, axis); })) return true;
    arith::IterDomains inputs;
    for (const Ref<IterVar>& axis : axes) inputs.emplace_back(axis->var, axis->dom);
    std::vector<Expr> starts, extents;
    for (const Ref<Range>& r : write->region) {
      starts.push_back(r->min);
      extents.push_back(r->extent);
    }
    take_distinct_values(starts, inputs);
    for (Expr& start : starts) {
      Expr inner = arith::mirrored(start, inputs);
      if (inner.defined()) start = inner;
    }
    if (all_of(extents, [](const Expr& extent) { return is_const_int(extent, 1); })) {
      extents.resize(arith::join_digits(starts).size());  // elements, at whole numbers
    }
    auto map = arith::detect_iter_map(starts, arith::rounded_up(starts, inputs), {}, arith::IterMapLevel::kBijective,
                                      analyzer_);
    bool disjoint = map.ok();
    for (size_t i = 0; disjoint && i < map.indices.size(); ++i) {
      // Neighboring starts are one smallest scale apart, and each region must end before the next begins.
      const auto& args = map.indices[i].args;
      disjoint = args.empty() || analyzer_.can_prove(le(extents[i], args.back().scale));
    }
    return disjoint || ascends(*write, axes);
  }

  /// An element of a buffer whose values are distinct is as good as the axes that select it: of C[R[i], j], where no
  /// value of R occurs twice, the axes become those of C[r, j]. It has to be the only one that uses these axes.
  void take_distinct_values(std::vector<Expr>& starts, arith::IterDomains& inputs) {
    for (const BufferDomain& domain : buffer_domains(*block_)) {
      const bool is_distinct = domain.order == ValueOrder::kIncreasing || domain.order == ValueOrder::kDistinct;
      if (!is_distinct || domain.has_segments()) continue;
      Ref<BufferLoad> load;
      for (const Expr& start : starts) {
        visit(start, [&](const Ref<BufferLoad>& each) {
          if (!load.defined() && each->buffer == domain.buffer) load = each;
        });
      }
      if (!load.defined() || load->indices.size() != 1) continue;
      arith::IterDomains selecting, others;
      for (const auto& input : inputs) (uses_var(load, input.first) ? selecting : others).push_back(input);
      const auto map = arith::detect_iter_map(load->indices, selecting, {}, arith::IterMapLevel::kBijective, analyzer_);
      if (!map.ok()) continue;
      const Ref<Var> value = var("value", load.dtype());
      std::vector<Expr> replaced;
      for (const Expr& start : starts) {
        replaced.push_back(rewrite(start, [&](const Ref<BufferLoad>& each, Rewriter& walk) -> Expr {
          return structural_equal(each, load) ? Expr(value) : Expr(walk.descend(each));
        }));
      }
      const bool are_used = any_of(replaced, [&](const Expr& start) {
        return uses_any_var(start, [&](const Ref<Var>& v) {
          return any_of(selecting, [&](const auto& input) { return input.first == v; });
        });
      });
      if (are_used) continue;
      const Expr min = cast(load.dtype(), domain.min), end = cast(load.dtype(), domain.end);
      others.emplace_back(value, range(min, end - min));
      starts = std::move(replaced);
      inputs = std::move(others);
    }
  }

  /// Along some dimension an instance writes behind all that earlier ones write. Offsets say so: S[P[i]:P[i + 1]],
  /// where the block declares that P does not descend, and rows in ascending order: S[R[i], j]. Axes that are indices
  /// themselves, such as j, select different elements of one row.
  bool ascends(const BufferRegion& write, const std::vector<Ref<IterVar>>& axes) {
    Ref<IterVar> outer;
    for (const Ref<IterVar>& axis : axes) {
      if (is_index(write, axis)) continue;
      if (outer.defined()) return false;
      outer = axis;
    }
    if (!outer.defined()) return false;
    const Ref<Var>& axis = outer->var;
    const Ref<Var> step = var("step", axis.dtype());
    analyzer_.bind(step, range(one(axis.dtype()), outer->dom->extent));
    return any_of(write.region, [&](const Ref<Range>& r) {
      const bool is_shared =
          any_of(axes, [&](const Ref<IterVar>& other) { return other != outer && uses_var(r, other->var); });
      if (is_shared) return false;
      Expr later = substitute(r->min, VarMap{{axis, axis + step}});
      return later != r->min && analyzer_.can_prove(le(r->min + r->extent, later));
    });
  }

  bool check_init() {
    for (const Ref<BufferRegion>& write : block_->writes) {
      if (!surely_writes(block_->init, *block_, write, analyzer_)) {
        return say("its init does not set all that it writes to '" + write->buffer->name + "'");
      }
    }
    Block init = *block_;
    init.body = init.init;
    init.init = {};
    for (const Ref<BufferRegion>& read : block_access_region(make(std::move(init))).reads) {
      if (written(read->buffer)) return say("its init reads '" + read->buffer->name + "', which it sets");
    }
    return true;
  }

  /// Checks that each store is element = element (op) value, with one op per buffer, and that nothing else in the body
  /// reads what the block writes: no value, condition, index or binding. Alternatively, one block inside does all of
  /// this.
  bool check_commutative() {
    bool good = true;
    int stores = 0, loads = 0, blocks = 0;
    MemoryNames names;  // several views may show one element
    names.add_views(*block_);
    std::unordered_map<const NodeBase*, int> operation_on;
    visit(
        block_->body,
        [&](const Ref<BufferStore>& store) {
          auto step = ReductionStep::of(*store);
          good &=
              step && !may_fail_early(*step, analyzer_) &&
              operation_on.emplace(names.memory(store->buffer), step->operation()).first->second == step->operation();
          ++stores;
        },
        [&](const Ref<BufferLoad>& load) { loads += written(load->buffer) || is_view(load->buffer); },
        [&](const Ref<BlockRealize>& realize, Visitor& v) {
          const BlockFacts& inner = BlockFacts::of(realize->block);
          good &= inner.role == BlockRole::kUpdate && inner.why.empty() && inner.commutative;
          std::unordered_set<const NodeBase*> updated;
          for (const Ref<BufferRegion>& write : realize->block->writes) {
            good &= updated.insert(names.memory(write->buffer)).second;
          }
          ++blocks;
          for (const Expr& value : realize->iter_values) v(value);
          v(realize->predicate);
        });
    facts_.compound |= blocks > 0;
    return good && loads == stores && !accumulates_by_pointer_ && (blocks == 0 || (blocks == 1 && stores == 0));
  }

  bool is_view(const NodeRef& buffer) const {
    return any_of(block_->match_buffers, [&](const Ref<MatchBufferRegion>& match) { return match->buffer == buffer; });
  }

  const Ref<Block>& block_;
  BlockFacts& facts_;
  Analyzer analyzer_;
  bool reads_own_ = false;
  bool accumulates_by_pointer_ = false;
  Regions replaced_;         ///< views that are replaced through a pointer that is only written to
  std::string partial_;      ///< a buffer that is written in part only
  std::string by_pointer_;   ///< a buffer that is declared, and touched behind its pointer
  bool is_aliased_ = false;  ///< a buffer declared inside accesses memory of another one
};

bool is_at_one_of(const BufferLoad& load, const Regions& regions) {
  return any_of(regions, [&](const Ref<BufferRegion>& region) {
    return region->buffer == load.buffer && PlainStore::is_at(load.indices, region);
  });
}

/// Whether each instance writes one element that its data-parallel axes select, each axis being an index.
bool selects_by_axes(const Block& block, const Ref<BufferRegion>& write) {
  return all_of(block.iter_vars, [&](const Ref<IterVar>& axis) {
    auto names_it = [&](const Ref<Range>& r) { return r->min == axis->var; };
    if (is_reduction_axis(axis)) {
      return none_of(write->region, [&](const Ref<Range>& r) { return uses_var(r->min, axis->var); });
    }
    return is_data_parallel(axis) && axis->dom.defined() &&
           (is_const_int(axis->dom->extent, 1) || any_of(write->region, names_it));
  });
}

/// The facts of a complete block, a reduction or what accumulates, where they are plain to see. False for all others,
/// and where one has to reason.
bool judge_plainly(const PlainBlock& plain, BlockFacts& facts) {
  const Block& block = *plain.block;
  const BufferStore& store = *plain.body.store;
  if (block.writes.size() != 1 || block.writes[0]->buffer != store.buffer) return false;
  const Ref<BufferRegion>& write = block.writes[0];
  if (!PlainStore::is_at(store.indices, write) || !selects_by_axes(block, write)) return false;
  auto is_own = [&](const Ref<Buffer>& buffer) { return buffer->data == store.buffer->data; };
  auto declared = [&](const BufferLoad& load) {
    return is_at_one_of(load, block.reads) || (plain.init && is_at_one_of(load, block.writes));
  };
  int num_own = 0;
  for (const BufferLoad* load : plain.body.loads) {
    if (!declared(*load) || (is_own(load->buffer) && !is_at_one_of(*load, block.writes))) return false;
    num_own += is_own(load->buffer);
  }
  bool accumulates = num_own > 0;
  for (const Ref<BufferRegion>& read : block.reads) {
    if (!is_own(read->buffer)) continue;
    if (read->buffer != store.buffer || !PlainStore::is_at(store.indices, read)) return false;
    accumulates = true;
  }
  if (plain.init) {
    bool sets = plain.init->store->buffer == store.buffer && PlainStore::is_at(plain.init->store->indices, write);
    bool free = none_of(plain.init->loads, [&](const BufferLoad* load) {
      return is_own(load->buffer) || !is_at_one_of(*load, block.reads);
    });
    if (!sets || !free) return false;
  }
  bool reduces = any_of(block.iter_vars, is_reduction_axis);
  if (reduces && !accumulates) return false;
  facts.role = plain.init ? BlockRole::kReduction : accumulates ? BlockRole::kUpdate : BlockRole::kComplete;
  if (accumulates) {
    auto step = num_own == 1 ? ReductionStep::of(store) : std::nullopt;
    if (step && step->may_skip_operand()) return false;
    facts.commutative = step.has_value();
  }
  facts.writes_all = {true};
  facts.live_in = block.reads;
  return true;
}

}  // namespace

namespace {
constexpr const char* kAssumedDeclarations = "tilewright.assumed_declarations";
const NodeRef& the_mark() {
  static const NodeRef mark = string_imm("");
  return mark;
}
}  // namespace

void assume_declarations(Block& block) { block.annotations.set(kAssumedDeclarations, the_mark()); }
bool has_assumed_declarations(const Block& block) { return block.annotations.get(kAssumedDeclarations) == the_mark(); }
void clear_assumed_declarations(Block& block) { block.annotations.erase(kAssumedDeclarations); }

bool is_data_parallel(const Ref<IterVar>& axis) { return axis->iter_type == IterType::kDataPar; }
bool is_reduction_axis(const Ref<IterVar>& axis) { return axis->iter_type == IterType::kCommReduce; }

const BlockFacts& BlockFacts::of(const Ref<Block>& block) {
  return block->id.memo.get<BlockFacts>([&] {
    BlockFacts facts;
    const auto& plain = PlainBlock::of(*block);
    return plain && judge_plainly(*plain, facts) ? facts : examined(block);
  });
}

BlockFacts BlockFacts::examined(const Ref<Block>& block) {
  BlockFacts facts;
  Ref<Block> description = described(block);
  facts.compound = description != block;
  Examine(description, facts).run();
  return facts;
}

}  // namespace tilewright::analysis
