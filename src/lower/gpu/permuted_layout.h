// Layouts of shared memory without bank conflicts: blocks with the annotation "permuted_layout" ask for them.
//
//   Before                                        After
//   with T.block("A_shared"):                     A_shared[r, (c // 8 ^ r % 8) * 8 + c % 8] = A[r, c]
//     T.block_attr({"permuted_layout": "g2s_A"})
//     A_shared[r, c] = A[r, c]
//
// Shared memory has 32 banks of 4 bytes. Eight rows that begin 128 bytes apart are in the same banks, so that ldmatrix,
// which loads 16 bytes of each, takes eight steps. Exchanging the chunks of 16 bytes within a row, by exclusive or with
// the number of the row, makes it one. Rows of a multiple of 128 bytes exchange 8 chunks, those of 64 bytes 4, and
// those of 32 bytes 2. Rows that are padded (storage_align) are in different banks already, and stay as they are.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

/// The statement, in which every access to the shared memory that such blocks use is in that layout. Notes
/// "lower/plain-layout" name buffers whose rows have another length. ScriptError "lower/permuted-layout" for accesses
/// that name no row.
Result<Stmt> permute_layouts(const Stmt& body, PassContext& context);

}  // namespace tilewright::lower
