// Whether a program is well formed at a stage: what make() cannot check because it takes more than one node.
//
//   Status status = verify(module, Stage::kScheduled);
//
// The rules, by their codes:
//   verify/stage       a kind of node that this stage does not have (ir/kinds.def)
//   verify/undefined   a variable used outside of its scope, or defined nowhere
//   verify/redefined   a variable, buffer or parameter defined twice
//   verify/buffer      an access to a buffer that nothing declares
//   verify/pointer     a buffer on a pointer to another type
//   verify/axis        an axis of a block without domain, of the wrong kind, or of another type than its binding; an
//                      init that depends on a reduction axis; in sparse iterations, too
//   verify/axis-order  an axis of a sparse iteration over whose parent nothing iterates before or around it
//   verify/block       a block outside of its realization, or one block in two places
//   verify/root        a function with blocks whose body is not one root block without axes
//   verify/region      a region or match_buffer with the wrong number of dimensions or type
//   verify/thread      thread axes: unknown tags, two extents in one kernel, an axis bound again in a nest by a loop
//                      that does not mean the same threads
//   verify/sequence    a sequence of fewer than two statements
//   verify/intrinsic   a call of an intrinsic with arguments or a type that it does not have
//   verify/call        a call of a function that the module does not have, or with other arguments
//   verify/annotation  an annotation that is no value
//   verify/function    parameters, attributes and names that do not fit
//
// A function or module may use nothing that it does not define; anything else may have free variables. Whether accesses
// stay inside of buffers and of the regions that blocks declare takes more reasoning: analysis/verify_accesses.h.
#pragma once

#include "ir/node.h"
#include "support/result.h"

namespace tilewright {

enum class Rules {
  kAll,
  kLanguage,  ///< without what only schedules and kernels need: thread axes bound once, inits alike for all steps
};

/// The first rule that is broken, with the node in question.
Status verify(const NodeRef& node, Stage stage, Rules rules = Rules::kAll);

}  // namespace tilewright
