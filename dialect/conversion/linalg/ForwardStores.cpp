// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/ForwardStores.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mgpu::conversion {

using namespace mlir;

void markForwarded(Value memref) {
  if (auto alloc = memref.getDefiningOp<ir::AllocOp>())
    ir::setMark(alloc, ir::Mark::Forwarded);
}

/// Whether what `store` leaves is overwritten, in the same block, before
/// anything reads it.
static bool isOverwritten(memref::StoreOp store) {
  Value memref = store.getMemRef();
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode()) {
    auto next = dyn_cast<memref::StoreOp>(op);
    if (next && next.getMemRef() == memref &&
        next.getIndices() == store.getIndices())
      return true;
    auto uses = [&](Operation *inner) {
      auto other = dyn_cast<memref::StoreOp>(inner);
      return (!other || other.getMemRef() != memref) &&
                     llvm::is_contained(inner->getOperands(), memref)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    if (op->walk(uses).wasInterrupted() || isa<gpu::BarrierOp>(op))
      return false;
  }
  return false;
}

void forwardStores(ir::LaunchOp launch) {
  launch.getBody().walk([&](memref::LoadOp load) {
    for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode()) {
      if (op->getNumRegions() != 0)
        return; // a loop may have stored
      auto store = dyn_cast<memref::StoreOp>(op);
      if (!store || store.getMemRef() != load.getMemRef())
        continue;
      if (store.getIndices() == load.getIndices()) {
        markForwarded(load.getMemRef());
        load.replaceAllUsesWith(store.getValueToStore());
        load.erase();
      }
      return;
    }
  });
  launch.getBody().walk([](memref::StoreOp store) {
    if (isOverwritten(store))
      store.erase();
  });
}

} // namespace mgpu::conversion
