#include "analysis/validator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/brief.h"
#include "arith/analyzer.h"
#include "ir/buffer_domain.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

Expr wide(const Expr& e) { return cast(DataType::int_(64), e); }

constexpr const char* kHint =
    "\n  hint: the program declares it, by T.assume_buffer_domain or by an axis, and relies on it";

/// Reports "NAME[position] what follows" where the condition fails.
Stmt check(Expr holds, const std::string& name, Expr position, const std::string& rule) {
  Expr message = call(DataType::handle(), "tir.tvm_tuple",
                      {string_imm(name + "["), wide(std::move(position)), string_imm("] " + rule + kHint)});
  return make<AssertStmt>({std::move(holds), std::move(message), nop()});
}

/// Checks every element of an array of any number of dimensions; its position is counted in row-major order.
Stmt check_domain(const BufferDomain& domain) {
  std::vector<Ref<Var>> at;
  std::vector<Expr> indices;
  Expr position = i64(0);
  for (const Expr& extent : domain.buffer->shape) {
    at.push_back(var("i", extent.dtype()));
    indices.emplace_back(at.back());
    position = position * wide(extent) + wide(at.back());
  }
  const Expr value = wide(load(domain.buffer, indices));
  Stmt body = check(logical_and(le(wide(domain.min), value), lt(value, wide(domain.end))), domain.buffer->name,
                    position, "is not in [" + brief(domain.min) + ", " + brief(domain.end) + ")");
  for (size_t i = at.size(); i-- > 0;) body = loop(at[i], domain.buffer->shape[i], body);
  return body;
}

/// Neighbors from `begin` to before `end`; the first one has none before it.
Stmt check_neighbors(const BufferDomain& domain, const Expr& begin, const Expr& end, const std::string& where) {
  const Ref<Buffer>& buffer = domain.buffer;
  const bool may_repeat = domain.order != ValueOrder::kIncreasing;
  const Ref<Var> step = var("i", end.dtype());
  const Expr position = begin + 1 + step, value = load(buffer, {position}), before = load(buffer, {position - 1});
  const std::string rule = may_repeat ? "is less than the value before it" : "does not exceed the value before it";
  Stmt body = check(may_repeat ? le(before, value) : lt(before, value), buffer->name, position, rule + where);
  return loop(step, max(end - begin - 1, zero(end.dtype())), body);
}

/// Checks that no segment is longer than declared.
Stmt check_longest(const BufferDomain& domain) {
  const Expr count = wide(domain.buffer->shape[0]);
  const Ref<Var> step = var("i", count.dtype());
  const Expr position = Expr(step) + 1, value = wide(load(domain.buffer, {position}));
  Stmt body = check(le(value - wide(load(domain.buffer, {Expr(step)})), wide(domain.longest)), domain.buffer->name,
                    position, "exceeds the value before it by more than " + brief(domain.longest));
  return loop(step, max(count - 1, zero(count.dtype())), body);
}

/// The first and the last element, where there are any.
Stmt check_ends(const BufferDomain& domain) {
  const Expr count = domain.buffer->shape[0], last = count - 1;
  auto at = [&](const Expr& position, const Expr& value, const std::string& end) {
    const Ref<Var> once = var("i", count.dtype());
    Stmt body = check(eq(wide(load(domain.buffer, {position})), wide(value)), domain.buffer->name, position,
                      "is not " + brief(value) + ", with which offsets " + end);
    return loop(once, min(max(count, zero(count.dtype())), one(count.dtype())), body);
  };
  return seq(
      {at(zero(count.dtype()), domain.min, "begin"), at(last, arith::Analyzer().simplify(domain.end - 1), "end")});
}

/// A mark for each value that the buffer may have says whether an earlier element has it.
Stmt check_distinct(const BufferDomain& domain, std::vector<Def<Buffer>>& allocated) {
  const Ref<Buffer>& buffer = domain.buffer;
  const Expr low = wide(domain.min);
  const Ref<Buffer> marks = decl_buffer({max(wide(domain.end) - low, Expr(i64(0)))}, DataType::int_(8), "marks");
  allocated.emplace_back(marks);
  const Ref<Var> clear = var("i", marks->shape[0].dtype()), position = var("i", buffer->shape[0].dtype());
  const Expr at = wide(load(buffer, {position})) - low;
  Stmt is_new =
      check(eq(load(marks, {at}), zero(marks->dtype)), buffer->name, position, "is the value of an earlier element");
  return seq({loop(clear, marks->shape[0], store(marks, zero(marks->dtype), {clear})),
              loop(position, buffer->shape[0], seq({std::move(is_new), store(marks, one(marks->dtype), {at})}))});
}

Stmt check_order(const BufferDomain& domain) {
  const Expr count = domain.buffer->shape[0];
  const Ref<Buffer>& segments = domain.segments;
  if (!domain.has_segments()) return check_neighbors(domain, zero(count.dtype()), count, "");
  if (domain.segment_length.defined()) {
    const Expr length = wide(domain.segment_length);
    const Ref<Var> segment = var("s", DataType::int_(64));
    const Expr begin = Expr(segment) * length;
    Stmt body = check_neighbors(domain, begin, min(begin + length, wide(count)),
                                " in its segment of length " + brief(domain.segment_length));
    // There are no segments if their length is 0, and no division by it.
    return loop(segment, ceildiv(wide(count), max(length, Expr(i64(1)))), body);
  }
  const Ref<Var> segment = var("s", segments->shape[0].dtype());
  auto offset = [&](const Expr& at) { return max(min(wide(load(segments, {at})), wide(count)), Expr(i64(0))); };
  Stmt body = check_neighbors(domain, offset(segment), offset(Expr(segment) + 1),
                              " in its segment of '" + segments->name + "'");
  return loop(segment, max(segments->shape[0] - 1, zero(segments->shape[0].dtype())), body);
}

/// A mark for each value that a buffer of the group may have says which of them has it.
Stmt check_disjoint(const std::vector<BufferDomain>& group, const Ref<Buffer>& marks, const Expr& low) {
  const Ref<Var> clear = var("i", marks->shape[0].dtype());
  std::vector<Stmt> steps{loop(clear, marks->shape[0], store(marks, zero(marks->dtype), {clear}))};
  for (size_t number : indices_of(group)) {
    const Ref<Buffer>& buffer = group[number].buffer;
    const Ref<Var> position = var("i", buffer->shape[0].dtype());
    const Expr at = wide(load(buffer, {position})) - low, known = load(marks, {at});
    const Expr own = int_imm(marks->dtype, static_cast<int64_t>(number) + 1);
    Stmt free = check(logical_or(eq(known, zero(marks->dtype)), eq(known, own)), buffer->name, position,
                      "is a value of another buffer, from which it is disjoint");
    steps.push_back(loop(position, buffer->shape[0], seq({std::move(free), store(marks, own, {at})})));
  }
  return seq(std::move(steps));
}

/// The checks of a group of disjoint buffers, and the marks that they use; their domains are checked before.
Stmt check_group(const DisjointBuffers& buffers, const std::vector<BufferDomain>& domains,
                 std::vector<Def<Buffer>>& allocated) {
  std::vector<BufferDomain> group;
  for (const Ref<Buffer>& buffer : buffers) {
    group.push_back(*find_if(domains, [&](const BufferDomain& domain) { return domain.buffer == buffer; }));
  }
  Expr low = wide(group[0].min), end = wide(group[0].end);
  for (const BufferDomain& domain : group) {
    low = min(low, wide(domain.min));
    end = max(end, wide(domain.end));
  }
  const Expr count = max(end - low, Expr(i64(0)));
  Ref<Buffer> marks = decl_buffer({count}, DataType::int_(32), "marks");
  allocated.emplace_back(marks);
  return check_disjoint(group, marks, low);
}

}  // namespace

DeclaredChecks declared_checks(const PrimFunc& func) {
  const BlockRealize* root = func.body.as<BlockRealize>();
  if (!root || !root->block->iter_vars.empty()) return {};
  std::vector<BufferDomain> domains;
  for (const BufferDomain& domain : buffer_domains(*root->block)) {
    auto is_given = [&](const Ref<Buffer>& buffer) {
      return any_of(func.buffer_map, [&](const auto& entry) { return Ref<Buffer>(entry.second) == buffer; });
    };
    if (is_given(domain.buffer) && (!domain.segments.defined() || is_given(domain.segments))) domains.push_back(domain);
  }
  std::vector<Ref<Buffer>> offsets;
  for (const BufferDomain& domain : domains) offsets.push_back(domain.segments);
  std::stable_partition(domains.begin(), domains.end(),
                        [&](const BufferDomain& domain) { return is_contained(offsets, domain.buffer); });
  DeclaredChecks result;
  for (const BufferDomain& domain : domains) {
    result.checks.push_back(check_domain(domain));
    if (domain.order == ValueOrder::kDistinct) {
      result.checks.push_back(check_distinct(domain, result.allocated));
    } else if (domain.order != ValueOrder::kNone) {
      result.checks.push_back(check_order(domain));
      if (domain.order == ValueOrder::kOffsets) result.checks.push_back(check_ends(domain));
    }
    if (domain.longest.defined()) result.checks.push_back(check_longest(domain));
  }
  for (const DisjointBuffers& group : disjoint_buffers(*root->block)) {
    const bool is_known = all_of(group, [&](const Ref<Buffer>& buffer) {
      return any_of(domains, [&](const auto& domain) { return domain.buffer == buffer; });
    });
    if (is_known) result.checks.push_back(check_group(group, domains, result.allocated));
  }
  return result;
}

std::optional<Ref<PrimFunc>> validator_of(const Ref<PrimFunc>& func) {
  const NodeRef symbol = func->attrs.get("global_symbol");
  if (!symbol.defined() || !symbol.is<StringImm>()) return std::nullopt;
  DeclaredChecks declared = declared_checks(*func);
  const BlockRealize* root = func->body.as<BlockRealize>();
  const NodeRef sizes = root ? root->block->annotations.get(kRequiredSizes) : NodeRef();
  if (declared.checks.empty() && !sizes.defined()) return std::nullopt;
  PrimFunc validator = *func;
  validator.attrs.set("global_symbol", string_imm(symbol.as<StringImm>()->value + kValidateSuffix));
  validator.body = seq(std::move(declared.checks));
  if (!declared.allocated.empty() || sizes.defined()) {
    Block block;
    block.name_hint = "root";
    if (sizes.defined()) block.annotations.set(kRequiredSizes, sizes);
    block.alloc_buffers = std::move(declared.allocated);
    block.body = validator.body;
    validator.body = realized(make(std::move(block)));
  }
  return renew_defs(make(std::move(validator)));
}

}  // namespace tilewright::analysis
