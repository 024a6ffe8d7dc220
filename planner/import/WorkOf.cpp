// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/WorkOf.h"

#include "planner/import/AccessSet.h"
#include "planner/import/BlockShape.h"
#include "planner/import/IdsOf.h"
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
#include <numeric>
#include <set>

namespace mgpu::planner {

namespace {

using namespace mlir;

constexpr uint32_t warpLanes = 32;
constexpr int64_t sectorBytes = 32, lineBytes = 128;
// Compilers put this many loads of a loop in front of the first use.
constexpr int64_t loadsAhead = 16;
constexpr uint32_t mostFlightBytes = 128;
// Instructions of a thread before and behind what the source has.
constexpr double ofThread = 12;
// Counts may be of loops that never end.
constexpr double mostCount = 1e299;

class Counter {
public:
  Counter(Region &body, Dim3 grid, Dim3 block, const LaunchWidth &form,
          KernelViews &views, AffineEvaluator &affine)
      : body(body), form(form), own(grid, block, form), block(block),
        blocks(double(grid.volume())), threads(double(block.volume())),
        views(views), affine(affine) {}

  LaunchWork run() {
    body.walk([&](Operation *op) { note(op); });
    work.instructions = ofThread * own.threads();
    body.walk([&](Operation *op) { visit(op); });
    int64_t flight = 0;
    for (auto [place, bytes] : flights)
      flight = std::max(flight, bytes);
    const double resident = own.residents(flight);
    work.instructions *=
        idleSchedulers(double(own.threadsOfBlock()), own.blocks, resident);
    work.flightBytes = flight == 0
                           ? mostFlightBytes // stores are not awaited
                           : flightOfSource(flight, resident, blocks * threads);
    work.blocks = own.blocks == blocks ? 0 : own.blocks;
    for (double *count : {&work.instructions, &work.lines, &work.movedBytes})
      *count = std::min(*count, mostCount);
    return work;
  }

private:
  /// What the lanes of the first subgroup touch.
  struct Touched {
    double lines = 1, sectors = 1;
  };
  /// In how many accesses a thread, which is several of the source, does one of
  /// theirs, and bytes of each.
  struct Pieces {
    int64_t count = 1, bytes = 1;
  };
  void note(Operation *op);
  Pieces piecesOf(const MemoryAccess &access, int64_t bytes,
                  const std::optional<AffineForm> &address) const;
  void visit(Operation *op);
  void visitAccess(const MemoryAccess &access);
  Region *placeOf(const MemoryAccess &access);
  double timesOf(Region *region);
  std::optional<AffineForm> addressOf(const MemoryAccess &access,
                                      const KernelView &view);
  std::optional<unsigned> axisStaged(const MemoryAccess &access,
                                     const KernelView &view,
                                     const AffineForm &address) const;
  Touched touchedBy(const AffineForm &address, int64_t width, Pieces pieces,
                    unsigned axis) const;
  double sectorsOfBlock(const AffineForm &address, int64_t width,
                        int64_t bytes) const;
  bool isLoadedAlready(const MemoryAccess &access);
  void addFlight(Region *place, Pieces pieces);
  void addShared(double warps, double times);

  Region &body;
  const LaunchWidth &form;
  BlockShape own;
  Dim3 block;
  double blocks, threads; ///< of the source; threads of a block
  KernelViews &views;
  AffineEvaluator &affine;
  llvm::DenseMap<Region *, double> times; ///< for each thread
  /// The root, whether it is a store, and the strides of what was counted.
  std::set<std::tuple<const void *, bool, std::map<int64_t, int64_t>>> counted;
  std::set<std::vector<const void *>> loads; ///< of one place in the text
  llvm::DenseSet<Value> written;             ///< roots
  llvm::DenseMap<Value, unsigned> numLoads;  ///< by root
  /// Bytes that a thread awaits at once, by place: of loops that follow each
  /// other, those of one.
  llvm::DenseMap<Region *, int64_t> flights;
  LaunchWork work;
};

void Counter::note(Operation *op) {
  auto access = memoryAccessOf(op);
  const KernelView *view = access ? views.of(access->memref) : nullptr;
  if (!view)
    return;
  if (access->stored || access->isAtomic)
    written.insert(view->root);
  else
    ++numLoads[view->root];
}

/// Instructions of an operation as sm_80 and later have them, about.
double instructionsOf(Operation *op, const LaunchWidth &form) {
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

/// Elements from one thread to the next along an axis.
int64_t stepAlong(const AffineForm &address, unsigned axis) {
  for (auto [counter, coefficient] : address.terms)
    if (AffineEvaluator::threadAxisOf(counter) == axis)
      return coefficient;
  return 0;
}

/// Neighbours make one access where they lie together, as wide as is aligned.
Counter::Pieces
Counter::piecesOf(const MemoryAccess &access, int64_t bytes,
                  const std::optional<AffineForm> &address) const {
  if (form.vector == 1 || llvm::none_of(access.indices, [](Value index) {
        return variesAlongX(index);
      }))
    return {1, bytes};
  if (!address || stepAlong(*address, 0) != 1)
    return {form.vector, bytes};
  int64_t spread = std::abs(address->constant);
  for (auto [counter, coefficient] : address->terms)
    if (AffineEvaluator::threadAxisOf(counter) != 0)
      spread = std::gcd(spread, coefficient);
  const int64_t all = form.vector * bytes;
  int64_t each = std::min(all, widestAccess);
  while (each > bytes && spread * bytes % each != 0)
    each /= 2;
  return {all / each, each};
}

/// The lanes of a subgroup are first those along `axis`.
Counter::Touched Counter::touchedBy(const AffineForm &address, int64_t width,
                                    Pieces pieces, unsigned axis) const {
  SmallVector<int64_t> lines, sectors;
  const Dim3 size = own.threadsAlong;
  const auto lanes =
      uint32_t(std::min<uint64_t>(warpLanes, own.threadsOfBlock()));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    Dim3 at{lane % size.x, lane / size.x % size.y, lane / size.x / size.y};
    if (axis == 1)
      at = {lane / size.y, lane % size.y, 0};
    else if (axis == 2)
      at = {lane / size.z, 0, lane % size.z};
    at.x *= form.vector;
    const int64_t first = affine.valueAt(address, at) * width;
    for (int64_t byte = first; byte < first + pieces.bytes;
         byte += sectorBytes) {
      lines.push_back(byte / lineBytes);
      sectors.push_back(byte / sectorBytes);
    }
  }
  return {numDifferent(lines), numDifferent(sectors)};
}

/// Sectors that all threads of a block touch in all trips of their loops.
double Counter::sectorsOfBlock(const AffineForm &address, int64_t width,
                               int64_t bytes) const {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride in bytes, size
  for (auto [counter, coefficient] : address.terms) {
    int64_t size = affine.sizeOf(counter);
    if (auto axis = AffineEvaluator::threadAxisOf(counter))
      size = std::min(size, own.coveredAlong(*axis));
    else if (auto axis = AffineEvaluator::blockAxisOf(counter))
      size = own.sourceBlocksAlong(*axis);
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
  flights[place] += pieces.count * pieces.bytes *
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

void Counter::addShared(double warps, double times) {
  work.instructions += 2 * threads * blocks * times;
  work.lines += warps * form.vector;
}

/// The axis along which threads bring what the access loads to workgroup
/// memory, where they do: MGPU_STAGE (kernels/cuda/StagePlan.h).
std::optional<unsigned> Counter::axisStaged(const MemoryAccess &access,
                                            const KernelView &view,
                                            const AffineForm &address) const {
  if (!form.isStaged || access.stored || access.isAtomic ||
      written.contains(view.root) ||
      llvm::any_of(address.terms, [](const auto &term) {
        return !AffineEvaluator::threadAxisOf(term.first) &&
               !AffineEvaluator::blockAxisOf(term.first);
      }))
    return std::nullopt;
  if (stepAlong(address, 0) == 1)
    return numLoads.lookup(view.root) > 1 ? std::optional(0u) : std::nullopt;
  for (unsigned axis : {1, 2})
    if (stepAlong(address, axis) == 1)
      return axis;
  return std::nullopt;
}

void Counter::visitAccess(const MemoryAccess &access) {
  Region *place = placeOf(access);
  const double times = timesOf(place);
  const double warps = own.warps() * times;
  const KernelView *view = views.of(access.memref);
  auto type = cast<MemRefType>(access.memref.getType());
  auto element = elementTypeOf(type.getElementType());
  if (!element || !view) // workgroup memory, or what is not followed
    return addShared(warps, times);
  const int64_t width = mgpu::sizeBytes(*element);
  int64_t bytes = width;
  for (int64_t lanes : access.lanes)
    bytes *= lanes;
  if (isLoadedAlready(access))
    return;
  const bool isStore = access.stored || access.isAtomic;
  const std::optional<AffineForm> address = addressOf(access, *view);
  const auto staged =
      address ? axisStaged(access, *view, *address) : std::nullopt;
  const Pieces pieces =
      staged ? Pieces{form.vector, bytes} : piecesOf(access, bytes, address);
  bool isNew = true; // else its neighbours or the same, which the block has
  if (address) {
    std::map<int64_t, int64_t> strides;
    for (auto [counter, coefficient] : address->terms)
      strides[coefficient] += affine.sizeOf(counter) - 1;
    isNew = counted.insert({view->root.getAsOpaquePointer(), isStore, strides})
                .second;
  }
  if (staged) {
    addShared(warps, times); // loaded there, and by its first load stored
    if (!isNew)
      return;
    addShared(warps, times);
  }
  // The accesses, and their address.
  work.instructions +=
      double(pieces.count + 1) * blocks * threads / form.vector * times;
  const Touched touched =
      address ? touchedBy(*address, width, pieces, staged.value_or(0))
              : Touched{warpLanes, warpLanes};
  work.lines += warps * double(pieces.count) * touched.lines;
  if (!isNew)
    return;
  double sectors = warps * double(pieces.count) * touched.sectors;
  if (address)
    sectors =
        std::min(sectors, own.blocks * sectorsOfBlock(*address, width, bytes));
  work.movedBytes += sectors * sectorBytes;
  // What all lanes share comes from the first cache soon.
  if (!isStore && touched.sectors > 1)
    addFlight(place, pieces);
}

} // namespace

LaunchWork workOf(Region &body, Dim3 grid, Dim3 block, const LaunchWidth &form,
                  KernelViews &views, AffineEvaluator &affine) {
  return Counter(body, grid, block, form, views, affine).run();
}

} // namespace mgpu::planner
