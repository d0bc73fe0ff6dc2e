#include "analysis/plain_store.h"

#include "arith/linear.h"
#include "ir/build.h"
#include "ir/op.h"
#include "support/deep_stack.h"
#include "support/ranges.h"

namespace tilewright::analysis {

namespace {

/// Capacity reserved for the variables of a store.
constexpr size_t kUsualVars = 12;

}  // namespace

std::optional<PlainStore> PlainStore::of(const Stmt& stmt, const PlainStore* part) {
  const BufferStore* store = stmt.as<BufferStore>();
  std::optional<PlainStore> result;
  if (!store || stmt.depth() > kInlineDepth) return result;
  result.emplace();
  result->store = store;
  result->part_ = part;
  result->vars.reserve(kUsualVars);
  bool plain = result->collect(store->value);
  result->vars_of_value_ = result->vars.size();
  plain = plain && result->collect_indices(store->buffer, store->indices, store->predicate);
  result->part_ = nullptr;
  if (!plain) result.reset();
  return result;
}

bool PlainStore::is_at(const std::vector<Expr>& indices, const Ref<BufferRegion>& region) {
  if (indices.size() != region->region.size()) return false;
  for (size_t d : indices_of(indices)) {
    if (!is_const_int(region->region[d]->extent, 1) || !arith::identical(indices[d], region->region[d]->min)) {
      return false;
    }
  }
  return true;
}

bool PlainStore::is_plain(const Buffer& buffer) {
  auto is_number = [](const Expr& e) { return e.is<IntImm>(); };
  return all_of(buffer.shape, is_number) && buffer.strides.empty() &&
         (!buffer.elem_offset.defined() || is_number(buffer.elem_offset));
}

bool PlainStore::collect_indices(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
  if (predicate.defined() || !is_plain(*buffer)) return false;
  vars.push_back(buffer->data.get());
  bool outer = std::exchange(in_index_, true);
  bool plain = all_of(indices, [&](const Expr& index) { return collect(index); });
  in_index_ = outer;
  return plain;
}

bool PlainStore::collect(const Expr& e) {
  if (part_ && !in_index_ && e == part_->store->value) {
    append_range(loads, part_->loads);
    vars.insert(vars.end(), part_->vars.begin(),
                part_->vars.begin() + static_cast<std::ptrdiff_t>(part_->vars_of_value_));
    return true;
  }
  if (!e.dtype().is_scalar() || e.dtype().is_handle()) return false;
  switch (e.kind()) {
    case Kind::kIntImm:
    case Kind::kFloatImm:
      return true;
    case Kind::kVar:
      vars.push_back(e.get());
      return true;
    case Kind::kCast: {
      const Expr& value = e.as<Cast>()->value;
      return !(in_index_ && value.dtype().is_float()) && collect(value);  // the bounds of such an index are unknown
    }
    case Kind::kNot:
      return collect(e.as<Not>()->a);
    case Kind::kSelect: {
      const Select& select = *e.as<Select>();
      return collect(select.condition) && collect(select.true_value) && collect(select.false_value);
    }
    case Kind::kBufferLoad: {
      const BufferLoad& load = *e.as<BufferLoad>();
      if (in_index_) return false;
      loads.push_back(&load);
      return collect_indices(load.buffer, load.indices, load.predicate);
    }
    case Kind::kCall: {
      const Call& call = *e.as<Call>();
      Intrinsic intrinsic = intrinsic_of(call);
      if (intrinsic == Intrinsic::kUnknown || intrinsic_row(intrinsic).effect != Effect::kPure) return false;
      return all_of(call.args, [&](const NodeRef& arg) {
        return arg.sort() == Sort::kExpr && !arg.is<StringImm>() && collect(static_cast<const Expr&>(arg));
      });
    }
    default: {
      BinaryOperands operands = binary_operands(e);
      return operands && collect(*operands.a) && collect(*operands.b);
    }
  }
}

namespace {

struct MemoizedBlock : Memo::Fact {
  std::optional<PlainBlock> plain;
};

}  // namespace

const std::optional<PlainBlock>& PlainBlock::known(const Block& block, const Block* alike, const PlainStore* part) {
  const MemoizedBlock& fact = block.id.memo.get<MemoizedBlock>([&] {
    MemoizedBlock result;
    if (alike) {
      result.plain = of(*alike);
    } else {
      result.plain = analyze(block, part);
    }
    if (result.plain) result.plain->block = &block;
    return result;
  });
  return fact.plain;
}
const std::optional<PlainBlock>& PlainBlock::of(const Block& block) { return known(block, nullptr, nullptr); }
void PlainBlock::carry_over(const Block& alike, const Block& block) { known(block, &alike, nullptr); }
void PlainBlock::analyze_inlined(const Block& block, const PlainStore& part) { known(block, nullptr, &part); }

std::optional<PlainBlock> PlainBlock::analyze(const Block& block, const PlainStore* part) {
  if (!block.alloc_buffers.empty() || !block.match_buffers.empty()) return std::nullopt;
  auto body = PlainStore::of(block.body, part);
  if (!body) return std::nullopt;
  PlainBlock result{&block, std::move(*body), std::nullopt};
  if (block.init.defined()) {
    result.init = PlainStore::of(block.init, part);
    if (!result.init) return std::nullopt;
  }
  return result;
}

}  // namespace tilewright::analysis
