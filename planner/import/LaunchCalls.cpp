// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu.launch: the kernel, its shape, and the bytes it touches.
#include "planner/import/Commands.h"

#include "dialect/mgpu/Awaits.h"
#include "dialect/mpmd/MpmdDialect.h"

#include "mlir/Transforms/RegionUtils.h"

#include <utility>

namespace mgpu::planner {

using namespace mlir;

/// Nothing is known of a kernel given as source but what the launch says: it
/// may touch all of each memref.
static KernelSummary
summariseSource(ir::LaunchOp op, llvm::function_ref<HostValue(Value)> valueOf) {
  KernelSummary summary;
  for (auto [k, arg] : llvm::enumerate(op.getArgs())) {
    HostValue value = valueOf(arg);
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

Result<void> Commands::addUses(ir::LaunchOp op, KernelSummary summary,
                               LaunchSpec &launch) {
  launch.flops = summary.flops;
  launch.asks = summary.asks;
  launch.onTensorCores = summary.onTensorCores;
  for (KernelAccess &access : summary.accesses) {
    MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, access.root));
    launch.uses.push_back({{view.buffer, access.box, access.reads,
                            access.writes, access.blockSteps},
                           access.exact,
                           std::move(access.sets),
                           access.mostBytes});
  }
  for (const LaunchRace &race : summary.races) {
    MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, race.root));
    launch.races.push_back({view.buffer, host.placeOf(race.first->getLoc()),
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
summaryKey(Dim3 grid, Dim3 block, ValueRange captured,
           llvm::function_ref<HostValue(Value)> valueOf) {
  std::vector<uint64_t> key{grid.x, grid.y, grid.z, block.x, block.y, block.z};
  llvm::SmallVector<BufferId> buffers;
  auto list = [&](const auto &numbers) {
    key.push_back(numbers.size());
    key.insert(key.end(), numbers.begin(), numbers.end());
  };
  for (Value each : captured) {
    const HostValue value = valueOf(each);
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

KernelSummary Commands::summaryOf(ir::LaunchOp op, Dim3 grid, Dim3 block,
                                  llvm::function_ref<HostValue(Value)> valueOf,
                                  SummaryParts parts) {
  constexpr size_t most = 64; // an offset may differ in each trip
  auto [at, isFirst] = launches.try_emplace(op);
  KnownLaunch &own = at->second;
  if (isFirst)
    getUsedValuesDefinedAbove(op.getBody(), own.captured);
  const std::vector<uint64_t> key =
      summaryKey(grid, block, own.captured.getArrayRef(), valueOf);
  if (auto known = own.summaries.find(key);
      known != own.summaries.end() && !parts.facts)
    return known->second;
  KernelSummary summary =
      summariseKernel(op.getBody(), grid, block, valueOf, knownMeetings, parts);
  if (own.summaries.size() < most) {
    KernelSummary kept = summary;
    kept.facts = {};
    own.summaries.insert_or_assign(key, std::move(kept));
  }
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

Result<void> Commands::issue(ir::LaunchOp op) {
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, op.getDevice()));
  MGPU_TRY_ASSIGN(auto sharedBytes, sharedBytesOf(op));
  MGPU_TRY_ASSIGN(auto grid, dimsOf(op, op.getGrid(), "the grid size"));
  MGPU_TRY_ASSIGN(auto block, dimsOf(op, op.getBlock(), "the block size"));
  const Place place = host.placeOf(op.getLoc());
  MGPU_TRY(recorder.checkLaunchShape(device, grid, block, place));

  llvm::SmallVector<BufferId, 2> parametersRead;
  Result<void> parametersMade;
  auto valueOfOuter = [&](Value value) -> HostValue {
    auto *dynamic = std::get_if<DynamicValue>(&host.valueOf(value));
    if (!dynamic)
      return host.valueOf(value);
    auto parameter = recorder.parameterOn(device, dynamic->buffer,
                                          host.placeOf(value.getLoc()));
    if (!parameter) {
      parametersMade = fail(parameter.error());
      return {};
    }
    if (!llvm::is_contained(parametersRead, *parameter))
      parametersRead.push_back(*parameter);
    return View{*parameter, 0, {}, {}};
  };
  const bool isSource = op.hasSource();
  if (isSource)
    for (auto [k, arg] : llvm::enumerate(op.getArgs()))
      if (std::holds_alternative<DynamicValue>(host.valueOf(arg)))
        return notSupported(
            op, "argument " + Twine(k) +
                    " is a dynamic scalar, which lies in memory, but a kernel "
                    "given as source takes its value; give it the role "
                    "specialised, or pass a memref");
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
  KernelSummary summary = isSource
                              ? summariseSource(op, valueOfOuter)
                              : summaryOf(op, grid, block, valueOfOuter, parts);
  if (isNew)
    work->second = summary.asks;
  if (summary.races.empty())
    raceFree.insert(meetings);
  // No part of the grid is whole clusters, or ends without the others.
  if (ir::clusterOf(op) || ir::hasMark(op, ir::Mark::AwaitsOthers))
    for (KernelAccess &access : summary.accesses)
      access.blockSteps = {};
  MGPU_TRY(checkBounds(op, summary, grid, block));
  if (isNew && !isSource)
    kernels.keepFacts(outlined->kernel, std::move(summary.facts));
  summary.asks = work->second;
  LaunchSpec launch{device, outlined->kernel, grid,
                    std::move(outlined->arguments)};
  launch.durationUs = costOf(op, options);
  MGPU_TRY(addUses(op, std::move(summary), launch));
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

} // namespace mgpu::planner
