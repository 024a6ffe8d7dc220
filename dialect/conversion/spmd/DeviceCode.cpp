// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/DeviceCode.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/spmd/SpmdDialect.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

class Finder {
public:
  FailureOr<DenseSet<Operation *>> run(func::FuncOp function);

private:
  void visit(Operation *op);
  bool usesDifferent(Operation *op) const;
  bool givesSame(Operation *op, bool inputsDiffer) const;

  DenseSet<Operation *> code;
  DenseSet<Value> different; ///< between devices
};

bool isCode(Operation *op) {
  return isa_and_nonnull<spmd::SpmdDialect>(op->getDialect()) &&
         !isa<spmd::LayoutConstraintOp, spmd::SameLayoutOp, spmd::CustomCallOp>(
             op);
}

/// Whether `op` or what is in it uses a value that differs between devices.
bool Finder::usesDifferent(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(
                   inner->getOperands(),
                   [&](Value value) { return different.contains(value); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether all devices get the same of a collective. Where its inputs differ
/// all devices must be in one group.
bool Finder::givesSame(Operation *op, bool inputsDiffer) const {
  if (!isa<spmd::AllReduceOp, spmd::AllGatherOp, spmd::BroadcastOp>(op))
    return false;
  auto groups = op->getAttrOfType<ArrayAttr>("groups");
  if (!groups)
    return true;
  auto configs = op->getParentOfType<ModuleOp>().getOps<ir::DeviceConfigOp>();
  int64_t devices =
      configs.empty() ? 0 : (*configs.begin()).getConfig().getNumDevices();
  int64_t listed = 0;
  for (Attribute group : groups)
    listed += cast<DenseI64ArrayAttr>(group).size();
  return listed == devices && (!inputsDiffer || groups.size() == 1);
}

void Finder::visit(Operation *op) {
  bool hasCode = op->walk([](Operation *inner) {
                     return isCode(inner) ? WalkResult::interrupt()
                                          : WalkResult::advance();
                   }).wasInterrupted();
  bool differs = usesDifferent(op);
  if (!hasCode && !differs)
    return;
  code.insert(op);
  if (!givesSame(op, differs))
    different.insert_range(op->getResults());
}

FailureOr<DenseSet<Operation *>> Finder::run(func::FuncOp function) {
  for (Operation &op : function.front().without_terminator())
    visit(&op);
  auto refused = function.walk([&](Operation *op) {
    if (isa<spmd::FullToShardOp, spmd::ShardToFullOp, spmd::MoveOp,
            spmd::CallOp>(op)) {
      ir::emitUnsupported(op)
          << "works on one device's part, and spmd.layout_constraint on whole "
             "tensors; a function has one or the other";
      return WalkResult::interrupt();
    }
    if (isa<spmd::LayoutConstraintOp, spmd::SameLayoutOp>(op) &&
        different.contains(op->getOperand(0))) {
      ir::emitUnsupported(op) << "asks for the layout of a tensor that differs "
                                 "between devices; gather or reduce it over "
                                 "all of them first";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (refused.wasInterrupted())
    return failure();
  return std::move(code);
}

} // namespace

FailureOr<DenseSet<Operation *>> deviceCodeOf(func::FuncOp function) {
  return Finder().run(function);
}

} // namespace mgpu::conversion
