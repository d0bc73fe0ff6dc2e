#include "ir/warp_steps.h"

#include "ir/build.h"

namespace tilewright {
namespace {

/// PTX's name of a type of elements, as T.ptx_mma spells it.
std::optional<DataType> element_type(const NodeRef& name) {
  const StringImm* text = name.as<StringImm>();
  if (!text) return {};
  const std::string& n = text->value;
  if (n == "fp16" || n == "f16") return DataType::float_(16);
  if (n == "bf16") return DataType::bfloat16();
  if (n == "fp32" || n == "f32" || n == "tf32") return DataType::float_(32);
  if (n == "int8" || n == "s8") return DataType::int_(8);
  if (n == "uint8" || n == "u8") return DataType::uint(8);
  if (n == "int32" || n == "s32") return DataType::int_(32);
  return {};
}

bool is_text(const NodeRef& node, std::string_view text) {
  const StringImm* string = node.as<StringImm>();
  return string && string->value == text;
}

std::optional<Registers> registers_at(const Call& call, size_t at, DataType dtype, int64_t count) {
  if (at + 1 >= call.args.size() || !call.args[at].is<Var>() || call.args[at + 1].sort() != Sort::kExpr) return {};
  return Registers{call.args[at].cast<Var>(), dtype, call.arg(at + 1), count};
}

Stmt in_view(const Ref<Buffer>& buffer, Stmt body) { return make<DeclBuffer>({buffer, std::move(body)}); }

Expr plus_place(const Expr& value, const Expr& offset) { return cast(DataType::int_(32), value) + offset; }

const Call* warp_call(const Expr& value, Intrinsic intrinsic) {
  const Call* call = value.as<Call>();
  return call && intrinsic_of(*call) == intrinsic ? call : nullptr;
}

/// The row and the column, in a 16 x 16 accumulator matrix, of register `r` of a lane.
std::pair<Expr, Expr> place_of_sum(const Expr& lane, const Expr& r) {
  return {floormod(floordiv(r, 2), 2) * 8 + floordiv(lane, 4),
          floordiv(r, 4) * 8 + floormod(lane, 4) * 2 + floormod(r, 2)};
}

/// Returns the index of the byte of b[32, 16] that is byte r of a lane's registers.
Expr place_of_byte(const Expr& lane, const Expr& r, const Expr& stride) {
  const Expr row = floordiv(floormod(r, 8), 4) * 16 + floormod(lane, 4) * 4 + floormod(r, 4);
  return row * stride + floordiv(lane, 4) + floordiv(r, 8) * 8;
}

}  // namespace

std::optional<WarpProduct> WarpProduct::of(const Expr& value) {
  const Call* call = warp_call(value, Intrinsic::k_ptx_mma);
  if (!call || call->args.size() < 13) return {};
  const StringImm* shape = call->args[0].as<StringImm>();
  auto a = element_type(call->args[3]), b = element_type(call->args[4]), c = element_type(call->args[5]);
  if (!shape || !shape->value.starts_with("m16n8k") || !a || !b || !c) return {};
  if (!is_text(call->args[1], "row") || !is_text(call->args[2], "col")) return {};
  WarpProduct product;
  const std::string k = shape->value.substr(6);
  product.k = k == "4" ? 4 : k == "8" ? 8 : k == "16" ? 16 : k == "32" ? 32 : 0;
  product.is_tf32 = a->is_float() && a->bits == 32;
  const int64_t units = product.k * a->bits / 128;  // 16-byte units of a row
  const bool of_floats = a->is_float();
  const bool is_known =
      (units == 1 || units == 2) && product.k * a->bits % 128 == 0 && of_floats == c->is_float() &&
      (of_floats ? *a == *b : a->bits == 8 && b->bits == 8) &&
      (c->bits == 32 || (c->bits == 16 && a->bits == 16 && a->code == c->code && a->code == TypeCode::kFloat));
  if (!is_known) return {};
  auto of_a = registers_at(*call, 6, *a, 16 * product.k / 32), of_b = registers_at(*call, 8, *b, 8 * product.k / 32);
  auto sums = registers_at(*call, 10, *c, 4);
  if (!of_a || !of_b || !sums) return {};
  product.a = *of_a;
  product.b = *of_b;
  product.sums = *sums;
  product.is_saturating = call->args[12].sort() == Sort::kExpr && const_int(call->arg(12)).value_or(0) != 0;
  return product;
}

std::pair<int64_t, int64_t> WarpProduct::element_of_a(int64_t lane, int64_t r) const {
  // Registers hold `width` neighbors along k, then the row 8 below, then what is half of k further.
  const int64_t g = lane / 4, t = lane % 4, width = 32 / a.dtype.bits;
  const int64_t v0 = r % width, v1 = r / width % 2, v2 = r / width / 2;
  return {g + 8 * v1, width * t + v0 + 4 * width * v2};
}

std::pair<int64_t, int64_t> WarpProduct::element_of_b(int64_t lane, int64_t r) const {
  const int64_t g = lane / 4, t = lane % 4, width = 32 / b.dtype.bits;
  return {width * t + r % width + 4 * width * (r / width), g};
}

std::pair<int64_t, int64_t> WarpProduct::element_of_sums(int64_t lane, int64_t r) {
  return {lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2};
}

std::optional<WarpLoad> WarpLoad::of(const Expr& value) {
  const Call* call = warp_call(value, Intrinsic::k_ptx_ldmatrix);
  if (!call || call->args.size() != 7) return {};
  for (size_t i : {0, 1, 6}) {
    if (call->args[i].sort() != Sort::kExpr) return {};
  }
  const DataType dtype = call->dtype;
  auto trans = const_int(call->arg(0)), matrices = const_int(call->arg(1));
  auto from = Fragments::memory_of(call->args[5]);
  if (!trans || !matrices || !from || !dtype.is_scalar() || dtype.bits < 8 || dtype.bits > 32) return {};
  if ((*matrices != 1 && *matrices != 2 && *matrices != 4) || from->dtype != dtype) return {};
  WarpLoad load;
  load.matrices = *matrices;
  load.is_transposed = *trans != 0;
  load.by_elements = load.is_transposed && dtype.bits == 8;
  if ((load.is_transposed && dtype.bits == 32) || (load.by_elements && *matrices != 4)) return {};
  auto to = registers_at(*call, 3, dtype, *matrices * 4 / dtype.bytes());
  if (!to) return {};
  load.to = *to;
  load.from = *from;
  load.place = call->arg(6);
  return load;
}

std::optional<WarpCopy> WarpCopy::of(const Expr& value) {
  WarpCopy copy;
  if (const Call* fill = warp_call(value, Intrinsic::k_mma_fill)) {
    auto count = fill->args.size() == 3 && fill->args[0].sort() == Sort::kExpr ? const_int(fill->arg(0)) : std::nullopt;
    auto registers = count ? registers_at(*fill, 1, fill->dtype, *count) : std::nullopt;
    if (!registers || !fill->dtype.is_scalar()) return {};
    copy.is_fill = true;
    copy.registers = *registers;
    return copy;
  }
  const Call* store = warp_call(value, Intrinsic::k_mma_store);
  if (!store || store->args.size() != 6 || store->args[5].sort() != Sort::kExpr) return {};
  auto to = Fragments::memory_of(store->args[2]);
  auto registers = registers_at(*store, 3, store->dtype, 8);
  const bool is_known = is_const_int(store->arg(0), 16) && is_const_int(store->arg(1), 16);
  if (!to || !registers || !is_known || to->dtype != store->dtype) return {};
  copy.registers = *registers;
  copy.to = *to;
  copy.stride = store->arg(5);
  return copy;
}

std::optional<WarpShuffle> WarpShuffle::of(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call) return {};
  const Intrinsic intrinsic = intrinsic_of(*call);
  if (intrinsic != Intrinsic::k_tvm_warp_shuffle && intrinsic != Intrinsic::k_tvm_warp_shuffle_up &&
      intrinsic != Intrinsic::k_tvm_warp_shuffle_down)
    return {};
  if (call->args.size() != 5) return {};
  for (const NodeRef& arg : call->args) {
    if (arg.sort() != Sort::kExpr || !Expr(arg).dtype().is_scalar()) return {};
  }
  auto width = const_int(call->arg(3)), lanes = const_int(call->arg(4));
  if (!width || *width < 1 || *width > kWarpLanes || (*width & (*width - 1)) != 0 || lanes != kWarpLanes) return {};
  const DataType type = call->arg(1).dtype();
  if (type.is_handle() || call->dtype != type) return {};
  return WarpShuffle{intrinsic, call->arg(0), call->arg(1), call->arg(2), *width};
}

int64_t WarpShuffle::source_of(int64_t lane, int64_t argument) const {
  const int64_t first = lane - lane % width;
  if (intrinsic == Intrinsic::k_tvm_warp_shuffle) return first + (argument & (width - 1));
  const int64_t source = intrinsic == Intrinsic::k_tvm_warp_shuffle_up ? lane - argument : lane + argument;
  return source < first || source >= first + width ? lane : source;
}

bool asks_lanes(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call) return false;
  switch (intrinsic_of(*call)) {
    case Intrinsic::k_tvm_warp_shuffle:
    case Intrinsic::k_tvm_warp_shuffle_up:
    case Intrinsic::k_tvm_warp_shuffle_down:
    case Intrinsic::k_tvm_warp_activemask:
      return true;
    default:
      return false;
  }
}

bool is_warp_step(const Expr& value) {
  const Call* call = value.as<Call>();
  if (!call) return false;
  switch (intrinsic_of(*call)) {
    case Intrinsic::k_ptx_mma:
    case Intrinsic::k_ptx_ldmatrix:
    case Intrinsic::k_mma_fill:
    case Intrinsic::k_mma_store:
      return true;
    default:
      return false;
  }
}

std::vector<size_t> register_arguments(const Call& call) {
  switch (intrinsic_of(call)) {
    case Intrinsic::k_ptx_mma:
      return {6, 8, 10};
    case Intrinsic::k_ptx_ldmatrix:
    case Intrinsic::k_mma_store:
      return {3};
    case Intrinsic::k_mma_fill:
      return {1};
    default:
      return {};
  }
}

std::optional<Stmt> as_statement(const Expr& value, const Expr& lane) {
  Ref<Var> r = var("r");
  if (auto copy = WarpCopy::of(value)) {
    const Registers& own = copy->registers;
    Ref<Buffer> registers = flat_view(own.data, own.dtype, plus_place(own.place, i32(own.count)));
    const std::vector<Expr> at = {plus_place(own.place, r)};
    if (copy->is_fill) return in_view(registers, loop(r, i32(own.count), store(registers, zero(own.dtype), at)));
    const Expr stride = cast(DataType::int_(32), copy->stride), start = cast(DataType::int_(32), copy->to.offset);
    auto [row, column] = place_of_sum(lane, r);
    Ref<Buffer> memory = flat_view(copy->to.data, own.dtype, start + stride * 15 + 16);
    Stmt body = store(memory, load(registers, at), {start + row * stride + column});
    return in_view(registers, in_view(memory, loop(r, i32(own.count), std::move(body))));
  }
  if (auto bytes = WarpLoad::of(value); bytes && bytes->by_elements) {
    const Registers& own = bytes->to;
    Ref<Buffer> registers = flat_view(own.data, own.dtype, plus_place(own.place, i32(16)));
    const Expr stride = cast(DataType::int_(32), bytes->place), start = cast(DataType::int_(32), bytes->from.offset);
    Ref<Buffer> memory = flat_view(bytes->from.data, own.dtype, start + stride * 31 + 16);
    Stmt body = store(registers, load(memory, {start + place_of_byte(lane, r, stride)}), {plus_place(own.place, r)});
    return in_view(registers, in_view(memory, loop(r, i32(16), std::move(body))));
  }
  return {};
}

Stmt memory_accesses(const Expr& value, const Expr& lane) {
  if (auto statement = as_statement(value, lane)) return *statement;
  auto row = WarpLoad::of(value);
  if (!row) return {};
  Ref<Var> i = var("i");
  const Expr start = cast(DataType::int_(32), row->from.offset) + cast(DataType::int_(32), row->place);
  Ref<Buffer> memory = flat_view(row->from.data, row->to.dtype, start + i32(row->row_elements()));
  Stmt body = loop(i, i32(row->row_elements()), make<Evaluate>({load(memory, {start + i})}));
  if (row->matrices < 4) body = make<IfThenElse>({lt(lane, i32(8 * row->matrices)), std::move(body), {}});
  return in_view(memory, std::move(body));
}

}  // namespace tilewright
