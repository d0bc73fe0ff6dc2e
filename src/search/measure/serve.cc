#include "search/measure/serve.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "search/measure/messages.h"
#include "search/measure/process_limits.h"
#include "search/measure/slice_timer.h"

namespace tilewright::search {
namespace {

std::optional<HelperSetup> read_setup() {
  const auto frame = read_frame(kConnectionFd);
  HelperSetup setup;
  if (!frame || !decode_message(*frame, setup)) return std::nullopt;
  return setup;
}

BuildReply build(const BuildRequest& request, const CompileFunction& compile) {
  BuildReply reply;
  reply.id = request.id;
  const auto fail = [&](Outcome outcome, std::string code, std::string message, std::string hint = {}) {
    reply.outcome = outcome;
    reply.code = std::move(code);
    reply.message = std::move(message);
    reply.hint = std::move(hint);
  };
  Slice slice;
  // Exceptions are not how our code reports errors, but one that a library throws is no reason to lose the process.
  time_slice(
      1, 1,
      [&](int64_t) {
        try {
          Result<std::string> object = compile(request.module, request.options);
          if (object.ok()) {
            reply.object = std::move(*object);
          } else {
            fail(Outcome::kBuildError, object.error().code, object.error().message, object.error().hint);
          }
        } catch (const std::bad_alloc&) {
          fail(Outcome::kOutOfMemory, "measure/memory", "the compiler ran out of memory");
        } catch (const std::exception& error) {
          fail(Outcome::kBuildError, "measure/exception", error.what());
        }
        return true;
      },
      slice);
  reply.seconds = slice.wall;
  return reply;
}

}  // namespace

int serve_builds(const CompileFunction& compile) {
  const auto setup = read_setup();
  if (!setup) return kExitProtocol;
  stay_on(setup->cpus);
  limit_memory(setup->memory_limit);
  if (!write_message(kConnectionFd, Ready{})) return 0;
  while (const auto frame = read_frame(kConnectionFd)) {
    BuildRequest request;
    if (!decode_message(*frame, request)) return kExitProtocol;
    if (!write_message(kConnectionFd, build(request, compile))) break;
  }
  return 0;
}

int helper_main(int argc, char** argv, const CompileFunction& compile, const LoadFunction& load) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "build" && mode != "measure") {
    std::fprintf(stderr, "%s is started by Tilewright's search, not from a terminal\n",
                 argc > 0 ? argv[0] : "this program");
    return 2;
  }
  if (!follow_parent(static_cast<pid_t>(std::strtol(argv[2], nullptr, 10)))) return 0;
  close_foreign_files(mode == "measure" ? kSharedMemoryFd + 1 : kConnectionFd + 1);
  if (!write_message(kConnectionFd, Hello{kProtocolVersion, mode})) return 0;
  return mode == "build" ? serve_builds(compile) : serve_measurements(load);
}

}  // namespace tilewright::search
