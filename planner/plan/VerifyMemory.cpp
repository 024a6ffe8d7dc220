// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cost, for u buffer uses: the race check walks them in plan order and keeps,
// per address range, the last write and the reads since: a new use is compared
// with those alone, for what they follow was compared before and "before" is
// transitive. That is O(u log u + comparisons), linear but for strided boxes
// whose byte ranges interleave.

#include "planner/plan/VerifyMemory.h"

#include "planner/dag/IntervalIndex.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

namespace mgpu::planner {

namespace {

class MemoryVerifier {
public:
  MemoryVerifier(const Plan &plan, const Dag &dag, const StepOrder &order,
                 const std::vector<int64_t> &base)
      : plan(plan), dag(dag), order(order), base(base) {}

  Result<void> run() {
    MGPU_TRY(checkSharing());
    MGPU_TRY(checkTenancy());
    return checkRaces();
  }

private:
  std::string stepText(uint32_t step) const {
    return nodeText(dag, plan.steps[step].node);
  }

  // A buffer that outlives one replay must not share bytes with anything.
  Result<void> checkSharing() {
    std::vector<bool> outlives(dag.buffers.size());
    for (uint32_t id = 0; id < dag.buffers.size(); ++id)
      outlives[id] = dag.buffers[id].role == BufferRole::Resident;
    for (const DagNode &node : dag.nodes)
      if (node.phase != Phase::Replay)
        for (const BufferUse &use : node.uses)
          outlives[use.buffer.value] = true;
    std::vector<std::vector<uint32_t>> byDevice(dag.numDevices);
    for (uint32_t id = 0; id < dag.buffers.size(); ++id)
      if (isInArena(dag.buffers[id]) && dag.buffers[id].sizeBytes > 0)
        byDevice[size_t(dag.buffers[id].device.value)].push_back(id);
    for (std::vector<uint32_t> &ids : byDevice) {
      std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(base[a], a) < std::pair(base[b], b);
      });
      // The farthest end so far, of any buffer and of those that outlive.
      int64_t end[2] = {-1, -1};
      uint32_t owner[2] = {0, 0};
      for (uint32_t id : ids) {
        int which = outlives[id] ? 0 : 1;
        if (end[which] > base[id])
          return badPlan(fmt::format(
              "buffers \"{}\" and \"{}\" share bytes, but "
              "one of them outlives a replay",
              dag.buffers[owner[which]].name, dag.buffers[id].name));
        int64_t mine = base[id] + int64_t(dag.buffers[id].sizeBytes);
        for (int k = 0; k < (outlives[id] ? 2 : 1); ++k)
          if (mine > end[k])
            end[k] = mine, owner[k] = id;
      }
    }
    return {};
  }

  // Bytes of an arena belong to one buffer after the other: the uses of one
  // all come before those of the next. Ordered uses alone are not enough: one
  // buffer may not be written over between a write and a read of another.
  // Steps are compared by place, for the race check proves that uses of which
  // one writes have no other order.
  Result<void> checkTenancy() {
    constexpr uint32_t never = UINT32_MAX;
    struct Life {
      uint32_t buffer, first = never, last = 0;
    };
    std::vector<Life> lives(dag.buffers.size());
    for (uint32_t s = 0; s < plan.steps.size(); ++s)
      for (const BufferUse &use : dag.node(plan.steps[s].node).uses) {
        Life &life = lives[use.buffer.value];
        life.buffer = use.buffer.value;
        life.first = std::min(life.first, s);
        life.last = s;
      }
    std::erase_if(lives, [&](const Life &life) {
      return life.first == never || !isInArena(dag.buffers[life.buffer]) ||
             dag.buffers[life.buffer].sizeBytes == 0;
    });
    std::sort(lives.begin(), lives.end(), [](const Life &a, const Life &b) {
      return std::pair(a.first, a.buffer) < std::pair(b.first, b.buffer);
    });
    // The latest buffer of each byte so far, by where its part begins.
    struct Part {
      int64_t end;
      const Life *life;
    };
    std::vector<std::map<int64_t, Part>> tenants(dag.numDevices);
    for (const Life &life : lives) {
      const Buffer &buffer = dag.buffers[life.buffer];
      auto &parts = tenants[size_t(buffer.device.value)];
      const int64_t begin = base[life.buffer],
                    end = begin + int64_t(buffer.sizeBytes);
      auto it = parts.lower_bound(begin);
      if (it != parts.begin() && std::prev(it)->second.end > begin)
        --it;
      while (it != parts.end() && it->first < end) {
        const auto [low, part] = *it;
        if (part.life->last >= life.first)
          return badPlan(fmt::format(
              "buffers \"{}\" and \"{}\" share bytes, but {} uses the first "
              "when {} has begun with the second",
              dag.buffers[part.life->buffer].name, buffer.name,
              stepText(part.life->last), stepText(life.first)));
        it = parts.erase(it);
        if (low < begin)
          parts.emplace(low, Part{begin, part.life});
        if (part.end > end)
          it = parts.emplace(end, part).first;
      }
      parts.emplace(begin, Part{end, &life});
    }
    return {};
  }

  struct Access {
    uint32_t step;
    const BufferUse *use;
  };
  struct Memory {
    IntervalIndex<Access> writes, reads;
  };

  Box absolute(const BufferUse &use) const {
    Box box = use.box;
    box.offset += base[use.buffer.value];
    return box;
  }
  std::pair<int64_t, int64_t> rangeOf(const BufferUse &use) const {
    auto [begin, end] = use.box.byteRange();
    return {begin + base[use.buffer.value], end + base[use.buffer.value]};
  }

  /// In one buffer "maybe" is the DAG's to judge, which may know more (a third
  /// use between the two); in shared arena bytes it is a conflict.
  bool collide(const BufferUse &a, const BufferUse &b) const {
    if (a.buffer != b.buffer && a.box.isContiguous() && b.box.isContiguous()) {
      auto [begin, end] = rangeOf(a);
      auto [otherBegin, otherEnd] = rangeOf(b);
      return begin < otherEnd && otherBegin < end;
    }
    if (a.buffer != b.buffer)
      return overlap(absolute(a), absolute(b)) != Overlap::None;
    if (overlap(a.box, b.box) == Overlap::Yes)
      return true;
    return covers(a, b) || covers(b, a);
  }
  bool covers(const BufferUse &outer, const BufferUse &inner) const {
    auto [outerBegin, outerEnd] = outer.box.byteRange();
    auto [innerBegin, innerEnd] = inner.box.byteRange();
    int64_t shift = base[inner.buffer.value] - base[outer.buffer.value];
    return outer.box.isContiguous() && innerBegin < innerEnd &&
           outerBegin <= innerBegin + shift && innerEnd + shift <= outerEnd;
  }

  Result<void> checkRaces() {
    // Device arenas first, then one space for each buffer that is in none.
    std::vector<Memory> arenas(dag.numDevices);
    std::unordered_map<uint32_t, Memory> ownMemory;
    auto memoryOf = [&](BufferId id) -> Memory & {
      const Buffer &buffer = dag.buffer(id);
      return isInArena(buffer) ? arenas[size_t(buffer.device.value)]
                               : ownMemory[id.value];
    };
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const DagNode &node = dag.node(plan.steps[s].node);
      for (const BufferUse &use : node.uses)
        if (use.reads || use.writes)
          MGPU_TRY(compare(memoryOf(use.buffer), s, use));
      for (const BufferUse &use : node.uses)
        if (use.writes)
          retire(memoryOf(use.buffer), use);
      for (const BufferUse &use : node.uses)
        if (use.reads || use.writes) {
          auto [begin, end] = rangeOf(use);
          Memory &memory = memoryOf(use.buffer);
          (use.writes ? memory.writes : memory.reads)
              .insert(begin, end, {s, &use});
        }
    }
    return {};
  }

  Result<void> compare(Memory &memory, uint32_t s, const BufferUse &use) {
    auto [begin, end] = rangeOf(use);
    std::optional<Access> culprit;
    auto visit = [&](int64_t, int64_t, const Access &earlier) {
      if (!culprit && !order.isBefore(earlier.step, s) &&
          collide(*earlier.use, use))
        culprit = earlier;
      return true;
    };
    memory.writes.meet(begin, end, visit);
    if (use.writes)
      memory.reads.meet(begin, end, visit);
    if (!culprit)
      return {};
    const BufferUse &other = *culprit->use;
    std::string what =
        fmt::format("buffer \"{}\"", dag.buffer(use.buffer).name);
    if (other.buffer != use.buffer)
      what = fmt::format("bytes that buffers \"{}\" and \"{}\" share",
                         dag.buffer(other.buffer).name,
                         dag.buffer(use.buffer).name);
    return badPlan(fmt::format("{} {} and {} {} {}, but nothing orders them",
                               stepText(culprit->step),
                               other.writes ? "writes" : "reads", stepText(s),
                               use.writes ? "writes" : "reads", what));
  }

  /// Drops what `use` overwrites: its step follows all of it, as compare()
  /// saw, so a later use that is after this one is after those too.
  void retire(Memory &memory, const BufferUse &use) {
    if (!use.box.isContiguous())
      return retireEqual(memory, use);
    auto [begin, end] = rangeOf(use);
    for (IntervalIndex<Access> *index : {&memory.writes, &memory.reads}) {
      std::vector<std::pair<std::pair<int64_t, int64_t>, Access>> rest;
      index->meet(begin, end,
                  [&, begin = begin, end = end](int64_t low, int64_t high,
                                                const Access &access) {
                    bool inside = begin <= low && high <= end;
                    if (!inside && !access.use->box.isContiguous())
                      return true;
                    if (low < begin)
                      rest.push_back({{low, begin}, access});
                    if (end < high)
                      rest.push_back({{end, high}, access});
                    return false;
                  });
      for (auto &[range, access] : rest)
        index->insert(range.first, range.second, access);
    }
  }
  void retireEqual(Memory &memory, const BufferUse &use) {
    auto [begin, end] = rangeOf(use);
    auto keep = [&](int64_t, int64_t, const Access &access) {
      return access.use->buffer != use.buffer ||
             !(access.use->box == use.box) ||
             overlap(use.box, use.box) != Overlap::Yes;
    };
    memory.writes.meet(begin, end, keep);
    memory.reads.meet(begin, end, keep);
  }

  const Plan &plan;
  const Dag &dag;
  const StepOrder &order;
  const std::vector<int64_t> &base;
};

} // namespace

Result<void> verifyMemory(const Plan &plan, const Dag &dag,
                          const StepOrder &order,
                          const std::vector<int64_t> &base) {
  return MemoryVerifier(plan, dag, order, base).run();
}

tl::unexpected<Error> badPlan(std::string message) {
  return fail(ErrorKind::Invalid, "plan: " + std::move(message));
}

std::string nodeText(const Dag &dag, NodeId id) {
  const DagNode &node = dag.node(id);
  std::string text = fmt::format("node {} \"{}\"", id.value, node.name);
  if (!node.location.empty())
    text += fmt::format(" ({})", node.location);
  return text;
}

} // namespace mgpu::planner
