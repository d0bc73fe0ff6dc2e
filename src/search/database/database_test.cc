#include "search/database/database.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "search/database/database_file.h"
#include "search/database/folder_for_test.h"
#include "search/database/schema.h"
#include "search/database/sqlite.h"

namespace tilewright::search {
namespace {

const Hash128 kMatmul{0x0123456789abcdef, 0xfedcba9876543210};
const Hash128 kSoftmax{1, 2};
const Hash128 kSpace{3, 4};
const std::string kTarget = "llvm -mcpu=native -num-cores=1";

std::unique_ptr<Database> open(const std::string& path, const DatabaseOptions& options = {}) {
  auto database = Database::open(path, options);
  EXPECT_TRUE(database.ok()) << database.error().render();
  return database.ok() ? std::move(*database) : nullptr;
}

std::unique_ptr<Database> with_matmul() {
  auto database = Database::in_memory();
  EXPECT_TRUE(database.ok());
  EXPECT_TRUE((*database)->commit_workload(kMatmul, "matmul", "def matmul(): ...").ok());
  return std::move(*database);
}

Record record_of(std::vector<double> seconds, int64_t index = 0) {
  Record record;
  record.workload = kMatmul;
  record.target = kTarget;
  record.trace = R"([[["GetBlock",[],["C","main"],["b0"]]],[]])";
  record.seconds = std::move(seconds);
  record.index = index;
  if (record.seconds.empty()) record.outcome = "run_crash", record.error = "killed by signal 11 (SIGSEGV)";
  return record;
}

/// Another value than the default, for each type that a field of a record may have.
struct Filler {
  int count = 0;
  void fill(std::string& field) { field = fmt::format(R"({{"text":{}}})", ++count); }
  void fill(double& field) { field = ++count + 1.0 / 3; }
  void fill(int64_t& field) { field = ++count; }
  void fill(uint64_t& field) { field = ~uint64_t{0} - ++count; }
  void fill(Hash128& field) { field = kMatmul; }
  void fill(std::vector<double>& field) { field = {1.0 / 3, 2e-9}; }
  template <class T>
  void fill(std::optional<T>& field) {
    fill(field.emplace());
  }
};

TEST(Database, KeepsEveryFieldOfARecord) {
  TestFolder folder;
  Record record;
  Filler filler;
  for_each_field(record, [&](std::string_view, auto& field) { filler.fill(field); });
  record.outcome = "ok";
  {
    auto database = open(folder / "t.db");
    ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "script").ok());
    record.id = *database->commit(record);
  }
  auto database = open(folder / "t.db");
  auto found = database->best(kMatmul, record.target);
  ASSERT_TRUE(found.ok() && *found);
  for_each_field(record, [&](std::string_view name, const auto& field) {
    for_each_field(**found, [&](std::string_view other, const auto& read) {
      if constexpr (std::is_same_v<decltype(field), decltype(read)>) {
        if (name == other) {
          EXPECT_EQ(field, read) << name;  // exactly
        }
      }
    });
  });
  EXPECT_TRUE(**found == record);
  auto workload = database->workload(kMatmul);
  ASSERT_TRUE(workload.ok() && *workload);
  EXPECT_EQ((*workload)->script, "script");
  EXPECT_EQ((*workload)->name, "matmul");
}

TEST(Database, ARecordSaysWhenItWasStored) {
  auto database = with_matmul();
  ASSERT_TRUE(database->commit(record_of({1})).ok());
  EXPECT_EQ(database->best(kMatmul, kTarget)->value().created.size(), 20u);
}

TEST(Database, DamageNamesTheField) {
  for (const auto& [column, value, name] :
       {std::tuple("seconds", "'[0.001,'", "seconds"), std::tuple("position", "'x'", "index"),
        std::tuple("incumbent_seconds", "'x'", "incumbent_seconds")}) {
    TestFolder folder;
    {
      auto database = open(folder / "t.db");
      ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "").ok());
      ASSERT_TRUE(database->commit(record_of({1.0})).ok());
    }
    {
      auto connection = sqlite::open(folder / "t.db").value_or_throw();
      ASSERT_TRUE(connection->run(fmt::format("UPDATE record SET {} = {}", column, value)).ok());
    }
    auto database = open(folder / "t.db");
    const Record found = database->records(kMatmul, "")->front();
    EXPECT_EQ(found.outcome, "damaged");
    EXPECT_EQ(found.error, fmt::format("its {} cannot be read", name));
  }
}

TEST(Database, RanksByMedianAndLeavesFailuresOut) {
  auto database = with_matmul();
  for (const auto& seconds : std::vector<std::vector<double>>{{3, 9, 3}, {}, {2, 2.5}, {1, 8, 8}, {4}})
    ASSERT_TRUE(database->commit(record_of(seconds)).ok());
  Record elsewhere = record_of({0.5});
  elsewhere.target = "cuda";
  ASSERT_TRUE(database->commit(elsewhere).ok());

  auto top = database->top_k(kMatmul, kTarget, 3);
  ASSERT_TRUE(top.ok());
  ASSERT_EQ(top->size(), 3u);
  EXPECT_EQ((*top)[0].median(), 2.25);
  EXPECT_EQ((*top)[1].median(), 3);
  EXPECT_EQ((*top)[2].median(), 4);
  EXPECT_EQ((*database->best(kMatmul, ""))->median(), 0.5);
  EXPECT_EQ(database->top_k(kMatmul, kTarget, SIZE_MAX)->size(), 4u);
  EXPECT_TRUE(database->top_k(kMatmul, kTarget, 0)->empty());
  EXPECT_TRUE(database->top_k(kSoftmax, kTarget, 5)->empty());
  EXPECT_EQ(database->records(kMatmul, kTarget)->size(), 5u);
  EXPECT_EQ(*database->size(), 6);
}

TEST(Database, ARecordNeedsItsWorkload) {
  auto database = Database::in_memory().value_or_throw();
  auto committed = database->commit(record_of({1}));
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().code, "database/unknown-workload");
  EXPECT_EQ(*database->size(), 0);
}

TEST(Database, ResumesASession) {
  TestFolder folder;
  const SessionKey key{kMatmul, kTarget, kSpace, 5};
  Record record = record_of({1e-3}, 0);
  record.seed = 5;
  {
    auto database = open(folder / "t.db");
    ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "script").ok());
    EXPECT_FALSE(*database->session(key));
    ASSERT_TRUE(database->commit(record, {kSpace, R"({"next":1})"}).ok());
    record.index = 4;
    record.seconds = {}, record.outcome = "build_error";
    ASSERT_TRUE(database->commit(record, {kSpace, R"({"next":5})"}).ok());
  }
  auto database = open(folder / "t.db");
  auto session = database->session(key);
  ASSERT_TRUE(session.ok() && *session);
  EXPECT_EQ((*session)->trials, 2);
  EXPECT_EQ((*session)->indices, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ((*session)->state, R"({"next":5})");
  EXPECT_FALSE(*database->session({kMatmul, kTarget, kSpace, 6}));
  EXPECT_FALSE(*database->session({kMatmul, "cuda", kSpace, 5}));
  EXPECT_FALSE(*database->session({kMatmul, kTarget, kSoftmax, 5}));

  ASSERT_TRUE(database->save_session(key, R"({"next":9})").ok());
  EXPECT_EQ((*database->session(key))->state, R"({"next":9})");
  ASSERT_TRUE(database->forget_session(key).ok());
  EXPECT_FALSE(*database->session(key));
  EXPECT_EQ(*database->size(), 2);
}

TEST(Database, TheSameTrialIsStoredOnce) {
  auto database = with_matmul();
  const SessionStep step{kSpace, "{}"};
  const int64_t first = *database->commit(record_of({1}, 3), step);
  const int64_t second = *database->commit(record_of({2}, 3), step);
  EXPECT_EQ(first, second);
  EXPECT_EQ(database->best(kMatmul, kTarget)->value().seconds, std::vector<double>{1});
  // Without a session nothing says that they are the same.
  ASSERT_TRUE(database->commit(record_of({1}, 3)).ok());
  EXPECT_EQ(*database->size(), 2);
}

TEST(Database, ManyProcessesShareAFile) {
  TestFolder folder;
  constexpr int kWriters = 6, kEach = 25;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      // A connection each, as different processes have; all of them also race to create the file.
      auto database = Database::open(folder / "t.db", {.busy_timeout = std::chrono::seconds(60)});
      ASSERT_TRUE(database.ok()) << database.error().render();
      ASSERT_TRUE((*database)->commit_workload(kMatmul, "matmul", "script").ok());
      for (int i = 0; i < kEach; ++i) {
        auto committed = (*database)->commit(record_of({1.0 + writer}, i), {{0, uint64_t(writer)}, "{}"});
        ASSERT_TRUE(committed.ok()) << committed.error().render();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  auto database = open(folder / "t.db");
  EXPECT_EQ(*database->size(), kWriters * kEach);
  EXPECT_EQ(database->workloads()->size(), 1u);
  // Only the database file is left.
  database.reset();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Database, ReadsWhileAnotherWrites) {
  TestFolder folder;
  auto writer = open(folder / "t.db");
  ASSERT_TRUE(writer->commit_workload(kMatmul, "matmul", "script").ok());
  ASSERT_TRUE(writer->commit(record_of({1})).ok());
  auto reader = open(folder / "t.db", {.read_only = true});
  EXPECT_EQ(*reader->size(), 1);
  ASSERT_TRUE(writer->commit(record_of({2})).ok());
  EXPECT_EQ(*reader->size(), 2);
  auto refused = reader->commit(record_of({3}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "database/read-only");
}

TEST(Database, ACopyOfTheFileAloneHasWhatWasFlushed) {
  TestFolder folder;
  auto copied = [&] {
    std::filesystem::copy_file(folder / "t.db", folder / "copy.db", std::filesystem::copy_options::overwrite_existing);
    return *open(folder / "copy.db")->size();
  };
  auto database = open(folder / "t.db");
  ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "script").ok());
  ASSERT_TRUE(database->commit(record_of({1.0})).ok());
  EXPECT_EQ(copied(), 0);
  ASSERT_TRUE(database->flush().ok());
  EXPECT_EQ(copied(), 1);
  EXPECT_TRUE(open(folder / "t.db", {.read_only = true})->flush().ok());
  EXPECT_TRUE(with_matmul()->flush().ok());
}

TEST(Database, FinalsDecideUntilSomethingFasterComes) {
  auto database = with_matmul();
  const int64_t fast = *database->commit(record_of({1.0}, 0));
  const int64_t winner = *database->commit(record_of({1.1}, 1));
  EXPECT_FALSE(*database->finals(kMatmul, kTarget));
  EXPECT_EQ((*database->best(kMatmul, kTarget))->id, fast);
  // In interleaved rounds the second is faster, though both are slower than before.
  ASSERT_TRUE(database->commit_finals(kMatmul, kTarget, {winner, {1.5, 1.3, 1.4}, winner}).ok());
  EXPECT_EQ((*database->finals(kMatmul, kTarget))->last_record, winner);
  auto top = *database->top_k(kMatmul, kTarget, 5);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, winner);
  EXPECT_EQ(top[0].seconds, (std::vector<double>{1.5, 1.3, 1.4}));
  EXPECT_EQ(top[1].id, fast);
  // Candidates that came later took no part in the finals.
  const int64_t slower = *database->commit(record_of({1.45}, 2));
  EXPECT_EQ((*database->best(kMatmul, ""))->id, winner);
  // A loser of the finals is listed behind their winner, and before slower candidates.
  top = *database->top_k(kMatmul, kTarget, 5);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[1].id, fast);
  EXPECT_EQ(top[2].id, slower);
  const int64_t faster = *database->commit(record_of({1.2}, 3));
  EXPECT_EQ((*database->best(kMatmul, ""))->id, faster);
  // The next finals replace the first.
  ASSERT_TRUE(database->commit_finals(kMatmul, kTarget, {slower, {2.0}, faster}).ok());
  EXPECT_EQ((*database->best(kMatmul, kTarget))->id, slower);
  EXPECT_EQ(database->records(kMatmul, kTarget)->front().seconds, std::vector<double>{1.0});  // as they were measured
}

TEST(Database, ASessionHasItsOwnRecords) {
  auto database = with_matmul();
  const SessionKey key{kMatmul, kTarget, kSpace, 0};
  ASSERT_TRUE(database->commit(record_of({3.0}, 1), {kSpace, "{}"}).ok());
  ASSERT_TRUE(database->commit(record_of({2.0}, 0), {kSpace, "{}"}).ok());
  ASSERT_TRUE(database->commit(record_of({1.0}, 0), {kSoftmax, "{}"}).ok());  // another space, the same seed
  auto records = *database->session_records(key);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].median(), 2.0);
  EXPECT_EQ(records[1].index, 1);
  ASSERT_TRUE(database->forget_session(key).ok());
  EXPECT_TRUE(database->session_records(key)->empty());
}

TEST(Database, ATrialWithoutItsProgramOrItsTargetIsMeasuredAgain) {
  for (const char* harm : {"workload_id = 99", "target_id = 77", "workload_id = ''"}) {
    TestFolder folder;
    {
      auto database = open(folder / "t.db");
      ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "").ok());
      ASSERT_TRUE(database->commit(record_of({1.0}, 4), {kSpace, "{}"}).ok());
    }
    {
      auto connection = sqlite::open(folder / "t.db").value_or_throw();
      ASSERT_TRUE(connection->run("PRAGMA foreign_keys = OFF").ok());
      ASSERT_TRUE(connection->run(fmt::format("UPDATE record SET {}", harm)).ok());
    }
    auto database = open(folder / "t.db");
    ASSERT_TRUE(database->commit(record_of({2.0}, 4), {kSpace, "{}"}).ok()) << harm;
    EXPECT_EQ(database->best(kMatmul, kTarget)->value().median(), 2.0) << harm;
    EXPECT_EQ(database->records(kMatmul, "")->size(), 1u) << harm;
  }
}

/// A file as an earlier version made it.
std::unique_ptr<sql::Connection> of_schema(size_t number, const std::string& file) {
  auto connection = sqlite::open(file, {.create = true}).value_or_throw();
  EXPECT_TRUE(connection->run(fmt::format("PRAGMA application_id = {}", kApplicationId)).ok());
  EXPECT_TRUE(migrate(*connection, migrations().first(number)).ok());
  return connection;
}

int64_t integer(sql::Connection& connection, const std::string& query) {
  return connection.find<int64_t>(query).value_or_throw().value();
}

TEST(Database, AFileOfTheFirstSchemaIsMigrated) {
  TestFolder folder;
  {
    auto connection = of_schema(1, folder / "t.db");
  }
  // Also by who only wants to read it.
  auto read_only = Database::open(folder / "t.db", {.read_only = true});
  ASSERT_TRUE(read_only.ok());
  EXPECT_TRUE((*read_only)->workloads()->empty());
  EXPECT_FALSE((*read_only)->set_meta("a", "b").ok());
  auto database = open(folder / "t.db");
  ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "").ok());
  const int64_t id = *database->commit(record_of({1.0}));
  EXPECT_TRUE(database->commit_finals(kMatmul, kTarget, {id, {1.0}, id}).ok());
}

TEST(Database, HostsAndVersionsAreRowsThatRecordsShare) {
  TestFolder folder;
  {
    auto one = open(folder / "t.db"), other = open(folder / "t.db");
    ASSERT_TRUE(one->commit_workload(kMatmul, "matmul", "").ok());
    std::vector<std::thread> writers;
    for (Database* database : {one.get(), other.get()}) {
      writers.emplace_back([database] {
        for (int i = 0; i < 20; ++i) {
          Record record = record_of({1.0 + i}, i);
          record.host = fmt::format(R"({{"processor":"P","cores":{}}})", 1 + i % 2);
          record.versions = i % 4 ? R"({"tilewright":"0.1.0","llvm":"19"})" : i % 8 ? "no JSON" : "";
          EXPECT_TRUE(database->commit(record).ok());
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    int64_t unknown = 0;
    const std::vector<Record> stored = *one->records(kMatmul, "");
    for (const Record& record : stored) unknown += record.versions.empty();
    EXPECT_EQ(unknown, 2 * 5);  // invalid JSON harms no record
  }
  auto connection = sqlite::open(folder / "t.db").value_or_throw();
  EXPECT_EQ(integer(*connection, "SELECT count(*) FROM host"), 2);
  EXPECT_EQ(integer(*connection, "SELECT sum(cores) FROM host WHERE processor = 'P'"), 3);
  EXPECT_EQ(integer(*connection, "SELECT count(*) FROM libraries"), 1);
  EXPECT_EQ(integer(*connection,
                    "SELECT count(*) FROM record r JOIN libraries l ON l.id = r.libraries_id "
                    "WHERE l.llvm = '19'"),
            2 * 15);
}

TEST(Database, VersionsOfTheThirdSchemaBecomeRows) {
  TestFolder folder;
  {
    auto connection = of_schema(3, folder / "t.db");
    ASSERT_TRUE(connection->run("PRAGMA foreign_keys = ON").ok());
    ASSERT_TRUE(connection
                    ->run(fmt::format("INSERT INTO workload (id, hash, name, script, created) VALUES "
                                      "(1, x'{}', 'matmul', '', ''); INSERT INTO target VALUES (1, 't')",
                                      kMatmul.hex()))
                    .ok());
    for (const char* versions : {R"({"tilewright": "0.1.0", "machine": "x86_64"})", R"({"tilewright":"0.1.0"})", "",
                                 "{}", R"({"machine": "x86_64", "tilewright": "0.1.0"})", "[1", R"("text")"}) {
      EXPECT_TRUE(connection
                      ->run(fmt::format("INSERT INTO record (workload_id, target_id, seed, round, position, trace, "
                                        "decisions, seconds, median, outcome, verification, versions, created) VALUES "
                                        "(1, 1, 0, 0, 0, '', '', '[1]', 1, 'ok', '', '{}', '')",
                                        versions))
                      .ok());
    }
    ASSERT_TRUE(connection->run("INSERT INTO finals VALUES (1, 1, 2, '[0.5]', 0.5, 7, '')").ok());
  }
  std::vector<std::string> hosts, versions;
  auto database = open(folder / "t.db");
  const std::vector<Record> stored = *database->records(kMatmul, "");
  for (const Record& record : stored) {
    EXPECT_EQ(record.outcome, "ok");
    hosts.push_back(record.host);
    versions.push_back(record.versions);
  }
  const std::string machine = R"({"machine":"x86_64"})", tilewright = R"({"tilewright":"0.1.0"})";
  EXPECT_EQ(hosts, (std::vector<std::string>{machine, "", "", "", machine, "", ""}));
  EXPECT_EQ(versions, (std::vector<std::string>{tilewright, tilewright, "", "{}", tilewright, "", R"("text")"}));
  EXPECT_EQ((*database->best(kMatmul, "t"))->id, 2);
}

TEST(Database, MetaHoldsFreeFacts) {
  auto database = with_matmul();
  EXPECT_FALSE(*database->meta("host"));
  ASSERT_TRUE(database->set_meta("host", "a").ok());
  ASSERT_TRUE(database->set_meta("host", "b").ok());
  EXPECT_EQ(**database->meta("host"), "b");
  EXPECT_FALSE(*database->replace_meta("host", std::nullopt, "c"));
  EXPECT_FALSE(*database->replace_meta("host", "a", "c"));
  EXPECT_EQ(**database->meta("host"), "b");
  EXPECT_TRUE(*database->replace_meta("host", "b", "c"));
  EXPECT_EQ(**database->meta("host"), "c");
  EXPECT_TRUE(*database->replace_meta("new", std::nullopt, "d"));
  EXPECT_EQ(**database->meta("new"), "d");
}

TEST(Database, MedianOfNothingIsInfinite) { EXPECT_TRUE(std::isinf(Record{}.median())); }

TEST(Schema, MigratesStepByStepAndOnlyOnce) {
  TestFolder folder;
  auto connection = sqlite::open(folder / "t.db", {.create = true}).value_or_throw();
  const Migration steps[] = {{"CREATE TABLE a (x); INSERT INTO a VALUES (1)"},
                             {"ALTER TABLE a ADD COLUMN y DEFAULT 7"}};
  ASSERT_TRUE(migrate(*connection, std::span<const Migration>(steps).first(1)).ok());
  ASSERT_TRUE(migrate(*connection, steps).ok());
  ASSERT_TRUE(migrate(*connection, steps).ok());
  EXPECT_EQ(integer(*connection, "PRAGMA user_version"), 2);
  EXPECT_EQ(integer(*connection, "SELECT sum(x + y) FROM a"), 8);
}

TEST(Schema, AFailedMigrationLeavesTheFileAsItWas) {
  auto connection = sqlite::open(":memory:", {.create = true}).value_or_throw();
  const Migration steps[] = {{"CREATE TABLE a (x)"}, {"this is not valid SQL"}};
  auto status = migrate(*connection, steps);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "database/failed");
  EXPECT_EQ(integer(*connection, "PRAGMA user_version"), 0);
  EXPECT_EQ(integer(*connection, "SELECT count(*) FROM sqlite_schema"), 0);
}

}  // namespace
}  // namespace tilewright::search
