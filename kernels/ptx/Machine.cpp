// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Machine.h"

#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/BulkCopies.h"
#include "kernels/ptx/WarpgroupProducts.h"

#include <algorithm>
#include <cstdio>

// A launch from its check to its last block (ISA 9.0, sections 2.2 and 5.1).

namespace mgpu::kernels::ptx {

Machine::Machine(Instance &instance, const LaunchOptions &options)
    : program(*instance.program), instance(instance), options(options),
      random(options.seed), parameters(options.parameters) {
  for (Region region : options.regions) {
    if (region.address == 0)
      region.address = reinterpret_cast<uint64_t>(region.at);
    if (region.bytes)
      regions.push_back(std::move(region));
  }
  std::sort(regions.begin(), regions.end(),
            [](auto &a, auto &b) { return a.address < b.address; });
  // Buffers that overlap are one: an address does not say which is meant.
  size_t kept = 0;
  for (Region &each : regions) {
    Region *last = kept ? &regions[kept - 1] : nullptr;
    if (last && each.address < last->address + last->bytes) {
      last->bytes =
          std::max(last->bytes, each.address - last->address + each.bytes);
      last->isWritable |= each.isWritable;
      last->isSteady &= each.isSteady;
      if (last->name != each.name)
        last->name += " and " + each.name;
    } else {
      if (&regions[kept] != &each)
        regions[kept] = std::move(each);
      ++kept;
    }
  }
  regions.resize(kept);
  constexpr uint64_t mostTracked = uint64_t(1) << 24;
  const uint64_t count = options.grid.volume();
  hasManyBlocks = count > 1 && count < mostTracked;
  published.resize(hasManyBlocks ? count + 1 : 2);
  for (const Region &each : regions)
    pages.emplace_back(hasManyBlocks ? each.bytes / program.granule / 1024 + 2
                                     : 0);
}

Result<void> Machine::check() {
  auto refuse = [&](const std::string &why) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("kernel '{}' cannot be launched: {}", program.entry, why));
  };
  const Dim3 &block = options.block, &grid = options.grid,
             &cluster = options.cluster;
  const uint64_t threads = block.volume();
  if (threads == 0 || threads > 1024 || block.z > 64 || block.x > 1024 ||
      block.y > 1024)
    return refuse(fmt::format("a block of {} x {} x {} threads", block.x,
                              block.y, block.z));
  if (grid.volume() == 0 || grid.volume() >> 40)
    return refuse(
        fmt::format("a grid of {} x {} x {} blocks", grid.x, grid.y, grid.z));
  if (program.maxThreads && threads > program.maxThreads)
    return refuse(fmt::format("its block has {} threads, and it is compiled "
                              "for at most {}",
                              threads, program.maxThreads));
  if (program.needed[0] &&
      (program.needed[0] != block.x || program.needed[1] != block.y ||
       program.needed[2] != block.z))
    return refuse(fmt::format("its block is {} x {} x {}, and it is compiled "
                              "for {} x {} x {}",
                              block.x, block.y, block.z, program.needed[0],
                              program.needed[1], program.needed[2]));
  if (cluster.volume() == 0 || cluster.volume() > 16 || grid.x % cluster.x ||
      grid.y % cluster.y || grid.z % cluster.z)
    return refuse(fmt::format("clusters of {} x {} x {} do not divide its grid",
                              cluster.x, cluster.y, cluster.z));
  const uint64_t shared = uint64_t(program.sharedBytes) -
                          program.sharedPadding + options.sharedBytes;
  constexpr uint64_t mostShared = 227 << 10; // of sm_90, by block
  if (shared > mostShared)
    return refuse(fmt::format("its blocks have {} bytes of shared memory, and "
                              "a GPU has {}",
                              shared, mostShared));
  if (parameters.size() < program.parameterBytes)
    return refuse(fmt::format("it has {} bytes of parameters, and {} are given",
                              program.parameterBytes, parameters.size()));
  return {};
}

Block::Block(Machine &machine, Cluster &cluster, uint32_t rank)
    : machine(machine), cluster(cluster), rank(rank) {
  const uint64_t threads = machine.options.block.volume();
  const uint32_t bytes =
      machine.program.sharedBytes + machine.options.sharedBytes;
  shared.bytes.resize(bytes);
  shared.states.resize(bytes);
  shared.cells.resize(bytes / machine.program.granule + 1);
  const uint64_t count = (threads + lanes - 1) / lanes;
  local.resize(count * lanes * machine.program.localBytes);
  for (uint32_t k = 0; k < count; ++k) {
    warps.push_back(std::make_unique<Warp>(machine, *this, k));
    Warp &warp = *warps.back();
    warp.id = uint32_t(rank * count) + k;
    const uint64_t all = count * machine.options.cluster.volume() + 1;
    warp.clocks.assign(all, 0);
    warp.fenced.assign(all, 0);
    const uint64_t rest = threads - uint64_t(k) * lanes;
    warp.present = rest >= lanes ? allLanes : (1u << rest) - 1;
  }
}

bool Block::isDone() const {
  return std::all_of(warps.begin(), warps.end(),
                     [](auto &warp) { return warp->isDone(); });
}
bool Cluster::isDone() const {
  return std::all_of(blocks.begin(), blocks.end(),
                     [](auto &block) { return block->isDone(); });
}

void Machine::begin(Cluster &cluster, uint64_t number) {
  const Dim3 &size = options.cluster, &grid = options.grid;
  const Dim3 count{grid.x / size.x, grid.y / size.y, grid.z / size.z};
  cluster.index = {uint32_t(number % count.x),
                   uint32_t(number / count.x % count.y),
                   uint32_t(number / count.x / count.y)};
  cluster.barrier = {};
  cluster.loads.clear();
  uint32_t latest = cluster.asyncTime;
  for (auto &block : cluster.blocks)
    for (auto &warp : block->warps)
      latest = std::max(latest, warp->now());
  cluster.asyncTime = ++latest;
  for (uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
    Block &block = *cluster.blocks[rank];
    block.index = {cluster.index.x * size.x + rank % size.x,
                   cluster.index.y * size.y + rank / size.x % size.y,
                   cluster.index.z * size.z + rank / size.x / size.y};
    block.number = hasManyBlocks
                       ? 1 + block.index.x +
                             grid.x * (block.index.y + grid.y * block.index.z)
                       : 1;
    block.acquired = 0;
    block.arrivals.clear();
    block.unpublished.clear();
    for (auto &each : block.multiplied)
      each.clear();
    for (Barrier &barrier : block.barriers)
      barrier = {};
    std::fill(block.shared.states.begin(), block.shared.states.end(),
              ByteState::Unwritten);
    for (auto &warp : block.warps) {
      // All of before is seen by all, so the cells need not be cleared.
      warp->clocks.assign(warp->clocks.size(), latest);
      warp->fenced = warp->clocks;
      ++warp->clocks[warp->id];
      warp->start();
    }
  }
}

void Machine::runCluster(Cluster &cluster, uint64_t budget) {
  constexpr uint64_t quantum = 4096;
  const uint64_t end = instructions + budget;
  std::vector<Warp *> warps;
  for (auto &block : cluster.blocks)
    for (auto &warp : block->warps)
      if (!warp->isDone())
        warps.push_back(warp.get());
  for (bool ran = true; ran && !error && instructions < end;) {
    ran = false;
    if (options.seed)
      std::shuffle(warps.begin(), warps.end(), random);
    for (Warp *warp : warps)
      if (!error && warp->canRun()) {
        const bool wasDone = warp->isDone();
        warp->run(options.seed ? 1 + random() % 256 : quantum);
        if (warp->isDone() && !wasDone) {
          leaveBarriers(*warp);
          leaveCopies(*warp);
          leaveProducts(*warp);
        }
        ran = true;
      }
    if (instructions > options.mostInstructions && !error && ran)
      for (Warp *warp : warps)
        if (warp->canRun() && !error) {
          warp->mask = warp->active;
          warp->fail(fmt::format("the launch has executed {} instructions of "
                                 "warps, its limit, and has not ended",
                                 options.mostInstructions));
        }
  }
}

Result<LaunchResult> Machine::run() {
  MGPU_TRY(check());
  constexpr uint64_t patience = uint64_t(1) << 22;
  constexpr size_t mostBytes = size_t(256) << 20;
  const uint64_t total = options.grid.volume() / options.cluster.volume();
  const size_t each =
      options.cluster.volume() *
      (size_t(program.sharedBytes + options.sharedBytes) * 12 + 4096 +
       (options.block.volume() / lanes + 1) *
           (program.file.size() + lanes * program.localBytes));
  const size_t most = std::clamp<size_t>(mostBytes / each, 1, 1024);
  std::vector<std::unique_ptr<Cluster>> resident, idle;
  for (uint64_t started = 0; !error;) {
    const bool isFull = resident.size() >= most;
    if (started < total && (resident.empty() || (!isFull && wantsMore))) {
      if (idle.empty()) {
        idle.push_back(std::make_unique<Cluster>());
        for (uint32_t k = 0; k < options.cluster.volume(); ++k)
          idle.back()->blocks.push_back(
              std::make_unique<Block>(*this, *idle.back(), k));
      }
      resident.push_back(std::move(idle.back()));
      idle.pop_back();
      begin(*resident.back(), started++);
      wantsMore = options.seed && resident.size() < 4;
    }
    if (resident.empty())
      break;
    const size_t k =
        options.seed ? random() % resident.size() : resident.size() - 1;
    Cluster &cluster = *resident[k];
    const uint64_t before = instructions;
    runCluster(cluster, options.seed ? 1 + random() % 4096 : patience);
    if (cluster.isDone()) {
      idle.push_back(std::move(resident[k]));
      resident.erase(resident.begin() + ptrdiff_t(k));
      stuckFor = 0;
      continue;
    }
    // It waits for others, or takes long: they may be what it waits for.
    std::rotate(resident.begin(), resident.begin() + 1, resident.end());
    wantsMore = true;
    stuckFor = instructions == before ? stuckFor + 1 : 0;
    if (stuckFor > resident.size() * 8 && (isFull || started == total))
      reportDeadlock(*resident.front());
  }
  if (error)
    return fail(*error);
  return LaunchResult{instructions, regions};
}

/// Nobody can go on: what the lanes wait for never comes.
void Machine::reportDeadlock(Cluster &cluster) {
  for (auto &block : cluster.blocks)
    for (auto &warp : block->warps)
      for (const Fragment &each : warp->others) {
        const bool isBarrier = each.wait == Fragment::Wait::Barrier;
        warp->pc = isBarrier ? each.pc - 1 : each.pc;
        warp->mask = each.mask;
        warp->fail(
            isBarrier ? fmt::format("deadlock: the lanes {:#x} wait at barrier "
                                    "{}, where others never come",
                                    each.mask, each.barrier)
                      : fmt::format("deadlock: the lanes {:#x} wait for what "
                                    "never happens",
                                    each.mask));
      }
}

std::string Machine::placeText(uint32_t pc) const {
  const Place place = pc < program.places.size() ? program.places[pc] : Place{};
  std::string text = fmt::format("PTX line {}", place.line);
  const auto file = program.module->files.find(place.file);
  if (place.sourceLine && file != program.module->files.end())
    text += fmt::format(" ({}:{})", file->second, place.sourceLine);
  return text;
}

void Machine::print(std::string_view text) const {
  if (options.print)
    options.print(text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

Result<LaunchResult> run(Instance &instance, const LaunchOptions &options) {
  return Machine(instance, options).run();
}

} // namespace mgpu::kernels::ptx
