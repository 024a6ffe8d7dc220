// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds what `doctor` says of the machine that the host target measures on.
#include "bench/measure/Environment.h"
#include "pipeline/target/Doctor.h"

#include <cstdlib>
#include <fmt/format.h>

namespace mgpu::pipeline {

void reportHost(MachineReport &report) {
  const bench::Environment host = bench::readEnvironment();
  nlohmann::json facts = nlohmann::json::object();
  for (const auto &[name, value] : host.entries())
    facts[name] = value;
  auto orUnknown = [](const std::string &text) {
    return text.empty() ? std::string("not known") : text;
  };
  report.add("host", "host", std::move(facts),
             fmt::format("{}, {} CPUs for this process, {} GiB, hypervisor: {}",
                         orUnknown(host.cpu), host.cores,
                         host.memoryBytes >> 30, orUnknown(host.hypervisor)));
  report.lines.push_back(
      {"clock", fmt::format("governor: {}, turbo: {}, load {} (one minute)",
                            orUnknown(host.governor), orUnknown(host.turbo),
                            orUnknown(host.loadAverage))});
  if (!host.governor.empty() && host.governor != "performance")
    report.problems.push_back(
        fmt::format("steady times: the governor '{}' changes the clock; "
                    "`cpupower frequency-set -g performance` keeps it",
                    host.governor));
  if (host.hypervisor == "yes")
    report.problems.push_back("steady times: this is a virtual machine, and "
                              "others may run on its processors");
  if (std::atof(host.loadAverage.c_str()) > 0.5 * host.cores)
    report.problems.push_back(
        fmt::format("steady times: the load is {} on {} CPUs", host.loadAverage,
                    host.cores));
}

} // namespace mgpu::pipeline
