// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Algorithms.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace mgpu::planner {

std::vector<AlgorithmChoice> chooseAlgorithms(const Dag &dag,
                                              const Machine &machine) {
  std::vector<AlgorithmChoice> choices;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    if (workClass(dag.nodes[i]) != WorkClass::Collective)
      continue;
    std::vector<NcclTime> times = machine.algorithms(dag, NodeId{i});
    if (times.empty())
      continue;
    AlgorithmChoice choice{NodeId{i}, times[0], std::nullopt,
                           machine.estimate(dag, NodeId{i}).how};
    if (times.size() > 1)
      choice.next = times[1];
    choices.push_back(std::move(choice));
  }
  return choices;
}

void recordAlgorithms(Plan &plan, const std::vector<AlgorithmChoice> &choices) {
  std::map<NodeId, CollectiveAlgorithm> byNode;
  for (const AlgorithmChoice &choice : choices)
    byNode.emplace(choice.node, choice.best.algorithm);
  for (PlanStep &step : plan.steps)
    if (auto it = byNode.find(step.node); it != byNode.end())
      step.algorithm = it->second;
}

std::string explainAlgorithms(const std::vector<AlgorithmChoice> &choices,
                              const Dag &dag, const Machine &machine) {
  auto words = [](CollectiveAlgorithm algorithm) {
    return fmt::format("{} {}", toString(algorithm.shape),
                       toString(algorithm.protocol));
  };
  std::map<std::string, uint32_t> lines;
  for (const AlgorithmChoice &choice : choices) {
    auto call = machine.asked(dag, dag.node(choice.node));
    std::string line =
        fmt::format("{} of {} bytes over {}: {}, {:.3f} us by NCCL's estimate",
                    toString(call->kind), uint64_t(call->bytes), call->ranks,
                    words(choice.best.algorithm), choice.best.us);
    if (choice.next)
      line += fmt::format("; next {}, {:+.3f} us ({:+.1f} %)",
                          words(choice.next->algorithm),
                          choice.next->us - choice.best.us,
                          100 * (choice.next->us / choice.best.us - 1));
    ++lines[line + fmt::format("; its duration: {}", choice.durationFrom)];
  }
  std::vector<std::pair<uint32_t, std::string>> sorted;
  for (const auto &[line, count] : lines)
    sorted.emplace_back(count, line);
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::string out;
  for (const auto &[count, line] : sorted)
    out += fmt::format("algorithm of {} {}\n", count, line);
  return out;
}

} // namespace mgpu::planner
