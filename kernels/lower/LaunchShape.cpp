// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/LaunchShape.h"

#include "dialect/mgpu/Awaits.h"
#include "dialect/mgpu/Diagnostics.h"
#include "facts/Uniformity.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace mgpu::kernels {

std::string describeUse(Operation *op) {
  std::string text = "uses " + askedName(op).str();
  if (auto [file, line] = ir::fileLine(op->getLoc()); line)
    text += " (line " + std::to_string(line) + ")";
  return text;
}

/// The value a cast or truncation keeps the low bits of: those of a sum or
/// product depend on those of its operands alone.
static Value uncast(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::TruncIOp>(op))
      break;
    Type from = op->getOperand(0).getType(), to = value.getType();
    if (!from.isIndex() && to.isIndex())
      break; // extends
    value = op->getOperand(0);
  }
  return value;
}

std::optional<gpu::Dimension> globalIndexOf(Operation *sum, Dim3 block) {
  auto add = dyn_cast<arith::AddIOp>(sum);
  if (!add || !add.getType().isIntOrIndex())
    return std::nullopt;
  auto matches = [&](Value product,
                     Value thread) -> std::optional<gpu::Dimension> {
    auto id = uncast(thread).getDefiningOp<gpu::ThreadIdOp>();
    auto mul = uncast(product).getDefiningOp<arith::MulIOp>();
    if (!id || !mul)
      return std::nullopt;
    gpu::Dimension dim = id.getDimension();
    for (auto [a, b] : {std::pair(mul.getLhs(), mul.getRhs()),
                        std::pair(mul.getRhs(), mul.getLhs())}) {
      auto blockId = uncast(a).getDefiningOp<gpu::BlockIdOp>();
      if (!blockId || blockId.getDimension() != dim)
        continue;
      auto given = uncast(b).getDefiningOp<gpu::BlockDimOp>();
      APInt constant;
      if (given ? given.getDimension() == dim
                : matchPattern(b, m_ConstantInt(&constant)) &&
                      constant == sizeAlong(block, dim))
        return dim;
    }
    return std::nullopt;
  };
  if (auto dim = matches(add.getLhs(), add.getRhs()))
    return dim;
  return matches(add.getRhs(), add.getLhs());
}

/// Whether `isFine` holds for all users of the op's result, those of its casts
/// in their place.
static bool usersAre(Operation *op, function_ref<bool(Operation *)> isFine) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return isFine(user) ||
           (isa<arith::IndexCastOp>(user) && usersAre(user, isFine));
  });
}

/// Whether what the threads leave behind may depend on their order.
static bool dependsOnOrder(Operation *op) {
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op)) {
    using Kind = arith::AtomicRMWKind;
    switch (atomic.getKind()) {
    case Kind::addi:
    case Kind::andi:
    case Kind::ori:
    case Kind::xori:
    case Kind::maxs:
    case Kind::maxu:
    case Kind::mins:
    case Kind::minu:
    case Kind::muli:
      return !op->use_empty();
    default:
      return true;
    }
  }
  return isa<memref::GenericAtomicRMWOp, gpu::PrintfOp>(op);
}

int64_t workgroupBytes(memref::AllocaOp alloca) {
  MemRefType type = alloca.getType();
  Type element = type.getElementType();
  if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type) ||
      !type.hasStaticShape() || !(element.isIntOrFloat() || element.isIndex()))
    return 0;
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return type.getNumElements() * ((bits + 7) / 8);
}

LaunchShape launchShapeOf(ModuleOp module, Dim3 block) {
  LaunchShape shape;
  Operation *meets = nullptr, *alone = nullptr;
  module.walk([&](Operation *op) {
    auto alloca = dyn_cast<memref::AllocaOp>(op);
    bool isShared = (alloca && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                   alloca.getType())) ||
                    isa<gpu::DynamicSharedMemoryOp, gpu::AllReduceOp>(op);
    shape.usesShared |= isShared;
    if (alloca)
      shape.sharedBytes += uint32_t(workgroupBytes(alloca));
    if (auto bytes =
            op->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes"))
      shape.sharedBytes += uint32_t(bytes.getInt());
    if (auto cluster = ir::clusterOf(op))
      shape.cluster = {cluster.getX(), cluster.getY(), cluster.getZ()};
    if (shape.ordered.empty() && dependsOnOrder(op))
      shape.ordered = describeUse(op);
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      shape.awaitsOthers |= !ir::awaitedReads(loop).empty();
    if (isa<LoopLikeOpInterface>(op)) {
      bool counted = isa<scf::ForOp, affine::AffineForOp>(op);
      shape.hasLoops = true;
      shape.hasCountedLoops |= counted;
      shape.hasCarryingLoops |= counted && op->getNumResults() != 0;
    }
    if (!meets && (isShared || facts::isConvergent(op) ||
                   isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op)))
      meets = op;
    // Each sum that is a global index is one of this id: it has one of each.
    auto onlyInGlobal = [&](bool isBlock) {
      return usersAre(op, [&](Operation *user) {
        if (!isBlock)
          return globalIndexOf(user, block).has_value();
        return isa<arith::MulIOp>(user) && usersAre(user, [&](Operation *sum) {
                 return globalIndexOf(sum, block).has_value();
               });
      });
    };
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op);
        id && !alone && !onlyInGlobal(false))
      alone = op;
    if (auto id = dyn_cast<gpu::BlockIdOp>(op);
        id && !alone && !onlyInGlobal(true))
      alone = op;
  });
  shape.reshapable = !meets;
  shape.reason =
      meets   ? "keeps its block: " + describeUse(meets)
      : alone ? "its threads never meet; its ids are recovered from the global "
                "index, because it " +
                    describeUse(alone)
              : "depends on its ids only through the global index";
  return shape;
}

} // namespace mgpu::kernels
