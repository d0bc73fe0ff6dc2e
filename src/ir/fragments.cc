#include "ir/fragments.h"

#include "ir/build.h"
#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright {
namespace {

Stmt declared(const Ref<Buffer>& buffer, Stmt body) { return make<DeclBuffer>({buffer, std::move(body)}); }

}  // namespace

Ref<Buffer> flat_view(const Ref<Var>& data, DataType dtype, const Expr& extent) {
  Buffer buffer;
  buffer.data = data;
  buffer.dtype = dtype;
  buffer.shape = {extent};
  buffer.name = data->name_hint;
  return make(std::move(buffer));
}

bool is_fragment_scope(const std::string& scope) { return scope.starts_with("wmma."); }

bool is_fragment_step(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call) return false;
  switch (intrinsic_of(*call)) {
    case Intrinsic::k_tvm_load_matrix_sync:
    case Intrinsic::k_tvm_fill_fragment:
    case Intrinsic::k_tvm_mma_sync:
    case Intrinsic::k_tvm_store_matrix_sync:
      return true;
    default:
      return false;
  }
}

std::vector<std::pair<size_t, size_t>> fragment_arguments(const Call& step) {
  switch (intrinsic_of(step)) {
    case Intrinsic::k_tvm_mma_sync:
      return {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
    case Intrinsic::k_tvm_load_matrix_sync:
    case Intrinsic::k_tvm_fill_fragment:
    case Intrinsic::k_tvm_store_matrix_sync:
      return {{0, 4}};
    default:
      return {};
  }
}

Fragments::Fragments(const Stmt& body) {
  visit(body, on<BufferLoad, BufferStore>(
                  [&](const auto& access) { has_element_accesses_ |= is_fragment_scope(access->buffer->scope()); }));
  visit(body, [&](const Ref<Call>& call, Visitor& v) {
    v.descend(call);
    if (!is_fragment_step(call) || intrinsic_of(*call) == Intrinsic::k_tvm_mma_sync || call->args.size() < 6) return;
    const Ref<Var> data = call->args[0].as<Var>() ? call->args[0].borrow<Var>() : Ref<Var>();
    if (!data.defined() || !is_fragment_scope(scope_of(data))) return;
    const PointerType* pointer = data->type_annotation.as<PointerType>();
    const PrimType* element = pointer ? pointer->element_type.as<PrimType>() : nullptr;
    if (!element) return;
    FragmentShape shape;
    shape.m = const_int(call->arg(1)).value_or(0);
    shape.n = const_int(call->arg(2)).value_or(0);
    shape.k = const_int(call->arg(3)).value_or(0);
    shape.dtype = element->dtype;
    const std::string& scope = scope_of(data);
    shape.operand = scope.ends_with("_a") ? 'a' : scope.ends_with("_b") ? 'b' : 'c';
    if (intrinsic_of(*call) == Intrinsic::k_tvm_load_matrix_sync && call->args.size() == 8) {
      const StringImm* layout = call->args[7].as<StringImm>();
      shape.is_col_major = layout && layout->value == "col_major";
    }
    auto [known, is_new] = shapes_.try_emplace(data.get(), shape);
    const FragmentShape& before = known->second;
    const bool agrees = before.m == shape.m && before.n == shape.n && before.k == shape.k &&
                        (shape.operand == 'c' || before.is_col_major == shape.is_col_major);
    if (!is_new && !agrees) known->second.m = 0;
  });
}

std::optional<FragmentShape> Fragments::shape_of(const NodeRef& data) const {
  auto* found = find_value(shapes_, data.get());
  if (!found || found->m <= 0 || found->n <= 0 || found->k <= 0) return {};
  return *found;
}

std::optional<FragmentMemory> Fragments::memory_of(const NodeRef& pointer) {
  if (const Call* call = pointer.as<Call>(); call && intrinsic_of(*call) == Intrinsic::k_tvm_access_ptr) {
    if (call->args.size() < 3 || !call->args[1].as<Var>()) return {};
    return FragmentMemory{call->args[1].borrow<Var>(), call->arg(0).dtype(), call->arg(2)};
  }
  return {};
}

std::optional<Stmt> Fragments::as_loops(const Call& step, const Expr& stores) const {
  const Intrinsic intrinsic = intrinsic_of(step);
  auto shape = shape_of(step.args[0]);
  if (!shape) return {};
  const Ref<Var> data = step.args[0].borrow<Var>();
  Ref<Var> i = var("i"), j = var("j");
  auto index_in = [](const FragmentShape& of, const Expr& index, const Expr& row, const Expr& column) {
    return cast(DataType::int_(32), index) * i32(of.rows() * of.columns()) + row * i32(of.columns()) + column;
  };
  auto end_of = [](const FragmentShape& of, const Expr& index) {
    return (cast(DataType::int_(32), index) + 1) * i32(of.rows() * of.columns());
  };
  auto nest = [&](Stmt body) { return loop(i, i32(shape->rows()), loop(j, i32(shape->columns()), std::move(body))); };
  if (intrinsic == Intrinsic::k_tvm_mma_sync) {
    if (step.args.size() != 8) return {};
    auto a = shape_of(step.args[2]), b = shape_of(step.args[4]), c = shape_of(step.args[6]);
    if (!a || !b || !c || a->k != b->k) return {};
    const Expr to(step.args[1]), of_a(step.args[3]), of_b(step.args[5]), of_c(step.args[7]);
    Ref<Buffer> result = flat_view(data, shape->dtype, end_of(*shape, to));
    Ref<Buffer> left = flat_view(step.args[2].borrow<Var>(), a->dtype, end_of(*a, of_a));
    Ref<Buffer> right = flat_view(step.args[4].borrow<Var>(), b->dtype, end_of(*b, of_b));
    Ref<Buffer> accumulator = flat_view(step.args[6].borrow<Var>(), c->dtype, end_of(*c, of_c));
    Ref<Var> kk = var("k");
    const DataType t = shape->dtype;
    const std::vector<Expr> position = {index_in(*shape, to, i, j)};
    Expr product = cast(t, load(left, {index_in(*a, of_a, i, kk)})) * cast(t, load(right, {index_in(*b, of_b, kk, j)}));
    Stmt body = nest(seq({store(result, load(accumulator, {index_in(*c, of_c, i, j)}), position),
                          loop(kk, i32(a->k), store(result, load(result, position) + product, position))}));
    if (stores.defined() && !has_element_accesses_) body = make<IfThenElse>({stores, std::move(body), {}});
    return declared(result, declared(left, declared(right, declared(accumulator, std::move(body)))));
  }
  const Expr index(step.args[4]);
  Ref<Buffer> fragment = flat_view(data, shape->dtype, end_of(*shape, index));
  const std::vector<Expr> position = {index_in(*shape, index, i, j)};
  if (intrinsic == Intrinsic::k_tvm_fill_fragment) {
    return declared(fragment, nest(store(fragment, step.arg(5), position)));
  }
  auto memory = step.args.size() == 8 ? memory_of(step.args[5]) : std::nullopt;
  if (!memory) return {};
  const StringImm* layout = step.args[7].as<StringImm>();
  const bool is_col_major = layout && layout->value == "col_major";
  const Expr stride = cast(DataType::int_(32), step.arg(6)), offset = cast(DataType::int_(32), memory->offset);
  const int64_t lines = is_col_major ? shape->columns() : shape->rows();
  const int64_t length = is_col_major ? shape->rows() : shape->columns();
  Ref<Buffer> elements = flat_view(memory->data, memory->dtype, offset + stride * i32(lines - 1) + i32(length));
  const std::vector<Expr> element = {offset + (is_col_major ? Expr(j) * stride + i : Expr(i) * stride + j)};
  if (intrinsic == Intrinsic::k_tvm_load_matrix_sync) {
    return declared(elements, declared(fragment, nest(store(fragment, load(elements, element), position))));
  }
  Stmt body = nest(store(elements, load(fragment, position), element));
  if (stores.defined()) body = make<IfThenElse>({stores, std::move(body), {}});
  return declared(elements, declared(fragment, std::move(body)));
}

}  // namespace tilewright
