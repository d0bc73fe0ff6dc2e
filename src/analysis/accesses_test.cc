#include "analysis/accesses.h"

#include <gtest/gtest.h>

#include "analysis/brief.h"
#include "ir/build.h"

namespace tilewright::analysis {
namespace {

const DataType kFloat = DataType::float_(32);

Ref<Buffer> buffer(const std::string& name, int size) { return decl_buffer({i32(size)}, kFloat, name); }
Ref<BufferRegion> part(const Ref<Buffer>& of, const Expr& min, const Expr& extent) {
  return make<BufferRegion>({of, {range(min, extent)}});
}
Stmt realize(Block block, std::vector<Expr> values = {}, const Expr& predicate = bool_imm(true)) {
  block.name_hint = "B";
  return make<BlockRealize>({std::move(values), predicate, make(std::move(block))});
}
Ref<IterVar> axis(const Ref<Var>& v, int extent) {
  return make<IterVar>({range_of(i32(extent)), v, IterType::kDataPar, ""});
}

/// "r A[i]", "w B[j]", in order; "?" behind those that may not happen, "|" and what surely holds.
std::vector<std::string> walk(const NodeRef& root, Nested nested = Nested::kEnter) {
  std::vector<std::string> lines;
  for_each_access(root, nested, [&](const Access& access) {
    Ref<BufferRegion> region = access.region();
    std::string line = std::string(access.reads ? "r" : "") + (access.writes ? "w" : "") + " ";
    line += region.defined() ? brief(region) : "*" + access.pointer->name_hint;
    if (access.is_conditional()) line += "?";
    if (access.in_init) line += " init";
    if (Expr known = known_conditions(access.around); !is_true(known))
      line += " | " + brief(arith::Analyzer().simplify(known));
    lines.push_back(line);
  });
  return lines;
}
using Lines = std::vector<std::string>;

const Ref<Buffer> A = buffer("A", 16), B = buffer("B", 16);
const Ref<Var> i = var("i"), j = var("j");

TEST(Accesses, ValueBeforeStoreAndIndicesBehindTheirLoad) {
  Ref<Buffer> at = decl_buffer({i32(16)}, DataType::int_(32), "I");
  Stmt body = loop(i, i32(16), store(B, load(A, {load(at, {i})}) + load(B, {i}), {i}));
  EXPECT_EQ(walk(body), (Lines{"r A[I[i]]", "r I[i]", "r B[i]", "w B[i]"}));
}

TEST(Accesses, ConditionsOfBranchesMasksAndLoopsWithoutEnd) {
  Stmt one = store(B, float_imm(kFloat, 1), {i});
  Stmt two = store(B, float_imm(kFloat, 2), {i + 1});
  EXPECT_EQ(walk(make<IfThenElse>({lt(i, i32(3)), one, two})), (Lines{"w B[i]? | i < 3", "w B[i + 1]? | 3 <= i"}));
  // A term that a store could change is a condition of the access, but not a known one.
  Expr data = lt(load(A, {i}), float_imm(kFloat, 0));
  EXPECT_EQ(walk(make<IfThenElse>({logical_and(lt(i, i32(3)), data), one, {}})),
            (Lines{"r A[i]? | i < 3", "w B[i]? | i < 3"}));
  EXPECT_EQ(walk(make<While>({data, one})), (Lines{"r A[i]?", "w B[i]?"}));
  EXPECT_EQ(walk(make<AssertStmt>({lt(i, i32(3)), make<StringImm>({"no"}), one})), (Lines{"w B[i] | i < 3"}));
  Expr wide = make<Ramp>({i * 4, i32(1), i32(4)});
  Expr mask = make<Broadcast>({bool_imm(true), i32(4)});
  EXPECT_EQ(walk(make<BufferStore>({B, make<Broadcast>({float_imm(kFloat, 1), i32(4)}), {wide}, mask})),
            (Lines{"w B[i * 4:i * 4 + 4]?"}));
}

TEST(Accesses, PaddingReadsOnOneSide) {
  Expr padded = if_then_else(ge(i, i32(1)), load(A, {i - 1}), load(B, {i}));
  EXPECT_EQ(walk(padded), (Lines{"r A[i - 1]? | 1 <= i", "r B[i]? | i < 1"}));
  // Both values of a select are computed.
  EXPECT_EQ(walk(make<Select>({ge(i, i32(1)), load(A, {i - 1}), load(B, {i})})), (Lines{"r A[i - 1]", "r B[i]"}));
}

TEST(Accesses, ViewsCountForTheirSource) {
  Ref<Buffer> view = buffer("V", 4), inner = buffer("W", 2);
  Block nested;
  nested.match_buffers = {make<MatchBufferRegion>({inner, part(view, i32(2), i32(2))})};
  nested.body = store(inner, load(A, {j}), {j});
  Block block;
  block.match_buffers = {make<MatchBufferRegion>({view, part(B, i * 4, i32(4))})};
  block.body = realize(nested);
  EXPECT_EQ(walk(realize(block)),
            (Lines{"rw B[i * 4:i * 4 + 4]", "rw B[i * 4 + 2:i * 4 + 4]", "r A[j]", "w B[i * 4 + (2 + j)]"}));
}

TEST(Accesses, AxesPredicatesInitsAndClosedBlocks) {
  Ref<Var> v = var("v");
  Block block;
  block.iter_vars = {axis(v, 16)};
  block.reads = {part(A, v, i32(1))};
  block.writes = {part(B, v, i32(1))};
  block.init = store(B, float_imm(kFloat, 0), {v});
  block.body = store(B, load(B, {v}) + load(A, {v}), {v});
  Stmt body = loop(i, i32(20), realize(block, {i}, lt(i, i32(16))));
  EXPECT_EQ(walk(body), (Lines{"w B[v] init | i < 16", "r B[v] | i < 16", "r A[v] | i < 16", "w B[v] | i < 16"}));
  EXPECT_EQ(walk(body, Nested::kDeclared), (Lines{"r A[v]? | i < 16", "w B[v]? | i < 16"}));
  // A walk from the block itself keeps its axes.
  EXPECT_EQ(walk(make<Block>(block)), (Lines{"w B[v] init", "r B[v]", "r A[v]", "w B[v]"}));
}

TEST(Accesses, PointersAndAddresses) {
  Block block;
  Ref<Buffer> own = buffer("T", 8);
  block.alloc_buffers = {own};
  auto pointer = [&](const Ref<Buffer>& of, int mask) {
    Expr type = call(DataType::handle(), "type_annotation", {});
    return call(DataType::handle(), "tvm_access_ptr", {type, of->data, i32(0), i32(8), i32(mask)});
  };
  Expr address = call(DataType::handle(), "address_of", {load(A, {i})});
  block.body = make<Evaluate>(
      {call(DataType::int_(32), "call_extern", {string_imm("f"), pointer(own, 1), pointer(B, 2), own->data, address})});
  EXPECT_EQ(walk(realize(block)), (Lines{"r T[0:8]", "w *B", "rw T[0:8]", "rw A[0:16]"}));
}

TEST(Accesses, DomainsAndTheInnermostBlock) {
  Ref<Var> v = var("v");
  Block block;
  block.iter_vars = {axis(v, 4)};
  block.body = loop(j, i32(4), store(B, float_imm(kFloat, 1), {v * 4 + j}));
  int seen = 0;
  for_each_access(loop(i, i32(4), realize(block, {i})), Nested::kEnter, [&](const Access& access) {
    ++seen;
    EXPECT_EQ(innermost_block(access.around)->name_hint, "B");
    Surroundings inner = inside_block(access.around);
    ASSERT_EQ(inner.size(), 1u);
    EXPECT_EQ(inner[0].var, j);
    arith::Domains domains = domains_of(access.around);
    EXPECT_EQ(domains.size(), 3u);
    EXPECT_TRUE(domains[v].is_point());
  });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace tilewright::analysis
