// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether one device of a program stands for all.
#include "dialect/conversion/spmd/Spread.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;

/// Whether some group is not the first one, moved by some devices.
static bool areUnlike(const spmd::DeviceGroups &groups) {
  return llvm::any_of(groups, [&](ArrayRef<int64_t> group) {
    return !llvm::equal(group, groups[0], [&](int64_t a, int64_t b) {
      return a - group[0] == b - groups[0][0];
    });
  });
}

static bool isUneven(spmd::LayoutAttr layout, Value full,
                     ArrayRef<int64_t> devices) {
  ArrayRef<int64_t> shape = cast<ShapedType>(full.getType()).getShape();
  return llvm::any_of(devices, [&](int64_t device) {
    return !layout.holds(device) ||
           layout.shardShape(shape, device) != layout.shardShape(shape, 0);
  });
}

/// Whether `op` computes with a number that depends on the device, other than
/// to say where a part of a buffer begins.
static bool usesNumber(Operation *op, const PerDevice &perDevice) {
  if (isa<memref::SubViewOp>(op) ||
      isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
    return false;
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value value) {
                              return !isa<BaseMemRefType>(value.getType()) &&
                                     perDevice.contains(value);
                            })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The devices at the ends of a shift, and a broadcast's root, wait for less
/// than the others.
static bool isUnlike(Operation *op, const PerDevice &perDevice,
                     ArrayRef<int64_t> devices) {
  if (isa<spmd::OnOp, spmd::MoveOp, spmd::BroadcastOp>(op))
    return true;
  if (auto permute = dyn_cast<spmd::PermuteOp>(op))
    return permute.getPairs().size() != devices.size();
  if (auto part = dyn_cast<spmd::DistributeOp>(op))
    return isUneven(part.getLayout(), part.getInput(), devices);
  if (auto part = dyn_cast<spmd::CollectOp>(op))
    return isUneven(part.getLayout(), part.getInit(), devices);
  if (auto groups = op->getAttrOfType<ArrayAttr>("groups"))
    return areUnlike(spmd::groupsOf(groups, devices));
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return !perDevice.takesAlike(op);
  return usesNumber(op, perDevice);
}

Operation *Spread::findUnlike() const {
  if (!isOne)
    return nullptr;
  if (function->hasAttr(spmd::deviceOrderName))
    return function;
  Operation *found = nullptr;
  const_cast<func::FuncOp &>(function).walk<WalkOrder::PreOrder>(
      [&](Operation *op) {
        if (op == function)
          return WalkResult::advance();
        if (isUnlike(op, perDevice, all)) {
          found = op;
          return WalkResult::interrupt();
        }
        return isa<linalg::LinalgOp, scf::ParallelOp>(op)
                   ? WalkResult::skip()
                   : WalkResult::advance();
      });
  return found;
}

} // namespace mgpu::conversion
