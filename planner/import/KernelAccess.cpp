// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelAccess.h"

#include "planner/dag/KernelWork.h"
#include "planner/import/AccessSet.h"
#include "planner/import/Conditions.h"
#include "planner/import/KernelSteps.h"
#include "planner/import/KernelView.h"
#include "planner/import/LaunchRaces.h"

#include "dialect/mgpu/Instructions.h"
#include "facts/KernelProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

namespace mgpu::planner {

using namespace mlir;

// More boxes per root than this are replaced by their hull: dependence tests
// stay cheap, and kernels with so many distinct windows gain little from them.
constexpr size_t maxBoxesPerRoot = 12;

static uint64_t addUp(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<uint64_t>::max()
             : sum;
}

/// Adds an access to those of a kernel: to one of the same bytes where there is
/// one. Many boxes of a root become one that holds them all.
static void recordAccess(std::vector<KernelAccess> &accesses,
                         KernelAccess access) {
  size_t count = 0;
  for (KernelAccess &known : accesses) {
    if (known.root != access.root)
      continue;
    ++count;
    if (known.box != access.box || known.blockSteps != access.blockSteps)
      continue;
    // Accesses that are sure to happen stay apart from those that may happen to
    // the same bytes, else a guarded write would become a sure one.
    if (known.exact == access.exact) {
      known.reads |= access.reads;
      known.writes |= access.writes;
      if (!known.sets || !access.sets)
        known.sets = nullptr;
      else
        for (TouchedSet &set : *access.sets)
          if (!llvm::is_contained(*known.sets, set))
            known.sets->push_back(std::move(set));
      known.mostBytes = addUp(known.mostBytes, access.mostBytes);
      return;
    }
    if (known.exact && known.reads >= access.reads &&
        known.writes >= access.writes)
      return;
  }
  if (count < maxBoxesPerRoot) {
    accesses.push_back(std::move(access));
    return;
  }
  auto [low, high] = access.box.byteRange();
  llvm::erase_if(accesses,
                 [&, &low = low, &high = high](const KernelAccess &known) {
                   if (known.root != access.root)
                     return false;
                   auto [first, last] = known.box.byteRange();
                   low = std::min(low, first);
                   high = std::max(high, last);
                   access.reads |= known.reads;
                   access.writes |= known.writes;
                   access.mostBytes = addUp(access.mostBytes, known.mostBytes);
                   return true;
                 });
  access.box = Box::flat(low, high - low);
  access.exact = false;
  access.blockSteps = {};
  access.sets = nullptr;
  accesses.push_back(std::move(access));
}

namespace {

class FlopCounter {
public:
  /// Additions, subtractions, multiplications and divisions of floats, for each
  /// thread. A call counts the operations of its function, each once.
  double of(Operation *op);

private:
  llvm::DenseMap<Operation *, double> callees; ///< by function
};

double FlopCounter::of(Operation *op) {
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    Operation *callee = call.resolveCallable();
    if (!callee)
      return 0;
    // A function that calls itself is refused elsewhere.
    auto [at, isNew] = callees.try_emplace(callee, 0);
    if (!isNew)
      return at->second;
    double sum = 0;
    callee->walk(
        [&](Operation *inner) { sum += inner == callee ? 0 : of(inner); });
    return callees[callee] = sum;
  }
  if (auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op)) {
    constexpr double lanes = 32; // that do it together
    auto a = cast<gpu::MMAMatrixType>(product.getOpA().getType());
    auto c = cast<gpu::MMAMatrixType>(product.getOpC().getType());
    return 2 * double(a.getShape()[1]) * double(c.getShape()[0]) *
           double(c.getShape()[1]) / lanes;
  }
  if (auto reduction = dyn_cast<vector::ReductionOp>(op)) {
    const bool isSum = reduction.getKind() == vector::CombiningKind::ADD ||
                       reduction.getKind() == vector::CombiningKind::MUL;
    const auto length =
        double(reduction.getSourceVectorType().getNumElements());
    return isSum && isa<FloatType>(reduction.getType())
               ? length - (reduction.getAcc() ? 0 : 1)
               : 0;
  }
  const bool isFused = isa<math::FmaOp, vector::FMAOp>(op);
  if (!isFused &&
      !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
    return 0;
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  return (isFused ? 2 : 1) * (vector ? double(vector.getNumElements()) : 1);
}

/// The attention that the launch is, and whether GPUs compute it on tensor
/// cores.
static std::optional<AttentionSizes> attentionOf(Operation *op) {
  auto launch = dyn_cast<ir::LaunchOp>(op);
  const ir::AttentionAttr of =
      launch ? ir::attentionOf(launch) : ir::AttentionAttr();
  if (!of)
    return std::nullopt;
  auto elementOf = [&](unsigned k) {
    return getElementTypeOrSelf(launch.getArgs()[k].getType());
  };
  const Type element = elementOf(0);
  return AttentionSizes{double(of.getBatchSize()),
                        double(of.getQueries()),
                        double(of.getKeys()),
                        double(of.getHead()),
                        double(of.getValue()),
                        std::max(element.getIntOrFloatBitWidth(), 8u) / 8,
                        !element.isF32() && elementOf(1) == element &&
                            elementOf(2) == element &&
                            AttentionSizes::fitsTensorCores(of.getHead()) &&
                            AttentionSizes::fitsTensorCores(of.getValue())};
}

class Summariser {
public:
  Summariser(Region &body, Dim3 grid, Dim3 block, HostValueOf valueOf,
             KnownMeetings &known)
      : body(body), known(known), grid(grid), block(block),
        threads(double(grid.volume()) * double(block.volume())),
        affine(body, grid, block,
               [valueOf](Value value) {
                 const HostValue &outer = valueOf(value);
                 const auto *constant = std::get_if<Attribute>(&outer);
                 return constant ? *constant : Attribute();
               }),
        uniformity(body), valueOf(valueOf), views(body, affine, valueOf),
        boxes(affine) {}

  KernelSummary run(SummaryParts parts) {
    body.walk([&](Operation *op) { visit(op); });
    // A print shows the order of the blocks.
    if (body.walk([](gpu::PrintfOp) { return WalkResult::interrupt(); })
            .wasInterrupted())
      for (KernelAccess &access : summary.accesses)
        access.blockSteps = {};
    if (parts.facts)
      findFacts();
    if (const auto attention = attentionOf(body.getParentOp())) {
      summary.flops = attention->flops(); // the body computes scores twice
      summary.onTensorCores = attention->onTensorCores;
    }
    if (parts.races)
      summary.races = findLaunchRaces(body, views, affine, uniformity, known);
    return std::move(summary);
  }

private:
  void findFacts();
  void visit(Operation *op);
  void visitAccess(Operation *op, Value memref, ValueRange indices, bool reads,
                   bool writes);
  void wholeView(Value memref, bool reads, bool writes, bool beyond = false);
  bool mayLeaveView(Operation *op);
  void visitVector(const MemoryAccess &access, const KernelView &view);
  std::shared_ptr<TouchedSets> setsOf(const MemoryAccess &access,
                                      const KernelView &view, bool writes);
  /// How often an operation runs in the whole launch at most.
  double mostRuns(Operation *op);
  bool isGuarded(Operation *op);
  void record(KernelAccess access) {
    recordAccess(summary.accesses, std::move(access));
  }

  Region &body;
  KnownMeetings &known;
  Dim3 grid, block;
  double threads;
  AffineEvaluator affine;
  facts::Uniformity uniformity;
  HostValueOf valueOf;
  KernelViews views;
  AccessBoxes boxes;
  FlopCounter flops;
  llvm::DenseMap<Operation *, bool> calleesLeave; ///< by function
  llvm::DenseMap<Region *, double> timesOfRegions;
  KernelSummary summary;
};

/// The product that the launch is. B may lie turned without that the launch
/// says so.
static std::optional<Product> productOf(ir::LaunchOp launch,
                                        HostValueOf valueOf) {
  const ir::ProductAttr product = ir::productOf(launch);
  if (!product)
    return std::nullopt;
  const auto factors = elementTypeOf(product.getA()),
             sums = elementTypeOf(product.getC());
  const HostValue &second = valueOf(launch.getArgs()[1]);
  const auto *b = std::get_if<View>(&second);
  if (!factors || !sums || !b)
    return std::nullopt;
  Product made = facts::sizesOf(product, *factors, *sums,
                                /*isAlone=*/launch.getArgs().size() == 3);
  const ArrayRef<int64_t> strides = ArrayRef(b->strides).take_back(2);
  made.isTurned |= strides[1] != 1 && strides[0] == 1;
  return made;
}

void Summariser::findFacts() {
  const LaunchWidth form = launchFormOf(body, grid, block, affine, uniformity);
  KernelFacts &facts = summary.facts =
      stepsOf(body, grid, block, views, affine, uniformity);
  auto launch = dyn_cast<ir::LaunchOp>(body.getParentOp());
  if (launch)
    facts.product = productOf(launch, valueOf);
  if (const auto attention = attentionOf(body.getParentOp())) {
    summary.asks = workOfAttention(*attention, threads);
    return;
  }
  if (!launch || !ir::productOf(launch))
    summary.asks = workOf(facts, form);
  else if (facts.product && facts.product->factors == facts.product->sums &&
           facts.product->isWide())
    summary.asks =
        workOfTiles(*facts.product, tilesByDefault(*facts.product), threads);
}

bool Summariser::isGuarded(Operation *op) {
  for (Operation *at = op->getParentOp();
       at && body.isAncestor(at->getParentRegion()); at = at->getParentOp()) {
    // A counted loop is known to run at least once when its counter is known;
    // of any other region it is not known that it runs.
    auto loop = dyn_cast<scf::ForOp>(at);
    if (!loop || !affine.evaluate(loop.getInductionVar()))
      return true;
  }
  // A second block means unstructured control flow.
  return !body.hasOneBlock();
}

void Summariser::visit(Operation *op) {
  if (ir::isInstruction(op))
    return; // what it means stands behind it
  if (double each = flops.of(op); each > 0) {
    Region *region = op->getParentRegion();
    auto [times, isNew] = timesOfRegions.try_emplace(region, 0);
    if (isNew)
      times->second = timesRun(*region, body, affine);
    summary.flops = std::min(summary.flops + each * threads * times->second,
                             1e299); // loops that never end are counted, too
  }
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return visitAccess(op, load.getMemRef(), load.getIndices(), true, false);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return visitAccess(op, store.getMemRef(), store.getIndices(), false, true);
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    return visitAccess(op, atomic.getMemref(), atomic.getIndices(), true, true);
  if (isa<memref::SubViewOp, memref::CastOp, memref::DimOp, memref::RankOp>(op))
    return;
  if (auto access = memoryAccessOf(op); access && !access->lanes.empty())
    if (const KernelView *view = views.of(access->memref))
      return visitVector(*access, *view);
  for (Value operand : op->getOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()))
      continue;
    bool reads = true, writes = true;
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(op)) {
      llvm::SmallVector<MemoryEffects::EffectInstance> found;
      effects.getEffects(found);
      // An effect on nothing in particular may be on this operand.
      llvm::erase_if(found, [&](const auto &effect) {
        return effect.getValue() && effect.getValue() != operand;
      });
      reads = llvm::any_of(found, [](const auto &effect) {
        return isa<MemoryEffects::Read>(effect.getEffect());
      });
      writes = llvm::any_of(found, [](const auto &effect) {
        return isa<MemoryEffects::Write>(effect.getEffect());
      });
      // No effect of its own: a result or a successor carries the memref on to
      // where we no longer follow it (a cast, a pointer, a yield, a branch).
      if (found.empty() ||
          llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>))
        reads = writes = true;
    }
    if (reads || writes)
      wholeView(operand, reads, writes, mayLeaveView(op));
  }
}

// Whether an operation can make a memref that reaches past the view it takes:
// memref.reinterpret_cast, memref.view, a pointer, a call that does so; or
// reaches past it itself, as a matrix whose rows are further apart than the
// memref's. An access that is not known to stay inside may leave.
bool Summariser::mayLeaveView(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumRegions() > 0 ||
      isa<memref::SubViewOp, memref::CastOp, memref::DimOp, memref::RankOp,
          memref::CollapseShapeOp, memref::ExpandShapeOp, memref::TransposeOp,
          memref::MemorySpaceCastOp, arith::SelectOp>(op))
    return false;
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    Operation *callee = call.resolveCallable();
    if (!callee)
      return true;
    // A function that calls itself adds nothing to what it does otherwise.
    auto [at, isNew] = calleesLeave.try_emplace(callee, false);
    if (!isNew)
      return at->second;
    bool leaves =
        callee
            ->walk([&](Operation *inner) {
              return inner != callee &&
                             llvm::any_of(inner->getOperandTypes(),
                                          llvm::IsaPred<BaseMemRefType>) &&
                             mayLeaveView(inner)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted();
    return calleesLeave[callee] = leaves;
  }
  if (isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp>(op))
    return true;
  // An access of its own whose results are numbers stays where it is.
  return !isa<MemoryEffectOpInterface>(op) || isMemoryEffectFree(op) ||
         llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
}

void Summariser::visitAccess(Operation *op, Value memref, ValueRange indices,
                             bool reads, bool writes) {
  const KernelView *view = views.of(memref);
  if (!view)
    return wholeView(memref, reads, writes);
  uint32_t bytes = mgpu::sizeBytes(
      *elementTypeOf(cast<MemRefType>(memref.getType()).getElementType()));
  bool guarded = isGuarded(op);
  std::optional<AccessBoxes::Guarded> within;
  if (guarded) {
    Conditions conditions(affine);
    conditions.requireAround(*op->getParentRegion(), body);
    if (conditions.share() == 0)
      return;
    within = boxes.withinGuards(conditions, *view, indices);
  }
  guarded &= !within;
  bool exact = !guarded && affine.isFree(view->offset);
  AffineForm address = within ? within->offset : view->offset;
  std::vector<AccessBoxes::Overhang> overhangs;
  if (within)
    overhangs = within->overhangs;
  for (size_t k = 0; k < view->sizes.size(); ++k) {
    std::optional<AffineForm> index =
        within ? within->indices[k] : affine.evaluate(indices[k]);
    int64_t low = 0, high = view->sizes[k] - 1;
    if (index) {
      auto [first, last] = affine.range(*index);
      if (first >= low && last <= high) {
        exact &= affine.isFree(*index);
        if (!affine.addScaled(address, *index, view->strides[k]))
          return wholeView(memref, reads, writes);
        continue;
      }
      if (!guarded && affine.isFree(*index) && !summary.outOfBounds)
        summary.outOfBounds = {op, k, first, last, view->sizes[k]};
      // Past the edge only under a guard: keep what can be in bounds.
      low = std::max(low, first);
      high = std::min(high, last);
      if (low > high)
        return;
    }
    exact = false;
    AffineForm dense{low, {}};
    if (high > low) {
      uint32_t counter = affine.addCounter(high - low + 1);
      dense.terms.push_back({counter, 1});
      // Each block that hangs over the end keeps what it has before it.
      if (index && affine.range(*index).first == low)
        if (auto apart = boxes.blocksApart(*index))
          overhangs.push_back({counter, apart->first, apart->second});
    }
    if (!affine.addScaled(address, dense, view->strides[k]))
      return wholeView(memref, reads, writes);
  }

  std::array<int64_t, 3> blockSteps{};
  Box box = boxes.boxOfAddress(address, overhangs, bytes, blockSteps);
  KernelAccess access{view->root, std::move(box), reads,
                      writes,     exact,          blockSteps};
  if (!exact) {
    access.sets = setsOf(*memoryAccessOf(op), *view, writes);
    access.mostBytes = uint64_t(std::min(mostRuns(op) * bytes, 0x1p63));
  }
  record(std::move(access));
}

/// Boxes of vectors are not made: they may touch all of the memref below.
void Summariser::visitVector(const MemoryAccess &access,
                             const KernelView &view) {
  const HostValue &outer = valueOf(view.root);
  const auto type = cast<MemRefType>(access.memref.getType());
  const uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(type.getElementType()));
  const bool writes = bool(access.stored);
  record({view.root,
          boxOf(std::get<View>(outer), bytes),
          !writes,
          writes,
          /*exact=*/false,
          {},
          setsOf(access, view, writes)});
}

std::shared_ptr<TouchedSets> Summariser::setsOf(const MemoryAccess &access,
                                                const KernelView &view,
                                                bool writes) {
  auto set = accessSetOf(access, view, body, affine);
  if (!set)
    return nullptr;
  return std::make_shared<TouchedSets>(
      TouchedSets{touchedSet(*set, writes, affine)});
}

double Summariser::mostRuns(Operation *op) {
  double runs = threads;
  for (Operation *at = op->getParentOp();
       at && body.isAncestor(at->getParentRegion()); at = at->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(at);
    if (!loop && !isa<scf::IfOp>(at))
      return std::numeric_limits<double>::infinity();
    auto trips = loop ? loop.getStaticTripCount() : APInt(64, 1);
    runs *= trips ? trips->roundToDouble()
                  : std::numeric_limits<double>::infinity();
  }
  return body.hasOneBlock() ? runs : std::numeric_limits<double>::infinity();
}

/// `beyond`: the whole buffer below, of which the memref may be a part.
void Summariser::wholeView(Value memref, bool reads, bool writes, bool beyond) {
  // A view we lost track of may be any part of any captured memref it can be
  // cast from; follow the operands that are memrefs down to captured values.
  if (!body.isAncestor(memref.getParentRegion())) {
    const HostValue &outer = valueOf(memref);
    auto *host = std::get_if<View>(&outer);
    if (!host)
      return;
    uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(
        cast<BaseMemRefType>(memref.getType()).getElementType()));
    // The launch clips a box to the length of its buffer.
    record({memref,
            beyond ? Box::flat(0, std::numeric_limits<int64_t>::max())
                   : boxOf(*host, bytes),
            reads, writes});
    return;
  }
  // The kernel's own arguments are its workgroup memory.
  auto argument = dyn_cast<BlockArgument>(memref);
  if (argument && argument.getOwner() == &body.front())
    return;
  Operation *op = memref.getDefiningOp();
  // A block argument, or the result of a region: whatever is captured may flow
  // here.
  if (!op || op->getNumRegions() > 0) {
    body.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isa<BaseMemRefType>(operand.getType()) &&
            !body.isAncestor(operand.getParentRegion()))
          wholeView(operand, reads, writes, beyond);
    });
    return;
  }
  beyond |= mayLeaveView(op);
  for (Value operand : op->getOperands())
    if (isa<BaseMemRefType>(operand.getType()))
      wholeView(operand, reads, writes, beyond);
}

} // namespace

KernelSummary summariseKernel(Region &body, Dim3 grid, Dim3 block,
                              HostValueOf valueOf, KnownMeetings &known,
                              SummaryParts parts) {
  return Summariser(body, grid, block, valueOf, known).run(parts);
}

} // namespace mgpu::planner
