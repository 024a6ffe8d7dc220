// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One-shot bufferization of the destination-style operations: the same
// operation on memrefs, which writes to the buffer of `outs`. Bodies of spmd.on
// yield buffers.
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mgpu::spmd;

namespace {

/// The pointers of a custom call's kernel lead to elements without gaps: a view
/// with gaps is copied before it, and back if it is written.
template <typename OpTy>
struct DestinationModel
    : bufferization::DstBufferizableOpInterfaceExternalModel<
          DestinationModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand) ||
           keepsInit(op, operand);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const bufferization::AnalysisState &) const {
    return cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }

  /// Not the part of an argument that stays on the devices and that no result
  /// follows: the next replay finds there what this one leaves.
  bool isWritable(Operation *op, Value,
                  const bufferization::AnalysisState &) const {
    auto distribute = dyn_cast<DistributeOp>(op);
    auto argument = distribute ? dyn_cast<BlockArgument>(distribute.getInput())
                               : BlockArgument();
    auto function =
        argument
            ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
            : FunctionOpInterface();
    auto role = function ? function.getArgAttrOfType<StringAttr>(
                               argument.getArgNumber(), "mgpu.role")
                         : StringAttr();
    return !role || role != "resident" ||
           llvm::any_of(argument.getUsers(), llvm::IsaPred<CollectOp>);
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
    SmallVector<Value> operands, results;
    SmallVector<std::pair<Value, Value>> back;
    for (OpOperand &operand : op->getOpOperands()) {
      FailureOr<Value> buffer =
          bufferization::getBuffer(rewriter, operand.get(), options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
      if (destination.isDpsInit(&operand))
        results.push_back(*buffer);
      auto type = cast<MemRefType>(buffer->getType());
      if (!isa<CustomCallOp>(op) ||
          type.areTrailingDimsContiguous(type.getRank()))
        continue;
      auto plain = MemRefType::get(type.getShape(), type.getElementType());
      operands.back() =
          memref::AllocOp::create(rewriter, op->getLoc(), plain).getResult();
      if (bufferizesToMemoryRead(op, operand, {options}))
        memref::CopyOp::create(rewriter, op->getLoc(), *buffer,
                               operands.back());
      if (destination.isDpsInit(&operand))
        back.push_back({operands.back(), *buffer});
    }
    OperationState onMemrefs(op->getLoc(), op->getName());
    onMemrefs.addOperands(operands);
    onMemrefs.addAttributes(op->getAttrs());
    onMemrefs.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      onMemrefs.addRegion()->takeBody(region);
    rewriter.create(onMemrefs);
    for (auto [from, to] : back)
      memref::CopyOp::create(rewriter, op->getLoc(), from, to);
    bufferization::replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

/// A result is the buffer that the body yields for it.
struct OnModel
    : bufferization::BufferizableOpInterface::ExternalModel<OnModel, OnOp> {
  bufferization::AliasingOpOperandList
  getAliasingOpOperands(Operation *op, Value value,
                        const bufferization::AnalysisState &) const {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return {{&cast<OnOp>(op).getYield()->getOpOperand(number),
             bufferization::BufferRelation::Equivalent}};
  }

  FailureOr<bufferization::BufferLikeType>
  getBufferType(Operation *op, Value value,
                const bufferization::BufferizationOptions &options,
                const bufferization::BufferizationState &state,
                SmallVector<Value> &stack) const {
    unsigned number = cast<OpResult>(value).getResultNumber();
    Value yielded = cast<OnOp>(op).getYield().getValues()[number];
    if (auto type = dyn_cast<bufferization::BufferLikeType>(yielded.getType()))
      return type;
    return bufferization::getBufferType(yielded, options, state, stack);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto on = cast<OnOp>(op);
    SmallVector<Type> types;
    for (Value result : on.getOutputs()) {
      FailureOr<bufferization::BufferLikeType> type =
          bufferization::getBufferType(result, options, state);
      if (failed(type))
        return failure();
      types.push_back(cast<Type>(*type));
    }
    auto made =
        OnOp::create(rewriter, on.getLoc(), types, on.getFirst(), on.getEnd());
    made.getBody().takeBody(on.getBody());
    bufferization::replaceOpWithBufferizedValues(rewriter, op,
                                                 made.getOutputs());
    return success();
  }
};

struct YieldModel
    : bufferization::BufferizableOpInterface::ExternalModel<YieldModel,
                                                            YieldOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const bufferization::AnalysisState &) const {
    return true;
  }

  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const bufferization::AnalysisState &) const {
    return false;
  }

  bufferization::AliasingValueList
  getAliasingValues(Operation *op, OpOperand &operand,
                    const bufferization::AnalysisState &) const {
    return {{op->getParentOp()->getResult(operand.getOperandNumber()),
             bufferization::BufferRelation::Equivalent}};
  }

  // Else the body would yield a copy.
  bool mustBufferizeInPlace(Operation *, OpOperand &,
                            const bufferization::AnalysisState &) const {
    return true;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    SmallVector<Value> buffers;
    for (Value value : op->getOperands()) {
      FailureOr<Value> buffer =
          bufferization::getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(buffers); });
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
                 ReduceScatterOp, AllToAllOp, BroadcastOp, PermuteOp, MoveOp,
                 CustomCallOp, AttentionOp>(context);
    OnOp::attachInterface<OnModel>(*context);
    YieldOp::attachInterface<YieldModel>(*context);
  });
}
