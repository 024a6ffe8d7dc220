// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/PointRun.h"

#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

bool isProduct(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && isPlainMatmul(structured);
}

std::string nameOfBuffer(Value memref) {
  return "'" + ir::nameOf(ir::rootOf(memref).getLoc(), "a buffer") + "'";
}

/// Why the threads of `first` may not go on with `next`, or "".
std::string whyNotAfter(const PointForm &first, const PointForm &next) {
  if (first.ranges != next.ranges)
    return "they have other points";
  if (!first.device || first.device != next.device)
    return "the text does not show that their buffers are of one device and "
           "apart";
  for (const PointAccess &mine : first.accesses)
    for (const PointAccess &theirs : next.accesses) {
      if (ir::rootOf(mine.memref) != ir::rootOf(theirs.memref) ||
          (!mine.isWritten && !theirs.isWritten) ||
          ir::areApart(mine.memref, theirs.memref))
        continue;
      if (mine.memref != theirs.memref || !mine.axes ||
          mine.axes != theirs.axes)
        return "what one writes to " + nameOfBuffer(theirs.memref) +
               " the other touches at other points, or under another view";
    }
  return "";
}

bool touches(const PointForm &form, Value memref) {
  return llvm::any_of(form.accesses, [&](const PointAccess &access) {
    return access.memref == memref;
  });
}

struct PointRun {
  SmallVector<Operation *> operations;
  SmallVector<PointForm> forms;
  Operation *product = nullptr;
};

/// Whether `op` begins sums with 0 and does nothing else: a library that
/// multiplies can do so, too.
bool isZeroFill(Operation *op, Value sums) {
  auto fill = dyn_cast<linalg::FillOp>(op);
  return fill && fill.output() == sums &&
         matchPattern(fill.value(), m_PosZeroFloat());
}

/// Why a product, or what is around one, is not added to a run; or "".
std::string whyNotProduct(const PointRun &run, Operation *next,
                          const PointForm &form, FuseProducts products) {
  auto isReduction = [](Operation *op) {
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    return structured && structured.getNumReductionLoops() > 0;
  };
  Operation *product = isProduct(next) ? next : run.product;
  if (!product)
    return "";
  if (isProduct(next) && run.product)
    return "a launch has one matrix product";
  if (isProduct(next) && run.operations.size() == 1 &&
      isZeroFill(run.operations[0],
                 cast<linalg::LinalgOp>(next).getDpsInitOperand(0)->get()))
    return "";
  if (products == FuseProducts::None)
    return "the matrix product is left to cuBLASLt, whose own epilogue would "
           "not round its sums first";
  if (products == FuseProducts::Wide &&
      isNarrowMatmul(cast<linalg::LinalgOp>(product)))
    return "GPUs leave matrix products of f16 and bf16 to cuBLASLt, whose own "
           "epilogue would not round their sums first; --variant mma fuses "
           "them";
  if (isProduct(next)) {
    if (llvm::any_of(run.operations, isReduction))
      return "what is before the matrix product has a reduction of its own";
    Value sums = cast<linalg::LinalgOp>(next).getDpsInitOperand(0)->get();
    return llvm::any_of(
               run.forms,
               [&](const PointForm &each) { return touches(each, sums); })
               ? ""
               : "the matrix product's sums do not begin there";
  }
  if (isReduction(next))
    return "what follows the matrix product has a reduction of its own";
  bool isFed = llvm::any_of(run.forms, [&](const PointForm &each) {
    return llvm::any_of(each.accesses, [&](const PointAccess &access) {
      return access.isWritten && touches(form, access.memref);
    });
  });
  return isFed ? "" : "it has nothing to do with the matrix product before it";
}

} // namespace

bool mayBeBetween(Operation *op) {
  return isa<ir::AllocOp, ir::ShardedAllocOp>(op) || isMemoryEffectFree(op);
}

LaunchGroup fusibleFrom(Operation *first, FuseProducts products,
                        std::string &why, size_t most) {
  PointRun run;
  run.operations.push_back(first);
  auto form = pointFormOf(first);
  if (!form) {
    why = "its threads do more than load and store";
    return run.operations;
  }
  auto extents = extentsOf(form->ranges);
  if (extents && llvm::is_contained(*extents, 0)) {
    why = "it has no points";
    return run.operations;
  }
  if (isProduct(first))
    run.product = first;
  run.forms.push_back(std::move(*form));
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op)) {
      if (mayBeBetween(op))
        continue;
      why = op->getName().getStringRef().str() + " at " +
            ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    if (run.operations.size() == most) {
      why = "its launch has as many operations as one may have";
      break;
    }
    form = pointFormOf(op);
    why = form ? ""
               : "it has no thread for each point that only loads and "
                 "stores";
    for (size_t k = 0; why.empty() && k < run.forms.size(); ++k)
      why = whyNotAfter(run.forms[k], *form);
    if (why.empty())
      why = whyNotProduct(run, op, *form, products);
    if (!why.empty())
      break;
    if (isProduct(op))
      run.product = op;
    run.operations.push_back(op);
    run.forms.push_back(std::move(*form));
  }
  return run.operations;
}

LogicalResult checkPointGroup(const LaunchGroup &group) {
  std::string why;
  if (group.size() == 1)
    return success();
  LaunchGroup run = fusibleFrom(group.front(), FuseProducts::All, why,
                                std::min(group.size(), mostInLaunch));
  for (size_t k = 0; k < group.size(); ++k)
    if (k == run.size() || run[k] != group[k])
      return group[k]->emitOpError("cannot be in launch group ")
             << group[k]->getAttr(launchGroupAttr) << (why.empty() ? "" : ": ")
             << why;
  return success();
}

} // namespace mgpu::conversion
