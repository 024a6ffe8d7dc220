// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelSteps.h"

#include "planner/import/AccessSet.h"
#include "planner/import/Conditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"

#include <set>

namespace mgpu::planner {

namespace {

using namespace mlir;
using Step = KernelFacts::Step;

class Finder {
public:
  Finder(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
         AffineEvaluator &affine, const facts::Uniformity &uniformity)
      : body(body), views(views), affine(affine), uniformity(uniformity) {
    facts.grid = grid;
    facts.block = block;
    facts.places.emplace_back();
    places[&body] = 0;
  }

  KernelFacts run() {
    body.walk([&](Operation *op) { note(op); });
    body.walk([&](Operation *op) { visit(op); });
    facts.counters = affine;
    return std::move(facts);
  }

private:
  void note(Operation *op);
  void visit(Operation *op);
  void visitAccess(const MemoryAccess &access);
  Region *placeOf(const MemoryAccess &access);
  uint32_t numberOf(Region *place);
  uint32_t numberOf(const KernelView &view) {
    return buffers.try_emplace(view.root, buffers.size()).first->second;
  }
  KernelFacts::Buffer &bufferOf(const KernelView &view) {
    return facts.buffers[numberOf(view)];
  }
  std::optional<AffineForm> addressOf(const MemoryAccess &access,
                                      const KernelView &view);
  bool isLoadedAlready(const MemoryAccess &access);

  Region &body;
  KernelViews &views;
  AffineEvaluator &affine;
  const facts::Uniformity &uniformity;
  /// Whether neighbours along x have one value of each.
  bool areCommon(ValueRange values) {
    return llvm::none_of(
        values, [&](Value each) { return uniformity.variesAlongX(each); });
  }

  llvm::DenseMap<Region *, uint32_t> places;
  llvm::DenseMap<Value, uint32_t> buffers;   ///< by root
  std::set<std::vector<const void *>> loads; ///< of one place in the text
  KernelFacts facts;
};

void Finder::note(Operation *op) {
  auto access = memoryAccessOf(op);
  const KernelView *view = access ? views.of(access->memref) : nullptr;
  if (!view)
    return;
  facts.buffers.resize(
      std::max<size_t>(facts.buffers.size(), numberOf(*view) + 1));
  if (access->stored || access->isAtomic)
    bufferOf(*view).isWritten = true;
  else
    ++bufferOf(*view).loads;
}

/// Instructions of an operation as sm_80 and later have them, about.
double instructionsOf(Operation *op) {
  if (isa<gpu::ShuffleOp, gpu::BarrierOp>(op))
    return 2;
  if (isa<CallOpInterface>(op))
    return 20;
  if (op->getNumRegions() > 0 || op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  if (op->hasTrait<OpTrait::IsTerminator>())
    return isa<scf::ForOp>(op->getParentOp()) ? 1 : 0;
  if (!isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(
          op->getDialect()))
    return 0;
  double each = 1;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    each = 10;
  else if (isa<math::MathDialect>(op->getDialect()) &&
           !isa<math::FmaOp, math::AbsFOp>(op))
    each = 15;
  else if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::BitcastOp>(op))
    return 0;
  auto vector = op->getNumResults() == 1
                    ? dyn_cast<VectorType>(op->getResult(0).getType())
                    : VectorType();
  return each * (vector ? double(vector.getNumElements()) : 1);
}

/// KernelFacts::Step::function of an operation.
std::string functionOf(Operation *op) {
  const bool isFloat =
      isa<arith::DivFOp>(op) || (isa<math::MathDialect>(op->getDialect()) &&
                                 !isa<math::FmaOp, math::AbsFOp>(op));
  if (!isFloat)
    return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
               op)
               ? "divide.int"
               : "";
  llvm::StringRef name =
      isa<arith::DivFOp>(op) ? "divide" : op->getName().stripDialect();
  return (name + (getElementTypeOrSelf(op->getResult(0)).isF64() ? ".f64" : ""))
      .str();
}

uint32_t Finder::numberOf(Region *region) {
  auto [at, isNew] = places.try_emplace(region, facts.places.size());
  if (isNew) {
    KernelFacts::Place place{timesRun(*region, body, affine)};
    if (auto loop = dyn_cast<scf::ForOp>(region->getParentOp())) {
      auto trips = loop.getStaticTripCount();
      place.trips = trips ? trips->getLimitedValue() : UINT64_MAX;
    }
    facts.places.push_back(place);
  }
  return at->second;
}

void Finder::visit(Operation *op) {
  if (auto access = memoryAccessOf(op))
    return visitAccess(*access);
  Step step;
  if (isa<gpu::AllReduceOp>(op))
    step.kind = Step::Kind::BlockReduction;
  else if (isa<gpu::SubgroupReduceOp>(op))
    step.kind = Step::Kind::SubgroupReduction;
  else if ((step.instructions = instructionsOf(op)) == 0)
    return;
  if (step.kind == Step::Kind::Compute)
    step.function = functionOf(op);
  step.isCommon = facts::isExchangeWithinBlocks(op) ||
                  op->hasTrait<OpTrait::IsTerminator>() ||
                  areCommon(op->getOperands());
  // Addresses of a loop are sums that go on by one addition, which counts with
  // the access.
  step.isAddress = op->getNumResults() == 1 &&
                   op->getResult(0).getType().isIndex() &&
                   affine.evaluate(op->getResult(0));
  if (!step.isAddress)
    step.place = numberOf(op->getParentRegion());
  facts.steps.push_back(std::move(step));
}

/// Elements from the root's first, where lanes and blocks may differ in no
/// other way: an index that only loops or memory decide is taken to be 0.
std::optional<AffineForm> Finder::addressOf(const MemoryAccess &access,
                                            const KernelView &view) {
  AffineForm address = view.offset;
  for (auto [k, index] : llvm::enumerate(access.indices)) {
    auto form = affine.evaluate(index);
    if (!form && (uniformity.idsOf(index) & facts::threadIds()).any())
      return std::nullopt;
    if (form && !affine.addScaled(address, *form, view.strides[k]))
      return std::nullopt;
  }
  return address;
}

/// Whether a compiler has it in a register: the same load in the same block of
/// code, of a buffer that the kernel writes nothing of.
bool Finder::isLoadedAlready(const MemoryAccess &access) {
  if (access.stored || access.isAtomic)
    return false;
  std::vector<const void *> key = {
      access.op->getBlock(), access.memref.getAsOpaquePointer(),
      access.op->getResult(0).getType().getAsOpaquePointer()};
  for (Value index : access.indices)
    key.push_back(index.getAsOpaquePointer());
  const bool isNew = loads.insert(std::move(key)).second;
  return !isNew && !bufferOf(*views.of(access.memref)).isWritten;
}

/// Where a compiler puts it: in front of loops in which it reads one place of
/// what the kernel does not write.
Region *Finder::placeOf(const MemoryAccess &access) {
  Region *place = access.op->getParentRegion();
  const KernelView *view = views.of(access.memref);
  if (access.stored || access.isAtomic || !view || bufferOf(*view).isWritten)
    return place;
  auto isOutside = [&](Value value) {
    return !place->isAncestor(value.getParentRegion());
  };
  while (isa<scf::ForOp>(place->getParentOp()) && isOutside(access.memref) &&
         llvm::all_of(access.indices, isOutside))
    place = place->getParentRegion();
  return place;
}

void Finder::visitAccess(const MemoryAccess &access) {
  Step step;
  step.place = numberOf(placeOf(access));
  const KernelView *view = views.of(access.memref);
  auto type = cast<MemRefType>(access.memref.getType());
  auto element = elementTypeOf(type.getElementType());
  if (!element || !view) { // workgroup memory, or what is not followed
    step.kind = Step::Kind::Shared;
    facts.steps.push_back(std::move(step));
    return;
  }
  if (isLoadedAlready(access))
    return;
  step.kind =
      access.stored || access.isAtomic ? Step::Kind::Store : Step::Kind::Load;
  step.buffer = numberOf(*view);
  step.width = step.bytes = mgpu::sizeBytes(*element);
  for (int64_t lanes : access.lanes)
    step.bytes *= uint32_t(lanes);
  step.isCommon = areCommon(access.indices);
  step.address = addressOf(access, *view);
  facts.steps.push_back(std::move(step));
}

} // namespace

KernelFacts stepsOf(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
                    AffineEvaluator &affine,
                    const facts::Uniformity &uniformity) {
  return Finder(body, grid, block, views, affine, uniformity).run();
}

} // namespace mgpu::planner
