#include "interpreter/interpreter.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

const DataType f32 = DataType::float_(32);

Ref<Module> module_of(const std::vector<Ref<Buffer>>& buffers, Stmt body, Type ret_type = make<TupleType>({})) {
  PrimFunc func;
  for (const Ref<Buffer>& buffer : buffers) {
    Ref<Var> handle = var(buffer->name, DataType::handle());
    func.params.emplace_back(handle);
    func.buffer_map.emplace_back(handle, buffer);
  }
  func.ret_type = std::move(ret_type);
  func.body = std::move(body);
  return as_module(make(std::move(func)));
}

TensorArg tensor(std::vector<float>& values) { return {values.data(), f32, {static_cast<int64_t>(values.size())}}; }

TEST(Interpreter, RunsFromCpp) {
  Ref<Buffer> a = decl_buffer({i32(4)}, f32, "A");
  Ref<Var> i = var("i");
  Stmt body = loop(i, i32(4), store(a, load(a, {i}) * float_imm(f32, 2), {i}));
  std::vector<float> values = {1, 2, 3, 4};
  ASSERT_TRUE(interpret(module_of({a}, body), "main", {tensor(values)}).ok());
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6, 8}));
}

TEST(Interpreter, ReturnsValues) {
  Stmt body = make<Evaluate>({call(DataType::int_(32), "tir.ret", {i32(42)})});
  ScalarArg returned;
  InterpretOptions options;
  options.returned = &returned;
  Ref<Module> module = module_of({}, body, make<PrimType>({DataType::int_(32)}));
  ASSERT_TRUE(interpret(module, "main", {}, options).ok());
  EXPECT_EQ(returned.as_int, 42);
}

TEST(Interpreter, CanBeStopped) {
  Stmt forever = make<While>({bool_imm(true), nop()});
  InterpretOptions options;
  int asked = 0;
  options.keep_going = [&] { return ++asked < 3; };
  Status status = interpret(module_of({}, forever), "main", {}, options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "interpret/stopped");
}

TEST(Interpreter, AnyDepth) {
  Ref<Buffer> a = decl_buffer({i32(1)}, f32, "A");
  Expr sum = load(a, {i32(0)});
  for (int i = 0; i < 10000; ++i) sum = make<Add>({sum, float_imm(f32, 1)});
  Stmt body = store(a, sum, {i32(0)});
  for (int i = 0; i < 3000; ++i) body = make<IfThenElse>({lt(load(a, {i32(0)}), float_imm(f32, 1e9)), body, {}});
  std::vector<float> values = {0};
  Status status = interpret(module_of({a}, body), "main", {tensor(values)});
  ASSERT_TRUE(status.ok()) << status.error().render();
  EXPECT_EQ(values[0], 10000);
}

TEST(Interpreter, MessagesCarryTheNode) {
  Ref<Buffer> a = decl_buffer({i32(4)}, f32, "A");
  Ref<Var> i = var("i");
  Stmt write = store(a, float_imm(f32, 1), {i});
  std::vector<float> values(4);
  Status status = interpret(module_of({a}, loop(i, i32(5), write)), "main", {tensor(values)});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "interpret/out-of-bounds");
  EXPECT_EQ(kept(status.error().nodes.at(0)), write);
}

}  // namespace
}  // namespace tilewright
