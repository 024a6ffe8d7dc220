// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_PARTITION_H
#define MGPU_DIALECT_CONVERSION_SPMD_PARTITION_H

// Makes the program of one device of a program over whole tensors.

#include "dialect/conversion/spmd/Layouts.h"
#include "dialect/conversion/spmd/Parts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::conversion {

/// Replaces the body of `function` by one whose tensors are a device's parts
/// under `layouts`; arguments and results stay whole, and get a layout each.
/// Operands are resharded where an operation wants another layout than they
/// have. An operation without a rule, and code of devices, computes on whole
/// tensors. Remarks of the category "spmd-partition-tensors" tell the layouts
/// and what changes cost, by `cost`.
class Partition {
public:
  Partition(mlir::func::FuncOp function, const Layouts &layouts,
            const ExchangeCost &cost)
      : function(function), layouts(layouts), reshards(cost),
        b(function.getContext()) {}
  mlir::LogicalResult run();

private:
  void takeArguments(mlir::Block &old, mlir::Block &body);
  void giveResults(mlir::Operation *end);
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitWhole(mlir::Operation *op);
  mlir::LogicalResult emitLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult emitBranch(mlir::scf::IfOp branch);
  void emitConstant(mlir::Operation *op, mlir::DenseElementsAttr value);
  void emitEmpty(mlir::tensor::EmptyOp op);
  void emitSplat(mlir::tensor::SplatOp op);
  void emitByRule(mlir::Operation *op, const FactorRule &rule);
  void emitLinalg(mlir::linalg::LinalgOp op, const FactorRule &rule);
  mlir::Operation *cloneWith(mlir::Operation *op, mlir::ValueRange operands,
                             const FactorRule &rule, llvm::ArrayRef<Cut> cuts);
  void shiftIndices(mlir::linalg::LinalgOp op, const FactorRule &rule,
                    llvm::ArrayRef<Cut> cuts);
  mlir::OpFoldResult rankValue(mlir::Location loc, const Cut &cut,
                               llvm::ArrayRef<int64_t> values);
  llvm::SmallVector<mlir::OpFoldResult>
  offsetsIn(mlir::Location loc, const FactorTensor &large,
            const FactorRule &rule, llvm::ArrayRef<Cut> cuts,
            llvm::ArrayRef<mlir::OpFoldResult> offsets);
  mlir::Operation *emitSlice(mlir::tensor::ExtractSliceOp op,
                             const FactorRule &rule, llvm::ArrayRef<Cut> cuts,
                             mlir::ValueRange operands);
  mlir::Operation *emitInsert(mlir::tensor::InsertSliceOp op,
                              const FactorRule &rule, llvm::ArrayRef<Cut> cuts,
                              mlir::ValueRange operands);
  mlir::Operation *emitPad(mlir::tensor::PadOp op, const FactorRule &rule,
                           llvm::ArrayRef<Cut> cuts, mlir::ValueRange operands);
  llvm::SmallVector<mlir::OpFoldResult>
  mapped(llvm::ArrayRef<mlir::OpFoldResult> values) const;
  mlir::Value filledPart(mlir::Location loc, mlir::RankedTensorType type,
                         mlir::Value value, spmd::LayoutAttr layout);

  /// A device's part of `value` in `layout`; as `value` has it by default.
  mlir::Value part(mlir::Value value, spmd::LayoutAttr layout);
  mlir::Value whole(mlir::Value value);
  mlir::Value change(mlir::Value value, mlir::Value local,
                     spmd::LayoutAttr from, spmd::LayoutAttr to,
                     const Partial &partial);
  llvm::SmallVector<Cut> takeCuts(const FactorRule &rule);
  void reportLayouts();
  void reportConflict(llvm::ArrayRef<Layouts::Way> ways);
  void reportChange(mlir::Value value, const ReshardRequest &request,
                    const ReshardSteps &steps);
  void setPart(mlir::Value value, mlir::Value local, spmd::LayoutAttr has,
               const Partial &partial = {});
  mlir::RankedTensorType partType(mlir::Value value, spmd::LayoutAttr layout);

  mlir::func::FuncOp function;
  const Layouts &layouts;
  Reshards reshards;
  mlir::OpBuilder b;
  mlir::IRMapping map; ///< to a device's parts
  llvm::DenseMap<std::tuple<mlir::Value, spmd::LayoutAttr, mlir::Block *>,
                 mlir::Value>
      changed;                        ///< what part() made
  mlir::Operation *current = nullptr; ///< whose form is being made
};

inline mlir::LogicalResult partition(mlir::func::FuncOp function,
                                     const Layouts &layouts,
                                     const ExchangeCost &cost) {
  return Partition(function, layouts, cost).run();
}

// Words of the remarks about layouts and exchanges.

/// A remark of the category "spmd-partition-tensors". The text is made only
/// where remarks are listened to.
void emitReport(mlir::Location loc, llvm::function_ref<std::string()> text);

/// "%x at FILE:LINE:COLUMN".
std::string placeOf(mlir::Value value);

/// The split of a layout, and where its parts begin if they are not as equal as
/// can be.
std::string splitOf(spmd::LayoutAttr layout);

/// Reports what a device has of `value`.
void reportLayout(mlir::Value value, spmd::LayoutAttr layout);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_PARTITION_H
