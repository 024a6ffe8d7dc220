// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/SubgroupMatrix.h"

#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Steps of k in one `mma.sync` with elements of `type`; 0 for other types.
int64_t depthOf(Type type) {
  if (type.isF64())
    return 4;
  if (type.isF32())
    return 8;
  return type.isF16() || type.isInteger(8) ? 16 : 0;
}

/// The layout of one tile: m16n8k16 and m16n8k8, or m8n8k4 for f64.
MatrixLayout tileOf(StringRef operand, Type element) {
  MatrixLayout tile;
  bool isDouble = element.isF64();
  int64_t depth = depthOf(element);
  // Elements of a lane that are neighbours along k, in A and B.
  int64_t side = element.isInteger(8) ? 4 : element.isF16() ? 2 : 1;
  auto add = [&](int64_t row, int64_t column) {
    tile.first.push_back({row, column});
  };
  if (operand == "AOp") {
    tile.tileRows = isDouble ? 8 : 16;
    tile.tileColumns = depth;
    tile.group = {1, 0};
    tile.quad = {0, side};
    for (int64_t k = 0; k < depth; k += 4 * side)
      for (int64_t row = 0; row < tile.tileRows; row += 8)
        for (int64_t at = 0; at < side; ++at)
          add(row, k + at);
  } else if (operand == "BOp") {
    tile.tileRows = depth;
    tile.tileColumns = 8;
    tile.group = {0, 1};
    tile.quad = {side, 0};
    for (int64_t k = 0; k < depth; k += 4 * side)
      for (int64_t at = 0; at < side; ++at)
        add(k + at, 0);
  } else {
    tile.tileRows = isDouble ? 8 : 16;
    tile.tileColumns = 8;
    tile.group = {1, 0};
    tile.quad = {0, 2};
    for (int64_t row = 0; row < tile.tileRows; row += 8)
      for (int64_t at = 0; at < 2; ++at)
        add(row, at);
  }
  tile.perTile = tile.numElements();
  return tile;
}

std::string shapeText(gpu::MMAMatrixType type) {
  return std::to_string(type.getShape()[0]) + "x" +
         std::to_string(type.getShape()[1]);
}

} // namespace

Type storedElement(gpu::MMAMatrixType type) {
  Type element = type.getElementType();
  if (element.isInteger(8))
    return IntegerType::get(type.getContext(), 8);
  return element;
}

std::optional<MatrixLayout> layoutOf(gpu::MMAMatrixType type,
                                     std::string *reason) {
  Type element = type.getElementType();
  StringRef operand = type.getOperand();
  int64_t rows = type.getShape()[0], columns = type.getShape()[1];
  auto none = [&](const Twine &why) -> std::optional<MatrixLayout> {
    if (reason)
      *reason = why.str();
    return std::nullopt;
  };
  bool isSum = operand == "COp";
  if (isSum ? !(element.isF16() || element.isF32() || element.isF64() ||
                element.isSignlessInteger(32))
            : !depthOf(element))
    return none(isSum ? "sums are of f16, f32, f64 or i32"
                      : "factors are of f16, f32, f64, si8 or ui8");
  MatrixLayout tile = tileOf(operand, element);
  // m8n32: 8 rows of A and C, 32 columns of B and C.
  bool isTurned = !element.isF64() && ((operand != "BOp" && rows == 8) ||
                                       (operand != "AOp" && columns == 32));
  bool fits;
  if (element.isF64()) {
    fits = rows == tile.tileRows && columns == tile.tileColumns;
  } else if (isTurned) {
    int64_t depth = depthOf(element);
    fits = operand == "AOp"   ? columns == depth
           : operand == "BOp" ? rows == depth
                              : rows == 8 && columns == 32;
    tile = tileOf(operand == "AOp"   ? "BOp"
                  : operand == "BOp" ? "AOp"
                                     : "COp",
                  element);
    std::swap(rows, columns);
  } else {
    auto oneOrTwo = [](int64_t size, int64_t unit) {
      return size == unit || size == 2 * unit;
    };
    fits = operand == "AOp" ? oneOrTwo(rows, 16) && columns == tile.tileColumns
           : operand == "BOp" ? rows == tile.tileRows && oneOrTwo(columns, 8)
                              : oneOrTwo(rows, 16) && oneOrTwo(columns, 8);
  }
  if (!fits)
    return none("products are m16n16, m32n8, m8n32, m16n8 or m32n16, with k 16 "
                "for f16 and i8 and 8 for f32, or m8n8k4 for f64; this matrix "
                "is " +
                shapeText(type));
  MatrixLayout whole = tile;
  whole.first.clear();
  for (int64_t row = 0; row < rows; row += tile.tileRows)
    for (int64_t column = 0; column < columns; column += tile.tileColumns)
      for (MatrixPlace place : tile.first)
        whole.first.push_back({row + place.row, column + place.column});
  whole.isTurned = isTurned;
  if (isTurned) {
    auto turn = [](MatrixPlace &place) { std::swap(place.row, place.column); };
    turn(whole.group);
    turn(whole.quad);
    for (MatrixPlace &place : whole.first)
      turn(place);
  }
  return whole;
}

bool usesSubgroupMatrices(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        auto isMatrix = llvm::IsaPred<gpu::MMAMatrixType>;
        return llvm::any_of(op->getOperandTypes(), isMatrix) ||
                       llvm::any_of(op->getResultTypes(), isMatrix)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static LogicalResult checkMemory(Operation *op, MemRefType memory,
                                 gpu::MMAMatrixType matrix) {
  if (memory.getElementType() == storedElement(matrix))
    return success();
  return op->emitOpError("moves elements of ")
         << matrix.getElementType() << " and memory of "
         << memory.getElementType() << "; they must be of one type";
}

static LogicalResult checkProduct(gpu::SubgroupMmaComputeOp op) {
  auto typeOf = [](Value value) {
    return cast<gpu::MMAMatrixType>(value.getType());
  };
  gpu::MMAMatrixType a = typeOf(op.getOpA()), b = typeOf(op.getOpB()),
                     c = typeOf(op.getOpC());
  Type factor = a.getElementType(), sum = c.getElementType();
  if (b.getElementType() != factor)
    return op.emitOpError("multiplies ")
           << factor << " by " << b.getElementType()
           << "; A and B must be of one type";
  bool fits = factor.isInteger(8) ? sum.isInteger(32)
              : factor.isF16()    ? sum.isF16() || sum.isF32()
                                  : sum == factor;
  if (!fits)
    return op.emitOpError("adds products of ")
           << factor << " to " << sum
           << "; f16 adds to f16 or f32, f32 to f32, f64 to f64, si8 and ui8 "
              "to i32";
  // A shape may fit each matrix alone: 16x16 times 16x32.
  if (bool turned = layoutOf(a)->isTurned;
      layoutOf(b)->isTurned != turned || layoutOf(c)->isTurned != turned)
    return op.emitOpError("is a product of ")
           << shapeText(a) << " and " << shapeText(b)
           << ", for which there is no instruction; 32 columns go with 8 rows";
  return success();
}

static WalkResult checkElementwise(gpu::SubgroupMmaElementwiseOp op) {
  auto from = cast<gpu::MMAMatrixType>(op.getArgs()[0].getType());
  if (from.getShape() != op.getType().getShape() ||
      from.getOperand() != op.getType().getOperand())
    return WalkResult(op->emitOpError("gives a matrix of another shape"));
  using Kind = gpu::MMAElementwiseOp;
  Kind kind = op.getOpType();
  bool isUnary =
      kind == Kind::NEGATEF || kind == Kind::NEGATES || kind == Kind::EXTF;
  bool isInteger = kind == Kind::ADDI || kind == Kind::MULI ||
                   kind == Kind::SUBI || kind == Kind::DIVS ||
                   kind == Kind::DIVU || kind == Kind::NEGATES;
  if (op.getArgs().size() != (isUnary ? 1u : 2u) ||
      isInteger != isa<IntegerType>(from.getElementType()) ||
      (kind != Kind::EXTF &&
       from.getElementType() != op.getType().getElementType()))
    return WalkResult(op->emitOpError("has operands that do not go with ")
                      << gpu::stringifyMMAElementwiseOp(kind));
  return WalkResult::advance();
}

/// An element of a matrix is named by its number among those of its lane.
static WalkResult checkIndices(Operation *op, ValueRange indices) {
  if (indices.size() != 1)
    return WalkResult(op->emitOpError("needs one index, the element's number "
                                      "among those of its lane"));
  return WalkResult::advance();
}

LogicalResult checkSubgroupMatrices(ModuleOp module, Dim3 block) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    for (Type type :
         llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                  SmallVector<Type>(op->getResultTypes()))) {
      auto matrix = dyn_cast<gpu::MMAMatrixType>(type);
      std::string reason;
      if (!matrix || layoutOf(matrix, &reason))
        continue;
      op->emitOpError("has a matrix of type ")
          << matrix << ", which is not supported: " << reason;
      return WalkResult::interrupt();
    }
    bool isMatrixOp =
        isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp,
            gpu::SubgroupMmaComputeOp, gpu::SubgroupMmaConstantMatrixOp,
            gpu::SubgroupMmaElementwiseOp, gpu::SubgroupMmaExtractThreadLocalOp,
            gpu::SubgroupMmaInsertThreadLocalOp>(op);
    if (!isMatrixOp)
      return WalkResult::advance();
    if (block.volume() % subgroupSize != 0) {
      op->emitOpError("needs whole subgroups of 32 threads, and a block here "
                      "has ")
          << block.volume() << " threads";
      return WalkResult::interrupt();
    }
    // Scalars of these types are not made by any operation of a kernel.
    for (Type type :
         llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                  SmallVector<Type>(op->getResultTypes())))
      if (auto scalar = dyn_cast<IntegerType>(type);
          scalar && !scalar.isSignless())
        return WalkResult(op->emitOpError("has a scalar of type ")
                          << type << ", which is not supported; use i32");
    return TypeSwitch<Operation *, WalkResult>(op)
        .Case([&](gpu::SubgroupMmaLoadMatrixOp load) {
          return checkMemory(op, load.getSrcMemref().getType(),
                             cast<gpu::MMAMatrixType>(load.getType()));
        })
        .Case([&](gpu::SubgroupMmaStoreMatrixOp store) {
          return checkMemory(
              op, store.getDstMemref().getType(),
              cast<gpu::MMAMatrixType>(store.getSrc().getType()));
        })
        .Case([](gpu::SubgroupMmaComputeOp each) { return checkProduct(each); })
        .Case([](gpu::SubgroupMmaElementwiseOp each) {
          return checkElementwise(each);
        })
        .Case<gpu::SubgroupMmaExtractThreadLocalOp,
              gpu::SubgroupMmaInsertThreadLocalOp>(
            [](auto each) { return checkIndices(each, each.getIndices()); })
        .Default(WalkResult::advance());
  });
  return failure(result.wasInterrupted());
}

} // namespace mgpu::kernels
