#include "search/measure/helper_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "search/measure/serve.h"
#include "support/ranges.h"

extern char** environ;

namespace tilewright::search {
namespace {

constexpr size_t kLogSize = 4096;

/// Closed on every way out.
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int release() { return std::exchange(fd, -1); }
};

/// Out of the way of the numbers that are fixed in the child, and of a host program that has closed its standard ones.
int move_up(int fd) {
  constexpr int kFirst = 16;
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirst);
  ::close(fd);
  return high;
}

/// Returns the error for a process that could not be started. A file number beyond the limit on open files gives EINVAL
/// or EBADF.
Diagnostic cannot_start(const std::string& path, int error) {
  const char* hint = "check the installation";
  if (error == EMFILE || error == ENFILE || error == EINVAL || error == EBADF) {
    hint = "the limit on open files is too low: raise it (ulimit -n)";
  } else if (error == EAGAIN) {
    hint = "the limit on processes is too low, or too many run: raise it (ulimit -u)";
  } else if (error == ENOMEM) {
    hint = "there is too little memory, or the limit on it is too low: free some, or raise it (ulimit -v)";
  }
  return resource_error("measure/helper-start",
                        fmt::format("the helper {} cannot be started ({})", path, std::strerror(error)), hint);
}

int spawn(const std::string& path, const std::string& mode, int connection, int log, int shared_fd, pid_t& pid) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, connection, kConnectionFd);
  if (shared_fd >= 0) ::posix_spawn_file_actions_adddup2(&files, shared_fd, kSharedMemoryFd);

  // A group of its own keeps the terminal's Ctrl-C away: the parent decides when a helper ends. Signals that this
  // process blocks or ignores (Python ignores SIGPIPE) are back to normal in the child.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigfillset(&signals);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);

  const std::string parent = std::to_string(::getpid());
  char* const argv[] = {const_cast<char*>(path.c_str()), const_cast<char*>(mode.c_str()),
                        const_cast<char*>(parent.c_str()), nullptr};
  const int error = ::posix_spawn(&pid, path.c_str(), &files, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Result<std::string> find_helper(const std::string& name) {
  if (const char* path = std::getenv("TILEWRIGHT_HELPER"); path && *path) return std::string(path);
  Dl_info info{};
  static const char here = 0;
  std::filesystem::path folder = ".";
  if (::dladdr(&here, &info) != 0 && info.dli_fname) folder = std::filesystem::path(info.dli_fname).parent_path();
  const std::filesystem::path path = folder / name;
  if (::access(path.c_str(), X_OK) == 0) return std::filesystem::absolute(path).string();
  return resource_error("measure/helper-missing", fmt::format("there is no executable {}", path.string()),
                        "reinstall Tilewright, or name the helper in the environment variable TILEWRIGHT_HELPER");
}

std::string describe_exit(int wait_status) {
  if (wait_status == -1) return "ended";
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char* name = ::sigabbrev_np(number);
    const char* meaning = ::sigdescr_np(number);
    return fmt::format("killed by signal {} (SIG{}: {})", number, name ? name : "?", meaning ? meaning : "unknown");
  }
  return fmt::format("ended with status {}", WEXITSTATUS(wait_status));
}

Result<HelperProcess> HelperProcess::start(const std::string& path, const std::string& mode, int shared_fd) {
  int sockets[2], pipes[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return cannot_start(path, errno);
  File ours{move_up(sockets[0])}, theirs{move_up(sockets[1])};
  if (::pipe2(pipes, O_CLOEXEC) != 0) return cannot_start(path, errno);
  File log{move_up(pipes[0])}, their_log{move_up(pipes[1])};
  File shared{shared_fd >= 0 ? ::fcntl(shared_fd, F_DUPFD_CLOEXEC, 16) : -1};
  if (ours.fd < 0 || theirs.fd < 0 || log.fd < 0 || their_log.fd < 0 || (shared_fd >= 0 && shared.fd < 0))
    return cannot_start(path, errno);
  for (int fd : {ours.fd, log.fd}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);

  HelperProcess process;
  if (int error = spawn(path, mode, theirs.fd, their_log.fd, shared.fd, process.pid_)) {
    process.pid_ = -1;
    return cannot_start(path, error);
  }
  process.connection_ = ours.release();
  process.log_ = log.release();
  return process;
}

HelperProcess::HelperProcess(HelperProcess&& other) noexcept { *this = std::move(other); }

HelperProcess& HelperProcess::operator=(HelperProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(connection_, other.connection_);
  std::swap(log_, other.log_);
  std::swap(outgoing_, other.outgoing_);
  std::swap(sent_, other.sent_);
  std::swap(reader_, other.reader_);
  std::swap(log_text_, other.log_text_);
  return *this;
}

HelperProcess::~HelperProcess() {
  close_files();
  if (pid_ <= 0) return;
  kill();
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HelperProcess::close_files() {
  for (int* fd : {&connection_, &log_}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
}

void HelperProcess::post(std::string frame) {
  if (sent_ == outgoing_.size()) {
    outgoing_ = std::move(frame);
    sent_ = 0;
  } else {
    outgoing_ += frame;
  }
  write_some();
}

void HelperProcess::write_some() {
  while (wants_to_write()) {
    // No SIGPIPE when the other side is gone; the connection's end is noticed by reading.
    const ssize_t sent = ::send(connection_, outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent <= 0) {
      sent_ = outgoing_.size();
      return;
    }
    sent_ += static_cast<size_t>(sent);
  }
}

bool HelperProcess::read_some() {
  char buffer[1 << 16];
  // Bounded, so that a helper that never stops sending cannot keep the caller here.
  for (int i = 0; i < 64; ++i) {
    const ssize_t got = ::read(connection_, buffer, sizeof buffer);
    if (got > 0) {
      reader_.append({buffer, static_cast<size_t>(got)});
      if (static_cast<size_t>(got) < sizeof buffer) return true;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return true;
}

void HelperProcess::read_log() {
  char buffer[4096];
  for (int i = 0; i < 64 && log_ >= 0; ++i) {
    const ssize_t got = ::read(log_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      // At the end of the file the descriptor would be readable forever.
      if (got == 0) ::close(std::exchange(log_, -1));
      return;
    }
    log_text_.append(buffer, std::min(static_cast<size_t>(got), kLogSize - log_text_.size()));
  }
}

std::map<int, HelperProcess::ThreadTime> HelperProcess::thread_times() const {
  std::map<int, ThreadTime> times;
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  if (pid_ <= 0) return times;
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end; task.increment(error)) {
    std::ifstream shares(task->path() / "schedstat"), status(task->path() / "stat");
    uint64_t ran = 0, waited = 0;
    std::string line;
    if (!(shares >> ran >> waited) || !std::getline(status, line)) continue;
    const size_t name_end = line.rfind(')');  // the state follows the name
    const std::string state = name_end == std::string::npos ? "" : line.substr(name_end + 1, 2);
    // A stopped process counts as ready to run.
    times[std::atoi(task->path().filename().c_str())] = {
        1e-9 * static_cast<double>(ran), 1e-9 * static_cast<double>(waited), state == " R" || state == " T"};
  }
  return times;
}

double HelperProcess::own_since(const std::map<int, ThreadTime>& before, double taken) const {
  double ran = 0, waited = 0;
  bool is_runnable = false;
  for (const auto& [thread, now] : thread_times()) {
    const ThreadTime then = find_value_or(before, thread, ThreadTime{});
    ran = std::max(ran, now.ran - then.ran);
    waited = std::max(waited, now.waited - then.waited);
    is_runnable |= now.is_runnable;
  }
  // The current wait is not reported.
  return is_runnable ? std::min(ran, taken - waited) : taken - waited;
}

void HelperProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);  // whatever it has started, too
  ::kill(pid_, SIGKILL);
}

void HelperProcess::resume() {
  if (pid_ > 0) ::kill(-pid_, SIGCONT);
}

bool HelperProcess::reap(int& wait_status) {
  wait_status = -1;
  if (pid_ <= 0) return true;
  const pid_t got = ::waitpid(pid_, &wait_status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return false;
  // ECHILD: the host program ignores SIGCHLD, or waits for all children itself.
  if (got < 0) wait_status = -1;
  pid_ = -1;
  return true;
}

}  // namespace tilewright::search
