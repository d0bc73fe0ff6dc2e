#include "support/diagnostic.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Diagnostic, SaysWhatWhyAndWhatToDo) {
  Diagnostic diagnostic = argument_error("call/argument", "argument A: got 3", "pass 4");
  EXPECT_EQ(diagnostic.blame, Blame::kArgument);
  EXPECT_EQ(diagnostic.render(), "[call/argument] argument A: got 3\n  hint: pass 4");
}

TEST(Diagnostic, ABrokenCheckNamesExpressionPlaceAndValues) {
  try {
    fail_check("a == b", "src/file.cc", 12, "a = 1, b = 2");
    FAIL() << "it returned";
  } catch (const Exception& error) {
    EXPECT_EQ(error.diagnostic().blame, Blame::kInternal);
    EXPECT_EQ(error.diagnostic().code, "internal/check");
    EXPECT_NE(std::string(error.what()).find("a == b at src/file.cc:12 (a = 1, b = 2)"), std::string::npos);
    EXPECT_FALSE(error.diagnostic().hint.empty());
  }
}

}  // namespace
}  // namespace tilewright
