// Files that are locked, damaged, foreign, read-only or on a full disk: an error that says so, and nothing lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "search/database/database.h"
#include "search/database/database_file.h"
#include "search/database/folder_for_test.h"
#include "search/database/sqlite.h"

namespace tilewright::search {
namespace {

const Hash128 kMatmul{1, 2};

Record record_of(int64_t index, size_t padding = 0) {
  Record record;
  record.workload = kMatmul;
  record.target = "llvm";
  record.trace = std::string(padding, 'x');
  record.seconds = {1e-3};
  record.index = index;
  return record;
}

/// A database with `count` records, closed.
std::string make(const TestFolder& folder, int count = 20) {
  const std::string path = folder / "tune.db";
  auto database = Database::open(path).value_or_throw();
  EXPECT_TRUE(database->commit_workload(kMatmul, "matmul", "script").ok());
  for (int i = 0; i < count; ++i) EXPECT_TRUE(database->commit(record_of(i, 1000)).ok());
  return path;
}

/// The code of a failed open; the message has to name the file.
std::string refusal(const std::string& path, const DatabaseOptions& options = {}) {
  auto database = Database::open(path, options);
  if (database.ok()) return "opened";
  EXPECT_EQ(database.error().blame, Blame::kResource);
  EXPECT_TRUE(database.error().message.starts_with(path)) << database.error().message;
  EXPECT_FALSE(database.error().hint.empty());
  return database.error().code;
}

/// Runs `body` as a user without root's rights over files.
template <class F>
void as_nobody(F body) {
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  body();
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

TEST(BadFile, LockedByAnotherProcess) {
  TestFolder folder;
  const std::string path = make(folder);
  auto database = Database::open(path, {.busy_timeout = std::chrono::milliseconds(20)}).value_or_throw();
  auto other = sqlite::open(path).value_or_throw();
  ASSERT_TRUE(other->run("BEGIN IMMEDIATE").ok());
  auto refused = database->commit(record_of(20));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "database/locked");
  EXPECT_NE(refused.error().message.find(path), std::string::npos);
  EXPECT_EQ(*database->size(), 20);  // readers are not kept out
  ASSERT_TRUE(other->run("ROLLBACK").ok());
  ASSERT_TRUE(database->commit(record_of(20)).ok());
  EXPECT_EQ(*database->size(), 21);
}

/// Whether this process has a lock on the file, as another process sees it.
bool has_locks(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    const int file = ::open(path.c_str(), O_RDWR);
    ::_exit(file >= 0 && ::fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status) == 1;
}

// Without its locks a process writes what others do not expect, and they see a malformed file.
TEST(BadFile, OpeningItOnceMoreLeavesTheLocks) {
  TestFolder folder;
  const std::string path = make(folder);
  auto database = Database::open(path).value_or_throw();
  EXPECT_EQ(*database->size(), 20);
  ASSERT_TRUE(has_locks(path));
  for (const bool read_only : {false, true}) {
    Database::open(path, {.read_only = read_only}).value_or_throw();
    EXPECT_TRUE(has_locks(path));
  }
  auto closed_later = Database::open(path).value_or_throw();
  database.reset();
  EXPECT_TRUE(has_locks(path));
  closed_later.reset();
  EXPECT_FALSE(has_locks(path));
}

TEST(BadFile, Truncated) {
  TestFolder folder;
  const std::string path = make(folder);
  const std::string whole = read_file(path);
  for (size_t size : {size_t{1}, size_t{50}, size_t{100}, size_t{4096}, whole.size() / 2, whole.size() - 1}) {
    write_file(path, whole.substr(0, size));
    EXPECT_EQ(refusal(path), "database/damaged") << size;
    EXPECT_EQ(read_file(path).size(), size);
  }
}

TEST(BadFile, AnEmptyFileBecomesADatabase) {
  TestFolder folder;
  const std::string path = make(folder);
  write_file(path, "");
  EXPECT_EQ(refusal(path, {.read_only = true}), "database/missing");
  auto database = Database::open(path).value_or_throw();
  EXPECT_EQ(*database->size(), 0);
  EXPECT_GT(read_file(path).size(), size_t{0});
  EXPECT_EQ(*Database::open(path).value_or_throw()->size(), 0);
  // With a log beside it, it has lost what was in it.
  database.reset();
  write_file(path, "");
  write_file(path + "-wal", "x");
  EXPECT_EQ(refusal(path), "database/damaged");
}

TEST(BadFile, Garbled) {
  TestFolder folder;
  const std::string path = make(folder);
  std::string bytes = read_file(path);
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = 'x';
  write_file(path, bytes);
  auto database = Database::open(path);
  ASSERT_TRUE(database.ok());
  auto size = (*database)->size();
  ASSERT_FALSE(size.ok());
  EXPECT_EQ(size.error().code, "database/damaged");
}

TEST(BadFile, NotADatabase) {
  TestFolder folder;
  const std::string path = folder / "notes.txt";
  write_file(path, "milk, eggs\n" + std::string(5000, '.'));
  EXPECT_EQ(refusal(path), "database/not-a-database");
  EXPECT_EQ(refusal(path, {.read_only = true}), "database/not-a-database");
  EXPECT_EQ(read_file(path).substr(0, 10), "milk, eggs");
  EXPECT_EQ(refusal(folder.path()), "database/not-a-database");
  EXPECT_EQ(refusal("/dev/null"), "database/not-a-database");
}

TEST(BadFile, ADatabaseOfAnotherProgramIsLeftAlone) {
  TestFolder folder;
  const std::string path = folder / "foreign.db";
  ASSERT_TRUE(sqlite::open(path, {.create = true})
                  .value_or_throw()
                  ->run("PRAGMA journal_mode = WAL; CREATE TABLE mine (x)")
                  .ok());
  const std::string before = read_file(path);
  EXPECT_EQ(refusal(path), "database/not-a-database");
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(BadFile, OfALaterVersion) {
  TestFolder folder;
  const std::string path = make(folder);
  ASSERT_TRUE(sqlite::open(path).value_or_throw()->run("PRAGMA user_version = 1000").ok());
  EXPECT_EQ(refusal(path), "database/newer-version");
  EXPECT_EQ(refusal(path, {.read_only = true}), "database/newer-version");
}

TEST(BadFile, MissingFolderOrFile) {
  TestFolder folder;
  EXPECT_EQ(refusal(folder / "no/such/tune.db"), "database/cannot-open");
  EXPECT_EQ(refusal(folder / "tune.db", {.read_only = true}), "database/missing");
  EXPECT_FALSE(std::filesystem::exists(folder / "tune.db"));
}

TEST(BadFile, ReadOnlyFileAndFolder) {
  TestFolder folder;
  const std::string path = make(folder);
  ::chmod(path.c_str(), 0444);
  ::chmod(folder.path().c_str(), 0555);
  as_nobody([&] {
    EXPECT_EQ(refusal(path), "database/read-only");
    EXPECT_EQ(refusal(folder / "new.db"), "database/cannot-open");
    // Queries need no right to write.
    auto database = Database::open(path, {.read_only = true});
    ASSERT_TRUE(database.ok()) << database.error().render();
    EXPECT_EQ(*(*database)->size(), 20);
  });
  ::chmod(folder.path().c_str(), 0755);
}

TEST(BadFile, WritableFileInReadOnlyFolder) {
  TestFolder folder;
  const std::string path = make(folder);
  ::chmod(path.c_str(), 0666);
  ::chmod(folder.path().c_str(), 0555);
  as_nobody([&] { EXPECT_EQ(refusal(path), "database/read-only"); });
  ::chmod(folder.path().c_str(), 0755);
}

/// Commits until there is no room, makes room, and goes on; every record that was acknowledged is there.
void fill_and_recover(const std::string& path, const std::function<void()>& make_room) {
  auto database = Database::open(path).value_or_throw();
  ASSERT_TRUE(database->commit_workload(kMatmul, "matmul", "script").ok());
  int64_t stored = 0;
  std::string code;
  for (int i = 0; i < 5000 && code.empty(); ++i) {
    auto committed = database->commit(record_of(i, 4000));
    if (committed.ok()) {
      ++stored;
    } else {
      code = committed.error().code;
      EXPECT_NE(committed.error().message.find(path), std::string::npos) << committed.error().message;
    }
  }
  EXPECT_EQ(code, "database/full");
  EXPECT_GT(stored, 10);
  EXPECT_EQ(*database->size(), stored);
  make_room();
  ASSERT_TRUE(database->commit(record_of(stored)).ok());
  database.reset();
  EXPECT_EQ(*Database::open(path).value_or_throw()->size(), stored + 1);
}

TEST(BadFile, FileSizeLimit) {
  TestFolder folder;
  struct rlimit old;
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);  // as Python does; write() then fails with EFBIG
  struct rlimit limit = old;
  limit.rlim_cur = 300 * 1024;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  fill_and_recover(folder / "tune.db", [&] { ::setrlimit(RLIMIT_FSIZE, &old); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
}

TEST(BadFile, FullDisk) {
  TestFolder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=512k") != 0)
    GTEST_SKIP() << "mounting a small file system takes root; FileSizeLimit covers the same path";
  write_file(folder / "ballast", std::string(100 * 1024, 'x'));
  fill_and_recover(folder / "tune.db", [&] { ::unlink((folder / "ballast").c_str()); });
  write_file(folder / "ballast", std::string(1024 * 1024, 'x'));
  EXPECT_EQ(refusal(folder / "new.db"), "database/full");
  ::umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(BadFile, AProcessKilledWhileWritingLosesNothing) {
  TestFolder folder;
  const std::string path = make(folder, 0);
  int acknowledged[2];
  ASSERT_EQ(::pipe(acknowledged), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto database = Database::open(path);
    for (int64_t i = 0; database.ok() && (*database)->commit(record_of(i, 2000)).ok(); ++i)
      if (::write(acknowledged[1], &i, sizeof i) != sizeof i) break;
    ::_exit(1);
  }
  ::close(acknowledged[1]);
  int64_t last = 0;
  while (last < 40) ASSERT_EQ(::read(acknowledged[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (int64_t more; ::read(acknowledged[0], &more, sizeof more) > 0;) last = more;
  ::close(acknowledged[0]);
  auto database = Database::open(path).value_or_throw();
  EXPECT_GE(*database->size(), last + 1);
  EXPECT_TRUE(database->commit(record_of(-1)).ok());
}

}  // namespace
}  // namespace tilewright::search
