// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One-shot bufferization of the destination-style operations: the same
// operation on memrefs, which writes to the buffer of `outs`.
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mgpu::spmd;

namespace {

template <typename OpTy>
struct DestinationModel
    : bufferization::DstBufferizableOpInterfaceExternalModel<
          DestinationModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const bufferization::AnalysisState &) const {
    return cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  // Each element of the sum depends on that element of the input alone, so both
  // may be one buffer.
  bool bufferizesToElementwiseAccess(Operation *op,
                                     const bufferization::AnalysisState &,
                                     ArrayRef<OpOperand *>) const {
    return isa<AllReduceOp>(op);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto destination = cast<DestinationStyleOpInterface>(op);
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      FailureOr<Value> buffer =
          bufferization::getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    Value init = operands[destination.getDpsInitOperand(0)->getOperandNumber()];
    OperationState onMemrefs(op->getLoc(), op->getName());
    onMemrefs.addOperands(operands);
    onMemrefs.addAttributes(op->getAttrs());
    onMemrefs.propertiesAttr = op->getPropertiesAsAttribute();
    rewriter.create(onMemrefs);
    bufferization::replaceOpWithBufferizedValues(rewriter, op, init);
    return success();
  }
};

template <typename... OpTys>
void attachModels(MLIRContext *context) {
  (OpTys::template attachInterface<DestinationModel<OpTys>>(*context), ...);
}

} // namespace

void mgpu::spmd::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, SpmdDialect *) {
    attachModels<DistributeOp, CollectOp, AllReduceOp, AllGatherOp,
                 ReduceScatterOp, AllToAllOp, BroadcastOp, PermuteOp, MoveOp>(
        context);
  });
}
