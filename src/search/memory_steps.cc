#include "search/memory_steps.h"

#include "arith/analyzer.h"
#include "ir/build.h"
#include "ir/substitute.h"

namespace tilewright::search {
namespace {

/// Returns the growth of the expression by one step of the variable; nothing if it is not constant.
std::optional<int64_t> step_of(const Expr& e, const Ref<Var>& v) {
  if (e == v) return 1;
  if (!uses_var(e, v)) return 0;
  if (const Cast* cast = e.as<Cast>()) return step_of(cast->value, v);
  auto both = [&](const Expr& a, const Expr& b, int64_t sign) -> std::optional<int64_t> {
    auto x = step_of(a, v), y = step_of(b, v);
    return x && y ? std::optional(*x + sign * *y) : std::nullopt;
  };
  if (const Add* sum = e.as<Add>()) return both(sum->a, sum->b, 1);
  if (const Sub* difference = e.as<Sub>()) return both(difference->a, difference->b, -1);
  if (const Mul* product = e.as<Mul>()) {
    auto factor = const_int(product->b), step = step_of(product->a, v);
    if (factor && step) return *factor * *step;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::optional<int64_t>> memory_steps(const Buffer& buffer, const std::vector<Expr>& indices,
                                                 const std::vector<Ref<For>>& loops) {
  arith::Analyzer analyzer;
  for (const Ref<For>& loop : loops) analyzer.bind(loop->loop_var, range(loop->min, loop->extent));
  Expr offset = i64(0);
  int64_t of_dimension = 1;
  for (size_t d = indices.size(); d-- > 0;) {
    offset = offset + cast(DataType::int_(64), indices[d]) * i64(of_dimension);
    auto size = const_int(buffer.shape[d]);
    // The strides of outer dimensions are unknown then: they count as if their loops stood still.
    if (!size || __builtin_mul_overflow(of_dimension, *size, &of_dimension)) break;
  }
  offset = analyzer.simplify(offset);
  std::vector<std::optional<int64_t>> steps;
  for (const Ref<For>& loop : loops) steps.push_back(step_of(offset, loop->loop_var));
  return steps;
}

bool is_contiguous(const Buffer& buffer, const std::vector<Expr>& indices, const std::vector<Ref<For>>& loops) {
  std::vector<std::optional<int64_t>> steps = memory_steps(buffer, indices, loops);
  int64_t expected = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    auto extent = const_int(loops[i]->extent);
    if (extent == 1) continue;
    if (!extent || steps[i] != expected || __builtin_mul_overflow(expected, *extent, &expected)) return false;
  }
  return true;
}

std::vector<int64_t> integer_list(const NodeRef& annotation) {
  std::vector<int64_t> result;
  if (const List* list = annotation.as<List>()) {
    for (const NodeRef& item : list->items) result.push_back(item.is<IntImm>() ? item.as<IntImm>()->value : 0);
  }
  return result;
}

std::vector<Stmt> pipeline_steps(Stmt body) {
  while (const BlockRealize* realize = body.as<BlockRealize>()) {
    Stmt inner = realize->block->body;
    body = inner;
  }
  if (const SeqStmt* seq = body.as<SeqStmt>()) return seq->seq;
  return {body};
}

}  // namespace tilewright::search
