#include "codegen/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace tilewright::codegen {

Outcome run_program(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  Outcome outcome;
  if (pipe2(ends, O_CLOEXEC) != 0) return outcome;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child;
  int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed == 0) {
    outcome.found = true;
    char buffer[4096];
    for (;;) {
      ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count > 0) outcome.output.append(buffer, static_cast<size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) break;
    }
    while (waitpid(child, &outcome.status, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return outcome;
}

}  // namespace tilewright::codegen
