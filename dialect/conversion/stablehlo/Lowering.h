// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_STABLEHLO_LOWERING_H
#define MGPU_DIALECT_CONVERSION_STABLEHLO_LOWERING_H

// The files of convert-stablehlo-to-linalg share one walk over a function in
// program order, which makes linalg, tensor, arith, math and scf of each
// operation, and keeps what stands for each value of the source.

#include "dialect/conversion/stablehlo/Scalars.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

namespace mgpu::conversion {

inline mlir::RankedTensorType signlessTensor(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(signless(value.getType()));
}

/// Fills the body of a linalg.generic: for the elements of its inputs, and of
/// its outputs where it reduces, the elements that it gives.
using BodyBuilder = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;
/// Gives the element at a point, for the indices of the point.
using IndexedBuilder = llvm::function_ref<mlir::Value(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// A linalg.generic to be made.
struct Generic {
  llvm::SmallVector<mlir::Value> inputs, inits;
  llvm::SmallVector<mlir::AffineMap> maps; ///< maps of inputs, then inits
  unsigned parallel = 0, reduction = 0;    ///< dimensions, in this order
};

/// The part of tensors that one thread writes.
struct ThreadPart {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
};

/// The kernel of a custom call: an extern "C" __global__ function of a file of
/// CUDA C++. Without an entry it is a function that the process registers,
/// "registered" or "registered HASH".
struct CustomKernel {
  std::string file, entry;
};

/// A value that the program says must be so.
struct Expectation {
  mlir::Value found, expected;
  mlir::DictionaryAttr attributes; ///< those of `found` as a function's result
};

class Lowering {
public:
  explicit Lowering(mlir::MLIRContext *context)
      : b(mlir::UnknownLoc::get(context), context) {}

  /// Lowers the operations of `from`, except its terminator, where `b` stands.
  mlir::LogicalResult lowerBlock(mlir::Block &from);

  // Values that stand for values of the source.

  mlir::Value operator[](mlir::Value old);
  llvm::SmallVector<mlir::Value> all(mlir::ValueRange old) {
    return llvm::map_to_vector(old, [&](mlir::Value v) { return (*this)[v]; });
  }
  /// For a tensor of one element: the number that host code knows; null where
  /// it is on the devices alone.
  mlir::Value number(mlir::Value old) const { return numbers.lookup(old); }
  void set(mlir::Value old, mlir::Value made) {
    tensors[old] = made;
    numbers.erase(old);
  }
  void setAll(mlir::ValueRange old, mlir::ValueRange made) {
    for (auto [from, to] : llvm::zip(old, made))
      set(from, to);
  }
  void setNumber(mlir::Value old, mlir::Value made) {
    numbers[old] = made;
    tensors.erase(old);
  }
  /// The values that a region of scalar code (a reducer, a comparator) gives
  /// for `arguments`. checkScalars() has said that it can.
  llvm::SmallVector<mlir::Value> inlined(mlir::ImplicitLocOpBuilder &body,
                                         mlir::Region &region,
                                         mlir::ValueRange arguments);

  // Building blocks (Blocks.cpp).

  mlir::AffineExpr dim(unsigned k) { return b.getAffineDimExpr(k); }
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value empty(mlir::RankedTensorType type) {
    return mlir::tensor::EmptyOp::create(b, type.getShape(),
                                         type.getElementType());
  }
  llvm::SmallVector<mlir::Value> generic(const Generic &of, BodyBuilder body);
  /// A tensor of `type` filled with the one element of a tensor of the source.
  mlir::Value filled(mlir::RankedTensorType type, mlir::Value oldElement);
  mlir::Value filledWith(mlir::RankedTensorType type, mlir::Value number);
  /// An input of rank 0 goes to each point.
  mlir::Value elementwise(mlir::RankedTensorType type, mlir::ValueRange inputs,
                          BodyBuilder body);
  /// `input` with elements that are wrapped() to the type.
  mlir::Value kept(mlir::Value input, mlir::Type elementType);
  /// Each element of the indices of its point.
  mlir::Value computed(mlir::RankedTensorType type, IndexedBuilder body);
  mlir::Value transposed(mlir::Value input, llvm::ArrayRef<int64_t> order);
  mlir::Value reshaped(mlir::Value input, llvm::ArrayRef<int64_t> shape);
  mlir::Value sliced(mlir::Value input, llvm::ArrayRef<int64_t> offsets,
                     llvm::ArrayRef<int64_t> sizes,
                     llvm::ArrayRef<int64_t> strides);
  /// `input` with elements before, after and between its own; where numbers are
  /// negative, without elements at its ends.
  mlir::Value
  padded(mlir::Value input,
         llvm::function_ref<mlir::Value(mlir::RankedTensorType)> fill,
         llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
         llvm::ArrayRef<int64_t> interior);
  mlir::Value padded(mlir::Value input, mlir::Value oldElement,
                     llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                     llvm::ArrayRef<int64_t> interior) {
    auto fill = [&](mlir::RankedTensorType type) {
      return filled(type, oldElement);
    };
    return padded(input, fill, low, high, interior);
  }
  /// One kernel of `count` threads, each of which changes a part of `inits`
  /// that is its own, in its own order. `body` builds at `b`.
  llvm::SmallVector<mlir::Value> inThreads(
      int64_t count, mlir::ValueRange inits,
      llvm::function_ref<ThreadPart(mlir::Value thread)> partOf,
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange parts)>
          body);
  mlir::Value reversed(mlir::Value input, llvm::ArrayRef<int64_t> dimensions);

  mlir::ImplicitLocOpBuilder b;
  llvm::SmallVector<Expectation> expectations;
  llvm::StringMap<CustomKernel> customs; ///< by the call's name
  llvm::StringSet<> opaque; ///< names of calls that a warning has told
  llvm::StringMap<mlir::Attribute> configs; ///< of calls with a kernel

private:
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerElementwise(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, mlir::Value> tensors, numbers;
};

/// Whether `op` is of one of the dialects that are lowered here.
bool isOfStablehlo(mlir::Operation *op);

/// Whether `op` gives the one number that it is given.
bool isScalarIdentity(mlir::Operation *op);

/// A tensor of rank 0 of integers.
inline bool isHostInteger(mlir::Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && type.getRank() == 0 &&
         mlir::isa<mlir::IntegerType>(type.getElementType());
}

/// An error at `op`, for what this version does not take; begins with its name.
inline mlir::InFlightDiagnostic refuse(mlir::Operation *op) {
  return ir::emitUnsupported(op);
}

/// Whether each operation of a region of scalar code has a form in a kernel; a
/// diagnostic where not.
mlir::LogicalResult checkScalars(mlir::Region &region);

/// The element of an operation that is a constant of one value, without a sign;
/// null for another operation.
mlir::TypedAttr splatOf(mlir::Operation *op);

/// The elements as integers without a sign; null where the file does not have
/// them.
mlir::TypedAttr signlessElements(mlir::ElementsAttr value);

/// The operations of one family, by name.
using FamilyLowering = mlir::LogicalResult (*)(Lowering &, mlir::Operation *);
struct NamedFamily {
  llvm::StringRef name;
  FamilyLowering lower;
};
template <typename Op, mlir::LogicalResult (*lowerOp)(Lowering &, Op)>
NamedFamily family() {
  return {Op::getOperationName(), [](Lowering &low, mlir::Operation *op) {
            return lowerOp(low, mlir::cast<Op>(op));
          }};
}
llvm::ArrayRef<NamedFamily> callFamily();
llvm::ArrayRef<NamedFamily> constantFamily();
llvm::ArrayRef<NamedFamily> movementFamily();
llvm::ArrayRef<NamedFamily> indexingFamily();
llvm::ArrayRef<NamedFamily> scatterFamily();
llvm::ArrayRef<NamedFamily> reductionFamily();
llvm::ArrayRef<NamedFamily> windowFamily();
llvm::ArrayRef<NamedFamily> solveFamily();
llvm::ArrayRef<NamedFamily> sortFamily();
/// The largest numbers of each row of the one operand, and their places, which
/// are two results: floats in their total order, of equal ones the first.
mlir::LogicalResult lowerTopK(Lowering &low, mlir::Operation *op);
llvm::ArrayRef<NamedFamily> contractionFamily();
llvm::ArrayRef<NamedFamily> convolutionFamily();
llvm::ArrayRef<NamedFamily> loopFamily();
llvm::ArrayRef<NamedFamily> branchFamily();

// Sums of products. Sums of narrow floats are f32, rounded once at the end.

/// The type that products are added up in.
mlir::Type sumType(mlir::Type result);

/// A sum of products to be made. Maps are of the factors and of the sum.
struct Products {
  mlir::Operation *op;
  mlir::Value lhs, rhs;
  llvm::SmallVector<int64_t> shape;
  mlir::AffineMap lhsMap, rhsMap, sumMap;
  unsigned parallel, reduction;
};
mlir::Value makeSum(Lowering &low, const Products &of);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_STABLEHLO_LOWERING_H
