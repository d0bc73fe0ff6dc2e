// How kernels and their parameters are spelled where C and C++ see them: as symbols of objects and in headers.
//
// A name is kept where it can be. Otherwise
//   - a character that C has not in names becomes an underscore:            my-kernel -> my_kernel
//   - in front of a digit or an underscore comes a k:                       2d -> k2d, _fused -> k_fused
//   - a name that is taken gets an underscore at its end:                   double -> double_, exp -> exp_
//   - what then is the same as another one gets a number:                   exp, exp_ -> exp_, exp__1
// Taken are the keywords of C and C++, the functions, types and macros of C's library and of POSIX that compilers know
// or kernels call, `main`, and the names of runtime/abi.h (tw_..., TW_..., DL..., kDL...).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/stmt.h"

namespace tilewright::codegen {

/// Names of one scope of C, no two the same.
class CNames {
 public:
  /// The spelling of `name`, which from now on is in use; `fallback` stands for a name without characters. With
  /// `is_kernel`, what the header derives from the name of a kernel is in use too.
  std::string take(std::string_view name, std::string_view fallback, bool is_kernel = false);

  /// From now on this name, which is one of C already, is in use.
  void reserve(const std::string& name) { used_.insert(name); }

 private:
  bool is_free(const std::string& name, bool is_kernel) const;
  std::set<std::string> used_;
};

/// The entries of a module: "global_symbol" -> name in C.
std::map<std::string, std::string> c_kernel_names(const Ref<Module>& module);

}  // namespace tilewright::codegen
