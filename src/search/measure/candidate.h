// Connects the pipeline with the compiler: candidates are lowered modules, objects are those of codegen.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/stmt.h"
#include "search/measure/pipeline.h"
#include "search/measure/serve.h"
#include "target/target.h"

namespace tilewright::search {

/// `lowered` is what lower::lower returned for `target`; `entry` the "global_symbol" of the function to measure.
Candidate make_candidate(uint64_t id, const Ref<Module>& lowered, const Target& target, std::string entry);

/// Lowers a candidate. Its schedule is not verified again: each step was when it was applied. On CPUs, a candidate
/// whose register tiles do not fit into registers is refused ("lower/not-in-registers"): it is slow, and slow to
/// compile.
Result<Ref<Module>> lower_candidate(const Ref<Module>& scheduled, const Target& target);
/// An error where this machine cannot run what is compiled for the target.
Status check_runs_here(const Target& target);
/// The program as it was written, as the candidate that is `reference`; for targets that are devices, the host runs it.
Result<Candidate> reference_candidate(uint64_t id, const Ref<Module>& written, const Target& target,
                                      const std::string& entry);
/// Why nothing can be compared with the program as it was written, `measured` having failed.
Diagnostic reference_failure(const std::string& name, const Measured& measured);

// The helper's side of make_candidate().
Result<std::string> compile_candidate(std::string_view module, std::string_view options);
Result<CallableKernel> load_candidate(std::string_view object, const std::string& entry);

}  // namespace tilewright::search
