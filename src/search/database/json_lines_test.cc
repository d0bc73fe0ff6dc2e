#include "search/database/json_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "search/database/folder_for_test.h"
#include "target/target.h"

namespace tilewright::search {
namespace {

const Hash128 kMatmul{0xabc, 0xdef};
const char* const kWorkloads = "/database_workload.json";
const char* const kRecords = "/database_tuning_record.json";

std::unique_ptr<Database> sample() {
  auto database = Database::in_memory().value_or_throw();
  EXPECT_TRUE(database->commit_workload(kMatmul, "matmul", "line 1\nline \"2\"\n").ok());
  Record record;
  record.workload = kMatmul;
  record.target = Target::parse("llvm -num-cores=1")->str();
  record.trace = R"([[["GetBlock",[],["C","main"],["b0"]]],[]])";
  record.decisions = "[[2,4]]";
  record.host = R"({"processor":"P","cores":4})";
  record.versions = R"({"tilewright":"0.1.0"})";
  record.seconds = {0.1, 1.0 / 3};
  record.seed = ~uint64_t{0};
  record.index = 4;
  EXPECT_TRUE(database->commit(record).ok());
  record.seconds = {};
  record.outcome = "run_crash";
  record.error = "killed by \xff signal 11";
  record.target = "a processor of later versions";
  EXPECT_TRUE(database->commit(record).ok());
  return database;
}

/// Lines of programs as a test writes them: the hash, the script, the sizes.
WorkloadLines plain_lines() {
  return {[](const Workload& workload) -> Result<std::string> {
            return nlohmann::json({workload.hash.hex(), workload.script, workload.sizes}).dump();
          },
          [](const std::string& line) -> Result<Workload> {
            const auto value = nlohmann::json::parse(line);
            if (!value.is_array() || value.size() != 3) return resource_error("database/bad-line", "is no program", "");
            return Workload{kMatmul, "matmul", value[1], "", value[2]};
          }};
}

std::string import_error(const std::string& workloads, const std::string& records) {
  TestFolder folder;
  write_file(folder.path() + kWorkloads, workloads);
  write_file(folder.path() + kRecords, records);
  auto database = Database::in_memory().value_or_throw();
  auto imported = import_json_lines(*database, folder.path(), plain_lines());
  if (imported.ok()) return "imported";
  EXPECT_EQ(imported.error().code, "database/bad-line");
  EXPECT_TRUE(database->workloads()->empty());
  return imported.error().message.substr(folder.path().size() + 1);
}

TEST(JsonLines, HasTheShapeOfTvm) {
  TestFolder folder;
  auto database = sample();
  ASSERT_TRUE(export_json_lines(*database, folder.path(), plain_lines()).ok());
  EXPECT_EQ(read_file(folder.path() + kWorkloads), R"(["0000000000000abc0000000000000def","line 1\nline \"2\"\n",""])"
                                                   "\n");
  EXPECT_TRUE(
      read_file(folder.path() + kRecords)
          .starts_with(R"([0,[[[["GetBlock",[],["C","main"],["b0"]]],[]],[0.1,0.3333333333333333],{"kind":"llvm")"))
      << read_file(folder.path() + kRecords);
  EXPECT_NE(read_file(folder.path() + kRecords).find("[10000000000.0]"), std::string::npos);
}

TEST(JsonLines, RoundTrip) {
  TestFolder folder;
  auto database = sample();
  ASSERT_TRUE(export_json_lines(*database, folder.path(), plain_lines()).ok());
  auto copy = Database::in_memory().value_or_throw();
  auto count = import_json_lines(*copy, folder.path(), plain_lines());
  ASSERT_TRUE(count.ok()) << count.error().render();
  EXPECT_EQ(count->workloads, 1);
  EXPECT_EQ(count->records, 2);
  auto before = *database->records(kMatmul, ""), after = *copy->records(kMatmul, "");
  ASSERT_EQ(after.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(after[i].target, before[i].target);
    EXPECT_EQ(after[i].trace, before[i].trace);
    EXPECT_EQ(after[i].host, before[i].host);
    EXPECT_EQ(after[i].versions, before[i].versions);
    EXPECT_EQ(after[i].decisions, before[i].decisions);
    EXPECT_EQ(after[i].seconds, before[i].seconds);
    EXPECT_EQ(after[i].outcome, before[i].outcome);
    EXPECT_EQ(after[i].seed, before[i].seed);
    EXPECT_EQ(after[i].created, before[i].created);
  }
  EXPECT_EQ((*copy->workload(kMatmul))->script, "line 1\nline \"2\"\n");
  // Once more adds nothing.
  auto again = import_json_lines(*copy, folder.path(), plain_lines());
  EXPECT_EQ(again->workloads + again->records, 0);
}

TEST(JsonLines, TakesRecordsWithoutOurPart) {
  TestFolder folder;
  write_file(folder.path() + kWorkloads, "[\"1234\", \"s\", \"\"]\n\n");
  write_file(folder.path() + kRecords,
             "[0, [[[], []], [0.5], {\"kind\": \"llvm\"}, [[\"TENSOR\", \"float32\", [8]]]]]\n"
             "[0, [[[], []], [1e10], null, null]]\n[0, [[[], [1]], null, null, null]]\n");
  auto database = Database::in_memory().value_or_throw();
  auto count = import_json_lines(*database, folder.path(), plain_lines());
  ASSERT_TRUE(count.ok()) << count.error().render();
  auto records = *database->records(kMatmul, "");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].outcome, "ok");
  EXPECT_EQ(records[0].target, Target::parse("llvm")->str());
  EXPECT_EQ(records[1].outcome, "run_error");
  EXPECT_EQ(records[2].outcome, "not_measured");
}

TEST(JsonLines, NamesTheBadLineAndStoresNothing) {
  const std::string good = R"(["1234", "s", ""])"
                           "\n";
  EXPECT_EQ(import_error(good, ""), "imported");
  EXPECT_EQ(import_error(good + "{oops", ""), "database_workload.json:2: is not JSON");
  EXPECT_EQ(import_error(good + "{}", ""), "database_workload.json:2: is no program");
  EXPECT_NE(import_error(good, "\n[0, 1]").find("record.json:2: is not a record"), std::string::npos);
  EXPECT_NE(import_error(good, "[1, [[], [], null, null]]").find("names workload 1"), std::string::npos);
  EXPECT_NE(import_error(good, "[0, [[], 3, null, null]]").find("run_secs is not a list"), std::string::npos);
  EXPECT_NE(import_error(good, "[0, [[], [\"a\"], null, null]]").find("list of numbers"), std::string::npos);
  EXPECT_NE(import_error(good, "[0, [[], [1], null, null, 5]]").find("fifth entry"), std::string::npos);
}

TEST(JsonLines, MissingFolder) {
  TestFolder folder;
  auto database = sample();
  auto exported = export_json_lines(*database, folder / "none", plain_lines());
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(exported.error().code, "database/export");
  auto imported = import_json_lines(*database, folder / "none", plain_lines());
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().code, "database/import");
}

}  // namespace
}  // namespace tilewright::search
