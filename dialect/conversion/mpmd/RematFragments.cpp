// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_REMATFRAGMENTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// The forward fragments that `user` needs results of, and those of the same
/// work that they need, in order.
SmallVector<Operation *> neededOf(Operation *user,
                                  ArrayRef<Operation *> forward) {
  llvm::SmallSetVector<Operation *, 4> needed;
  auto take = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && llvm::is_contained(forward, source))
        needed.insert(source);
  };
  take(user);
  for (size_t k = 0; k < needed.size(); ++k)
    take(needed[k]);
  SmallVector<Operation *> ordered = llvm::to_vector(needed);
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

/// Whether the mesh runs no fragment between the two.
bool followsAtOnce(mpmd::FragmentOp op, mpmd::FragmentOp before) {
  for (Operation *each = before->getNextNode(); each != op;
       each = each->getNextNode())
    if (auto other = dyn_cast<mpmd::FragmentOp>(each);
        other && other.getMeshName() == op.getMeshName())
      return false;
  return true;
}

/// Computes forward work again for the backward work `users`, which follow each
/// other.
void remat(ArrayRef<Operation *> forward, ArrayRef<Operation *> users) {
  IRMapping map; ///< to the results of what was computed again
  for (Operation *user : users) {
    for (Operation *op : neededOf(user, forward)) {
      if (map.contains(op->getResult(0)) ||
          followsAtOnce(cast<mpmd::FragmentOp>(user),
                        cast<mpmd::FragmentOp>(op)))
        continue;
      OpBuilder b(user);
      b.clone(*op, map)->setAttr(rematName, b.getUnitAttr());
    }
    for (OpOperand &operand : user->getOpOperands())
      operand.set(map.lookupOrDefault(operand.get()));
  }
}

struct RematFragments : impl::RematFragmentsBase<RematFragments> {
  using RematFragmentsBase::RematFragmentsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return;
    using Kind = PipelineWork::Kind;
    const Pipeline pipeline = findPipeline(function);
    for (const Pipeline::Mesh &mesh : pipeline.meshes)
      for (const auto &[work, forward] : mesh.works) {
        if (work.kind != Kind::Forward)
          continue;
        SmallVector<Operation *> users;
        for (Kind kind : {Kind::Backward, Kind::Weights})
          if (auto at = mesh.works.find({kind, work.microbatch, work.stage});
              at != mesh.works.end())
            llvm::append_range(users, at->second);
        llvm::sort(users, [](Operation *a, Operation *b) {
          return a->isBeforeInBlock(b);
        });
        remat(forward, users);
      }
  }
};

} // namespace

} // namespace mgpu::conversion
