// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H
#define MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H

// The layout of each value of a program over whole tensors.

#include "dialect/conversion/spmd/FactorRule.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mgpu::conversion {

/// Takes the layouts that the program asks for, and finds those of all other
/// values: an operation cuts the dimensions of one factor alike, forward and
/// backward, until nothing changes. Layouts that the program asks for do not
/// change. Where two tensors of an operation want the same axis, the one is
/// taken that makes devices receive the fewest bytes.
class Layouts {
public:
  /// `mesh` is that of the layouts in `function`.
  Layouts(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> mesh);

  /// The layout of `value`, a ranked tensor; whole on each device where nothing
  /// says otherwise.
  spmd::LayoutAttr of(mlir::Value value) const;

  /// The axes that cut each factor of an operation.
  llvm::SmallVector<Axes> cutsOf(const FactorRule &rule) const;

  /// What a tensor has where factors are cut so.
  spmd::LayoutAttr layoutOf(const FactorTensor &tensor,
                            llvm::ArrayRef<Axes> cuts) const;

  llvm::ArrayRef<int64_t> getMesh() const { return mesh; }

private:
  void takeGiven(mlir::func::FuncOp function);
  void collectRules(mlir::Operation *op);
  bool apply(const FactorRule &rule);
  bool refine(const FactorTensor &tensor, llvm::ArrayRef<Axes> cuts);
  void addCuts(const FactorRule &rule, const FactorTensor &tensor,
               llvm::SmallVectorImpl<Axes> &cuts) const;
  void keepLegal(const FactorRule &rule,
                 llvm::SmallVectorImpl<Axes> &cuts) const;
  int64_t costOf(const FactorRule &rule, llvm::ArrayRef<Axes> cuts) const;

  llvm::SmallVector<int64_t> mesh;
  llvm::DenseMap<mlir::Value, spmd::LayoutAttr> layouts;
  /// Values whose layout the program asks for, and the dimensions that may be
  /// cut further.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> open;
  llvm::SmallVector<FactorRule> rules;
};

/// The mesh of the layouts that `function` asks for in its arguments, its
/// results and its layout constraints; empty where there are none. Fails where
/// two differ.
mlir::FailureOr<llvm::SmallVector<int64_t>> meshOf(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_LAYOUTS_H
