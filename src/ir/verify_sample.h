// A small program for tests of verifiers, and functions that build its parts.
#pragma once

#include "ir/build.h"

namespace tilewright::sample {

inline const DataType f32 = DataType::float_(32);

inline Ref<PrimFunc> function(const std::vector<Ref<Buffer>>& buffers, Stmt body) {
  PrimFunc func;
  for (const Ref<Buffer>& buffer : buffers) {
    Ref<Var> handle = var(buffer->name + "_handle", DataType::handle());
    func.params.emplace_back(handle);
    func.buffer_map.emplace_back(handle, buffer);
  }
  func.ret_type = make<TupleType>({});
  func.body = std::move(body);
  return make(std::move(func));
}

inline Ref<Buffer> buffer(const std::string& name, std::vector<Expr> shape = {i32(8)}) {
  return decl_buffer(std::move(shape), f32, name);
}
inline Expr number(double value) { return float_imm(f32, value); }
inline Ref<BufferRegion> region(const Ref<Buffer>& b, Expr min, Expr extent) {
  return make<BufferRegion>({b, {range(std::move(min), std::move(extent))}});
}

/// A program with one block over one loop; the parts that tests break.
struct Sample {
  Ref<Buffer> a = buffer("A"), b = buffer("B");
  Ref<Var> i = var("i");
  Ref<IterVar> axis = make<IterVar>({range_of(i32(8)), var("vi"), IterType::kDataPar, ""});
  Block block;
  Sample() {
    Expr v = axis->var;
    block.iter_vars = {axis};
    block.reads = {region(a, v, i32(1))};
    block.writes = {region(b, v, i32(1))};
    block.name_hint = "B";
    block.body = store(b, load(a, {v}), {v});
  }
  Stmt nest() const { return loop(i, i32(8), realize()); }
  Stmt realize() const { return make<BlockRealize>({{i}, bool_imm(true), make<Block>(block)}); }
  static Stmt root(Stmt body) {
    Block root;
    root.name_hint = "root";
    root.body = std::move(body);
    return realized(make(std::move(root)));
  }
  Ref<PrimFunc> func() const { return function({a, b}, root(nest())); }
};

}  // namespace tilewright::sample
