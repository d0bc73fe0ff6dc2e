// How scripts and messages write operators: as Python does.
#pragma once

#include <string_view>

#include "ir/node.h"

namespace tilewright {

struct Infix {
  /// How tightly operators of Python bind.
  enum Precedence : int {
    kLowest = 0,
    kOr = 1,
    kAnd = 2,
    kNot = 3,
    kCompare = 4,
    kSum = 10,
    kProduct = 11,
    kAtom = 20,
  };

  std::string_view symbol;  ///< operator with blanks around it: " + "; empty if Python has none
  int precedence = kAtom;
};

/// Returns the infix operator for a kind of node with operands of this type.
Infix infix_of(Kind kind, DataType operands);

}  // namespace tilewright
