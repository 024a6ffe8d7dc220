// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/PlanDiff.h"

#include "support/LineText.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

Result<PlanAlone> parsePlanAlone(std::string_view text) {
  PlanAlone alone;
  // No plan has more nodes or buffers than lines.
  size_t lines = 1 + size_t(std::count(text.begin(), text.end(), '\n'));
  // Lines that are wrong are skipped here: parsePlan() reports them.
  auto nameIn = [&](auto &list, LineReader &line) {
    auto number = line.integer<uint32_t>("number");
    auto name = line.quoted();
    if (!number || !name || *number >= lines)
      return;
    if (*number >= list.size())
      list.resize(*number + 1);
    list[*number].name = std::move(*name);
  };
  for (LineSource source("plan", text); !source.atEnd();) {
    LineReader line = source.next();
    std::string_view head = line.word();
    if (head == "devices")
      alone.dag.numDevices = line.integer<uint32_t>("count").value_or(0);
    else if (head == "place")
      nameIn(alone.dag.buffers, line);
    else if (head == "step")
      nameIn(alone.dag.nodes, line);
  }
  for (DagNode &node : alone.dag.nodes)
    node.work = OpaqueCall{.isCollective = true}; // any of them may be one
  MGPU_TRY_ASSIGN(alone.plan, parsePlan(text, alone.dag));
  return alone;
}

namespace {

/// A step, and who runs before it on its streams.
struct Seen {
  const PlanStep *step = nullptr;
  std::string name, before;
};

std::map<std::pair<std::string, uint32_t>, Seen> stepsOf(const PlanAlone &of) {
  std::vector<const PlanStep *> byNode;
  std::map<PlanStream, std::string> last;
  std::map<uint32_t, Seen> seen;
  for (const PlanStep &step : of.plan.steps) {
    Seen one{&step, of.dag.node(step.node).name, ""};
    for (PlanStream stream : step.streams) {
      one.before += last[stream] + "\n";
      last[stream] = one.name;
    }
    seen.emplace(step.node.value, std::move(one));
  }
  std::map<std::string, uint32_t> count;
  std::map<std::pair<std::string, uint32_t>, Seen> keyed;
  for (auto &[node, one] : seen) {
    std::string name = one.name;
    keyed.emplace(std::pair(name, count[name]++), std::move(one));
  }
  return keyed;
}

uint64_t largest(const std::vector<uint64_t> &bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}
uint64_t waitsOf(const Plan &plan) {
  uint64_t sum = 0;
  for (const PlanStep &step : plan.steps)
    sum += step.waits.size();
  return sum;
}

} // namespace

PlanDiff diffPlans(const PlanAlone &a, const PlanAlone &b) {
  PlanDiff diff;
  diff.aMakespanUs = a.plan.makespanUs;
  diff.bMakespanUs = b.plan.makespanUs;
  diff.aLowerBoundUs = a.plan.lowerBoundUs;
  diff.bLowerBoundUs = b.plan.lowerBoundUs;
  diff.aError = a.plan.error;
  diff.bError = b.plan.error;
  diff.aLoadUs = a.plan.loadUs;
  diff.bLoadUs = b.plan.loadUs;
  diff.aFetchUs = a.plan.fetchUs;
  diff.bFetchUs = b.plan.fetchUs;
  diff.aArenaBytes = largest(a.plan.arenaBytes);
  diff.bArenaBytes = largest(b.plan.arenaBytes);
  diff.aWaits = waitsOf(a.plan);
  diff.bWaits = waitsOf(b.plan);
  auto inA = stepsOf(a), inB = stepsOf(b);
  for (const auto &[key, x] : inA) {
    auto it = inB.find(key);
    if (it == inB.end()) {
      diff.onlyInA.push_back(key.first);
      continue;
    }
    const Seen &y = it->second;
    bool streams = x.step->streams != y.step->streams;
    double duration = y.step->durationUs - x.step->durationUs;
    bool slower = std::abs(duration) >
                  1e-6 * std::max(x.step->durationUs, y.step->durationUs);
    if (!streams && !slower && x.before == y.before) {
      ++diff.same;
      continue;
    }
    diff.changes.push_back({key.first, y.step->startUs - x.step->startUs,
                            duration, streams, x.step->startUs,
                            y.step->startUs});
  }
  for (const auto &[key, y] : inB)
    if (!inA.count(key))
      diff.onlyInB.push_back(key.first);
  std::sort(diff.changes.begin(), diff.changes.end(),
            [](const StepChange &x, const StepChange &y) {
              return std::tuple(-std::abs(x.startUs), x.name, x.aStartUs) <
                     std::tuple(-std::abs(y.startUs), y.name, y.aStartUs);
            });
  return diff;
}

std::string toText(const PlanDiff &diff, size_t most) {
  double saved = diff.aMakespanUs - diff.bMakespanUs;
  std::string out = fmt::format(
      "makespan {:.3f} -> {:.3f} us ({:+.2f} %), bound {:.3f} -> {:.3f} us\n"
      "largest arena {} -> {} bytes, cross-stream waits {} -> {}\n"
      "{} steps as before, {} changed, {} gone, {} new\n",
      diff.aMakespanUs, diff.bMakespanUs,
      diff.aMakespanUs > 0 ? -100 * saved / diff.aMakespanUs : 0,
      diff.aLowerBoundUs, diff.bLowerBoundUs, diff.aArenaBytes,
      diff.bArenaBytes, diff.aWaits, diff.bWaits, diff.same,
      diff.changes.size(), diff.onlyInA.size(), diff.onlyInB.size());
  auto append = [&out](const std::string &text) { out += text; };
  if (diff.aLoadUs + diff.bLoadUs + diff.aFetchUs + diff.bFetchUs > 0)
    append(fmt::format(
        "once: load {:.3f} -> {:.3f} us, fetch {:.3f} -> {:.3f} us\n",
        diff.aLoadUs, diff.bLoadUs, diff.aFetchUs, diff.bFetchUs));
  for (size_t k = 0; k < diff.changes.size() && k < most; ++k) {
    const StepChange &change = diff.changes[k];
    append(fmt::format(
        "  \"{}\" starts at {:.3f} instead of {:.3f} us ({:+.3f})", change.name,
        change.bStartUs, change.aStartUs, change.startUs));
    if (change.durationUs != 0)
      append(fmt::format(", takes {:+.3f} us", change.durationUs));
    out += change.hasOtherStreams ? ", on other streams\n" : "\n";
  }
  if (diff.changes.size() > most)
    append(fmt::format("  and {} more\n", diff.changes.size() - most));
  for (auto [list, what] :
       {std::pair(&diff.onlyInA, "gone"), std::pair(&diff.onlyInB, "new")}) {
    for (size_t k = 0; k < list->size() && k < most; ++k)
      append(fmt::format("  \"{}\" is {}\n", (*list)[k], what));
    if (list->size() > most)
      append(fmt::format("  and {} more\n", list->size() - most));
  }
  return out;
}

} // namespace mgpu::planner
