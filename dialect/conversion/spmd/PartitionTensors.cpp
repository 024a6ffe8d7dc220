// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/ExchangeCost.h"
#include "dialect/conversion/spmd/DeviceCode.h"
#include "dialect/conversion/spmd/GivenReport.h"
#include "dialect/conversion/spmd/Partition.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_PARTITIONTENSORS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Constants and fills get the layout of each use of their own, so each use
/// gets one.
void separateUses(func::FuncOp function) {
  SmallVector<Operation *> cheap;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumResults() == 1 &&
        isa<RankedTensorType>(op->getResult(0).getType()) &&
        (op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, linalg::FillOp, tensor::SplatOp>(op)))
      cheap.push_back(op);
  });
  for (Operation *op : llvm::reverse(cheap)) { // fills before what they fill
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(op->getUses(), [](OpOperand &use) { return &use; });
    for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1))
      use->set(OpBuilder(op).clone(*op)->getResult(0));
  }
}

struct PartitionTensors : impl::PartitionTensorsBase<PartitionTensors> {
  using PartitionTensorsBase::PartitionTensorsBase;
  PartitionTensors() = default;
  PartitionTensors(const PartitionTensorsOptions &options, ExchangeCost cost)
      : PartitionTensorsBase(options), cost(std::move(cost)) {}

  ExchangeCost cost; ///< not by text

  static bool hasConstraints(func::FuncOp function) {
    return function
        .walk([](spmd::LayoutConstraintOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  LogicalResult partitionOne(func::FuncOp function) {
    FailureOr<SmallVector<int64_t>> mesh = meshOf(function);
    if (failed(mesh))
      return failure();
    FailureOr<DenseSet<Operation *>> code = deviceCodeOf(function);
    if (failed(code))
      return failure();
    separateUses(function);
    Layouts layouts(function, *mesh, std::move(*code));
    return partition(function, layouts, cost);
  }

  void runOnOperation() override {
    bool isChanged = false;
    for (func::FuncOp function : programsOf(getOperation(), entry)) {
      reportGiven(function, cost);
      if (!hasConstraints(function))
        continue;
      isChanged = true;
      if (failed(partitionOne(function)))
        return signalPassFailure();
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

std::unique_ptr<Pass>
createPartitionTensors(const PartitionTensorsOptions &options,
                       ExchangeCost cost) {
  return std::make_unique<PartitionTensors>(options, std::move(cost));
}

} // namespace mgpu::conversion
