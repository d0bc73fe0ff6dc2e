#include "codegen/llvm/shared_corrections.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <vector>

#include "ir/processor_instructions.h"

namespace tilewright::codegen {
namespace {

/// The steps of one sum from its start in an iteration to its end.
struct Sum {
  llvm::PHINode* start = nullptr;
  llvm::Instruction* end = nullptr;
  std::vector<llvm::BinaryOperator*> corrections;
};

/// Whether an instruction adds something to its first operand, which does not depend on that operand.
bool adds_to_first(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
  const ProcessorInstruction* known = callee ? find_instruction(callee->getName()) : nullptr;
  return known && known->form == ProcessorInstruction::kDot;
}

/// Returns the sum that a phi carries around the loop; without a start if it is no sum, or used inside of the loop.
Sum sum_of(llvm::PHINode& phi, const llvm::Loop& loop) {
  llvm::BasicBlock* latch = loop.getLoopLatch();
  if (!phi.getType()->isIntOrIntVectorTy() || !phi.hasOneUse()) return {};
  Sum sum{&phi, llvm::dyn_cast<llvm::Instruction>(phi.getIncomingValueForBlock(latch)), {}};
  llvm::Value* value = sum.end;
  while (value != &phi) {
    auto* step = llvm::dyn_cast_or_null<llvm::Instruction>(value);
    if (!step || step->getParent() != latch || (step != sum.end && !step->hasOneUse())) return {};
    auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(step);
    if (operation && operation->getOpcode() == llvm::Instruction::Sub) {
      sum.corrections.push_back(operation);
    } else if (!adds_to_first(*step)) {
      return {};
    }
    value = step->getOperand(0);
  }
  for (const llvm::User* user : sum.end->users()) {
    const auto* by = llvm::cast<llvm::Instruction>(user);
    if (by != &phi && loop.contains(by)) return {};
  }
  return sum;
}

/// The result of the loop is `whole` - `taken`.
void correct_behind(llvm::Value* whole, llvm::Value* taken, const llvm::Loop& loop) {
  llvm::BasicBlock* exit = loop.getExitBlock();
  std::vector<llvm::Use*> outside;
  for (llvm::Use& use : whole->uses()) {
    if (!loop.contains(llvm::cast<llvm::Instruction>(use.getUser()))) outside.push_back(&use);
  }
  if (outside.empty()) return;
  llvm::IRBuilder<> builder(exit, exit->getFirstInsertionPt());
  llvm::Value* corrected = builder.CreateSub(whole, taken);
  for (llvm::Use* use : outside) {
    auto* phi = llvm::dyn_cast<llvm::PHINode>(use->getUser());
    if (!phi || phi->getParent() != exit) {
      use->set(corrected);
      continue;
    }
    // The exit has one predecessor: its phi is that value.
    phi->replaceAllUsesWith(corrected);
    phi->eraseFromParent();
  }
}

/// Sums that take the same away.
struct Alike {
  std::vector<llvm::Value*> terms;
  std::vector<Sum> sums;
};

/// A term that starts from zero and has no other use starts from the sum instead.
llvm::Value* added(llvm::IRBuilder<>& builder, llvm::Value* sum, llvm::Value* term) {
  auto* step = llvm::dyn_cast<llvm::Instruction>(term);
  auto* start = step && adds_to_first(*step) ? llvm::dyn_cast<llvm::Constant>(step->getOperand(0)) : nullptr;
  if (!start || !start->isNullValue() || !step->use_empty()) return builder.CreateAdd(sum, term);
  step->setOperand(0, sum);
  step->moveBefore(&*builder.GetInsertPoint());
  return step;
}

bool share_corrections(llvm::Loop& loop) {
  llvm::BasicBlock *latch = loop.getLoopLatch(), *exit = loop.getExitBlock(), *before = loop.getLoopPredecessor();
  if (!latch || !exit || !before || loop.getExitingBlock() != latch || !exit->getSinglePredecessor()) return false;
  std::vector<Alike> groups;
  for (llvm::PHINode& phi : loop.getHeader()->phis()) {
    Sum sum = sum_of(phi, loop);
    if (!sum.start || sum.corrections.empty()) continue;
    Alike one;
    for (llvm::BinaryOperator* correction : sum.corrections) one.terms.push_back(correction->getOperand(1));
    auto same = [&](const Alike& other) { return std::ranges::is_permutation(one.terms, other.terms); };
    auto place = llvm::find_if(groups, same);
    if (place == groups.end()) place = groups.insert(groups.end(), std::move(one));
    place->sums.push_back(std::move(sum));
  }
  bool changed = false;
  for (const Alike& group : groups) {
    if (group.sums.size() < 2) continue;
    for (const Sum& sum : group.sums) {
      for (llvm::BinaryOperator* correction : sum.corrections) {
        correction->replaceAllUsesWith(correction->getOperand(0));
        correction->eraseFromParent();
      }
    }
    llvm::Type* type = group.sums[0].start->getType();
    llvm::IRBuilder<> builder(loop.getHeader(), loop.getHeader()->begin());
    llvm::PHINode* taken = builder.CreatePHI(type, 2);
    builder.SetInsertPoint(latch->getTerminator());
    llvm::Value* next = taken;
    for (llvm::Value* term : group.terms) next = added(builder, next, term);
    taken->addIncoming(llvm::Constant::getNullValue(type), before);
    taken->addIncoming(next, latch);
    for (const Sum& sum : group.sums) correct_behind(sum.start->getIncomingValueForBlock(latch), next, loop);
    changed = true;
  }
  return changed;
}

}  // namespace

llvm::PreservedAnalyses SharedCorrections::run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  for (llvm::Loop* loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    changed |= share_corrections(*loop);
  }
  if (!changed) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace tilewright::codegen
