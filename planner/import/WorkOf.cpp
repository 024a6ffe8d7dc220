// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/WorkOf.h"

#include "planner/import/AccessSet.h"
#include "planner/import/IdsOf.h"
#include "planner/import/LaunchForm.h"
#include "planner/import/TimesRun.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace mgpu::planner {

namespace {

using namespace mlir;

constexpr uint32_t warpLanes = 32;
constexpr int64_t sectorBytes = 32, lineBytes = 128, widestAccess = 16;
// Compilers put this many loads of a loop in front of the first use.
constexpr int64_t loadsAhead = 16;
constexpr uint32_t mostFlightBytes = 128;
// Threads that a large GPU holds.
constexpr double manyThreads = 1 << 18;
// Counts may be of loops that never end.
constexpr double mostCount = 1e299;

class Counter {
public:
  Counter(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
          AffineEvaluator &affine)
      : body(body), form(launchFormOf(body, grid, block, affine)), grid(grid),
        block(block), blocks(double(grid.volume())),
        threads(double(block.volume())), views(views), affine(affine) {}

  LaunchWork run() {
    body.walk([&](Operation *op) {
      meets |= isExchangeWithinBlocks(op);
      auto access = memoryAccessOf(op);
      if (access && (access->stored || access->isAtomic))
        if (const KernelView *view = views.of(access->memref))
          written.insert(view->root);
    });
    body.walk([&](Operation *op) { visit(op); });
    work.flightBytes = flightBytes();
    for (double *count : {&work.instructions, &work.lines, &work.movedBytes})
      *count = std::min(*count, mostCount);
    return work;
  }

private:
  /// What the lanes of the first subgroup touch.
  struct Touched {
    double lines = 1, sectors = 1;
  };
  uint32_t flightBytes() const;
  /// Blocks of the source along x that one block is.
  uint32_t blocksOfOne() const {
    const uint32_t threads = form.blockX > 0 ? form.blockX : block.x;
    return std::clamp(meets ? form.rows : form.vector * threads / block.x, 1u,
                      grid.x);
  }
  /// In how many accesses a thread, which is several of the source, does one of
  /// theirs, and bytes of each.
  struct Pieces {
    int64_t count = 1, bytes = 1;
  };
  Pieces piecesOf(const MemoryAccess &access, int64_t bytes) const;
  void visit(Operation *op);
  void visitAccess(const MemoryAccess &access);
  Region *placeOf(const MemoryAccess &access);
  double timesOf(Region *region);
  std::optional<AffineForm> addressOf(const MemoryAccess &access,
                                      const KernelView &view);
  Touched touchedBy(const AffineForm &address, int64_t width,
                    Pieces pieces) const;
  double sectorsOfBlock(const AffineForm &address, int64_t width,
                        int64_t bytes) const;
  bool isLoadedAlready(const MemoryAccess &access);
  void addFlight(Region *place, Pieces pieces);

  Region &body;
  LaunchForm form;
  Dim3 grid, block;
  double blocks, threads; ///< of the source; threads of a block
  bool meets = false;     ///< threads of a block do
  KernelViews &views;
  AffineEvaluator &affine;
  llvm::DenseMap<Region *, double> times; ///< for each thread
  /// The root, whether it is a store, and the strides of what was counted.
  std::set<std::tuple<const void *, bool, std::map<int64_t, int64_t>>> counted;
  std::set<std::vector<const void *>> loads; ///< of one place in the text
  llvm::DenseSet<Value> written;             ///< roots
  int64_t flight = 0;
  LaunchWork work;
};

/// Instructions of an operation as sm_80 and later have them, about.
double instructionsOf(Operation *op, const LaunchForm &form) {
  if (isa<gpu::AllReduceOp>(op)) // some of them are one thread's own numbers
    return form.vector == 1 ? 50 : 24 + 16.0 / form.vector + form.vector;
  if (isa<gpu::SubgroupReduceOp>(op)) // of log2(32 / V) exchanges
    return form.vector - 1 + 2.4 * std::log2(32.0 / form.vector);
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
    return visitAccess(*access);
  double each = instructionsOf(op, form);
  if (each == 0)
    return;
  // What neighbours have in common is done once for those that are one thread.
  const auto varies = [](Value value) { return variesAlongX(value); };
  if (form.vector > 1 &&
      (isExchangeWithinBlocks(op) || op->hasTrait<OpTrait::IsTerminator>() ||
       !llvm::any_of(op->getOperands(), varies)))
    each /= form.vector;
  // Addresses of a loop are sums that go on by one addition, which counts with
  // the access.
  const bool isAddress = op->getNumResults() == 1 &&
                         op->getResult(0).getType().isIndex() &&
                         affine.evaluate(op->getResult(0));
  work.instructions +=
      each * blocks * threads *
      (isAddress ? 1.0 / form.vector : timesOf(op->getParentRegion()));
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

Counter::Pieces Counter::piecesOf(const MemoryAccess &access,
                                  int64_t bytes) const {
  if (form.vector == 1 || llvm::none_of(access.indices, [](Value index) {
        return variesAlongX(index);
      }))
    return {1, bytes};
  const int64_t all = form.vector * bytes, each = std::min(all, widestAccess);
  return {all / each, each};
}

Counter::Touched Counter::touchedBy(const AffineForm &address, int64_t width,
                                    Pieces pieces) const {
  SmallVector<int64_t> lines, sectors;
  const auto lanes =
      uint32_t(std::min<double>(warpLanes, threads / form.vector));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t thread = lane * form.vector;
    const int64_t first =
        affine.valueAt(address, {thread % block.x, thread / block.x % block.y,
                                 thread / block.x / block.y}) *
        width;
    for (int64_t at = first; at < first + pieces.bytes; at += sectorBytes) {
      lines.push_back(at / lineBytes);
      sectors.push_back(at / sectorBytes);
    }
  }
  return {numDifferent(lines), numDifferent(sectors)};
}

/// Sectors that all threads of a block touch in all trips of their loops: of
/// one that is several of the source, if it is.
double Counter::sectorsOfBlock(const AffineForm &address, int64_t width,
                               int64_t bytes) const {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride in bytes, size
  for (auto [counter, coefficient] : address.terms) {
    auto axis = AffineEvaluator::blockAxisOf(counter);
    const int64_t size =
        axis ? *axis == 0 ? int64_t(blocksOfOne()) : 1 : affine.sizeOf(counter);
    if (size > 1)
      dims.push_back({std::abs(coefficient) * width, size});
  }
  llvm::sort(dims);
  double runs = 1, run = double(bytes);
  for (auto [stride, size] : dims)
    if (double(stride) <= std::max(run, double(sectorBytes)))
      run += double(stride) * double(size - 1);
    else
      runs *= double(size);
  return runs * std::ceil(run / double(sectorBytes));
}

/// For each thread of the source, where the GPU is full of those that are
/// several: few threads await no more for being many of the source.
uint32_t Counter::flightBytes() const {
  if (flight == 0) // stores are not awaited
    return mostFlightBytes;
  const auto most = double(std::min<int64_t>(flight, mostFlightBytes));
  const double full = blocks * threads / form.vector / manyThreads;
  return uint32_t(most * std::clamp(full, 1.0 / form.vector, 1.0));
}

/// Whether a compiler has it in a register: the same load in the same block of
/// code, of a buffer that the kernel writes nothing of.
bool Counter::isLoadedAlready(const MemoryAccess &access) {
  if (access.stored || access.isAtomic)
    return false;
  std::vector<const void *> key = {
      access.op->getBlock(), access.memref.getAsOpaquePointer(),
      access.op->getResult(0).getType().getAsOpaquePointer()};
  for (Value index : access.indices)
    key.push_back(index.getAsOpaquePointer());
  const bool isNew = loads.insert(std::move(key)).second;
  return !isNew && !written.contains(views.of(access.memref)->root);
}

void Counter::addFlight(Region *place, Pieces pieces) {
  auto loop = dyn_cast<scf::ForOp>(place->getParentOp());
  auto trips = loop ? loop.getStaticTripCount() : std::nullopt;
  // Compilers put no more than two wide ones in front by themselves.
  const int64_t ahead = form.unroll > 0   ? form.unroll
                        : form.vector > 1 ? 2
                                          : loadsAhead;
  flight += pieces.count * pieces.bytes *
            (trips  ? int64_t(trips->getLimitedValue(uint64_t(ahead)))
             : loop ? ahead
                    : 1);
}

/// Where a compiler puts it: in front of loops in which it reads one place of
/// what the kernel does not write.
Region *Counter::placeOf(const MemoryAccess &access) {
  Region *place = access.op->getParentRegion();
  const KernelView *view = views.of(access.memref);
  if (access.stored || access.isAtomic || !view || written.contains(view->root))
    return place;
  auto isOutside = [&](Value value) {
    return !place->isAncestor(value.getParentRegion());
  };
  while (isa<scf::ForOp>(place->getParentOp()) && isOutside(access.memref) &&
         llvm::all_of(access.indices, isOutside))
    place = place->getParentRegion();
  return place;
}

void Counter::visitAccess(const MemoryAccess &access) {
  Region *place = placeOf(access);
  const double times = timesOf(place);
  const double own = threads / form.vector; // threads, of a block of the source
  const double warps = std::ceil(own / warpLanes) * blocks * times;
  const KernelView *view = views.of(access.memref);
  auto type = cast<MemRefType>(access.memref.getType());
  auto element = elementTypeOf(type.getElementType());
  if (!element || !view) { // workgroup memory, or what is not followed
    work.instructions += 2 * threads * blocks * times;
    work.lines += warps * form.vector;
    return;
  }
  const int64_t width = mgpu::sizeBytes(*element);
  int64_t bytes = width;
  for (int64_t lanes : access.lanes)
    bytes *= lanes;
  if (isLoadedAlready(access))
    return;
  const Pieces pieces = piecesOf(access, bytes);
  // The accesses, and their address.
  work.instructions += double(pieces.count + 1) * own * blocks * times;
  const bool isStore = access.stored || access.isAtomic;
  std::optional<AffineForm> address = addressOf(access, *view);
  const Touched touched = address ? touchedBy(*address, width, pieces)
                                  : Touched{warpLanes, warpLanes};
  work.lines += warps * double(pieces.count) * touched.lines;
  double sectors = warps * double(pieces.count) * touched.sectors;
  if (address) {
    sectors = std::min(sectors, blocks / blocksOfOne() *
                                    sectorsOfBlock(*address, width, bytes));
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
    addFlight(place, pieces);
}

} // namespace

LaunchWork workOf(Region &body, Dim3 grid, Dim3 block, KernelViews &views,
                  AffineEvaluator &affine) {
  return Counter(body, grid, block, views, affine).run();
}

} // namespace mgpu::planner
