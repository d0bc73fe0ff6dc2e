#include "search/features/per_store_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/build.h"

namespace tilewright::search {
namespace {

double logarithm(double x) { return std::log2(x + 1); }
DataType f32() { return DataType::float_(32); }

/// for i, j, k: C[i, j] = C[i, j] + A[i, k] * B[k, j]
Ref<Module> product(int64_t n, int64_t m, int64_t l, ForKind outer) {
  Ref<Buffer> a = decl_buffer({i32(n), i32(l)}, f32(), "A"), b = decl_buffer({i32(l), i32(m)}, f32(), "B");
  Ref<Buffer> c = decl_buffer({i32(n), i32(m)}, f32(), "C");
  Ref<Var> i = var("i"), j = var("j"), k = var("k");
  Stmt body = store(c, load(c, {i, j}) + load(a, {i, k}) * load(b, {k, j}), {i, j});
  body = loop(i, i32(n), loop(j, i32(m), loop(k, i32(l), body)), outer);
  PrimFunc func{{}, {}, make<TupleType>({{}}), {}, body};
  for (const Ref<Buffer>& buffer : {a, b, c}) {
    Ref<Var> handle = pointer_var(buffer->name, DataType::void_(), "");
    func.params.push_back(handle);
    func.buffer_map.push_back({handle, buffer});
  }
  return as_module(make<PrimFunc>(func));
}

TEST(PerStoreFeatures, Product) {
  FeatureMatrix features = per_store_features(product(8, 6, 4, ForKind::kParallel), false, {}, {});
  ASSERT_EQ(features.rows, 1u);
  ASSERT_EQ(features.columns, 164u);
  const std::vector<double>& row = features.values;
  EXPECT_DOUBLE_EQ(row[1], logarithm(192));           // additions of floats
  EXPECT_DOUBLE_EQ(row[2], logarithm(192));           // multiplications
  EXPECT_DOUBLE_EQ(row[8], 0);                        // indices are loops
  EXPECT_DOUBLE_EQ(row[40], logarithm(8));            // extent of the parallel loop
  EXPECT_DOUBLE_EQ(row[48], 1);                       // there is one
  EXPECT_DOUBLE_EQ(row[57 + 3], logarithm(192 * 4));  // most lines: B, column by column
  EXPECT_DOUBLE_EQ(row[57 + 4], logarithm(24 * 4));   // its distinct bytes
  EXPECT_DOUBLE_EQ(row[57 + 12], logarithm(8));       // comes back with each i
  EXPECT_DOUBLE_EQ(row[57 + 17], logarithm(6));       // one k further is 6 elements further
  EXPECT_DOUBLE_EQ(row[156], logarithm(384.0 / ((32 + 24 + 48) * 4)));
  EXPECT_DOUBLE_EQ(row[161], logarithm(192));
}

TEST(PerStoreFeatures, OptionsSayHowManyColumns) {
  PerStoreOptions options{.buffers_per_store = 2, .arith_intensity_curve_num_samples = 3, .extract_workload = true};
  Ref<Module> module = product(2, 2, 2, ForKind::kSerial);
  EXPECT_EQ(per_store_features(module, false, module, options).columns, 57u + 36 + 3 + 7 + 8);
  Status refused = PerStoreFeature::check({.buffers_per_store = 0});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "features/option");
}

TEST(PerStoreFeatures, BatchesAreTheSameOnAnyNumberOfThreads) {
  MeasureCandidates candidates;
  for (int64_t n = 1; n <= 40; ++n) {
    Ref<Module> module = product(n, 3, 5, ForKind::kSerial);
    candidates.push_back({*schedule::Schedule::make(module), {}});
  }
  PerStoreFeature extractor({});
  TuneContext one, many;
  many.num_threads = 4;
  auto a = *extractor.extract_from(one, candidates), b = *extractor.extract_from(many, candidates);
  ASSERT_EQ(a.size(), 40u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].values, b[i].values);
}

}  // namespace
}  // namespace tilewright::search
