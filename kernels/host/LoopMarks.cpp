// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostCodegen.h"
#include "kernels/host/ThreadLoops.h"

#include "kernels/abi/HostKernelAbi.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/LoopIterator.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace mgpu::kernels {

namespace {

using Properties = llvm::SmallVector<llvm::Metadata *>;

/// The facts that are known of the addresses in a function.
class Addresses {
public:
  explicit Addresses(llvm::Function &function)
      : dominators(function), loops(dominators),
        targetLibrary(llvm::Triple(function.getParent()->getTargetTriple())),
        library(targetLibrary, &function), assumptions(function),
        evolution(function, library, assumptions, dominators, loops) {}

  llvm::SmallVector<llvm::Loop *> innermost() {
    llvm::SmallVector<llvm::Loop *> found;
    llvm::copy_if(loops.getLoopsInPreorder(), std::back_inserter(found),
                  [](llvm::Loop *loop) {
                    return loop->isInnermost() && loop->getLoopLatch();
                  });
    return found;
  }

  llvm::Loop *loopOf(llvm::Instruction *inst) {
    return loops.getLoopFor(inst->getParent());
  }

  /// Whether an access in an iteration of `loop` may touch what a store before
  /// it in the same iteration wrote, and LLVM's vectoriser may have them change
  /// places. It gathers those accesses with gaps that lie side by side, and in
  /// a parallel loop it looks at nothing between them.
  bool mayReorder(llvm::Loop &loop) {
    llvm::LoopBlocksRPO order(&loop);
    order.perform(&loops);
    llvm::SmallVector<llvm::StoreInst *> stores;
    // Loops inside may be unrolled: there what comes first comes again.
    if (!loop.isInnermost())
      for (llvm::BasicBlock *block : order)
        for (llvm::Instruction &inst : *block)
          if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&inst))
            stores.push_back(store);
    for (llvm::BasicBlock *block : order)
      for (llvm::Instruction &inst : *block) {
        if (!llvm::isa<llvm::LoadInst, llvm::StoreInst>(inst))
          continue;
        for (llvm::StoreInst *store : stores)
          if (store != &inst &&
              (hasGaps(*store, loop) || hasGaps(inst, loop)) &&
              mayMeet(*store, inst))
            return true;
        if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&inst))
          stores.push_back(store);
      }
    return false;
  }

private:
  const llvm::SCEV *addressOf(llvm::Instruction &access) {
    return evolution.getSCEV(llvm::getLoadStorePointerOperand(&access));
  }
  int64_t bytesOf(llvm::Instruction &access) {
    return int64_t(access.getModule()
                       ->getDataLayout()
                       .getTypeStoreSize(llvm::getLoadStoreType(&access))
                       .getFixedValue());
  }

  /// Whether iterations touch other than neighbouring elements, or one.
  bool hasGaps(llvm::Instruction &access, llvm::Loop &loop) {
    const llvm::SCEV *address = addressOf(access);
    if (evolution.isLoopInvariant(address, &loop))
      return false;
    const auto *line = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
    if (!line || line->getLoop() != &loop)
      return true;
    const auto *step =
        llvm::dyn_cast<llvm::SCEVConstant>(line->getStepRecurrence(evolution));
    return !step || step->getAPInt().abs().ugt(uint64_t(bytesOf(access)));
  }

  bool mayMeet(llvm::StoreInst &store, llvm::Instruction &later) {
    const llvm::Value *written =
                          llvm::getUnderlyingObject(store.getPointerOperand()),
                      *touched = llvm::getUnderlyingObject(
                          llvm::getLoadStorePointerOperand(&later));
    if (written != touched) // arguments may be of one buffer
      return !llvm::isIdentifiedObject(written) &&
             !llvm::isIdentifiedObject(touched);
    const auto *apart = llvm::dyn_cast<llvm::SCEVConstant>(
        evolution.getMinusSCEV(addressOf(later), addressOf(store)));
    if (!apart)
      return true;
    const int64_t distance = apart->getAPInt().getSExtValue();
    if (distance >= bytesOf(store) || -distance >= bytesOf(later))
      return false;
    // If both are at one place and in one block, one of them is gone by then.
    return distance != 0 || store.getParent() != later.getParent();
  }

  llvm::DominatorTree dominators;
  llvm::LoopInfo loops;
  llvm::TargetLibraryInfoImpl targetLibrary;
  llvm::TargetLibraryInfo library;
  llvm::AssumptionCache assumptions;
  llvm::ScalarEvolution evolution;
};

/// The values, counters apart, that the loop hands on to its next iteration and
/// uses there several times: unrolled, the paths through them double at each
/// step.
llvm::SetVector<llvm::Value *> branching(llvm::Loop &loop) {
  llvm::SetVector<llvm::Value *> found;
  for (llvm::PHINode &phi : loop.getHeader()->phis()) {
    auto *next = llvm::dyn_cast<llvm::BinaryOperator>(
        phi.getIncomingValueForBlock(loop.getLoopLatch()));
    const bool counts = next && next->getOpcode() == llvm::Instruction::Add &&
                        next->getOperand(0) == &phi;
    if (!counts && phi.hasNUsesOrMore(2))
      found.insert(&phi);
  }
  return found;
}

/// Whether these values of a loop surely are the same in all iterations of
/// `outer`, which is around it.
bool areSameIn(llvm::SetVector<llvm::Value *> open, llvm::Loop &outer) {
  for (size_t at = 0; at < open.size(); ++at) {
    auto *inst = llvm::dyn_cast<llvm::Instruction>(open[at]);
    if (!inst || !outer.contains(inst))
      continue;
    if (llvm::isa<llvm::PHINode>(inst) &&
        inst->getParent() == outer.getHeader())
      return false;
    open.insert(inst->op_begin(), inst->op_end());
  }
  return true;
}

class LoopMarker {
public:
  LoopMarker(llvm::LLVMContext &context, const HostCodeOptions &options,
             Addresses &addresses)
      : context(context), options(options), addresses(addresses) {}

  void mark(llvm::Loop &loop, unsigned what) {
    Properties properties{nullptr};
    if (what == Rolled)
      properties.push_back(word("llvm.loop.unroll.disable"));
    else if (what == Sequential)
      properties.push_back(number("llvm.loop.unroll.count", options.unroll));
    else
      addParallel(loop, what == ParallelTile, properties);
    llvm::MDNode *id = llvm::MDNode::getDistinct(context, properties);
    id->replaceOperandWith(0, id);
    loop.setLoopID(id);
  }

private:
  llvm::MDNode *word(llvm::StringRef name) {
    return llvm::MDNode::get(context, llvm::MDString::get(context, name));
  }
  llvm::MDNode *flag(llvm::StringRef name, llvm::Metadata *value) {
    return llvm::MDNode::get(context,
                             {llvm::MDString::get(context, name), value});
  }
  llvm::MDNode *number(llvm::StringRef name, uint32_t value) {
    return flag(name, llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                          llvm::Type::getInt32Ty(context), value)));
  }

  /// Tells the vectoriser that iterations of `loop` do not depend on each other
  /// through memory. Calls are left out: what they touch is not known here.
  void addParallel(llvm::Loop &loop, bool unroll, Properties &properties) {
    llvm::MDNode *group = llvm::MDNode::getDistinct(context, {});
    const bool isParallel = !addresses.mayReorder(loop);
    for (llvm::BasicBlock *block : loop.blocks())
      for (llvm::Instruction &inst : *block) {
        if (!isParallel || !llvm::isa<llvm::LoadInst, llvm::StoreInst>(inst))
          continue;
        llvm::MDNode *groups =
            inst.getMetadata(llvm::LLVMContext::MD_access_group);
        inst.setMetadata(llvm::LLVMContext::MD_access_group,
                         groups ? llvm::uniteAccessGroups(groups, group)
                                : group);
      }
    // Unrolled before it is vectorised, a short loop would end as scalar code;
    // left rolled after, a tile's arrays would not become registers.
    if (isParallel)
      properties.push_back(flag("llvm.loop.parallel_accesses", group));
    properties.append({flag("llvm.loop.vectorize.enable",
                            llvm::ConstantAsMetadata::get(
                                llvm::ConstantInt::getTrue(context))),
                       word("llvm.loop.unroll.disable"),
                       flag("llvm.loop.vectorize.followup_vectorized",
                            word(unroll ? "llvm.loop.unroll.full"
                                        : "llvm.loop.mustprogress"))});
    if (options.vectorWidth != 0)
      properties.push_back(
          number("llvm.loop.vectorize.width", options.vectorWidth));
  }

  llvm::LLVMContext &context;
  const HostCodeOptions &options;
  Addresses &addresses;
};

} // namespace

void markLoops(llvm::Module &module, const HostCodeOptions &options) {
  llvm::Function *marker = module.getFunction(loopMarker);
  llvm::Function *entry = module.getFunction(hostKernelEntryName);
  if (!entry)
    return;
  Addresses addresses(*entry);
  llvm::SmallVector<llvm::CallInst *> calls;
  if (marker)
    for (llvm::User *user : marker->users())
      calls.push_back(llvm::cast<llvm::CallInst>(user));
  LoopMarker mark(module.getContext(), options, addresses);
  for (llvm::CallInst *call : calls) {
    auto *what = llvm::cast<llvm::ConstantInt>(call->getArgOperand(0));
    if (llvm::Loop *loop = addresses.loopOf(call))
      mark.mark(*loop, unsigned(what->getZExtValue()));
    call->eraseFromParent();
  }
  if (marker)
    marker->eraseFromParent();
  // Unrolled, a loop that does the same for all threads or blocks is a chain of
  // values that are one for all lanes. LLVM's vectoriser asks for that, and
  // walks each path of the chain: two to the power of its length.
  for (llvm::Loop *loop : addresses.innermost())
    if (const auto values = branching(*loop); !values.empty())
      for (llvm::Loop *outer = loop->getParentLoop();
           outer && !loop->getLoopID(); outer = outer->getParentLoop())
        if (areSameIn(values, *outer))
          mark.mark(*loop, Rolled);
}

} // namespace mgpu::kernels
