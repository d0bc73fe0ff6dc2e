// Kernels for programs without Tilewright: NAME.o, NAME.so and NAME.h.
//
// The library contains the runtime and shows only the kernels (and TW_MODULE_SYMBOL, by which tw.load finds them); the
// header serves C11 and C++, with two ways to call each kernel: by DLPack tensors, and for compact buffers by plain
// pointers. See the comment that write_header() puts at its top.
#pragma once

#include <string>

#include "codegen/codegen.h"

namespace tilewright::codegen {

struct ExportedFiles {
  std::string library;  ///< empty for other platforms than this one: their linker and their runtime are not here
  std::string object, header;
};

/// Writes the files into `folder`, which is made if it is missing. `lowered` is what `code` was compiled from. A file
/// appears whole or not at all. Codes: export/name, export/folder, export/write, export/link, export/package.
/// `calls` is a text that the library keeps for who loads it (runtime::Library::calls()).
Result<ExportedFiles> export_files(const Ref<Module>& lowered, const ObjectCode& code, const std::string& folder,
                                   const std::string& name, const std::string& calls);

/// The text of the header.
Result<std::string> write_header(const Ref<Module>& lowered, const std::string& name);

}  // namespace tilewright::codegen
