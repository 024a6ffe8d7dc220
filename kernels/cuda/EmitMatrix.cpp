// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of a subgroup: a vec of the lane's elements (SubgroupMatrix.h).
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/lower/SubgroupMatrix.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// "lane / 4 * 16 + lane % 4 * 2": where the lane's elements begin.
static std::string beginOfLane(const MatrixLayout &layout,
                               const std::string &lane, int64_t row,
                               int64_t column) {
  auto times = [](const std::string &what, int64_t factor) {
    return factor == 1 ? what : what + " * " + std::to_string(factor);
  };
  auto step = [&](MatrixPlace place) {
    return place.row * row + place.column * column;
  };
  return times(lane + " / 4", step(layout.group)) + " + " +
         times(lane + " % 4", step(layout.quad));
}

LogicalResult FunctionEmitter::moveMatrix(Value memory, ValueRange indices,
                                          int64_t leading, bool isTransposed,
                                          gpu::MMAMatrixType type,
                                          const std::string &name,
                                          bool isStore) {
  MatrixLayout layout = *layoutOf(type);
  int64_t row = isTransposed ? 1 : leading, column = isTransposed ? leading : 1;
  std::string pointer = pointerType(memory);
  std::string from = names.fresh(isStore ? "to" : "from"),
              lane = names.fresh("lane");
  // In a block of their own: a jump may not pass them.
  out.line("{");
  ++out.depth;
  out.line("const int " + lane + " = " + linearThread() + " % 32;");
  out.line(pointer + from + " = &" + element(memory, indices) + " + " +
           beginOfLane(layout, lane, row, column) + ";");
  SmallVector<std::string> statements;
  for (auto [k, place] : llvm::enumerate(layout.first)) {
    std::string at = from + "[" +
                     std::to_string(place.row * row + place.column * column) +
                     "]";
    std::string mine = name + "[" + std::to_string(k) + "]";
    statements.push_back((isStore ? at + " = " + mine : mine + " = " + at) +
                         ";");
  }
  packed(statements);
  out.close();
  return success();
}

/// The element of a result, from those of the operands.
std::string FunctionEmitter::matrixElement(gpu::MMAElementwiseOp kind,
                                           Type type, Type from,
                                           const std::string &a,
                                           const std::string &b) {
  using Kind = gpu::MMAElementwiseOp;
  using Reduce = gpu::AllReduceOperation;
  switch (kind) {
  case Kind::ADDF:
  case Kind::ADDI:
    return combine(Reduce::ADD, type, a, b);
  case Kind::MULF:
  case Kind::MULI:
    return combine(Reduce::MUL, type, a, b);
  case Kind::MAXF:
    return combine(Reduce::MAXIMUMF, type, a, b);
  case Kind::MINF:
    return combine(Reduce::MINIMUMF, type, a, b);
  case Kind::SUBF:
    return narrow(type, a + " - " + b);
  case Kind::SUBI:
    return widthOf(type) < 32 ? narrow(type, a + " - " + b)
                              : helper("wrap") + "Sub(" + a + ", " + b + ")";
  case Kind::DIVF:
    return type.isF64()
               ? a + " / " + b
               : narrow(type, helper("mathDivide") + "(" + a + ", " + b + ")");
  case Kind::DIVS:
    return narrow(type, a + " / " + b);
  case Kind::DIVU:
    return "(" + cType(type) + ")((" + unsignedType(type) + ")" + a + " / (" +
           unsignedType(type) + ")" + b + ")";
  case Kind::NEGATEF:
    return narrow(type, "-" + a);
  case Kind::NEGATES:
    return widthOf(type) < 32 ? narrow(type, "-" + a)
                              : helper("wrap") + "Sub(0, " + a + ")";
  case Kind::EXTF:
    return type == from ? a : "(" + cType(type) + ")(float)" + a;
  }
  llvm_unreachable("all kinds are covered");
}

void FunctionEmitter::requireSm80(const std::string &what) {
  if (std::exchange(kernel.needsSm80, true))
    return;
  out.line("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800");
  out.line("#error \"" + what + " of sm_80 or later\"");
  out.line("#endif");
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaComputeOp op) {
  auto a = cast<gpu::MMAMatrixType>(op.getOpA().getType()),
       c = cast<gpu::MMAMatrixType>(op.getOpC().getType());
  Type factor = a.getElementType(), sum = c.getElementType();
  std::string left = use(op.getOpA()), right = use(op.getOpB());
  MatrixLayout layout = *layoutOf(c);
  if (layout.isTurned) // the transpose of C is that of B times that of A
    std::swap(left, right);
  requireSm80("gpu.subgroup_mma_compute needs the tensor cores");
  std::string tile = factor.isF16() ? (sum.isF16() ? "TileF16Half" : "TileF16")
                     : factor.isF32()             ? "TileTf32"
                     : factor.isF64()             ? "TileF64"
                     : factor.isUnsignedInteger() ? "TileU8"
                                                  : "TileS8";
  helper(tile);
  helper("matrixProduct");
  declare(op.getResult());
  std::string name = scalars[op.getResult()];
  out.line(name + " = " + use(op.getOpC()) + ";");
  std::string tiles =
      std::to_string((layout.isTurned ? c.getShape()[0] : c.getShape()[1]) / 8);
  out.line("matrixProduct<" + tiles + ", " + tile + ">(" + name + ", " + left +
           ", " + right + ");");
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaLoadMatrixOp op) {
  declare(op.getRes());
  return moveMatrix(
      op.getSrcMemref(), op.getIndices(), op.getLeadDimension().getSExtValue(),
      bool(op.getTranspose()), cast<gpu::MMAMatrixType>(op.getType()),
      scalars[op.getRes()], /*isStore=*/false);
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaStoreMatrixOp op) {
  return moveMatrix(
      op.getDstMemref(), op.getIndices(), op.getLeadDimension().getSExtValue(),
      bool(op.getTranspose()), cast<gpu::MMAMatrixType>(op.getSrc().getType()),
      use(op.getSrc()), /*isStore=*/true);
}

/// Each element that this lane has of a matrix, by the same expression.
void FunctionEmitter::fillMatrix(Value result, const std::string &expression) {
  declare(result);
  forElements(
      layoutOf(cast<gpu::MMAMatrixType>(result.getType()))->numElements(),
      scalars[result] + "[lane] = " + expression);
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaConstantMatrixOp op) {
  fillMatrix(op, use(op.getValue()));
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaElementwiseOp op) {
  ValueRange args = op.getArgs();
  Type from = storedElement(cast<gpu::MMAMatrixType>(args[0].getType()));
  fillMatrix(op, matrixElement(op.getOpType(), storedElement(op.getType()),
                               from, use(args[0]) + "[lane]",
                               args.size() > 1 ? use(args[1]) + "[lane]" : ""));
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaExtractThreadLocalOp op) {
  bind(op, use(op.getMatrix()) + "[" + use(op.getIndices()[0]) + "]");
  return success();
}

LogicalResult FunctionEmitter::emit(gpu::SubgroupMmaInsertThreadLocalOp op) {
  declare(op);
  std::string name = scalars[op];
  out.line(name + " = " + use(op.getMatrix()) + ";");
  out.line(name + "[" + use(op.getIndices()[0]) + "] = " + use(op.getValue()) +
           ";");
  return success();
}

LogicalResult FunctionEmitter::matrixOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp,
            gpu::SubgroupMmaComputeOp, gpu::SubgroupMmaConstantMatrixOp,
            gpu::SubgroupMmaElementwiseOp, gpu::SubgroupMmaExtractThreadLocalOp,
            gpu::SubgroupMmaInsertThreadLocalOp>(
          [&](auto each) { return emit(each); })
      .Default([&](Operation *) { return refuse(op); });
}

// Operations of the nvgpu dialect that are instructions of NVIDIA's GPUs: those
// that ExpandNvidia.h leaves.

LogicalResult FunctionEmitter::emit(nvgpu::DeviceAsyncCopyOp op) {
  requireSm80("nvgpu.device_async_copy needs the copies");
  const unsigned each =
      widthOf(cast<MemRefType>(op.getDst().getType()).getElementType()) / 8;
  const std::string bytes =
      std::to_string(op.getDstElements().getZExtValue() * each);
  const std::string sides = "(&" + element(op.getDst(), op.getDstIndices()) +
                            ", &" + element(op.getSrc(), op.getSrcIndices());
  // Past the source's elements there are zeros.
  std::string count = bytes;
  if (Value elements = op.getSrcElements())
    count = "(int)" + use(elements) + " * " + std::to_string(each);
  const bool isCached = !op.getBypassL1() || bytes != "16";
  out.line((isCached ? helper("copyAsyncPart") + "<" + bytes + ">"
                     : helper("copyAsync")) +
           sides + ", " + count + ");");
  return success();
}

LogicalResult FunctionEmitter::emit(nvgpu::LdMatrixOp op) {
  if (failed(checkTypes(op)))
    return failure();
  const std::string row = "&" + element(op.getSrcMemref(), op.getIndices());
  const std::string count = std::to_string(op.getNumTiles());
  declare(op.getRes());
  const std::string name = names.fresh("tiles");
  std::string load = helper("loadTiles");
  if (op.getNumTiles() < 4)
    load = helper("loadFewTiles") + "<" + count + ", " +
           (op.getTranspose() ? "true" : "false") + ">";
  else if (op.getTranspose())
    load += "Turned";
  out.line("unsigned " + name + "[" + count + "];");
  out.line(load + "(" + name + ", " + row + ");");
  out.line("memcpy(&" + scalars[op.getRes()] + ", " + name + ", sizeof " +
           name + ");");
  return success();
}

LogicalResult FunctionEmitter::nvidiaOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<nvgpu::DeviceAsyncCopyOp, nvgpu::LdMatrixOp>(
          [&](auto each) { return emit(each); })
      .Case([&](nvgpu::DeviceAsyncCreateGroupOp) {
        helper("copyAsync");
        out.line("closeCopies();");
        return success();
      })
      .Case([&](nvgpu::DeviceAsyncWaitOp wait) {
        helper("copyAsync");
        out.line("awaitCopies<" +
                 std::to_string(wait.getNumGroups().value_or(0)) + ">();");
        return success();
      })
      .Default([&](Operation *) { return refuse(op); });
}

} // namespace mgpu::kernels::cuda
