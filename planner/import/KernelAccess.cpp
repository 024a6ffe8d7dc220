// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelAccess.h"

#include "planner/import/AccessSet.h"
#include "planner/import/KernelView.h"
#include "planner/import/LaunchRaces.h"
#include "planner/import/TimesRun.h"
#include "planner/import/WorkOf.h"

#include "dialect/mgpu/Instructions.h"

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
#include <cstdlib>
#include <limits>

namespace mgpu::planner {

namespace {

using namespace mlir;

// More boxes per root than this are replaced by their hull: dependence tests
// stay cheap, and kernels with so many distinct windows gain little from them.
constexpr size_t maxBoxesPerRoot = 12;

class Summariser {
public:
  Summariser(Region &body, Dim3 grid, Dim3 block,
             llvm::function_ref<HostValue(Value)> valueOf, KnownMeetings &known)
      : body(body), known(known), grid(grid), block(block),
        threads(double(grid.volume()) * double(block.volume())),
        affine(body, grid, block, valueOf), valueOf(valueOf),
        views(body, affine, valueOf) {}

  KernelSummary run() {
    body.walk([&](Operation *op) { visit(op); });
    // What is printed shows the order of the blocks.
    if (body.walk([](gpu::PrintfOp) { return WalkResult::interrupt(); })
            .wasInterrupted())
      for (KernelAccess &access : summary.accesses)
        access.blockSteps = {};
    if (!body.getParentOp()->hasAttr("mgpu.matmul"))
      summary.asks = workOf(body, grid, block, views, affine);
    summary.races = findLaunchRaces(body, views, affine, known);
    return std::move(summary);
  }

private:
  void visit(Operation *op);
  void visitAccess(Operation *op, Value memref, ValueRange indices, bool reads,
                   bool writes);
  void wholeView(Value memref, bool reads, bool writes, bool beyond = false);
  bool mayLeaveView(Operation *op);
  void record(KernelAccess access);
  void visitVector(const MemoryAccess &access, const KernelView &view);
  std::optional<TouchedSets> setsOf(const MemoryAccess &access,
                                    const KernelView &view, bool writes);
  /// How often an operation runs in the whole launch at most.
  double mostRuns(Operation *op);
  double flopsOf(Operation *op);
  bool isGuarded(Operation *op);
  /// What affine guards leave of the forms of an access.
  /// A dimension that a guard cut short: its counter, and the block ids that
  /// move what a block touches of it by so many indices.
  struct Overhang {
    uint32_t counter;
    unsigned axis;
    int64_t step;
  };
  struct Guarded {
    AffineForm offset;
    std::vector<AffineForm> indices;
    std::vector<Overhang> overhangs;
  };
  std::optional<Guarded> withinGuards(const Conditions &conditions,
                                      const KernelView &view,
                                      ValueRange indices);
  std::optional<std::pair<unsigned, int64_t>>
  blocksApart(const AffineForm &index) const;
  Box boxOfAddress(const AffineForm &address,
                   const std::vector<Overhang> &overhangs, uint32_t bytes,
                   std::array<int64_t, 3> &blockSteps) const;
  static bool isNested(const AffineForm &address, uint32_t counter,
                       unsigned axis, const AffineEvaluator &affine);

  Region &body;
  KnownMeetings &known;
  Dim3 grid, block;
  double threads;
  AffineEvaluator affine;
  llvm::function_ref<HostValue(Value)> valueOf;
  KernelViews views;
  llvm::DenseMap<Operation *, bool> calleesLeave;     ///< by function
  llvm::DenseMap<Operation *, double> flopsOfCallees; ///< by function
  llvm::DenseMap<Region *, double> timesOfRegions;
  KernelSummary summary;
};

/// Additions, subtractions, multiplications and divisions of floats, for each
/// thread. A call counts the operations of its function, each once.
double Summariser::flopsOf(Operation *op) {
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    Operation *callee = call.resolveCallable();
    if (!callee)
      return 0;
    // A function that calls itself is refused elsewhere.
    auto [at, isNew] = flopsOfCallees.try_emplace(callee, 0);
    if (!isNew)
      return at->second;
    double sum = 0;
    callee->walk(
        [&](Operation *inner) { sum += inner == callee ? 0 : flopsOf(inner); });
    return flopsOfCallees[callee] = sum;
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
  if (double each = flopsOf(op); each > 0) {
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
// memref's. What is not known to stay inside may leave.
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

/// The axis whose blocks touch indices apart from each other, and how far apart
/// their first ones are: as i = block * step + (0 .. step - 1).
std::optional<std::pair<unsigned, int64_t>>
Summariser::blocksApart(const AffineForm &index) const {
  std::optional<std::pair<unsigned, int64_t>> found;
  int64_t blocks = 0;
  for (auto [counter, coefficient] : index.terms)
    if (auto axis = AffineEvaluator::blockAxisOf(counter)) {
      if (found || coefficient <= 0)
        return std::nullopt;
      found = {*axis, coefficient};
      blocks = affine.sizeOf(counter);
    }
  if (!found)
    return std::nullopt;
  auto [first, last] = affine.range(index);
  if (last - first - found->second * (blocks - 1) >= found->second)
    return std::nullopt;
  return found;
}

/// Whether every other counter of the address runs within one step of `counter`
/// or jumps past all of it, with a gap that keeps it a dimension of its own,
/// and none is a block id of `axis`.
bool Summariser::isNested(const AffineForm &address, uint32_t counter,
                          unsigned axis, const AffineEvaluator &affine) {
  int64_t step = 0, size = affine.sizeOf(counter);
  for (auto [other, coefficient] : address.terms)
    if (other == counter)
      step = coefficient;
  if (step <= 0)
    return false;
  for (auto [other, coefficient] : address.terms) {
    int64_t stride = std::abs(coefficient);
    if (other == counter)
      continue;
    if (AffineEvaluator::blockAxisOf(other) == axis ||
        (stride * affine.sizeOf(other) > step && stride <= step * size))
      return false;
  }
  return true;
}

/// One dimension for each counter, {stride, size}, the largest stride first;
/// neighbours that tile (block_id * block_dim + thread_id) become one.
static void addDims(Box &box, std::vector<std::pair<int64_t, int64_t>> dims) {
  std::sort(dims.begin(), dims.end(), std::greater<>());
  for (auto [stride, size] : dims) {
    if (!box.strides.empty() && box.strides.back() == stride * size) {
      box.strides.back() = stride;
      box.sizes.back() *= size;
      continue;
    }
    box.strides.push_back(stride);
    box.sizes.push_back(size);
  }
}

/// Puts factor * (values of a new counter) for the line in `form`, where it
/// has a multiple of the line, or nothing of it. False where it has another
/// part of it: the guard then says of pairs of indices what no box says.
static bool substitute(AffineForm &form, const Terms &line,
                       const LineValues &values, uint32_t counter) {
  std::optional<int64_t> factor;
  for (auto [each, coefficient] : line) {
    auto at = llvm::find_if(form.terms, [&, id = each](const auto &term) {
      return term.first == id;
    });
    const int64_t found = at == form.terms.end() ? 0 : at->second;
    if (found % coefficient != 0 || (factor && *factor != found / coefficient))
      return false;
    factor = found / coefficient;
  }
  if (factor.value_or(0) == 0)
    return true;
  llvm::erase_if(form.terms, [&](const auto &term) {
    return llvm::any_of(
        line, [&](const auto &each) { return each.first == term.first; });
  });
  form.constant += *factor * values.first;
  if (values.count > 1)
    form.terms.push_back({counter, *factor * values.step});
  return true;
}

/// The forms of an access of which every condition around it is a range of one
/// line of ids (`if i < n`): they run over what the guards let through, and
/// some thread is there for each value. None where a guard is anything else.
std::optional<Summariser::Guarded>
Summariser::withinGuards(const Conditions &conditions, const KernelView &view,
                         ValueRange indices) {
  if (!conditions.isWhole())
    return std::nullopt;
  Guarded out;
  out.offset = view.offset;
  for (Value index : indices) {
    auto form = affine.evaluate(index);
    if (!form || !affine.isFree(*form))
      return std::nullopt;
    out.indices.push_back(std::move(*form));
  }
  if (!affine.isFree(out.offset))
    return std::nullopt;
  std::vector<uint32_t> taken;
  for (const auto &[line, range] : conditions.lines()) {
    for (auto [counter, coefficient] : line) {
      if (llvm::is_contained(taken, counter) || affine.tieOf(counter))
        return std::nullopt; // two guards of one id
      taken.push_back(counter);
    }
    auto all = valuesOf(line, affine);
    if (!all)
      return std::nullopt;
    const LineValues some = all->within(range);
    if (some.count == all->count)
      continue;
    const uint32_t counter = affine.addCounter(some.count);
    if (!substitute(out.offset, line, some, counter))
      return std::nullopt;
    for (AffineForm &index : out.indices)
      if (!substitute(index, line, some, counter))
        return std::nullopt;
    AffineForm form;
    form.terms.assign(line.begin(), line.end());
    if (some.first == all->first && some.count > 1)
      if (auto apart = blocksApart(form))
        out.overhangs.push_back({counter, apart->first, apart->second});
  }
  return out;
}

/// The bytes of an address over all its counters; sets the steps of the block
/// ids that move them.
Box Summariser::boxOfAddress(const AffineForm &address,
                             const std::vector<Overhang> &overhangs,
                             uint32_t bytes,
                             std::array<int64_t, 3> &blockSteps) const {
  Box box;
  box.elementBytes = bytes;
  box.offset = address.constant * bytes;
  std::vector<std::pair<int64_t, int64_t>> dims; // stride, size
  for (auto [counter, coefficient] : address.terms) {
    int64_t stride = coefficient * int64_t(bytes),
            size = affine.sizeOf(counter);
    if (auto axis = AffineEvaluator::blockAxisOf(counter))
      blockSteps[*axis] = stride;
    if (stride < 0) {
      box.offset += stride * (size - 1);
      stride = -stride;
    }
    dims.push_back({stride, size});
    for (const Overhang &overhang : overhangs)
      if (overhang.counter == counter && blockSteps[overhang.axis] == 0 &&
          isNested(address, counter, overhang.axis, affine))
        blockSteps[overhang.axis] = overhang.step * stride;
  }
  addDims(box, std::move(dims));
  return box;
}

void Summariser::visitAccess(Operation *op, Value memref, ValueRange indices,
                             bool reads, bool writes) {
  const KernelView *view = views.of(memref);
  if (!view)
    return wholeView(memref, reads, writes);
  uint32_t bytes = mgpu::sizeBytes(
      *elementTypeOf(cast<MemRefType>(memref.getType()).getElementType()));
  bool guarded = isGuarded(op);
  std::optional<Guarded> within;
  if (guarded) {
    Conditions conditions(affine);
    conditions.requireAround(*op->getParentRegion(), body);
    if (conditions.share() == 0)
      return;
    within = withinGuards(conditions, *view, indices);
  }
  guarded &= !within;
  bool exact = !guarded && affine.isFree(view->offset);
  AffineForm address = within ? within->offset : view->offset;
  std::vector<Overhang> overhangs;
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
        if (auto apart = blocksApart(*index))
          overhangs.push_back({counter, apart->first, apart->second});
    }
    if (!affine.addScaled(address, dense, view->strides[k]))
      return wholeView(memref, reads, writes);
  }

  std::array<int64_t, 3> blockSteps{};
  Box box = boxOfAddress(address, overhangs, bytes, blockSteps);
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
  const HostValue outer = valueOf(view.root);
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

std::optional<TouchedSets> Summariser::setsOf(const MemoryAccess &access,
                                              const KernelView &view,
                                              bool writes) {
  auto set = accessSetOf(access, view, body, affine);
  if (!set)
    return std::nullopt;
  return TouchedSets{touchedSet(*set, writes, affine)};
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
    HostValue outer = valueOf(memref);
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

static uint64_t addUp(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<uint64_t>::max()
             : sum;
}

void Summariser::record(KernelAccess access) {
  size_t count = 0;
  for (KernelAccess &known : summary.accesses) {
    if (known.root != access.root)
      continue;
    ++count;
    if (known.box != access.box || known.blockSteps != access.blockSteps)
      continue;
    // What is sure to happen stays apart from what may happen to the same
    // bytes, else a guarded write would become a sure one.
    if (known.exact == access.exact) {
      known.reads |= access.reads;
      known.writes |= access.writes;
      if (!known.sets || !access.sets)
        known.sets = std::nullopt;
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
    summary.accesses.push_back(std::move(access));
    return;
  }
  auto [low, high] = access.box.byteRange();
  llvm::erase_if(summary.accesses,
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
  access.sets = std::nullopt;
  summary.accesses.push_back(std::move(access));
}

} // namespace

KernelSummary summariseKernel(Region &body, Dim3 grid, Dim3 block,
                              llvm::function_ref<HostValue(Value)> valueOf,
                              KnownMeetings &known) {
  return Summariser(body, grid, block, valueOf, known).run();
}

} // namespace mgpu::planner
