// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/HostCodegen.h"
#include "kernels/emit/ThreadLoops.h"

#include "device/host/HostKernelAbi.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace mgpu::kernels {

namespace {

using Properties = llvm::SmallVector<llvm::Metadata *>;

class LoopMarker {
public:
  LoopMarker(llvm::LLVMContext &context, const HostCodeOptions &options)
      : context(context), options(options) {}

  void mark(llvm::Loop &loop, unsigned what) {
    Properties properties{nullptr};
    if (what == Sequential)
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
    for (llvm::BasicBlock *block : loop.blocks())
      for (llvm::Instruction &inst : *block) {
        if (!llvm::isa<llvm::LoadInst, llvm::StoreInst>(inst))
          continue;
        llvm::MDNode *groups =
            inst.getMetadata(llvm::LLVMContext::MD_access_group);
        inst.setMetadata(llvm::LLVMContext::MD_access_group,
                         groups ? llvm::uniteAccessGroups(groups, group)
                                : group);
      }
    // Unrolled before it is vectorised, a short loop would end as scalar code;
    // left rolled after, a tile's arrays would not become registers.
    properties.append({flag("llvm.loop.parallel_accesses", group),
                       flag("llvm.loop.vectorize.enable",
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
};

} // namespace

void markLoops(llvm::Module &module, const HostCodeOptions &options) {
  llvm::Function *marker = module.getFunction(loopMarker);
  llvm::Function *entry = module.getFunction(device::hostKernelEntryName);
  if (!marker || !entry)
    return;
  llvm::DominatorTree dominators(*entry);
  llvm::LoopInfo loops(dominators);
  llvm::SmallVector<llvm::CallInst *> calls;
  for (llvm::User *user : marker->users())
    calls.push_back(llvm::cast<llvm::CallInst>(user));
  LoopMarker mark(module.getContext(), options);
  for (llvm::CallInst *call : calls) {
    auto *what = llvm::cast<llvm::ConstantInt>(call->getArgOperand(0));
    if (llvm::Loop *loop = loops.getLoopFor(call->getParent()))
      mark.mark(*loop, unsigned(what->getZExtValue()));
    call->eraseFromParent();
  }
  marker->eraseFromParent();
}

} // namespace mgpu::kernels
