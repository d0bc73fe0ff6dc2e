// For tests: a pipeline over the helper of faulty_helper_test_main.cc, and a look at what it leaves behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "search/measure/cpu_plan.h"
#include "search/measure/pipeline.h"

namespace tilewright::search {

inline std::string faulty_helper() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tilewright_faulty_helper").string();
}

inline std::vector<float> random_floats(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

/// C = A + B; with `in_out`, C += A + B.
inline std::shared_ptr<Arguments> add_arguments(int64_t rows, int64_t columns, bool in_out = false) {
  const DataType f32 = DataType::float_(32);
  const std::vector<int64_t> shape{rows, columns};
  auto arguments = Arguments::create(
      {{"A", f32, shape}, {"B", f32, shape}, {"C", f32, shape, in_out ? ArgumentRole::kInOut : ArgumentRole::kOutput}});
  EXPECT_TRUE(arguments.ok()) << arguments.error().render();
  const auto a = random_floats(rows * columns, 1), b = random_floats(rows * columns, 2);
  auto c = random_floats(rows * columns, 3);
  EXPECT_TRUE((*arguments)->set_initial(0, std::as_bytes(std::span(a))).ok());
  EXPECT_TRUE((*arguments)->set_initial(1, std::as_bytes(std::span(b))).ok());
  if (in_out) {
    EXPECT_TRUE((*arguments)->set_initial(2, std::as_bytes(std::span(c))).ok());
  }
  for (size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i] + (in_out ? c[i] : 0);
  EXPECT_TRUE((*arguments)->set_expected(2, std::as_bytes(std::span(c)), tolerance_for(f32, f32, 1)).ok());
  return *arguments;
}

/// Processors that this process may use.
inline int usable_processor_count() { return static_cast<int>(usable_processors().size()); }

class PipelineTest : public testing::Test {
 protected:
  void SetUp() override {
    options.helper = faulty_helper();
    options.build_timeout = 10;
    options.run_timeout = 10;
    // Other programs may use the machine meanwhile; only tests about the race want slow candidates to be stopped.
    options.race.first_stop_ratio = options.race.stop_ratio = 1e9;
    options.race.full_slices = 6;
    files_before_ = open_files();
  }

  void TearDown() override {
    pipeline.reset();
    arguments.reset();
    // No process and no file may be left behind, whatever the test has done.
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(open_files(), files_before_);
  }

  static std::vector<std::string> open_files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(entry.path(), error);
      if (!error && target.string().find("/proc/") != 0) files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  void start() {
    if (!arguments) arguments = add_arguments(64, 32);
    auto started = MeasurePipeline::start(arguments, options);
    ASSERT_TRUE(started.ok()) << started.error().render();
    pipeline = std::move(*started);
  }

  void submit(const std::string& module, uint64_t id = 0, const std::string& entry = "main") {
    pipeline->submit({id, module, "options", entry});
  }

  /// Returns all outstanding results, by id.
  std::map<uint64_t, Measured> drain(double seconds = 30) {
    std::map<uint64_t, Measured> results;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (pipeline->outstanding() > 0 && std::chrono::steady_clock::now() < end) {
      for (Measured& result : pipeline->poll(std::chrono::milliseconds(50))) {
        const uint64_t id = result.id;
        EXPECT_TRUE(results.emplace(id, std::move(result)).second) << "candidate " << id << " came back twice";
      }
    }
    EXPECT_EQ(pipeline->outstanding(), 0u);
    return results;
  }

  /// One candidate through the whole pipeline.
  Measured run(const std::string& module, const std::string& entry = "main") {
    if (!pipeline) start();
    submit(module, 7, entry);
    auto results = drain();
    EXPECT_EQ(results.size(), 1u);
    return results.empty() ? Measured{} : std::move(results.begin()->second);
  }

  PipelineOptions options;
  std::shared_ptr<Arguments> arguments;
  std::unique_ptr<MeasurePipeline> pipeline;

 private:
  std::vector<std::string> files_before_;
};

}  // namespace tilewright::search
