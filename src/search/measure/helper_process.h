// One helper process as the pipeline sees it: started by exec, spoken to without ever blocking, killed and reaped.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "search/measure/frame.h"
#include "support/result.h"

namespace tilewright::search {

/// The helper executable: TILEWRIGHT_HELPER, or the program beside the library this code is in.
Result<std::string> find_helper(const std::string& name = "tilewright-helper");

/// "killed by signal 11 (SEGV, Segmentation fault)", "ended with status 3".
std::string describe_exit(int wait_status);

class HelperProcess {
 public:
  /// `shared_fd` is handed on as kSharedMemoryFd; -1: nothing is. The child dies when the calling *thread* ends, so a
  /// thread that lives as long as the helper has to start it.
  static Result<HelperProcess> start(const std::string& path, const std::string& mode, int shared_fd);
  HelperProcess(HelperProcess&& other) noexcept;
  HelperProcess& operator=(HelperProcess&& other) noexcept;
  ~HelperProcess();  ///< kills it and waits for its end

  pid_t pid() const { return pid_; }
  int connection() const { return connection_; }
  int log() const { return log_; }

  /// Queues a frame and writes what the pipe takes.
  void post(std::string frame);
  bool wants_to_write() const { return sent_ < outgoing_.size(); }
  void write_some();

  /// Reads the available bytes. Returns false if the other side has closed the connection.
  bool read_some();
  Result<std::optional<Frame>> next_frame() { return reader_.next(); }
  void read_log();
  /// The beginning of what it wrote to stdout and stderr since clear_log(), at most 4 KiB.
  const std::string& log_text() const { return log_text_; }
  void clear_log() { log_text_.clear(); }

  void kill();
  /// Goes on if a signal has stopped it; nothing otherwise.
  void resume();
  /// Time of a thread so far by state, in seconds.
  struct ThreadTime {
    double ran = 0;
    double waited = 0;         ///< ready to run, and without a processor
    bool is_runnable = false;  ///< just now
  };
  /// The time of each of its threads; empty where that is not known.
  std::map<int, ThreadTime> thread_times() const;
  /// Returns how many of the `taken` seconds since then other programs did not use.
  double own_since(const std::map<int, ThreadTime>& before, double taken) const;
  /// Does not wait. True: the process is gone; its wait status, or -1 when somebody else has taken it.
  bool reap(int& wait_status);

 private:
  HelperProcess() = default;
  void close_files();

  pid_t pid_ = -1;
  int connection_ = -1, log_ = -1;
  std::string outgoing_;
  size_t sent_ = 0;
  FrameReader reader_;
  std::string log_text_;
};

}  // namespace tilewright::search
