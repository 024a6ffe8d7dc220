// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of a subgroup: a vec of the lane's elements (SubgroupMatrix.h).
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/lower/SubgroupMatrix.h"

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
  std::string line;
  for (auto [k, place] : llvm::enumerate(layout.first)) {
    std::string at = from + "[" +
                     std::to_string(place.row * row + place.column * column) +
                     "]";
    std::string mine = name + "[" + std::to_string(k) + "]";
    std::string statement =
        (isStore ? at + " = " + mine : mine + " = " + at) + ";";
    if (!line.empty() && line.size() + statement.size() > 90) {
      out.line(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + statement;
  }
  out.line(line);
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

LogicalResult FunctionEmitter::emitProduct(gpu::SubgroupMmaComputeOp op) {
  auto a = cast<gpu::MMAMatrixType>(op.getOpA().getType()),
       c = cast<gpu::MMAMatrixType>(op.getOpC().getType());
  Type factor = a.getElementType(), sum = c.getElementType();
  std::string left = use(op.getOpA()), right = use(op.getOpB());
  MatrixLayout layout = *layoutOf(c);
  if (layout.isTurned) // the transpose of C is that of B times that of A
    std::swap(left, right);
  if (!kernel.hasProduct) {
    kernel.hasProduct = true;
    out.line("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800");
    out.line("#error \"gpu.subgroup_mma_compute needs the tensor cores of "
             "sm_80 or later\"");
    out.line("#endif");
  }
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

FailureOr<bool> FunctionEmitter::matrixOp(Operation *op) {
  auto done = [](LogicalResult result) -> FailureOr<bool> {
    if (failed(result))
      return failure();
    return true;
  };
  if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(op)) {
    declare(load.getRes());
    return done(moveMatrix(load.getSrcMemref(), load.getIndices(),
                           load.getLeadDimension().getSExtValue(),
                           bool(load.getTranspose()),
                           cast<gpu::MMAMatrixType>(load.getType()),
                           scalars[load.getRes()], /*isStore=*/false));
  }
  if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(op))
    return done(moveMatrix(store.getDstMemref(), store.getIndices(),
                           store.getLeadDimension().getSExtValue(),
                           bool(store.getTranspose()),
                           cast<gpu::MMAMatrixType>(store.getSrc().getType()),
                           use(store.getSrc()), /*isStore=*/true));
  if (auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op))
    return done(emitProduct(product));
  auto forAll = [&](Value result, const std::string &expression) {
    int64_t count =
        layoutOf(cast<gpu::MMAMatrixType>(result.getType()))->numElements();
    declare(result);
    out.line("for (int lane = 0; lane < " + std::to_string(count) +
             "; ++lane)");
    ++out.depth;
    out.line(scalars[result] + "[lane] = " + expression + ";");
    --out.depth;
  };
  if (auto fill = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(op)) {
    forAll(op->getResult(0), use(fill.getValue()));
    return true;
  }
  if (auto each = dyn_cast<gpu::SubgroupMmaElementwiseOp>(op)) {
    ValueRange args = each.getArgs();
    Type from = storedElement(cast<gpu::MMAMatrixType>(args[0].getType()));
    forAll(op->getResult(0),
           matrixElement(each.getOpType(), storedElement(each.getType()), from,
                         use(args[0]) + "[lane]",
                         args.size() > 1 ? use(args[1]) + "[lane]" : ""));
    return true;
  }
  if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(op)) {
    bind(op->getResult(0),
         use(extract.getMatrix()) + "[" + use(extract.getIndices()[0]) + "]");
    return true;
  }
  if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(op)) {
    declare(op->getResult(0));
    std::string name = scalars[op->getResult(0)];
    out.line(name + " = " + use(insert.getMatrix()) + ";");
    out.line(name + "[" + use(insert.getIndices()[0]) +
             "] = " + use(insert.getValue()) + ";");
    return true;
  }
  return false;
}

} // namespace mgpu::kernels::cuda
