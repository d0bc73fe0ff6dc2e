// Programs for the unit tests of this layer.
#pragma once

#include <string>

#include "ir/build.h"

namespace tilewright::schedule::test {

inline Ref<BufferRegion> point(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
  BufferRegion region{buffer, {}};
  for (const Expr& index : indices) region.region.push_back(range(index, i32(1)));
  return make(std::move(region));
}
inline Ref<IterVar> axis(const Ref<Var>& v, int64_t extent, IterType type) {
  return make<IterVar>({.dom = range_of(i32(extent)), .var = v, .iter_type = type, .thread_tag = ""});
}
inline Ref<PrimFunc> function(const std::vector<Ref<Buffer>>& buffers, Stmt body) {
  Block block;
  block.name_hint = "root";
  block.body = std::move(body);
  Ref<Block> root = make(std::move(block));
  PrimFunc func;
  for (const Ref<Buffer>& buffer : buffers) {
    Ref<Var> param = var(buffer->name + "_handle", DataType::handle());
    func.params.push_back(param);
    func.buffer_map.emplace_back(param, buffer);
  }
  func.ret_type = make<TupleType>({});
  func.body = realized(root);
  return make(std::move(func));
}

/// C[i, j] += A[i, k] * B[k, j], n cubed; the block is named `name`.
inline Ref<PrimFunc> matmul(int64_t n, const std::string& name = "C") {
  auto square = [&](const char* buffer) { return decl_buffer({i32(n), i32(n)}, DataType::float_(32), buffer); };
  Ref<Buffer> a = square("A"), b = square("B"), c = square("C");
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), vi = var("vi"), vj = var("vj"), vk = var("vk");
  Block block;
  block.iter_vars = {axis(vi, n, IterType::kDataPar), axis(vj, n, IterType::kDataPar),
                     axis(vk, n, IterType::kCommReduce)};
  block.reads = {point(a, {vi, vk}), point(b, {vk, vj})};
  block.writes = {point(c, {vi, vj})};
  block.name_hint = name;
  block.init = store(c, float_imm(DataType::float_(32), 0), {vi, vj});
  block.body = store(c, load(c, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}), {vi, vj});
  Stmt nest =
      make<BlockRealize>({.iter_values = {i, j, k}, .predicate = bool_imm(true), .block = make(std::move(block))});
  for (const Ref<Var>& v : {k, j, i}) nest = loop(v, i32(n), std::move(nest));
  return function({a, b, c}, std::move(nest));
}

}  // namespace tilewright::schedule::test
