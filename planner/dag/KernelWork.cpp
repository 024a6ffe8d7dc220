// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/KernelWork.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace mgpu::planner {

namespace {

using Step = KernelFacts::Step;

constexpr uint32_t warpLanes = 32;
constexpr int64_t sectorBytes = 32, lineBytes = 128;
// Compilers put this many loads of a loop in front of the first use.
constexpr uint64_t loadsAhead = 16;
constexpr uint32_t mostFlightBytes = 128;
// Instructions of a thread before and behind what the source has.
constexpr double ofThread = 12;
// Counts may be of loops that never end.
constexpr double mostCount = 1e299;

/// The blocks of a launch in a form: those of the source, several of them, or,
/// where the form says how many threads they have, others.
struct BlockShape {
  BlockShape(Dim3 grid, Dim3 block, const LaunchWidth &form);

  Dim3 threadsAlong; ///< of a block, of which `rows` lie beside each other
  uint32_t rows = 1;
  double blocks = 1;
  double warps = 1; ///< of all blocks, each time that all threads come by
  /// Along an axis: threads of the source that a block has, and the blocks of
  /// the source in which they are.
  std::array<int64_t, 3> covered{}, sources{};

  uint64_t threads() const { return threadsAlong.volume() * rows; }
};

BlockShape::BlockShape(Dim3 grid, Dim3 block, const LaunchWidth &form)
    : threadsAlong{std::max(block.x / form.vector, 1u), block.y, block.z},
      rows(form.rows) {
  const bool isFree = form.blockX > 0;
  if (isFree)
    threadsAlong = {form.blockX, form.blockY > 0 ? form.blockY : block.y,
                    form.blockZ > 0 ? form.blockZ : block.z};
  const uint32_t along[] = {block.x, block.y, block.z},
                 grids[] = {grid.x, grid.y, grid.z};
  covered = {isFree ? int64_t(form.blockX) * form.vector * form.items
                    : int64_t(block.x) * form.rows * form.items,
             threadsAlong.y, threadsAlong.z};
  for (size_t k = 0; k < 3; ++k) {
    const int64_t extent = int64_t(along[k]) * grids[k];
    blocks *= double((extent + covered[k] - 1) / covered[k]);
    sources[k] =
        std::clamp<int64_t>(covered[k] / along[k], 1, int64_t(grids[k]));
  }
  const double source = double(grid.volume()),
               own = double(block.volume()) / form.vector;
  warps = isFree ? std::ceil(source * own / warpLanes)
                 : source * std::ceil(own / warpLanes);
}

class Counter {
public:
  Counter(const KernelFacts &facts, const LaunchWidth &form)
      : facts(facts), form(form), own(facts.grid, facts.block, form),
        blocks(double(facts.grid.volume())),
        threads(double(facts.block.volume())),
        flights(facts.places.size() + 1) {}

  LaunchWork run() {
    const double ofBlock = double(own.threads());
    work.instructions = ofThread * (own.blocks * ofBlock);
    for (const Step &step : facts.steps)
      visit(step);
    const int64_t flight = std::ranges::max(flights);
    // Threads that run at once on a large GPU, each of which awaits so many.
    const double resident = std::min(own.blocks * ofBlock,
                                     residentThreads(ofBlock, double(flight)));
    work.instructions *= idleSchedulers(ofBlock, own.blocks, resident);
    work.flightBytes = flight == 0
                           ? mostFlightBytes // stores are not awaited
                           : flightOfSource(flight, resident, blocks * threads);
    work.blocks = own.blocks == blocks ? 0 : own.blocks;
    for (double *count : {&work.instructions, &work.lines, &work.movedBytes})
      *count = std::min(*count, mostCount);
    return work;
  }

private:
  /// Lines and sectors that the lanes of the first subgroup touch.
  struct Touched {
    double lines = 1, sectors = 1;
  };
  /// In how many accesses a thread, which is several of the source, does one of
  /// theirs, and bytes of each.
  struct Pieces {
    int64_t count = 1, bytes = 1;
  };
  void visit(const Step &step);
  void visitAccess(const Step &access);
  double instructionsOf(const Step &step) const;
  Pieces piecesOf(const Step &access) const;
  std::optional<unsigned> axisStaged(const Step &access) const;
  Touched touchedBy(const AffineForm &address, int64_t width, Pieces pieces,
                    unsigned axis) const;
  double sectorsOfBlock(const AffineForm &address, int64_t width,
                        int64_t bytes) const;
  bool isNew(const Step &access);
  void addFlight(uint32_t place, Pieces pieces);
  void addShared(double warps, double times);

  const KernelFacts &facts;
  const LaunchWidth &form;
  BlockShape own;
  double blocks, threads; ///< of the source; threads of a block
  /// The buffer, whether it is a store, and the strides of what was counted.
  std::set<std::tuple<uint32_t, bool, std::map<int64_t, int64_t>>> counted;
  /// Bytes that a thread awaits at once, by place: of loops that follow each
  /// other, those of one.
  std::vector<int64_t> flights;
  LaunchWork work;
};

/// The counts are about those of sm_80 and later.
double Counter::instructionsOf(const Step &step) const {
  switch (step.kind) {
  case Step::Kind::BlockReduction: // some of them are a thread's own numbers
    return form.vector == 1 ? 50 : 24 + 16.0 / form.vector + form.vector;
  case Step::Kind::SubgroupReduction: // of log2(32 / V) exchanges
    return form.vector - 1 + 2.4 * std::log2(32.0 / form.vector);
  default:
    return step.instructions;
  }
}

void Counter::visit(const Step &step) {
  const double times = facts.places[step.place].times;
  if (step.kind == Step::Kind::Shared)
    return addShared(own.warps * times, times);
  if (step.kind == Step::Kind::Load || step.kind == Step::Kind::Store)
    return visitAccess(step);
  double each = instructionsOf(step);
  // Work that neighbours have in common is done once for those that are one
  // thread.
  if (form.vector > 1 && step.isCommon)
    each /= form.vector;
  work.instructions +=
      each * blocks * threads * (step.isAddress ? 1.0 / form.vector : times);
}

double numDifferent(std::vector<int64_t> &values) {
  std::ranges::sort(values);
  return double(std::unique(values.begin(), values.end()) - values.begin());
}

/// Elements from one thread to the next along an axis.
int64_t stepAlong(const AffineForm &address, unsigned axis) {
  for (auto [counter, coefficient] : address.terms)
    if (AffineCounters::threadAxisOf(counter) == axis)
      return coefficient;
  return 0;
}

/// Neighbours make one access where they lie together, as wide as is aligned.
Counter::Pieces Counter::piecesOf(const Step &access) const {
  const int64_t bytes = access.bytes;
  const std::optional<AffineForm> &address = access.address;
  if (form.vector == 1 || access.isCommon)
    return {1, bytes};
  if (!address || stepAlong(*address, 0) != 1)
    return {form.vector, bytes};
  int64_t spread = std::abs(address->constant);
  for (auto [counter, coefficient] : address->terms)
    if (AffineCounters::threadAxisOf(counter) != 0)
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
  std::vector<int64_t> lines, sectors;
  const Dim3 size = own.threadsAlong;
  const auto lanes = uint32_t(std::min<uint64_t>(warpLanes, own.threads()));
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    Dim3 at{lane % size.x, lane / size.x % size.y, lane / size.x / size.y};
    if (axis == 1)
      at = {lane / size.y, lane % size.y, 0};
    else if (axis == 2)
      at = {lane / size.z, 0, lane % size.z};
    at.x *= form.vector;
    const int64_t first = facts.counters.valueAt(address, at) * width;
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
    int64_t size = facts.counters.sizeOf(counter);
    if (auto axis = AffineCounters::threadAxisOf(counter))
      size = std::min(size, own.covered[*axis]);
    else if (auto axis = AffineCounters::blockAxisOf(counter))
      size = own.sources[*axis];
    if (size > 1)
      dims.push_back({std::abs(coefficient) * width, size});
  }
  std::ranges::sort(dims);
  double runs = 1, run = double(bytes);
  for (auto [stride, size] : dims)
    if (double(stride) <= std::max(run, double(sectorBytes)))
      run += double(stride) * double(size - 1);
    else
      runs *= double(size);
  return runs * std::ceil(run / double(sectorBytes));
}

void Counter::addFlight(uint32_t place, Pieces pieces) {
  // Compilers put no more than two wide ones in front by themselves.
  const uint64_t ahead = form.unroll > 0   ? form.unroll
                         : form.vector > 1 ? 2
                                           : loadsAhead;
  flights[place] += pieces.count * pieces.bytes *
                    int64_t(std::min(facts.places[place].trips, ahead));
}

void Counter::addShared(double warps, double times) {
  work.instructions += 2 * threads * blocks * times;
  work.lines += warps * form.vector;
}

/// The axis along which threads bring what the access loads to workgroup
/// memory, where they do: MGPU_STAGE (kernels/cuda/StagePlan.h).
std::optional<unsigned> Counter::axisStaged(const Step &access) const {
  const KernelFacts::Buffer &buffer = facts.buffers[access.buffer];
  if (!form.isStaged || access.kind == Step::Kind::Store || buffer.isWritten ||
      !access.address ||
      std::ranges::any_of(access.address->terms, [](const auto &term) {
        return !AffineCounters::threadAxisOf(term.first) &&
               !AffineCounters::blockAxisOf(term.first);
      }))
    return std::nullopt;
  if (stepAlong(*access.address, 0) == 1)
    return buffer.loads > 1 ? std::optional(0u) : std::nullopt;
  for (unsigned axis : {1, 2})
    if (stepAlong(*access.address, axis) == 1)
      return axis;
  return std::nullopt;
}

/// Else its neighbours touch the same bytes, which the block has by then.
bool Counter::isNew(const Step &access) {
  if (!access.address)
    return true;
  std::map<int64_t, int64_t> strides;
  for (auto [counter, coefficient] : access.address->terms)
    strides[coefficient] += facts.counters.sizeOf(counter) - 1;
  return counted
      .insert({access.buffer, access.kind == Step::Kind::Store, strides})
      .second;
}

void Counter::visitAccess(const Step &access) {
  const double times = facts.places[access.place].times;
  const double warps = own.warps * times;
  const int64_t width = access.width, bytes = access.bytes;
  const auto &address = access.address;
  const auto staged = axisStaged(access);
  const Pieces pieces = staged ? Pieces{form.vector, bytes} : piecesOf(access);
  const bool isFirst = isNew(access);
  if (staged) {
    addShared(warps, times); // loaded there, and by its first load stored
    if (!isFirst)
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
  if (!isFirst)
    return;
  double sectors = warps * double(pieces.count) * touched.sectors;
  if (address)
    sectors =
        std::min(sectors, own.blocks * sectorsOfBlock(*address, width, bytes));
  work.movedBytes += sectors * sectorBytes;
  // Bytes that all lanes share come from the first cache soon.
  if (access.kind == Step::Kind::Load && touched.sectors > 1)
    addFlight(access.place, pieces);
}

} // namespace

LaunchWork workOf(const KernelFacts &facts, const LaunchWidth &form) {
  return Counter(facts, form).run();
}

} // namespace mgpu::planner
