// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/BulkOps.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

class BulkExpander {
public:
  LogicalResult run(ir::LaunchOp launch);

private:
  LogicalResult expand(Operation *op);
  LogicalResult wait(Operation *op);
  LogicalResult copy(Operation *op, Value descriptor, ValueRange coordinates,
                     Value memory, Value predicate, bool isStore);
  void nameMap(Operation *op, Value descriptor, const TensorBox &box);
  LogicalResult multiply(nvgpu::WarpgroupMmaOp op);
  void keep(Operation *op) { ir::setMark(op, ir::Mark::Instruction); }
  LogicalResult refuse(Operation *op, const Twine &why) {
    return ir::emitUnsupported(op) << why.str();
  }

  llvm::DenseMap<Value, WarpgroupMatrix> matrices; ///< by descriptor
  SmallVector<Operation *> done;
};

/// A wait for copies waits behind it for all threads of the block, which have
/// made theirs before they come here.
LogicalResult BulkExpander::wait(Operation *op) {
  for (Operation *around = op->getParentOp(); !isa<ir::LaunchOp>(around);
       around = around->getParentOp())
    if (!isa<scf::ForOp>(around))
      return refuse(op, "waits where not all threads of the block may come, "
                        "which has no form here: put it behind the branch");
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  gpu::BarrierOp::create(b, op->getLoc());
  if (isa<nvgpu::NVGPUDialect>(op->getDialect()))
    keep(op);
  else
    done.push_back(op);
  return success();
}

/// A tensor map has its name in the kernel: that of the tensor.
void BulkExpander::nameMap(Operation *op, Value descriptor,
                           const TensorBox &box) {
  OpBuilder b(op);
  auto name = UnrealizedConversionCastOp::create(
      b, op->getLoc(), descriptor.getType(), box.tensor);
  keep(name);
  keep(op);
  op->replaceUsesOfWith(descriptor, name.getResult(0));
}

LogicalResult BulkExpander::copy(Operation *op, Value descriptor,
                                 ValueRange coordinates, Value memory,
                                 Value predicate, bool isStore) {
  FailureOr<TensorBox> box = tensorBoxOf(op, descriptor);
  if (failed(box) ||
      failed(copyBox(op, *box, coordinates, memory, predicate, isStore)))
    return failure();
  nameMap(op, descriptor, *box);
  return success();
}

LogicalResult BulkExpander::multiply(nvgpu::WarpgroupMmaOp op) {
  const WarpgroupMatrix a = matrices.lookup(op.getDescriptorA()),
                        b = matrices.lookup(op.getDescriptorB());
  if (!a.memory || !b.memory || !hasForm(op, a, b))
    return refuse(op, "is a product that has no form here: those of f16 and "
                      "bf16 in f32 have one, with A by rows and B transposed, "
                      "in rows of 128 bytes that are swizzled");
  OpBuilder builder(op);
  op->getResult(0).replaceAllUsesWith(
      warpgroupProduct(builder, op, a, b, op->getOperand(2)));
  done.push_back(op);
  return success();
}

LogicalResult BulkExpander::expand(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<nvgpu::MBarrierCreateOp, nvgpu::MBarrierInitOp,
            nvgpu::MBarrierArriveOp, nvgpu::MBarrierArriveNoCompleteOp,
            nvgpu::MBarrierArriveExpectTxOp>([&](Operation *) {
        keep(op);
        return success();
      }) // where copies are done at once
      .Case<nvgpu::MBarrierGetOp, nvgpu::TmaFenceOp, NVVM::WgmmaFenceAlignedOp,
            NVVM::WgmmaGroupSyncAlignedOp, NVVM::FenceMbarrierInitOp,
            NVVM::FenceProxyOp, NVVM::CpAsyncBulkCommitGroupOp,
            NVVM::CpAsyncBulkWaitGroupOp>([&](Operation *) {
        done.push_back(op); // as products and stores are; maps do not change
        return success();
      })
      .Case([&](nvgpu::TmaPrefetchOp prefetch) {
        Value descriptor = prefetch.getTensorMapDescriptor();
        FailureOr<TensorBox> box = tensorBoxOf(op, descriptor);
        if (succeeded(box))
          nameMap(op, descriptor, *box);
        return LogicalResult(box);
      })
      .Case<nvgpu::MBarrierTryWaitParityOp, NVVM::WgmmaWaitGroupSyncOp>(
          [&](Operation *) { return wait(op); })
      .Case([&](nvgpu::MBarrierTestWaitOp test) {
        Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
        test.getWaitComplete().replaceAllUsesWith(yes);
        return wait(op);
      })
      .Case([&](nvgpu::TmaAsyncLoadOp load) {
        if (load.getMulticastMask())
          return refuse(op, "copies to several blocks of a cluster");
        return copy(op, load.getTensorMapDescriptor(), load.getCoordinates(),
                    load.getDst(), load.getPredicate(), /*isStore=*/false);
      })
      .Case([&](nvgpu::TmaAsyncStoreOp store) {
        return copy(op, store.getTensorMapDescriptor(), store.getCoordinates(),
                    store.getSrc(), store.getPredicate(), /*isStore=*/true);
      })
      .Case([&](nvgpu::WarpgroupGenerateDescriptorOp matrix) {
        matrices[matrix.getDescriptor()] = {matrix.getTensor(),
                                            matrix.getTensorMap().getType()};
        done.push_back(op);
        return success();
      })
      .Case([&](nvgpu::WarpgroupMmaInitAccumulatorOp init) {
        Value sums = init->getResult(0);
        sums.replaceAllUsesWith(
            arith::ConstantOp::create(b, loc, b.getZeroAttr(sums.getType())));
        done.push_back(op);
        return success();
      })
      .Case([&](nvgpu::WarpgroupMmaOp product) { return multiply(product); })
      .Case([&](nvgpu::WarpgroupMmaStoreOp store) {
        warpgroupStore(b, store);
        done.push_back(op);
        return success();
      })
      .Default(success()); // kernels/lower knows others, or refuses them
}

LogicalResult BulkExpander::run(ir::LaunchOp launch) {
  SmallVector<Operation *> found;
  auto retype = [](Value value) {
    if (auto type = dyn_cast<nvgpu::WarpgroupAccumulatorType>(value.getType()))
      value.setType(accumulatorType(type));
  };
  launch.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<nvgpu::NVGPUDialect, NVVM::NVVMDialect>(op->getDialect()))
      found.push_back(op);
  });
  launch.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), retype);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), retype);
  });
  for (Operation *op : found)
    if (failed(expand(op)))
      return failure();
  for (Operation *op : llvm::reverse(done)) {
    if (!op->use_empty())
      return refuse(op, "gives a value that has no form here");
    op->erase();
  }
  return success();
}

} // namespace

LogicalResult expandBulkOps(ir::LaunchOp launch) {
  return BulkExpander().run(launch);
}

} // namespace mgpu::conversion
