#include "ir/processor_instructions.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr DotTypes kBytes{DataType::uint(8), DataType::int_(8), DataType::int_(32)};

std::string dot(std::string_view target, int64_t lanes, ProcessorInstruction::Form form = ProcessorInstruction::kDot) {
  const Target parsed = *Target::parse(target);
  const ProcessorInstruction* found = dot_instruction(form, kBytes, lanes, &parsed);
  return found ? std::string(found->name) : "";
}

TEST(ProcessorInstructions, AnyAlternativeWillDo) {
  const ProcessorInstruction* vnni_256 = find_instruction("llvm.x86.avx512.vpdpbusd.256");
  ASSERT_TRUE(vnni_256);
  EXPECT_TRUE(vnni_256->is_on(*Target::parse("llvm -mcpu=alderlake")));        // avxvnni
  EXPECT_TRUE(vnni_256->is_on(*Target::parse("llvm -mcpu=icelake-server")));   // avx512vnni and avx512vl
  EXPECT_FALSE(vnni_256->is_on(*Target::parse("llvm -mcpu=skylake-avx512")));  // avx512vl alone
  EXPECT_EQ(vnni_256->first_features(), std::vector<std::string>{"avxvnni"});
  EXPECT_EQ(vnni_256->group(), 4);
  EXPECT_TRUE(find_instruction("llvm.x86.sse2.pmadd.wd")->is_on(*Target::parse("llvm -mcpu=x86-64")));
  EXPECT_FALSE(find_instruction("llvm.x86.avx512.vpdpbusd"));
}

TEST(ProcessorInstructions, TheWidestThatFits) {
  EXPECT_EQ(dot("llvm -mcpu=icelake-server", 16), "llvm.x86.avx512.vpdpbusd.512");
  EXPECT_EQ(dot("llvm -mcpu=icelake-server", 8), "llvm.x86.avx512.vpdpbusd.256");
  EXPECT_EQ(dot("llvm -mcpu=icelake-server -vector-width=256", 16), "llvm.x86.avx512.vpdpbusd.256");
  EXPECT_EQ(dot("llvm -mcpu=alderlake", 64), "llvm.x86.avx512.vpdpbusd.256");
  EXPECT_EQ(dot("llvm -mcpu=alderlake", 4), "llvm.x86.avx512.vpdpbusd.128");
  EXPECT_EQ(dot("llvm -mcpu=alderlake", 2), "");
  EXPECT_EQ(dot("llvm -mcpu=haswell", 16), "");
  EXPECT_EQ(dot("llvm -mcpu=sapphirerapids", 16, ProcessorInstruction::kTileDot), "llvm.x86.tdpbusd");
  EXPECT_EQ(dot("llvm -mcpu=icelake-server", 16, ProcessorInstruction::kTileDot), "");
}

}  // namespace
}  // namespace tilewright
