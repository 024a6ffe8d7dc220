// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/conversion/gpu/SparseHandles.h"
#include "dialect/conversion/gpu/SparseProducts.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTGPUSPARSETOLAUNCHES
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// The size of the buffer that a library would ask for. Launches need no memory
/// of their own, and nobody can allocate none.
Value anyBufferSize(OpBuilder &b, Location loc) {
  return arith::ConstantIndexOp::create(b, loc, 1);
}

/// MLIR's runtime opens and closes libraries by these.
bool isLibraryCall(Operation *op) {
  auto call = dyn_cast<LLVM::CallOp>(op);
  return call && call.getCallee() && call->getNumResults() == 0 &&
         llvm::is_contained({"mgpuCreateSparseEnv", "mgpuDestroySparseEnv",
                             "mgpuCreateSparseLtEnv", "mgpuDestroySparseLtEnv"},
                            *call.getCallee());
}

class SparseConverter {
public:
  LogicalResult run(func::FuncOp function);

private:
  LogicalResult convert(Operation *op);
  LogicalResult giveSizes(gpu::SpMatGetSizeOp op);

  SparseHandles handles;
};

/// How many entries a product has is known when it has been computed.
LogicalResult SparseConverter::giveSizes(gpu::SpMatGetSizeOp op) {
  const SparseMatrix *matrix = handles.matrix(op, op.getSpmat());
  if (!matrix)
    return failure();
  SparseLaunches launches(op);
  op.getRows().replaceAllUsesWith(matrix->rows);
  op.getCols().replaceAllUsesWith(matrix->columns);
  op.getNnz().replaceAllUsesWith(handles.isProduct(op.getSpmat())
                                     ? launches.countOf(*matrix)
                                     : matrix->entries);
  launches.finish();
  return success();
}

LogicalResult SparseConverter::convert(Operation *op) {
  auto sized = [&](auto buffer) {
    OpBuilder b(op);
    for (Value result : op->getResults())
      if (result.getType().isIndex())
        result.replaceAllUsesWith(anyBufferSize(b, op->getLoc()));
    SparseLaunches(buffer).finish();
    return success();
  };
  auto made = [&](auto handle) {
    SparseLaunches launches(handle);
    LogicalResult result = handles.make(handle, launches);
    launches.finish();
    return result;
  };
  auto done = [&](auto other) {
    SparseLaunches(other).finish();
    return success();
  };
  auto computed = [&](auto product) {
    SparseLaunches launches(product);
    LogicalResult result = compute(product, handles, launches);
    launches.finish();
    return result;
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<gpu::CreateDnTensorOp, gpu::CreateCooOp, gpu::CreateCooAoSOp,
            gpu::CreateCsrOp, gpu::CreateCscOp, gpu::CreateBsrOp,
            gpu::Create2To4SpMatOp, gpu::SetCsrPointersOp>(made)
      .Case<gpu::SpMVBufferSizeOp, gpu::SpMMBufferSizeOp,
            gpu::SDDMMBufferSizeOp>(sized)
      .Case<gpu::SpMVOp, gpu::SpMMOp, gpu::SDDMMOp, gpu::SpGEMMCopyOp>(computed)
      .Case([&](gpu::SpGEMMWorkEstimationOrComputeOp product) {
        OpBuilder b(op);
        product.getBufferSzNew().replaceAllUsesWith(
            anyBufferSize(b, op->getLoc()));
        return computed(product);
      })
      .Case([&](gpu::SpMatGetSizeOp sizes) { return giveSizes(sizes); })
      .Case<gpu::SpGEMMCreateDescrOp, gpu::SpGEMMDestroyDescrOp,
            gpu::DestroySpMatOp, gpu::DestroyDnTensorOp>(done)
      .Default(success());
}

LogicalResult SparseConverter::run(func::FuncOp function) {
  SmallVector<Operation *> found;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isSparse(op) || isLibraryCall(op))
      found.push_back(op);
    return isa<gpu::LaunchOp>(op) ? WalkResult::skip() : WalkResult::advance();
  });
  for (Operation *op : found)
    if (failed(convert(op)))
      return failure();
  for (Operation *op : llvm::reverse(found)) {
    if (!op->use_empty())
      return ir::emitUnsupported(op)
             << "gives a handle that loops, branches or calls hand on; make it "
                "where it is used";
    op->erase();
  }
  return success();
}

struct ConvertGpuSparseToLaunches
    : impl::ConvertGpuSparseToLaunchesBase<ConvertGpuSparseToLaunches> {
  using ConvertGpuSparseToLaunchesBase::ConvertGpuSparseToLaunchesBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return markAllAnalysesPreserved();
    if (failed(SparseConverter().run(function)))
      signalPassFailure();
  }
};

} // namespace

bool isSparse(Operation *op) {
  auto isHandle =
      llvm::IsaPred<gpu::SparseDnTensorHandleType, gpu::SparseSpMatHandleType,
                    gpu::SparseSpGEMMOpHandleType>;
  return isa<gpu::GPUDialect>(op->getDialect()) &&
         (llvm::any_of(op->getOperandTypes(), isHandle) ||
          llvm::any_of(op->getResultTypes(), isHandle));
}

} // namespace mgpu::conversion
