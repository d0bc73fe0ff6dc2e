// The pipeline with the real compiler and the real helper.
#include "search/measure/candidate.h"

#include <cmath>

#include "ir/build.h"
#include "ir/json.h"
#include "lower/pipeline.h"
#include "search/measure/frame.h"
#include "search/measure/pipeline_for_test.h"

namespace tilewright::search {
namespace {

const DataType kF32 = DataType::float_(32);
constexpr int64_t kM = 33, kN = 40, kK = 100;

struct Mistake {
  int64_t rows = 0, steps = 0;  ///< missing at the end
  int64_t shift = 0;            ///< offset of the column that is written
};

/// C = A B by plain loops, with room for a mistake.
Ref<PrimFunc> matmul(const Mistake& mistake = {}) {
  const Ref<Buffer> a = decl_buffer({i32(kM), i32(kK)}, kF32, "A"), b = decl_buffer({i32(kK), i32(kN)}, kF32, "B"),
                    c = decl_buffer({i32(kM), i32(kN)}, kF32, "C");
  const Ref<Var> i = var("i"), j = var("j"), k = var("k");
  const Expr column = j + mistake.shift;
  const Stmt update = store(c, load(c, {i, column}) + load(a, {i, k}) * load(b, {k, j}), {i, column});
  const Stmt point = seq({store(c, float_imm(kF32, 0), {i, column}), loop(k, i32(kK - mistake.steps), update)});
  PrimFunc func;
  for (const Ref<Buffer>& buffer : {a, b, c}) {
    const Ref<Var> handle = var(buffer->name + "_handle", DataType::handle());
    func.params.emplace_back(handle);
    func.buffer_map.emplace_back(handle, buffer);
  }
  func.ret_type = make<TupleType>({});
  func.attrs.set("global_symbol", string_imm("matmul"));
  func.body = loop(i, i32(kM - mistake.rows), loop(j, i32(kN), point));
  return make(std::move(func));
}

class CandidateTest : public PipelineTest {
 protected:
  void SetUp() override {
    PipelineTest::SetUp();
    options.helper.clear();  // the one beside the library
    arguments =
        Arguments::create({{"A", kF32, {kM, kK}}, {"B", kF32, {kK, kN}}, {"C", kF32, {kM, kN}, ArgumentRole::kOutput}})
            .value_or_throw();
    const auto a = random_floats(kM * kK, 1), b = random_floats(kK * kN, 2);
    std::vector<float> c(kM * kN);
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < kK; ++k) sum += double{a[i * kK + k]} * double{b[k * kN + j]};
        c[i * kN + j] = static_cast<float>(sum);
      }
    }
    ASSERT_TRUE(arguments->set_initial(0, std::as_bytes(std::span(a))).ok());
    ASSERT_TRUE(arguments->set_initial(1, std::as_bytes(std::span(b))).ok());
    ASSERT_TRUE(arguments->set_expected(2, std::as_bytes(std::span(c)), tolerance_for(kF32, kF32, kK)).ok());
  }

  Measured measure(const Ref<PrimFunc>& func, const std::string& entry = "matmul") {
    if (!pipeline) start();
    const Target target = Target::host();
    const Ref<Module> lowered = lower::lower(as_module(func), target).value_or_throw();
    pipeline->submit(make_candidate(1, lowered, target, entry));
    auto results = drain();
    return std::move(results[1]);
  }
};

TEST_F(CandidateTest, ACorrectKernelIsMeasured) {
  const Measured result = measure(matmul());
  ASSERT_TRUE(result.is_ok()) << result.error.render();
  EXPECT_GT(result.median(), 1e-6);
  EXPECT_LE(result.check.largest, 0.5);
}

TEST_F(CandidateTest, SubtlyWrongKernelsAreRefused) {
  const Measured last_row = measure(matmul({.rows = 1}));
  EXPECT_EQ(last_row.outcome, Outcome::kWrongResult);
  EXPECT_TRUE(last_row.error.message.starts_with("C[32, 0] was never written")) << last_row.error.message;
  EXPECT_NE(last_row.error.message.find("40 of 1320"), std::string::npos) << last_row.error.message;

  const Measured last_step = measure(matmul({.steps = 1}));
  EXPECT_EQ(last_step.outcome, Outcome::kWrongResult);
  EXPECT_TRUE(last_step.error.message.starts_with("C[0, 0]: expected ")) << last_step.error.message;

  // An access that provably leaves its buffer fails earlier.
  EXPECT_EQ(lower::lower(as_module(matmul({.shift = 1})), Target::host()).error().code, "verify/bounds");
  EXPECT_TRUE(measure(matmul()).is_ok());
}

TEST_F(CandidateTest, BadModulesAndNamesAreErrorsOfTheCandidate) {
  EXPECT_EQ(measure(matmul(), "no_such").error.code, "measure/entry");
  const Target target = Target::host();
  Encoder encoder;
  encoder(target.str());
  const std::string good_options = encoder.take();
  Encoder no_target;
  no_target(std::string("tpu"));
  const auto code_of = [&](const std::string& module, const std::string& build_options) {
    pipeline->submit({1, module, build_options, "matmul"});
    return drain()[1].error.code;
  };
  EXPECT_EQ(code_of("", "x"), "measure/options");
  EXPECT_EQ(code_of(to_json(i32(1)), good_options), "measure/options");
  EXPECT_EQ(code_of("", no_target.take()), "target/kind");
  EXPECT_TRUE(code_of("{}", good_options).starts_with("json/"));
  EXPECT_FALSE(load_candidate("not an object", "matmul").ok());
}

TEST(ReferenceFailure, WhatAKernelHintsAtIsTheHint) {
  Measured measured;
  measured.outcome = Outcome::kRunError;
  measured.error = resource_error("measure/run-error", "f: this processor lacks amx\n  hint: compile it for this one");
  const Diagnostic failure = reference_failure("f", measured);
  EXPECT_EQ(failure.message,
            "'f' as it was written, which results are compared with, failed: f: this processor lacks amx");
  EXPECT_EQ(failure.hint, "compile it for this one");
  measured.error = resource_error("measure/run-crash", "it was killed by signal 11");
  EXPECT_NE(reference_failure("f", measured).hint.find("inputs={name: array}"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::search
