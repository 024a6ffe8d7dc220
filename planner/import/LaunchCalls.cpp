// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu.launch: the kernel, its shape and width, and the bytes it touches.
#include "dialect/mgpu/Awaits.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "planner/import/AccessSet.h"
#include "planner/import/Commands.h"
#include "planner/import/KernelSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace mgpu::planner {

using namespace mlir;

/// Nothing is known of a kernel given as source but what the launch says: it
/// may touch all of each memref.
static KernelSummary summariseSource(ir::LaunchOp op, HostValueOf valueOf) {
  KernelSummary summary;
  for (auto [k, arg] : llvm::enumerate(op.getArgs())) {
    const HostValue &value = valueOf(arg);
    auto *view = std::get_if<View>(&value);
    if (!view)
      continue;
    Type element = cast<MemRefType>(arg.getType()).getElementType();
    uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(element));
    summary.accesses.push_back({arg, boxOf(*view, bytes), op.mayRead(k),
                                op.mayWrite(k), /*exact=*/false});
  }
  return summary;
}

static Result<void> checkBounds(ir::LaunchOp op, const KernelSummary &summary,
                                Dim3 grid, Dim3 block) {
  const auto &outside = summary.outOfBounds;
  if (!outside)
    return {};
  InFlightDiagnostic diagnostic =
      outside->op->emitOpError("index ")
      << outside->dimension << " runs from " << outside->first << " to "
      << outside->last << ", outside the " << outside->size << " of the memref";
  diagnostic.attachNote(op.getLoc())
      << "in this launch of " << grid.volume() << " blocks of "
      << block.volume() << " threads";
  return reported(std::move(diagnostic));
}

Result<int64_t> Commands::sharedBytesOf(ir::LaunchOp op) {
  Value size = op.getDynamicSharedMemorySize();
  if (!size)
    return 0;
  MGPU_TRY_ASSIGN(auto bytes,
                  host.integerOf(op, size, "the dynamic shared memory size"));
  if (bytes < 0)
    return reported(op.emitOpError("the dynamic shared memory size is ")
                    << bytes);
  return bytes;
}

Result<Dim3> Commands::dimsOf(ir::LaunchOp op, OperandRange sizes,
                              const char *what) {
  uint32_t found[3] = {1, 1, 1};
  for (auto [k, value] : llvm::enumerate(sizes)) {
    MGPU_TRY_ASSIGN(auto size, host.integerOf(op, value, what));
    if (size < 1 || size > UINT32_MAX)
      return reported(op.emitOpError(what)
                      << " is " << size << "; give 1 to " << UINT32_MAX);
    found[k] = uint32_t(size);
  }
  return Dim3{found[0], found[1], found[2]};
}

Result<void> Commands::addUses(ir::LaunchOp op, const KernelSummary &summary,
                               LaunchSpec &launch) {
  launch.flops = summary.flops;
  launch.onTensorCores = summary.onTensorCores;
  launch.uses.reserve(summary.accesses.size());
  for (const KernelAccess &access : summary.accesses) {
    MGPU_TRY_ASSIGN(const View *view, host.viewOf(op, access.root));
    launch.uses.push_back({{view->buffer, access.box, access.reads,
                            access.writes, access.blockSteps},
                           access.exact,
                           access.sets,
                           access.mostBytes});
  }
  for (const LaunchRace &race : summary.races) {
    MGPU_TRY_ASSIGN(const View *view, host.viewOf(op, race.root));
    launch.races.push_back({view->buffer, host.placeOf(race.first->getLoc()),
                            host.placeOf(race.second->getLoc()), race.text,
                            race.isProven});
  }
  return {};
}

/// Which one of two works that run as one a launch belongs to; 0 if neither.
static int64_t halfOf(Location location) {
  mpmd::WorkAttr work = mpmd::workAt(location);
  return work ? work.getHalf() : 0;
}

llvm::SmallVector<LaunchUse, 2> Commands::turnOf(DeviceId device,
                                                 int64_t half) {
  auto [at, isNew] = turns.try_emplace(device);
  Turns &mine = at->second;
  if (isNew)
    mine.buffer = recorder.addBuffer("turn", device, BufferRole::Temporary,
                                     ElementType::I8, {4});
  auto use = [&](int64_t first, int64_t count, bool writes) {
    return LaunchUse{
        {mine.buffer, Box::flat(first, count), /*reads=*/!writes, writes}};
  };
  const int64_t before = std::exchange(mine.half, half);
  if (half == 0)
    return {use(0, 4, /*writes=*/true)};
  if (before == 0 || (half == 1 && before == 2)) {
    mine.followsPair = before != 0;
    mine.pair = 1 - mine.pair;
  }
  llvm::SmallVector<LaunchUse, 2> uses = {
      use(2 * mine.pair + half - 1, 1, /*writes=*/true)};
  if (mine.followsPair)
    uses.push_back(use(2 - 2 * mine.pair, 2, /*writes=*/false));
  return uses;
}

/// All that decides what a launch asks for.
static std::vector<uint64_t> workKey(const KernelTable::Outlined &launch,
                                     Dim3 grid) {
  std::vector<uint64_t> key{launch.kernel.value, grid.x, grid.y, grid.z};
  for (const KernelArgument &argument : launch.arguments) {
    key.push_back(uint64_t(argument.offsetBytes));
    if (const auto *bits = std::get_if<uint64_t>(&argument.value))
      key.push_back(*bits);
  }
  return key;
}

/// All that decides which threads of a launch meet: its kernel, grid and
/// scalars, which of its arguments are one buffer, and how far those lie apart.
static std::vector<uint64_t> raceKey(const KernelTable::Outlined &launch,
                                     Dim3 grid) {
  std::vector<uint64_t> key{launch.kernel.value, grid.x, grid.y, grid.z};
  const std::vector<KernelArgument> &all = launch.arguments;
  for (const KernelArgument &argument : all) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      key.push_back(*bits);
      continue;
    }
    const auto first = llvm::find_if(all, [&](const KernelArgument &other) {
      return other.value == argument.value;
    });
    key.push_back(uint64_t(first - all.begin()));
    key.push_back(uint64_t(argument.offsetBytes - first->offsetBytes));
  }
  return key;
}

/// All that decides a summary: grid, block, and the constants and views that
/// are captured. Buffers are numbered as they come.
static std::vector<uint64_t>
summaryKey(Dim3 grid, Dim3 block, ValueRange captured, HostValueOf valueOf) {
  std::vector<uint64_t> key{grid.x, grid.y, grid.z, block.x, block.y, block.z};
  llvm::SmallVector<BufferId> buffers;
  auto list = [&](const auto &numbers) {
    key.push_back(numbers.size());
    key.insert(key.end(), numbers.begin(), numbers.end());
  };
  for (Value each : captured) {
    const HostValue &value = valueOf(each);
    key.push_back(value.index());
    if (const auto *constant = std::get_if<Attribute>(&value)) {
      key.push_back(uint64_t(uintptr_t(constant->getAsOpaquePointer())));
    } else if (const auto *view = std::get_if<View>(&value)) {
      const auto at = llvm::find(buffers, view->buffer);
      key.push_back(uint64_t(at - buffers.begin()));
      if (at == buffers.end())
        buffers.push_back(view->buffer);
      key.push_back(uint64_t(view->offset));
      list(view->sizes);
      list(view->strides);
    }
  }
  return key;
}

std::shared_ptr<const KernelSummary> Commands::summaryOf(ir::LaunchOp op,
                                                         Dim3 grid, Dim3 block,
                                                         HostValueOf valueOf,
                                                         SummaryParts parts) {
  constexpr size_t most = 1 << 16; // an offset may differ in each trip
  auto [at, isFirst] = launches.try_emplace(op);
  KnownLaunch &own = at->second;
  if (isFirst)
    getUsedValuesDefinedAbove(op.getBody(), own.captured);
  const std::vector<uint64_t> key =
      summaryKey(grid, block, own.captured.getArrayRef(), valueOf);
  if (auto known = own.summaries.find(key);
      known != own.summaries.end() && !parts.facts)
    return known->second;
  auto summary = std::make_shared<KernelSummary>(summariseKernel(
      op.getBody(), grid, block, valueOf, knownMeetings, parts));
  // No part of the grid is whole clusters, or ends without the others.
  if (ir::clusterOf(op) || ir::hasMark(op, ir::Mark::AwaitsOthers))
    for (KernelAccess &access : summary->accesses)
      access.blockSteps = {};
  if (numSummaries < most)
    numSummaries += own.summaries.insert_or_assign(key, summary).second;
  return summary;
}

/// The time that was given for a call without a kernel.
static std::optional<double> costOf(ir::LaunchOp op,
                                    const ImportOptions &options) {
  if (!op.isOpaque())
    return std::nullopt;
  auto at = options.costs.find(cast<StringAttr>(op->getAttr("source")).str());
  return at == options.costs.end() ? std::nullopt : std::optional(at->second);
}

/// A kernel that is given as source takes the values of scalars.
static Result<void> checkSourceArguments(ir::LaunchOp op,
                                         const HostScope &host) {
  for (auto [k, arg] : llvm::enumerate(op.getArgs()))
    if (std::holds_alternative<DynamicValue>(host.valueOf(arg)))
      return notSupported(
          op, "argument " + Twine(k) +
                  " is a dynamic scalar, which lies in memory, but a kernel "
                  "given as source takes its value; give it the role "
                  "specialised, or pass a memref");
  return {};
}

Result<void> Commands::issue(ir::LaunchOp op) {
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, op.getDevice()));
  MGPU_TRY_ASSIGN(auto sharedBytes, sharedBytesOf(op));
  MGPU_TRY_ASSIGN(auto grid, dimsOf(op, op.getGrid(), "the grid size"));
  MGPU_TRY_ASSIGN(auto block, dimsOf(op, op.getBlock(), "the block size"));
  const Place place = host.placeOf(op.getLoc());
  MGPU_TRY(recorder.checkLaunchShape(device, grid, block, place));

  llvm::SmallVector<BufferId, 2> parametersRead;
  Result<void> parametersMade;
  static const HostValue unknown;
  std::map<BufferId, HostValue> parameterViews;
  auto valueOfOuter = [&](Value value) -> const HostValue & {
    const HostValue &own = host.valueOf(value);
    auto *dynamic = std::get_if<DynamicValue>(&own);
    if (!dynamic)
      return own;
    auto parameter = recorder.parameterOn(device, dynamic->buffer,
                                          host.placeOf(value.getLoc()));
    if (!parameter) {
      parametersMade = fail(parameter.error());
      return unknown;
    }
    auto [at, isNew] =
        parameterViews.try_emplace(*parameter, View{*parameter, 0, {}, {}});
    if (isNew)
      parametersRead.push_back(*parameter);
    return at->second;
  };
  const bool isSource = op.hasSource();
  if (isSource)
    MGPU_TRY(checkSourceArguments(op, host));
  auto outlined =
      isSource ? kernels.outlineSource(op, block, sharedBytes, valueOfOuter)
               : kernels.outline(op, block, sharedBytes, valueOfOuter);
  MGPU_TRY(parametersMade);
  if (failed(outlined))
    return fail(ErrorKind::Invalid, "the kernel was refused");
  auto [work, isNew] = knownWork.try_emplace(workKey(*outlined, grid));
  const std::vector<uint64_t> meetings = raceKey(*outlined, grid);
  const SummaryParts parts{.facts = isNew,
                           .races = !raceFree.contains(meetings)};
  const auto summary = isSource
                           ? std::make_shared<const KernelSummary>(
                                 summariseSource(op, valueOfOuter))
                           : summaryOf(op, grid, block, valueOfOuter, parts);
  if (isNew)
    work->second = summary->asks;
  if (summary->races.empty())
    raceFree.insert(meetings);
  MGPU_TRY(checkBounds(op, *summary, grid, block));
  if (isNew && !isSource)
    kernels.keepFacts(outlined->kernel, summary->facts);
  LaunchSpec launch{device, outlined->kernel, grid,
                    std::move(outlined->arguments)};
  launch.asks = work->second;
  launch.durationUs = costOf(op, options);
  MGPU_TRY(addUses(op, *summary, launch));
  for (BufferId parameter : parametersRead)
    launch.uses.push_back(
        {{parameter,
          Box::flat(0, int64_t(recorder.dag().buffer(parameter).sizeBytes)),
          /*reads=*/true, /*writes=*/false}});
  if (ir::hasMark(op->getParentOfType<func::FuncOp>(), ir::Mark::InOrder))
    llvm::append_range(launch.uses, turnOf(device, halfOf(op.getLoc())));
  MGPU_TRY_ASSIGN(auto site, host.siteOf(op, op.getStream()));
  return recorder.launch(std::move(launch), site);
}

namespace {

// The counter of thread ids along x.
constexpr uint32_t threadX = 0;
constexpr int64_t warp = 32;
// Blocks that a large GPU wants, of a kernel whose blocks are wide.
constexpr uint64_t manyBlocks = 256;
// The part of a thread's loads and sums that registers hold, so that it needs
// at most 128 of them.
constexpr int64_t mostHeld = 448, mostRegisters = 128;

class Chooser {
public:
  Chooser(Region &body, Dim3 grid, Dim3 block, AffineEvaluator &affine,
          const facts::Uniformity &uniformity)
      : body(body), grid(grid), block(block), affine(affine),
        uniformity(uniformity) {}

  LaunchWidth run() {
    const bool suits = !body.walk([&](Operation *op) {
                              return visit(op) ? WalkResult::advance()
                                               : WalkResult::interrupt();
                            })
                            .wasInterrupted();
    LaunchWidth form;
    if (!suits || wide.empty())
      return form;
    for (uint32_t vector = 2; fits(vector); vector *= 2)
      if (isAligned(vector))
        form.vector = vector;
    if (form.vector == 1)
      return form;
    if (meets && block.volume() == block.x && block.x == warp * form.vector)
      for (uint32_t rows : {2, 4})
        if (grid.volume() / rows >= manyBlocks)
          form.rows = rows;
    form.unroll = unrollOf(form.vector);
    if (meets)
      return form;
    form.blockX = blockFor(form.vector);
    // Compilers take more to have all addresses of several sums at hand.
    constexpr int64_t all = 65536; // registers of a multiprocessor
    const int64_t threads = int64_t(form.blockX) * block.y * block.z,
                  held = heldBytes(form.vector, std::max(form.unroll, 1u));
    if (2 * held > mostHeld && held <= mostHeld)
      form.minBlocks =
          uint32_t(std::max<int64_t>(all / mostRegisters / threads, 1));
    return form;
  }

private:
  struct Wide {
    int64_t bytes;  ///< of an element
    int64_t spread; ///< each place is a multiple of so many elements
  };
  bool visit(Operation *op);
  bool visitAccess(const MemoryAccess &access);
  bool sharesControl(Operation *op);
  bool fits(uint32_t vector) const;
  /// The values that a loop holds for a thread that is `vector` of the source:
  /// its sums, and the loads of so many trips.
  int64_t heldBytes(uint32_t vector, uint32_t trips) const;
  uint32_t unrollOf(uint32_t vector) const;
  uint32_t blockFor(uint32_t vector) const;
  bool isAligned(uint32_t vector) const {
    return llvm::all_of(wide, [&](const Wide &each) {
      const int64_t bytes = std::min(vector * each.bytes, widestAccess);
      return each.spread * each.bytes % bytes == 0;
    });
  }

  Region &body;
  Dim3 grid, block;
  AffineEvaluator &affine;
  const facts::Uniformity &uniformity;
  std::vector<Wide> wide;
  /// Bytes that a thread of the source loads in a trip of a loop, and of what
  /// goes from trip to trip; and what all its neighbours load in one.
  struct Trip {
    int64_t loaded = 0, sums = 0, shared = 0;
  };
  llvm::DenseMap<Operation *, Trip> trips;
  llvm::DenseSet<std::tuple<Operation *, Value, Value>> loads;
  int64_t smallest = 4, largest = 1; ///< elements, in bytes
  bool meets = false;                ///< threads of a block do
};

/// Whether all neighbours come where the operation is.
bool Chooser::sharesControl(Operation *op) {
  for (Operation *above = op->getParentOp(); above != body.getParentOp();
       above = above->getParentOp())
    if (!uniformity.hasUniformControl(above, facts::Among::Neighbours))
      return false;
  return true;
}

/// Whether the kernel may have a wide form for all that this operation does.
bool Chooser::visit(Operation *op) {
  if (auto access = memoryAccessOf(op))
    return visitAccess(*access);
  auto ofSubgroup = dyn_cast<gpu::SubgroupReduceOp>(op);
  if (isa<gpu::AllReduceOp, gpu::BarrierOp>(op) ||
      (ofSubgroup && !ofSubgroup.getClusterSize() &&
       ofSubgroup.getClusterStride() == 1)) {
    meets = true;
    return sharesControl(op);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value each : loop.getYieldedValues())
      if (each.getType().isIntOrFloat() && uniformity.variesAlongX(each))
        trips[loop].sums +=
            std::max<int64_t>(each.getType().getIntOrFloatBitWidth() / 8, 4);
    return !loop.getUnsignedCmp() &&
           uniformity.hasUniformControl(loop, facts::Among::Neighbours);
  }
  if (op->getNumRegions() > 0)
    return isa<scf::IfOp>(op);
  return !facts::isExchangeWithinBlocks(op) &&
         !isa<CallOpInterface, memref::AllocaOp, gpu::PrintfOp, gpu::LaneIdOp,
              gpu::SubgroupIdOp, gpu::DynamicSharedMemoryOp>(op) &&
         op->getName().getDialectNamespace() != "nvvm" &&
         op->getName().getDialectNamespace() != "nvgpu";
}

bool Chooser::visitAccess(const MemoryAccess &access) {
  auto type = cast<MemRefType>(access.memref.getType());
  const auto element = elementTypeOf(type.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!element || type.getElementType().isIndex() ||
      type.getElementType().isInteger(1) || !access.lanes.empty() ||
      access.isAtomic ||
      isa_and_present<gpu::AddressSpaceAttr>(type.getMemorySpace()) ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  const auto bytes = int64_t(sizeBytes(*element));
  smallest = std::min(smallest, bytes);
  Wide here{bytes, 0};
  bool isWide = false;
  for (auto [k, index] : llvm::enumerate(access.indices)) {
    const bool varies = uniformity.variesAlongX(index);
    const auto form = affine.evaluate(index);
    if (ShapedType::isDynamic(strides[k]) || (varies && !form))
      return false;
    if (!form) // somewhere, for all neighbours
      here.spread = std::gcd(here.spread, strides[k]);
    bool found = false;
    for (auto [counter, coefficient] : form ? form->terms : AffineForm().terms)
      if (counter == threadX) {
        found = coefficient == 1 && strides[k] == 1;
      } else {
        here.spread = std::gcd(here.spread, coefficient * strides[k]);
      }
    if (varies && !found)
      return false; // neighbours lie apart
    isWide |= found;
    if (form)
      here.spread = std::gcd(here.spread, form->constant * strides[k]);
  }
  if (isWide) {
    largest = std::max(largest, bytes);
    wide.push_back(here);
  }
  Operation *above = access.op->getParentOp();
  if (isWide && !access.stored && isa<scf::ForOp>(above) &&
      loads.insert({above, access.memref, access.indices.back()}).second)
    trips[above].loaded += bytes;
  else if (!isWide && !access.stored && isa<scf::ForOp>(above))
    trips[above].shared += std::max<int64_t>(bytes, 4);
  return true;
}

/// Threads of a block that is smaller where there would be few.
uint32_t Chooser::blockFor(uint32_t vector) const {
  constexpr uint32_t least = 64;
  uint32_t threads = block.x;
  if (block.volume() == block.x)
    while (threads % (2 * least) == 0 &&
           grid.volume() * block.x / vector / threads < manyBlocks)
      threads /= 2;
  return threads;
}

bool Chooser::fits(uint32_t vector) const {
  const uint64_t blocks =
      meets ? grid.volume()
            : grid.volume() * block.x / vector / blockFor(vector);
  return vector * smallest <= widestAccess &&
         vector * largest <= 2 * widestAccess && block.x % vector == 0 &&
         (!meets || block.volume() % (warp * vector) == 0) &&
         blocks >= manyBlocks;
}

int64_t Chooser::heldBytes(uint32_t vector, uint32_t unroll) const {
  int64_t most = 0;
  for (auto &[loop, trip] : trips)
    most = std::max(most, vector * trip.sums +
                              unroll * (vector * trip.loaded + trip.shared));
  return most;
}

/// The number whose loads registers hold; at least two, so that not each load
/// is awaited alone.
uint32_t Chooser::unrollOf(uint32_t vector) const {
  constexpr int64_t mostLoaded = 384; // of threads that meet
  int64_t loaded = 0;
  for (auto &[loop, trip] : trips)
    loaded = std::max(loaded, trip.loaded * vector);
  uint32_t unroll = loaded == 0 ? 0 : 8;
  if (meets)
    while (unroll > 1 && unroll * loaded > mostLoaded)
      unroll /= 2;
  else
    while (unroll > 2 && heldBytes(vector, unroll) > mostHeld)
      unroll /= 2;
  return unroll;
}

} // namespace

LaunchWidth launchFormOf(Region &body, Dim3 grid, Dim3 block,
                         AffineEvaluator &affine,
                         const facts::Uniformity &uniformity) {
  return Chooser(body, grid, block, affine, uniformity).run();
}

} // namespace mgpu::planner
