// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/WorkOf.h"

#include "planner/import/AccessSet.h"
#include "planner/import/IdsOf.h"
#include "planner/import/TimesRun.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace mgpu::planner {

namespace {

using namespace mlir;

constexpr uint32_t warpLanes = 32;
constexpr int64_t sectorBytes = 32, lineBytes = 128;
// Compilers put this many loads of a loop in front of the first use.
constexpr int64_t loadsAhead = 16;
constexpr uint32_t mostFlightBytes = 128;
// Counts may be of loops that never end.
constexpr double mostCount = 1e299;

class Counter {
public:
  Counter(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
          AffineEvaluator &affine)
      : body(body), block(block), blocks(double(grid.volume())),
        threads(double(block.volume())), views(views), affine(affine) {}

  LaunchWork run() {
    body.walk([&](Operation *op) { visit(op); });
    if (flight == 0) // stores are not awaited
      flight = mostFlightBytes;
    work.flightBytes = uint32_t(std::min<int64_t>(flight, mostFlightBytes));
    for (double *count : {&work.instructions, &work.lines, &work.movedBytes})
      *count = std::min(*count, mostCount);
    return work;
  }

private:
  /// What the lanes of the first subgroup touch.
  struct Touched {
    double lines = 1, sectors = 1;
  };
  void visit(Operation *op);
  void visitAccess(const MemoryAccess &access, double times);
  double timesOf(Region *region);
  std::optional<AffineForm> addressOf(const MemoryAccess &access,
                                      const KernelView &view);
  Touched touchedBy(const AffineForm &address, int64_t width,
                    int64_t bytes) const;
  double sectorsOfBlock(const AffineForm &address, int64_t width,
                        int64_t bytes) const;
  void addFlight(const MemoryAccess &access, int64_t bytes);

  Region &body;
  Dim3 block;
  double blocks, threads; ///< threads of a block
  KernelViews &views;
  AffineEvaluator &affine;
  llvm::DenseMap<Region *, double> times; ///< for each thread
  /// The root, whether it is a store, and the strides of what was counted.
  std::set<std::tuple<const void *, bool, std::map<int64_t, int64_t>>> counted;
  int64_t flight = 0;
  LaunchWork work;
};

/// Instructions of an operation as sm_80 and later have them, about.
double instructionsOf(Operation *op) {
  if (isa<gpu::AllReduceOp>(op))
    return 50;
  if (isa<gpu::SubgroupReduceOp>(op))
    return 12;
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

double Counter::timesOf(Region *region) {
  auto [at, isNew] = times.try_emplace(region, 0);
  if (isNew)
    at->second = timesRun(*region, body, affine);
  return at->second;
}

void Counter::visit(Operation *op) {
  if (auto access = memoryAccessOf(op))
    return visitAccess(*access, timesOf(op->getParentRegion()));
  const double each = instructionsOf(op);
  if (each == 0)
    return;
  // Addresses of a loop are sums that go on by one addition, which counts with
  // the access.
  const bool isAddress = op->getNumResults() == 1 &&
                         op->getResult(0).getType().isIndex() &&
                         affine.evaluate(op->getResult(0));
  work.instructions += each * blocks * threads *
                       (isAddress ? 1 : timesOf(op->getParentRegion()));
}

/// Elements from the root's first, where lanes and blocks may differ in no
/// other way: an index that only loops or memory decide is taken to be 0.
std::optional<AffineForm> Counter::addressOf(const MemoryAccess &access,
                                             const KernelView &view) {
  AffineForm address = view.offset;
  for (auto [k, index] : llvm::enumerate(access.indices)) {
    auto form = affine.evaluate(index);
    if (!form && (idsOf(index) & threadIds()).any())
      return std::nullopt;
    if (form && !affine.addScaled(address, *form, view.strides[k]))
      return std::nullopt;
  }
  return address;
}

double numDifferent(SmallVector<int64_t> &values) {
  llvm::sort(values);
  return double(std::unique(values.begin(), values.end()) - values.begin());
}

Counter::Touched Counter::touchedBy(const AffineForm &address, int64_t width,
                                    int64_t bytes) const {
  SmallVector<int64_t> lines, sectors;
  const auto lanes = uint32_t(std::min<double>(warpLanes, threads));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Dim3 thread{lane % block.x, lane / block.x % block.y,
                      lane / block.x / block.y};
    const int64_t first = affine.valueAt(address, thread) * width;
    for (int64_t at = first; at < first + bytes; at += sectorBytes) {
      lines.push_back(at / lineBytes);
      sectors.push_back(at / sectorBytes);
    }
  }
  return {numDifferent(lines), numDifferent(sectors)};
}

/// Sectors that all threads of a block touch in all trips of their loops.
double Counter::sectorsOfBlock(const AffineForm &address, int64_t width,
                               int64_t bytes) const {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride in bytes, size
  for (auto [counter, coefficient] : address.terms)
    if (!AffineEvaluator::blockAxisOf(counter))
      dims.push_back({std::abs(coefficient) * width, affine.sizeOf(counter)});
  llvm::sort(dims);
  double runs = 1, run = double(bytes);
  for (auto [stride, size] : dims)
    if (double(stride) <= std::max(run, double(sectorBytes)))
      run += double(stride) * double(size - 1);
    else
      runs *= double(size);
  return runs * std::ceil(run / double(sectorBytes));
}

void Counter::addFlight(const MemoryAccess &access, int64_t bytes) {
  auto loop = dyn_cast<scf::ForOp>(access.op->getParentOp());
  auto trips = loop ? loop.getStaticTripCount() : std::nullopt;
  flight += bytes * (trips  ? int64_t(trips->getLimitedValue(loadsAhead))
                     : loop ? loadsAhead
                            : 1);
}

void Counter::visitAccess(const MemoryAccess &access, double times) {
  const double warps = std::ceil(threads / warpLanes) * blocks * times;
  // The access, and its address.
  work.instructions += 2 * threads * blocks * times;
  const KernelView *view = views.of(access.memref);
  auto type = cast<MemRefType>(access.memref.getType());
  auto element = elementTypeOf(type.getElementType());
  if (!element || !view) { // workgroup memory, or what is not followed
    work.lines += warps;
    return;
  }
  const int64_t width = mgpu::sizeBytes(*element);
  int64_t bytes = width;
  for (int64_t lanes : access.lanes)
    bytes *= lanes;
  const bool isStore = access.stored || access.isAtomic;
  std::optional<AffineForm> address = addressOf(access, *view);
  const Touched touched = address ? touchedBy(*address, width, bytes)
                                  : Touched{warpLanes, warpLanes};
  work.lines += warps * touched.lines;
  double sectors = warps * touched.sectors;
  if (address) {
    sectors =
        std::min(sectors, blocks * sectorsOfBlock(*address, width, bytes));
    std::map<int64_t, int64_t> strides;
    for (auto [counter, coefficient] : address->terms)
      strides[coefficient] += affine.sizeOf(counter) - 1;
    if (!counted.insert({view->root.getAsOpaquePointer(), isStore, strides})
             .second)
      return; // its neighbours or the same, which the block has
  }
  work.movedBytes += sectors * sectorBytes;
  // What all lanes share comes from the first cache soon.
  if (!isStore && touched.sectors > 1)
    addFlight(access, bytes);
}

} // namespace

LaunchWork workOf(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
                  AffineEvaluator &affine) {
  return Counter(body, grid, block, views, affine).run();
}

} // namespace mgpu::planner
