// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune profile`: the time of each node, beside what the plan predicts.
#include "db/FileSystem.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Faults.h"
#include "pipeline/program/Load.h"
#include "pipeline/run/Distributed.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/target/Target.h"
#include "pipeline/tune/ProfileProgram.h"
#include "support/Units.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::tools {

using nlohmann::json;
using tuner::NodeProfile;
using tuner::ProfileFacts;

namespace {

std::string medianText(const tuner::Quartiles &us) {
  return fmt::format("{:.3f} us (half of the samples within {:.3f} to {:.3f})",
                     us.us, us.p25Us, us.p75Us);
}

double errorPercent(const ProfileFacts &facts) {
  return 100 * (facts.recomputedUs / facts.replay.us - 1);
}

/// Hidden copies and collectives, in percent; none without any.
std::optional<double> hiddenPercent(const ProfileFacts &facts) {
  if (facts.communicationUs <= 0)
    return std::nullopt;
  return 100 * facts.hiddenUs / facts.communicationUs;
}

json toJson(const ProfileFacts &facts, bool isTuned,
            const ProfileOptions &options, const std::string &path) {
  json out{{"file", options.load.file},
           {"tuned", isTuned},
           {"timed_by", facts.timedBy},
           {"model", facts.model},
           {"repeat", options.repeat},
           {"threads", facts.threads},
           {"pinned_cpus", facts.pinnedCpus},
           {"predicted_before_us", facts.predictedUs},
           {"predicted_us", facts.recomputedUs},
           {"plan", facts.plan},
           {"measured_us", facts.replay.us},
           {"measured_p25_us", facts.replay.p25Us},
           {"measured_p75_us", facts.replay.p75Us},
           {"error_percent", errorPercent(facts)},
           {"serial_us", facts.serial.us},
           {"serial_p25_us", facts.serial.p25Us},
           {"serial_p75_us", facts.serial.p75Us},
           {"communication_us", facts.communicationUs},
           {"hidden_us", facts.hiddenUs},
           {"database", path}};
  if (facts.span.us > 0)
    out["device_span_us"] = facts.span.us;
  if (auto percent = hiddenPercent(facts))
    out["overlap_percent"] = *percent;
  out["nodes"] = json::array();
  for (const NodeProfile &node : facts.nodes)
    out["nodes"].push_back(tuner::toJson(node));
  return out;
}

void printNodes(std::vector<NodeProfile> nodes) {
  double sum = 0;
  for (const NodeProfile &node : nodes)
    sum += node.measured.us;
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile &a, const NodeProfile &b) {
              return a.measured.us != b.measured.us
                         ? a.measured.us > b.measured.us
                         : a.node < b.node;
            });
  constexpr size_t mostRows = 40;
  fmt::print("{:<28} {:<10} {:>7} {:>12} {:>12} {:>7} {:>6} {:>7}\n", "node",
             "kind", "device", "predicted us", "measured us", "ratio", "share",
             "overlap");
  for (size_t k = 0; k < std::min(nodes.size(), mostRows); ++k) {
    const NodeProfile &node = nodes[k];
    fmt::print("{:<28} {:<10} {:>7} {:>12.3f} {:>12.3f} {:>7.2f} {:>5.1f}% "
               "{:>6.1f}%\n",
               node.name, toString(node.kind), node.devices, node.predictedUs,
               node.measured.us, node.ratio(),
               100 * node.measured.us / std::max(sum, 1e-12),
               100 * node.overlap);
  }
  if (nodes.size() > mostRows)
    fmt::print("... and {} more; --json lists all\n", nodes.size() - mostRows);
}

void print(const ProfileFacts &facts, const std::string &path) {
  const bool onGpu = facts.threads == 0;
  fmt::print("replay on {}: {:.3f} us predicted from these times "
             "({:+.1f} %; {:.3f} us before, {}), {} measured, {} samples\n",
             onGpu ? "the GPU" : counted(facts.threads, "thread"),
             facts.recomputedUs, errorPercent(facts), facts.predictedUs,
             facts.model, medianText(facts.replay), facts.samples);
  if (facts.span.us > 0)
    fmt::print("of it the GPU is busy from the first node to the last: {}\n",
               medianText(facts.span));
  fmt::print("serial{}: {}; planned is {:+.1f} %\n",
             onGpu ? "" : " on one thread", medianText(facts.serial),
             100 * (facts.replay.us / facts.serial.us - 1));
  if (auto percent = hiddenPercent(facts))
    fmt::print("overlap achieved: beside {:.1f} % of the {:.3f} us of copies "
               "and collectives a kernel ran\n",
               *percent, facts.communicationUs);
  if (!facts.plan.empty())
    fmt::print("planned by these times: {}\n", facts.plan);
  fmt::print("nodes timed by {}\nstored in {}\n", facts.timedBy, path);
}

int print(const ProfileResult &result, const ProfileOptions &options,
          const std::string &path) {
  if (options.json) {
    tools::printJson(toJson(result.facts, result.isTuned, options, path));
    return 0;
  }
  for (const auto &[threads, us] : result.others)
    fmt::print("replay on {}: {}\n", counted(threads, "thread"),
               medianText(us));
  printNodes(result.facts.nodes);
  print(result.facts, path);
  return 0;
}

/// On the GPUs of all ranks.
Result<int> profileGpus(LoadedProgram &program, const ProfileRequest &request,
                        const ProfileOptions &options,
                        const std::string &path) {
  MGPU_TRY_ASSIGN(const GpuRanks gpus,
                  agreedGpus(program, options,
                             {{"--repeat", std::to_string(options.repeat)}}));
  MGPU_TRY_ASSIGN(const ProfileResult result,
                  profileOnRanks(program, request, path, gpus));
  return isFirstRank() ? print(result, options, path) : 0;
}

/// On the host; other ranks than 0 follow it, and print nothing.
Result<int> profileHere(LoadedProgram &program, const ProfileRequest &request,
                        const ProfileOptions &options, const LoadOptions &load,
                        const std::string &path) {
  nameFaults(program);
  if (theRanks())
    MGPU_TRY(agreeOnProgram(
        program.dag, *theRanks(),
        factsOf(load, {{"--repeat", std::to_string(options.repeat)}})));
  if (!isFirstRank()) {
    MGPU_TRY(followProfile(program, request));
    return 0;
  }
  MGPU_TRY_ASSIGN(const ProfileResult result,
                  profileOnHost(program, request, path));
  return print(result, options, path);
}

} // namespace

Result<int> runProfile(const ProfileOptions &options) {
  MGPU_TRY(filesRead(options.load).write("--trace", options.traceFile));
  LoadOptions load = options.load;
  load.usesRecord = options.useTuned;
  MGPU_TRY(checkDeadline(options, load));
  MGPU_TRY(joinAsked(options));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(load.database));
  const ProfileRequest request{options.load.target, options.repeat,
                               options.useTuned, options.pinThreads,
                               options.traceFile};
  if (!isCudaTarget(options.load.target))
    return profileHere(program, request, options, load, path);
  if (theRanks())
    return profileGpus(program, request, options, path);
  MGPU_TRY_ASSIGN(const ProfileResult result,
                  profileOnGpu(program, request, path));
  return print(result, options, path);
}

} // namespace mgpu::tools
