// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/VectorForm.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// The operations of a region that is gone through once for all threads.
static void walkShared(Region &region,
                       function_ref<void(Operation *)> callback) {
  for (Operation &op : region.getOps()) {
    callback(&op);
    if (isa<scf::ForOp, scf::IfOp>(op))
      for (Region &inner : op.getRegions())
        walkShared(inner, callback);
  }
}

void VectorForm::findRefusal(func::FuncOp entry) {
  walkShared(entry.getBody(), [&](Operation *op) {
    auto isOwnMemory = [&](Value value) {
      return isa<MemRefType>(value.getType()) && isVarying(value);
    };
    if (!reason.empty())
      return;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && loop.getUnsignedCmp())
      reason = "has a loop that counts unsigned: " + describeUse(op);
    else if (!isa<memref::AllocaOp>(op) &&
             llvm::any_of(op->getResults(), isOwnMemory))
      reason = "has a view for each thread: " + describeUse(op);
  });
  // All threads meet there, so it is done once for all of them.
  entry.walk([&](Operation *op) {
    if (!facts::isReductionOfNeighbours(op) && !isa<gpu::BarrierOp>(op))
      return;
    for (Operation *above = op->getParentOp(); above != entry;
         above = above->getParentOp())
      if (!sharesControl(above) && reason.empty())
        reason = describeUse(op) + " where its threads may part";
  });
}

/// Whether a cast or a sum, difference or product surely keeps the number,
/// where it would else begin again within a buffer: an index that wraps around
/// lies outside any.
static bool keepsNumber(Operation *op, const facts::IndexRanges &ranges) {
  auto bitsOf = [](Type type) {
    return type.isIndex() ? 64u : type.getIntOrFloatBitWidth();
  };
  Value first = op->getOperand(0);
  const unsigned to = bitsOf(op->getResult(0).getType()),
                 from = bitsOf(first.getType());
  if (isa<arith::IndexCastUIOp>(op) && to > from)
    return ranges.isNonNegative(first);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    auto bounds = ranges.of(first);
    return to >= from || (bounds && bounds->low.isSignedIntN(to) &&
                          bounds->high.isSignedIntN(to));
  }
  return to == 64 || ranges.cannotOverflow(first, op->getOperand(1),
                                           isa<arith::AddIOp>(op)   ? '+'
                                           : isa<arith::SubIOp>(op) ? '-'
                                                                    : '*');
}

bool VectorForm::areNeighbours(Value index,
                               const facts::IndexRanges &ranges) const {
  const auto strides =
      uniformity.stridesOf(index, facts::Among::Neighbours, [&](Operation *op) {
        return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::AddIOp,
                   arith::SubIOp, arith::MulIOp>(op) &&
               keepsNumber(op, ranges);
      });
  return strides && (*strides)[0] == 1;
}

/// Whether the threads of a block meet in nothing but reductions over all of
/// them, and barriers.
static bool meetInReductionsAlone(func::FuncOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  return !module
              .walk([&](Operation *op) {
                auto alloca = dyn_cast<memref::AllocaOp>(op);
                bool other = facts::isConvergent(op) &&
                             (!(facts::isReductionOfNeighbours(op) ||
                                isa<gpu::BarrierOp>(op)) ||
                              !madeFor(op).empty() ||
                              op->getParentOfType<func::FuncOp>() != entry);
                other |=
                    isa<gpu::LaneIdOp, gpu::SubgroupIdOp,
                        gpu::DynamicSharedMemoryOp>(op) ||
                    (alloca && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                   alloca.getType()));
                return other ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

bool mayLieBeside(const LaunchShape &shape, bool hasVectorForm, Dim3 block) {
  constexpr uint32_t warp = 32, widest = 16;
  return hasVectorForm && !shape.reshapable && !shape.cluster && block.y == 1 &&
         block.z == 1 && block.x > warp && block.x % warp == 0 &&
         block.x / warp <= widest && (block.x & (block.x - 1)) == 0;
}

std::string vectorRefusal(const LaunchShape &shape, func::FuncOp entry,
                          Dim3 block) {
  if (!shape.reshapable && !meetInReductionsAlone(entry))
    return shape.reason;
  if (block.x % 2 != 0)
    return "has an odd number of threads along x";
  return VectorForm(entry).refusal();
}

// The form for MGPU_VECTOR neighbouring threads (VectorForm.h). A value that
// varies is an array; each statement on such is a loop over its parts, which
// the compiler unrolls. A statement that has no such form of its own, as a loop
// each thread leaves when it likes, is done for one part after the other: the
// threads of the source do not meet, so any order is right.

static constexpr StringRef partIndex = "[part]";

/// "i[part]" and "x0[i[part]]" for the first part.
static std::string ofFirst(std::string text) {
  for (size_t at; (at = text.find(partIndex)) != std::string::npos;)
    text.replace(at, partIndex.size(), "[0]");
  return text;
}

/// Whether the text of the operation names the thread's ids.
bool FunctionEmitter::asksIds(Operation *op) const {
  return op
      ->walk([&](Operation *inner) {
        bool asks =
            isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::GridDimOp>(inner) ||
            (!hasGlobals && isa<gpu::GlobalIdOp>(inner));
        if (auto call = dyn_cast<func::CallOp>(inner))
          asks = kernel.needThread.contains(
              SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()));
        return asks ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void FunctionEmitter::openParts(Operation *op) {
  assert(vectorForm && !inPart && "loops over parts do not nest");
  out.open("MGPU_PARTS");
  inPart = true;
  if (!asksIds(op))
    return;
  helper("partOf");
  std::string own = names.fresh("own");
  out.line("const MgpuThread " + own + " = partOf(at, part);");
  out.line("{");
  ++out.depth;
  out.line("const MgpuThread &at = " + own + ";");
  hasOwnIds = true;
}

void FunctionEmitter::closeParts() {
  assert(inPart && "a loop over parts is open");
  if (hasOwnIds)
    out.close();
  out.close();
  inPart = hasOwnIds = false;
}

std::string FunctionEmitter::newParts(Value value, StringRef name) {
  std::string array = name.empty() ? freshName(value) : names.fresh(name);
  scalars[value] = array + partIndex.str();
  return typeOf(value) + " " + array + "[MGPU_VECTOR];";
}

LogicalResult FunctionEmitter::partsOf(Operation *op) {
  std::string declarations;
  SmallVector<std::pair<Value, std::string>> targets;
  for (Value result : op->getResults()) {
    if (result.use_empty() || isa<MemRefType>(result.getType()))
      continue;
    declarations += newParts(result) + " ";
    targets.push_back({result, scalars[result]});
    declared.insert(result);
  }
  auto emit = [&]() -> LogicalResult {
    if (failed(operation(op)))
      return failure();
    // Some operations name their result themselves.
    for (auto &[result, target] : targets) {
      if (scalars[result] != target)
        out.line(target + " = " + scalars[result] + ";");
      scalars[result] = target;
    }
    return success();
  };
  LogicalResult done = failure();
  if (op->getNumRegions() != 0 || isa<func::CallOp>(op)) {
    out.at(op->getLoc());
    if (!declarations.empty())
      out.line(declarations);
    openParts(op);
    done = emit();
    out.atNowhere();
    closeParts();
  } else {
    size_t begin = out.text.size();
    inPart = true;
    done = emit();
    inPart = false;
    out.headLines(begin, declarations + "MGPU_PARTS ");
  }
  for (auto &[result, target] : targets)
    declared.erase(result);
  return done;
}

/// Loads and stores of neighbours: as wide as their place is known to allow.
FailureOr<bool> FunctionEmitter::partsAccess(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  auto store = dyn_cast<memref::StoreOp>(op);
  if (!load && !store)
    return false;
  Value memref = load ? load.getMemRef() : store.getMemRef();
  ValueRange indices = load ? load.getIndices() : store.getIndices();
  Value value = load ? load.getResult() : store.getValueToStore();
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (indices.empty() || vectorForm->isVarying(memref) ||
      isa<VectorType>(element) || widthOf(element) < 8 || isNarrow(value) ||
      value.use_empty() || !vectorForm->isVarying(value))
    return false;
  if (store && (!StringRef(use(value)).ends_with(partIndex) ||
                use(value).front() == '('))
    return false;
  for (Value index : indices.drop_back())
    if (vectorForm->isVarying(index))
      return false;
  if (!vectorForm->areNeighbours(indices.back(), kernel.ranges) ||
      pointerOf(memref).strides.back().value != 1)
    return false;
  if (failed(checkTypes(op)))
    return failure();
  out.at(op->getLoc());
  const std::string divisor =
      "<" +
      std::to_string(load ? divisorAt(load) : divisorAt(memref, indices)) +
      ">(";
  std::string at =
      "&" + ofFirst(load ? loaded(load) : this->element(memref, indices));
  if (load) {
    std::string declaration = newParts(value);
    std::string array = scalars[value];
    array.resize(array.size() - partIndex.size());
    out.line(
        declaration + " " +
        helper(kernel.streamed.contains(op) ? "streamParts" : "loadParts") +
        divisor + array + ", " + at + ");");
  } else {
    std::string array = use(value);
    array.resize(array.size() - partIndex.size());
    out.line(helper("storeParts") + divisor + at + ", " + array + ");");
  }
  return true;
}

LogicalResult FunctionEmitter::partsIf(scf::IfOp op) {
  out.at(op.getLoc());
  for (Value result : op.getResults())
    if (!result.use_empty())
      declare(result);
  // Each level writes what is within once more, so deeper ones are left out.
  constexpr unsigned mostTogether = 4;
  if (ifsTogether < mostTogether) {
    std::string all = names.fresh("all");
    out.line("bool " + all + " = true; MGPU_PARTS " + all + " = " + all +
             " && " + use(op.getCondition()) + ";");
    out.open("if (" + all + ")");
    ++ifsTogether;
    LogicalResult together = branchOfIf(op, op.getThenRegion());
    --ifsTogether;
    if (failed(together))
      return failure();
    out.atNowhere();
    out.close(" else");
  }
  for (Value result : op.getResults())
    declared.insert(result);
  openParts(op);
  LogicalResult done = emit(op);
  closeParts();
  for (Value result : op.getResults())
    declared.erase(result);
  return done;
}

LogicalResult FunctionEmitter::partsAlloca(memref::AllocaOp op) {
  MemRefType type = op.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return refuse(op, " without a static size and the default layout");
  out.at(op.getLoc());
  std::string name = names.fresh(
      sourceName(op.getLoc()).empty() ? "local" : sourceName(op.getLoc()));
  std::string align;
  if (op.getAlignment().value_or(0) > 16)
    align = "__align__(" + std::to_string(*op.getAlignment()) + ") ";
  // Each part is as aligned as one alone.
  int64_t count = std::max<int64_t>(type.getNumElements(), 1);
  out.line(align + cType(type.getElementType()) + " " + name +
           "[MGPU_VECTOR][" + std::to_string(count) + "];");
  bindComponents(op.getResult(), name + partIndex.str());
  return success();
}

LogicalResult FunctionEmitter::vectorFormOperation(Operation *op) {
  // At the last two all threads meet.
  if (vectorForm->runsOnce(op) || facts::isReductionOfNeighbours(op) ||
      isa<gpu::BarrierOp>(op))
    return operation(op);
  if (isa<scf::ForOp, scf::IfOp>(op) && vectorForm->sharesControl(op))
    return operation(op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (failed(checkTypes(op)))
      return failure();
    return partsIf(branch);
  }
  if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
    if (failed(checkTypes(op)))
      return failure();
    return partsAlloca(alloca);
  }
  FailureOr<bool> done = partsAccess(op);
  if (failed(done))
    return failure();
  return *done ? success() : partsOf(op);
}

} // namespace mgpu::kernels::cuda
