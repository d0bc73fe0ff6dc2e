// Leaves a note in the control block when a measured kernel dies of a signal, then lets it die.
#pragma once

#include "search/measure/mapped_arguments.h"

namespace tilewright::search {

/// Installs the handler for the whole process and for the life of `arguments`. The handler runs on its own stack, so
/// that an overflow of the calling thread's stack is reported, too.
void install_crash_handler(MappedArguments& arguments);

}  // namespace tilewright::search
