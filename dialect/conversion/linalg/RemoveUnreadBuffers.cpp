// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/ForwardStores.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_REMOVEUNREADBUFFERS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether the memref is stored to, in a launch, or freed.
bool isStoreOrFree(OpOperand &use) {
  auto store = dyn_cast<memref::StoreOp>(use.getOwner());
  return isa<ir::FreeOp>(use.getOwner()) ||
         (store && store->getParentOfType<ir::LaunchOp>() &&
          &store.getMemrefMutable() == &use);
}

struct RemoveUnreadBuffers
    : impl::RemoveUnreadBuffersBase<RemoveUnreadBuffers> {
  void runOnOperation() override {
    SmallVector<ir::AllocOp> buffers;
    getOperation()->walk([&](ir::AllocOp alloc) {
      if (ir::takeMark(alloc, ir::Mark::Forwarded))
        buffers.push_back(alloc);
    });
    if (buffers.empty())
      return markAllAnalysesPreserved();
    for (ir::AllocOp alloc : buffers) {
      if (!llvm::all_of(alloc->getUses(), isStoreOrFree))
        continue;
      for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
        user->erase();
      alloc.erase();
    }
  }
};

} // namespace

} // namespace mgpu::conversion
