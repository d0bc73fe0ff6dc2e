#include "analysis/accesses.h"

#include "ir/annotations.h"
#include "ir/atomic_operation.h"
#include "ir/build.h"
#include "ir/pointer_uses.h"
#include "ir/reduction_step.h"
#include "ir/regions.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

using SurroundingKind = Surrounding::Kind;

class AccessWalk {
 public:
  AccessWalk(Nested nested, const OnAccess& found) : nested_(nested), found_(found) {}

  void root(const NodeRef& node) {
    if (const Block* block = node.as<Block>()) {
      enter_views(*block);
      parts_of(*block);
    } else {
      part(node, false);
    }
  }

 private:
  void parts_of(const Block& block) {
    const bool outer = std::exchange(in_atomic_, is_atomic_block(block));
    part(block.init, true);
    part(block.body, false);
    in_atomic_ = outer;
  }

  void part(const NodeRef& node, bool in_init) {
    if (!node.defined()) return;
    bool outer = std::exchange(in_init_, in_init);
    visit(
        node, [&](const Ref<BufferLoad>& load, Visitor& v) { on_load(load, v); },
        [&](const Ref<BufferStore>& store, Visitor& v) { on_store(store, v); },
        [&](const Ref<BufferRegion>& region, Visitor& v) {
          report(Access::Form::kRegion, region, region->buffer, true, false);
          for (const Ref<Range>& range : region->region) v(range);
        },
        [&](const Ref<Call>& call, Visitor& v) { on_call(call, v); },
        [&](const Ref<Var>& pointer, Visitor& v) {
          if (v.role() != Role::kDef && pointer.dtype().is_handle()) on_pointer(pointer, pointer, true, true);
        },
        [&](const Ref<For>& loop, Visitor& v) { on_loop(loop, v); },
        [&](const Ref<While>& loop, Visitor& v) {
          around_.push_back({SurroundingKind::kWhile, loop, {}, {}, loop->condition});
          v.descend(loop);
          around_.pop_back();
        },
        on<LetStmt, Let>([&](const auto& let, Visitor& v) { on_let(*let, let, v); }),
        [&](const Ref<IfThenElse>& branch, Visitor& v) {
          on_branch(branch, branch->condition, branch->then_case, branch->else_case, v);
        },
        [&](const Ref<And>& both, Visitor& v) { on_logic(both, both->a, both->b, both->a, v); },
        [&](const Ref<Or>& either, Visitor& v) { on_logic(either, either->a, either->b, logical_not(either->a), v); },
        [&](const Ref<AssertStmt>& assertion, Visitor& v) {
          v(assertion->condition);
          under(SurroundingKind::kAssertion, assertion, assertion->condition, [&] { v(assertion->body); });
        },
        [&](const Ref<DeclBuffer>& decl, Visitor& v) {
          around_.push_back({SurroundingKind::kDeclaration, decl, {}, {}, {}});
          if (!owned_.contains(decl->buffer->data)) {
            on_pointer(decl, decl->buffer->data, true, true);
            aliases_[decl->buffer] = origin_of(decl->buffer->data);
          }
          v(decl->body);
          around_.pop_back();
        },
        [&](const Ref<Allocate>& allocate, Visitor& v) {
          owned_.insert(allocate->buffer_var);
          for (const Expr& extent : allocate->extents) v(extent);
          v(allocate->condition);
          v(allocate->body);
        },
        [&](const Ref<AllocateConst>& allocate, Visitor& v) {
          owned_.insert(allocate->buffer_var);
          v(allocate->body);
        },
        [&](const Ref<BlockRealize>& realize, Visitor& v) { on_realize(realize, v); },
        [&](const Ref<Block>& block, Visitor&) { on_block(block); });
    in_init_ = outer;
  }

  void report(Access::Form form, const NodeRef& site, const Ref<Buffer>& buffer, bool reads, bool writes,
              const Ref<Var>& pointer = {}, bool is_atomic = false) {
    found_(Access{form, site, buffer, pointer, reads, writes, in_init_, around_, &views_, is_atomic,
                  find_value_or(aliases_, buffer, Ref<Var>())});
  }

  /// The pointer that a let variable is a name of.
  Ref<Var> origin_of(const Ref<Var>& pointer) const { return find_value_or(named_pointers_, pointer, pointer); }

  void on_load(const Ref<BufferLoad>& load, Visitor& v) {
    report(Access::Form::kElement, load, load->buffer, true, false, {}, load.get() == updated_);
    for (const Expr& index : load->indices) v(index);
    v(load->predicate);
  }

  void on_store(const Ref<BufferStore>& store, Visitor& v) {
    const bool is_atomic = in_atomic_ && !in_init_ && AtomicOperation::of(*store);
    auto step = is_atomic ? ReductionStep::of(*store) : std::nullopt;
    const NodeBase* outer = std::exchange(updated_, step ? step->element().get() : nullptr);
    v(store->value);
    updated_ = outer;
    for (const Expr& index : store->indices) v(index);
    v(store->predicate);
    report(Access::Form::kElement, store, store->buffer, false, true, {}, is_atomic);
  }

  void on_pointer(const NodeRef& site, const Ref<Var>& pointer, bool reads, bool writes) {
    report(Access::Form::kPointer, site, find_value_or(by_data_, pointer, Ref<Buffer>()), reads, writes, pointer);
  }

  void on_call(const Ref<Call>& call, Visitor& v) {
    switch (intrinsic_of(*call)) {
      case Intrinsic::k_if_then_else:
        return on_branch(call, call->arg(0), call->args[1], call->args[2], v);
      case Intrinsic::k_atomic_add:
      case Intrinsic::k_atomic_min:
      case Intrinsic::k_atomic_max: {
        auto step = AtomicOperation::of(call);
        if (!step) break;
        for (const Expr& index : step->indices) v(index);
        v(step->value);
        return report(Access::Form::kAddress, step->address, step->buffer, true, true, {}, true);
      }
      case Intrinsic::k_address_of: {
        const BufferLoad* load = call->args.empty() ? nullptr : call->args[0].as<BufferLoad>();
        if (!load) break;
        report(Access::Form::kAddress, call, load->buffer, true, true);
        for (const Expr& index : load->indices) v(index);
        return;
      }
      case Intrinsic::k_tvm_access_ptr: {
        // (type, data, offset, extent, mask): bit 0 of the mask stands for reading, bit 1 for writing.
        if (call->args.size() != 5 || !call->args[1].is<Var>()) break;
        auto mask = call->args[4].sort() == Sort::kExpr ? const_int(call->arg(4)) : std::nullopt;
        on_pointer(call, call->args[1].borrow<Var>(), !mask || *mask & 1, !mask || *mask & 2);
        v(call->args[2]);
        v(call->args[3]);
        return;
      }
      default:
        break;
    }
    v.descend(call);
  }

  void on_loop(const Ref<For>& loop, Visitor& v) {
    v(loop->min);
    v(loop->extent);
    arith::IntSet set = arith::IntSet::interval(loop->min, loop->min + loop->extent - 1);
    around_.push_back({SurroundingKind::kLoop, loop, loop->loop_var, std::move(set), {}});
    v(loop->body);
    around_.pop_back();
  }

  template <class T>
  void on_let(const T& let, const NodeRef& site, Visitor& v) {
    v(let.value);
    if (let.var.dtype().is_handle()) {
      if (const Ref<Var> pointer = pointer_in(let.value); pointer.defined()) {
        named_pointers_[let.var] = origin_of(pointer);
      }
    }
    bool integral = let.value.dtype().is_integral();
    around_.push_back({SurroundingKind::kLet,
                       site,
                       let.var,
                       integral ? arith::IntSet::point(let.value) : arith::IntSet::everything(),
                       {}});
    v(let.body);
    around_.pop_back();
  }

  template <class F>
  void under(SurroundingKind kind, const NodeRef& site, const Expr& condition, F&& inside) {
    around_.push_back({kind, site, {}, {}, condition});
    inside();
    around_.pop_back();
  }

  void on_branch(const NodeRef& site, const Expr& condition, const NodeRef& yes, const NodeRef& no, Visitor& v) {
    v(condition);
    under(SurroundingKind::kCondition, site, condition, [&] { v(yes); });
    if (no.defined()) under(SurroundingKind::kCondition, site, logical_not(condition), [&] { v(no); });
  }

  /// For scalars, the second operand is not evaluated if the first one decides.
  void on_logic(const NodeRef& site, const Expr& first, const Expr& second, const Expr& goes_on, Visitor& v) {
    v(first);
    if (first.dtype().is_vector()) return v(second);
    under(SurroundingKind::kCondition, site, goes_on, [&] { v(second); });
  }

  void on_realize(const Ref<BlockRealize>& realize, Visitor& v) {
    size_t before = around_.size();
    // Axes are bound where the block runs, and only there.
    v(realize->predicate);
    if (!is_true(realize->predicate))
      around_.push_back({SurroundingKind::kCondition, realize, {}, {}, realize->predicate});
    for (size_t i : indices_of(realize->iter_values)) {
      v(realize->iter_values[i]);
      const Ref<IterVar>& axis = realize->block->iter_vars[i];
      if (axis->dom.defined()) v(axis->dom);  // speaks of nothing that the block defines
      around_.push_back({SurroundingKind::kAxis, axis, axis->var, arith::IntSet::point(realize->iter_values[i]), {}});
    }
    on_block(realize->block);
    around_.resize(before);
  }

  void on_block(const Ref<Block>& block) {
    if (nested_ == Nested::kDeclared) {
      for (const auto& region : block->reads) report(Access::Form::kRegion, region, region->buffer, true, false);
      for (const auto& region : block->writes) report(Access::Form::kRegion, region, region->buffer, false, true);
      return;
    }
    around_.push_back({SurroundingKind::kBlock, block, {}, {}, {}});
    enter_views(*block);
    parts_of(*block);
    around_.pop_back();
  }

  void enter_views(const Block& block) {
    for (const Def<Buffer>& buffer : block.alloc_buffers) by_data_[buffer->data] = buffer;
    for (const Ref<MatchBufferRegion>& match : block.match_buffers) {
      report(Access::Form::kView, match, match->source->buffer, true, true);
      views_[match->buffer] = match->source;
      by_data_[match->buffer->data] = match->buffer;
    }
  }

  Nested nested_;
  const OnAccess& found_;
  std::vector<Surrounding> around_;
  bool in_init_ = false, in_atomic_ = false;
  const NodeBase* updated_ = nullptr;  ///< the load of an update in an atomic block
  Views views_;
  std::unordered_map<NodeRef, Ref<Buffer>> by_data_;
  std::unordered_set<NodeRef> owned_;                     ///< by an Allocate: known by no other name
  std::unordered_map<NodeRef, Ref<Var>> aliases_;         ///< of declared buffers, the pointers
  std::unordered_map<NodeRef, Ref<Var>> named_pointers_;  ///< of let variables, the pointers that they are names of
};

/// The part of the source that the region of its view shows.
Ref<BufferRegion> in_source(const Ref<BufferRegion>& region, const Ref<BufferRegion>& source) {
  size_t dims = source->region.size(), own = region->region.size();
  std::vector<Ref<Range>> moved;
  for (size_t i = 0; i < dims; ++i) {
    const Range& outer = *source->region[i];
    bool follows = own <= dims && i >= dims - own && same_number(region->buffer->shape[i - (dims - own)], outer.extent);
    if (follows) {
      const Range& inner = *region->region[i - (dims - own)];
      moved.push_back(range(outer.min + inner.min, inner.extent));
    } else {
      moved.push_back(source->region[i]);
    }
  }
  return make<BufferRegion>({source->buffer, std::move(moved)});
}

}  // namespace

Ref<BufferRegion> behind_views(Ref<BufferRegion> region, const Views& views) {
  while (auto* source = find_value(views, region->buffer)) region = in_source(region, *source);
  return region;
}

Ref<BufferRegion> region_of_element(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
  std::vector<Ref<Range>> region;
  for (const Expr& index : indices) {
    const Ramp* ramp = index.as<Ramp>();
    auto stride = ramp ? const_int(ramp->stride) : std::nullopt;
    auto lanes = ramp ? const_int(ramp->lanes) : std::nullopt;
    if (index.dtype().is_scalar()) {
      region.push_back(range(index, one(index.dtype())));
    } else if (stride && lanes) {
      int64_t reach = *stride * (*lanes - 1);
      region.push_back(
          range(reach < 0 ? ramp->base + reach : ramp->base, constant(ramp->base.dtype(), std::abs(reach) + 1)));
    } else {
      region.push_back(range_of(buffer->shape[region.size()]));
    }
  }
  return make<BufferRegion>({buffer, std::move(region)});
}

void for_each_access(const NodeRef& root, Nested nested, const OnAccess& found) {
  if (!root.defined()) return;
  with_stack_for(root.depth(), [&] { AccessWalk(nested, found).root(root); });
}

const std::vector<Expr>* Access::indices() const {
  if (const BufferLoad* load = site.as<BufferLoad>()) return &load->indices;
  if (const BufferStore* store = site.as<BufferStore>()) return &store->indices;
  if (form == Form::kAddress) return &site.as<Call>()->args[0].as<BufferLoad>()->indices;
  return nullptr;
}

Expr Access::mask() const {
  if (const BufferLoad* load = site.as<BufferLoad>()) return load->predicate;
  if (const BufferStore* store = site.as<BufferStore>()) return store->predicate;
  return {};
}

Ref<BufferRegion> Access::region() const {
  if (!named.defined()) return {};
  Ref<BufferRegion> touched;
  switch (form) {
    case Form::kElement:
      touched = region_of_element(named, *indices());
      break;
    case Form::kRegion:
      touched = site.borrow<BufferRegion>();
      break;
    case Form::kView:
      touched = site.as<MatchBufferRegion>()->source;
      break;
    case Form::kAddress:
      touched = is_atomic ? region_of_element(named, *indices()) : whole_region(named);
      break;
    case Form::kPointer:
      touched = whole_region(named);
      break;
  }
  return behind_views(std::move(touched), *views);
}

bool Access::is_conditional() const {
  if (mask().defined()) return true;
  Surroundings inner = inside_block(around);
  return any_of(inner, [](const Surrounding& s) {
    return s.kind == SurroundingKind::kCondition || s.kind == SurroundingKind::kWhile;
  });
}

Surroundings inside_block(Surroundings around) {
  size_t begin = around.size();
  while (begin > 0 && around[begin - 1].kind != SurroundingKind::kBlock) --begin;
  return around.subspan(begin);
}

const Block* innermost_block(Surroundings around) {
  size_t begin = around.size() - inside_block(around).size();
  return begin == 0 ? nullptr : around[begin - 1].node.as<Block>();
}

arith::Domains domains_of(Surroundings around) {
  arith::Domains domains;
  for (const Surrounding& s : around) {
    if (s.var.defined()) domains[s.var] = s.set;
  }
  return domains;
}

Expr stable_terms(const Expr& condition, const IsConstant& is_constant) {
  if (const And* both = condition.as<And>()) {
    return logical_and(stable_terms(both->a, is_constant), stable_terms(both->b, is_constant));
  }
  const Effect effect = effect_of(condition);
  bool stable = effect == Effect::kPure || (effect == Effect::kReadState && is_constant);
  if (stable && effect != Effect::kPure) {
    visit(
        condition, [&](const Ref<Call>&) { stable = false; },
        [&](const Ref<BufferLoad>& load) { stable = stable && is_constant(load->buffer); });
  }
  return stable ? condition : Expr(bool_imm(true));
}

Expr known_conditions(Surroundings around, const IsConstant& is_constant) {
  Expr all = bool_imm(true);
  for (const Surrounding& s : around) {
    if (s.kind != SurroundingKind::kCondition && s.kind != SurroundingKind::kAssertion) continue;
    if (Expr stable = stable_terms(s.condition, is_constant); !is_true(stable)) {
      all = is_true(all) ? stable : logical_and(all, stable);
    }
  }
  return all;
}

}  // namespace tilewright::analysis
