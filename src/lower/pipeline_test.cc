#include "lower/pipeline.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace tilewright::lower {
namespace {

/// A function whose body is `body`.
Ref<Module> module_of(Stmt body) {
  PrimFunc func;
  func.ret_type = make<TupleType>({});
  func.body = std::move(body);
  return make<Module>({.functions = {{"main", Func(make<PrimFunc>(std::move(func)))}}, .attrs = {}});
}

TEST(Pipeline, ABrokenProgramIsTheDefectOfThePass) {
  Stmt fine = make<Evaluate>({i32(0)});
  EXPECT_TRUE(check_pass(module_of(fine), "unroll_loops", Stage::kLowered).ok());
  Status status = check_pass(module_of(make<Evaluate>({var("nowhere")})), "unroll_loops", Stage::kLowered);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "lower/broken");
  EXPECT_EQ(status.error().blame, Blame::kInternal);
  EXPECT_NE(status.error().message.find("pass unroll_loops broke a program"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::lower
