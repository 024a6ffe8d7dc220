// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/ScheduleSuite.h"
#include "device/api/Topology.h"
#include "planner/dag/DagJson.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/overlap/MemoryBound.h"
#include "planner/schedule/overlap/OverlapPlan.h"
#include "planner/schedule/overlap/OverlapSearch.h"
#include "support/FileIO.h"

#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::bench {

using namespace planner;
using namespace planner::overlap;

static constexpr uint32_t proofCandidates = 12;

/// "100GB", "80GiB", "1e11", "none": bytes; decimal units by ten.
static Result<uint64_t> parseBytes(const std::string &text) {
  if (text == "none")
    return uint64_t(INT64_MAX);
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, size_t(text.data() + text.size() - end));
  double scale = unit.empty() || unit == "B" ? 1
                 : unit == "MB"              ? 1e6
                 : unit == "GB"              ? 1e9
                 : unit == "TB"              ? 1e12
                 : unit == "MiB"             ? 0x1p20
                 : unit == "GiB"             ? 0x1p30
                 : unit == "TiB"             ? 0x1p40
                                             : 0;
  if (error != std::errc() || !(value > 0) || scale == 0 ||
      !(value * scale < 9e18))
    return fail(ErrorKind::Usage,
                fmt::format("--memory {}: give a size as 100GB or 80GiB, or "
                            "none",
                            text));
  return uint64_t(value * scale);
}

static Error doesNotFit(const Dag &dag, const OverlapModel &model,
                        uint64_t limit, const OverlapSearch &search) {
  uint64_t leastPeak = search.leastPeak();
  MemoryBound proof =
      memoryBound(model, search.lowMemory(), proofCandidates, limit);
  auto gb = [](uint64_t bytes) { return double(bytes) / 1e9; };
  if (proof.bytes <= limit)
    return {ErrorKind::Invalid,
            fmt::format("no order found fits {:.3f} GB: the least peak found "
                        "is {:.3f} GB, and {:.3f} GB are proven necessary; "
                        "allow more memory",
                        gb(limit), gb(leastPeak), gb(proof.bytes))};
  std::string largest;
  for (size_t k = 0; k < proof.live.size() && k < 5; ++k) {
    uint32_t node = proof.live[k];
    largest += fmt::format("{}{} \"{}\" ({:.3f} GB)", k ? ", " : "", node,
                           dag.nodes[node].name, gb(model.outBytes[node]));
  }
  return {ErrorKind::Invalid,
          fmt::format("no schedule fits {:.3f} GB: when node {} \"{}\" starts, "
                      "at least {:.3f} GB are live in every order (a minimum "
                      "cut: {:.3f} GB resident, its output and {} others, the "
                      "largest of nodes {}); {:.3f} GB are missing",
                      gb(limit), proof.node, dag.nodes[proof.node].name,
                      gb(proof.bytes), gb(model.residentBytes),
                      proof.live.size(), largest, gb(proof.bytes - limit))};
}

namespace {
struct Outcome {
  Plan plan;
  OverlapSchedule schedule;
  uint64_t peak = 0;
};
} // namespace

/// Makes and verifies the plan of a schedule; its arena must fit as well.
static Result<Outcome> finish(const Dag &dag, const OverlapModel &model,
                              const OverlapSchedule &schedule, uint64_t limit) {
  Outcome outcome;
  outcome.plan = makePlan(model, schedule, dag);
  outcome.schedule = schedule;
  outcome.peak = peakMemory(model, schedule);
  MGPU_TRY(verify(outcome.plan, dag, {2, limit}));
  MGPU_TRY(check(model, schedule));
  if (outcome.peak > limit)
    return fail(
        ErrorKind::Internal,
        fmt::format("the plan takes {} bytes of {}", outcome.peak, limit));
  return outcome;
}

static std::string planJson(const Outcome &outcome, const Dag &dag,
                            const OverlapModel &model) {
  // A node's output is the first buffer it writes.
  std::vector<uint64_t> offsets(dag.buffers.size(), 0);
  for (const Placement &placement : outcome.plan.placements)
    offsets[placement.buffer.value] = placement.offset;
  nlohmann::json nodes = nlohmann::json::array();
  for (uint32_t i = 0; i < model.size(); ++i) {
    nlohmann::json offset = nullptr;
    for (const BufferUse &use : dag.nodes[i].uses)
      if (use.writes) {
        offset = offsets[use.buffer.value];
        break;
      }
    double start = outcome.schedule.starts[i];
    nodes.push_back({{"id", i},
                     {"start_us", start},
                     {"end_us", start + model.durations[i]},
                     {"stream", model.isCollective[i] ? 1 : 0},
                     {"offset", std::move(offset)}});
  }
  nlohmann::json out{{"format", "mgpu-timed-plan/1"},
                     {"dag", dag.name},
                     {"makespan_us", outcome.schedule.makespan},
                     {"arena_bytes", outcome.plan.arenaBytes[0]},
                     {"resident_bytes", dag.residentBytes},
                     {"nodes", std::move(nodes)}};
  return out.dump() + "\n";
}

Result<int> runDag(const DagOptions &options, const CommonOptions &common) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  if (options.model != "frozen")
    return fail(ErrorKind::Unsupported,
                fmt::format("model \"{}\" is not known; this version plans "
                            "DAGs under \"frozen\"",
                            options.model));
  MGPU_TRY_ASSIGN(device::Topology topology,
                  device::openTopology(options.target));
  uint64_t limit = topology.device.memoryBytes;
  if (!options.memory.empty()) {
    MGPU_TRY_ASSIGN(limit, parseBytes(options.memory));
  }
  auto loading = Clock::now();
  MGPU_TRY_ASSIGN(Dag dag, readDagJson(options.file));
  double loadSeconds = seconds(loading);
  if (dag.numDevices > topology.devices)
    return fail(ErrorKind::Absent,
                fmt::format("{} is for {} devices, {} has {}", options.file,
                            dag.numDevices, topology.name, topology.devices));

  auto begin = Clock::now();
  rcpsp::Budget budget(common.seconds);
  MGPU_TRY_ASSIGN(OverlapModel model,
                  OverlapModel::create(dag, options.scaleComm));
  Outcome best;
  std::optional<Error> refusal;
  OverlapSearch search(
      model, limit, common.seed, [&](const OverlapSchedule &schedule) {
        Result<Outcome> outcome = finish(dag, model, schedule, limit);
        if (outcome)
          best = std::move(*outcome);
        else
          refusal = std::move(outcome.error());
        return outcome.has_value();
      });
  if (!search.first())
    return fail(search.leastPeak() > limit || !refusal
                    ? doesNotFit(dag, model, limit, search)
                    : *refusal);
  double firstSeconds = seconds(begin);
  OverlapBounds bounds = makespanBounds(model);
  search.setBound(bounds.makespan);
  search.improve(budget);
  std::optional<double> hidden = hiddenShare(bounds, best.schedule.makespan);
  if (!options.planOut.empty())
    MGPU_TRY(writeFileAtomic(options.planOut, planJson(best, dag, model)));

  nlohmann::json out{
      {"dag", dag.name},
      {"target", topology.name},
      {"model", options.model},
      {"nodes", dag.nodes.size()},
      {"load_seconds", loadSeconds},
      {"first_plan_seconds", firstSeconds},
      {"makespan_us", best.schedule.makespan},
      {"lower_bound_us", bounds.makespan},
      {"ratio", best.schedule.makespan / bounds.makespan},
      {"kernels_us", bounds.kernels},
      {"collectives_us", bounds.collectives},
      {"critical_path_us", bounds.criticalPath},
      {"hidden_share", hidden ? nlohmann::json(*hidden) : nlohmann::json()},
      {"peak_memory_bytes", best.peak},
      {"arena_bytes", best.plan.arenaBytes[0] + dag.residentBytes},
      {"memory_limit_bytes", limit},
      {"schedules", budget.spentNodes()},
      {"seed", common.seed},
      {"verified", true}};
  if (common.json) {
    fmt::print("{}\n", out.dump(1));
    return 0;
  }
  fmt::print("{}: makespan {:.1f} us, bound {:.1f} us, ratio {:.5f}, hidden "
             "{}, peak {:.3f} GB, arena {:.3f} GB, first plan {:.3f} s\n",
             dag.name, best.schedule.makespan, bounds.makespan,
             best.schedule.makespan / bounds.makespan,
             hidden ? fmt::format("{:.2f} %", *hidden * 100) : "all",
             double(best.peak) / 1e9,
             double(best.plan.arenaBytes[0] + dag.residentBytes) / 1e9,
             firstSeconds);
  return 0;
}

} // namespace mgpu::bench
