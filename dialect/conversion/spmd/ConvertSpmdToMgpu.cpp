// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/Spread.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTSPMDTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether the devices that `op` names are among those that run it, `running`,
/// and each of these calls it.
LogicalResult checkDevices(Operation *op, ArrayRef<int64_t> running) {
  auto isThere = [&](int64_t device) {
    if (device >= running.front() && device <= running.back())
      return success();
    return LogicalResult(op->emitOpError()
                         << "names device " << device << "; devices "
                         << running.front() << " to " << running.back()
                         << " run it");
  };
  if (auto move = dyn_cast<spmd::MoveOp>(op)) {
    for (spmd::LayoutAttr layout : {move.getFrom(), move.getTo()}) {
      if (failed(isThere(layout.firstDevice())) ||
          failed(isThere(layout.endDevice() - 1)))
        return failure();
      if (!layout.getFirst() && layout.numDevices() != int64_t(running.size()))
        return op->emitOpError() << "is for " << layout.numDevices()
                                 << " devices; there are " << running.size();
    }
    return success();
  }
  if (auto permute = dyn_cast<spmd::PermuteOp>(op)) {
    for (Attribute pair : permute.getPairs())
      for (int64_t device : cast<DenseI64ArrayAttr>(pair).asArrayRef())
        if (failed(isThere(device)))
          return failure();
    return success();
  }
  auto groups = op->getAttrOfType<ArrayAttr>("groups");
  if (!groups) { // the rules about the size of a group can be checked now
    Builder b(op->getContext());
    op->setAttr("groups", b.getArrayAttr(b.getDenseI64ArrayAttr(running)));
    return verify(op);
  }
  size_t members = 0;
  for (ArrayRef<int64_t> group : spmd::groupsOf(groups, running))
    for (int64_t device : group) {
      if (failed(isThere(device)))
        return failure();
      ++members;
    }
  if (members != running.size())
    return op->emitOpError()
           << "has groups of " << members << " of the " << running.size()
           << " devices; each must be in one";
  return success();
}

/// The devices that run `op`.
SmallVector<int64_t> runningOf(Operation *op, int64_t devices) {
  int64_t first = 0;
  if (auto on = op->getParentOfType<spmd::OnOp>()) {
    first = on.getFirst();
    devices = on.getEnd();
  }
  return llvm::to_vector(llvm::seq<int64_t>(first, devices));
}

/// Whether the body of a linalg operation computes with numbers alone.
LogicalResult checkBody(linalg::LinalgOp linalg) {
  auto checked = linalg->walk([&](Operation *op) {
    bool isTensors = isa<linalg::LinalgOp, memref::AllocOp, memref::CopyOp>(op);
    if (op == linalg ||
        (!isTensors && !isa_and_nonnull<spmd::SpmdDialect, ir::MgpuDialect>(
                           op->getDialect())))
      return WalkResult::advance();
    ir::emitUnsupported(op)
        << "stands in the body of '" << linalg->getName()
        << "', which computes with numbers, not with tensors; move it before "
           "that operation";
    return WalkResult::interrupt();
  });
  return failure(checked.wasInterrupted());
}

/// Whether a device's program has only what a program for N devices can have.
LogicalResult check(Operation *op, int64_t devices) {
  if (isa_and_nonnull<ir::MgpuDialect>(op->getDialect()))
    return ir::emitUnsupported(op)
           << "'" << op->getName()
           << "' cannot be in a function over tensors; write the collectives "
              "of the spmd dialect there";
  if (isa_and_nonnull<spmd::SpmdDialect>(op->getDialect()))
    return isa<spmd::DeviceIndexOp, spmd::DistributeOp, spmd::CollectOp,
               spmd::CustomCallOp, spmd::OnOp, spmd::YieldOp, spmd::AttentionOp,
               spmd::ScoreOp>(op)
               ? success()
               : checkDevices(op, runningOf(op, devices));
  if (isa<memref::LoadOp>(op))
    return ir::emitUnsupported(op)
           << "takes an element out of a tensor to decide what the program "
              "does; only kernels can read tensors, so compute it from scalar "
              "arguments";
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) ||
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return ir::emitUnsupported(op)
           << "'" << op->getName() << "' has no form on buffers";
  return success();
}

/// Computations say of which spmd.on they are: those of two share no launch.
void numberFragments(func::FuncOp function) {
  Builder b(function.getContext());
  int64_t number = 0;
  function.walk<WalkOrder::PreOrder>([&](spmd::OnOp on) {
    on.walk([&](Operation *op) {
      if (isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op))
        op->setAttr("mgpu.fragment", b.getI64IntegerAttr(number));
    });
    ++number;
  });
}

/// The size of a view that splits a dimension is among what it was made of,
/// which upstream's canonicalization leaves to be read from the view.
void resolveSizes(func::FuncOp function) {
  function.walk([](memref::DimOp dim) {
    auto view = dim.getSource().getDefiningOp<memref::ExpandShapeOp>();
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!view || !index || *index < 0 ||
        *index >= view.getResultType().getRank())
      return;
    OpBuilder b(dim);
    dim.getResult().replaceAllUsesWith(getValueOrCreateConstantIndexOp(
        b, dim.getLoc(), view.getMixedOutputShape()[*index]));
    dim.erase();
  });
}

struct ConvertSpmdToMgpu : impl::ConvertSpmdToMgpuBase<ConvertSpmdToMgpu> {
  using ConvertSpmdToMgpuBase::ConvertSpmdToMgpuBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return;
    resolveSizes(function);
    int64_t devices = 1;
    for (auto config : getOperation().getOps<ir::DeviceConfigOp>())
      devices = config.getConfig().getNumDevices();
    auto checked = function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == function)
        return WalkResult::advance();
      if (failed(check(op, devices)))
        return WalkResult::interrupt();
      if (isa<scf::ParallelOp>(op)) // a kernel
        return WalkResult::skip();
      auto linalg = dyn_cast<linalg::LinalgOp>(op);
      if (!linalg)
        return WalkResult::advance();
      return failed(checkBody(linalg)) ? WalkResult::interrupt()
                                       : WalkResult::skip();
    });
    if (checked.wasInterrupted())
      return signalPassFailure();
    numberFragments(function);
    Spread spread(function, devices);
    if (Operation *op = spread.findUnmatched()) {
      op->emitOpError()
          << "stands in a loop or branch that devices do not take "
             "alike, so that some of a group might not call it";
      return signalPassFailure();
    }
    if (Operation *op = spread.findUnlike()) {
      ir::emitUnsupported(op)
          << "devices do not all do this alike, so that none of them stands "
             "for all; plan all of them";
      return signalPassFailure();
    }
    if (failed(spread.run()))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
