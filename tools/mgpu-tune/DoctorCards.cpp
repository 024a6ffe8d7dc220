// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Doctor.h"

#include <cstdlib>
#include <fmt/format.h>

namespace mgpu::tune {

using nlohmann::json;

static void reportCards(const device::CudaMachine &machine, Report &report) {
  json cards = json::array(), peers = json::array();
  std::string apart;
  for (size_t k = 0; k < machine.cards.size(); ++k) {
    const device::CudaMachine::Card &card = machine.cards[k];
    cards.push_back({{"name", card.name},
                     {"uuid", card.uuid},
                     {"arch", card.arch},
                     {"memory_bytes", card.memoryBytes},
                     {"multiprocessors", card.multiprocessors},
                     {"clock_khz", card.clockKhz},
                     {"memory_clock_khz", card.memoryClockKhz},
                     {"compute_mode", card.computeMode}});
    report.lines.push_back(
        {fmt::format("card {}", k),
         fmt::format("{}, {}, {} bytes, {} multiprocessors, {} MHz, memory {} "
                     "MHz, compute mode {}, {}",
                     card.name, card.arch, card.memoryBytes,
                     card.multiprocessors, card.clockKhz / 1000,
                     card.memoryClockKhz / 1000, card.computeMode, card.uuid)});
    if (card.computeMode != "default")
      report.problems.push_back(
          fmt::format("card {} is in compute mode {}: other processes may keep "
                      "it from this one",
                      k, card.computeMode));
    if (card.arch != machine.cards[0].arch)
      report.problems.push_back(fmt::format(
          "cards 0 and {} are of {} and {}: no --target cuda:K,L of both", k,
          machine.cards[0].arch, card.arch));
    peers.push_back(card.reaches);
    std::string reached;
    for (size_t other = 0; other < card.reaches.size(); ++other) {
      if (other != k && card.reaches[other])
        reached += fmt::format("{}{}", reached.empty() ? "" : ", ", other);
      if (other > k && !card.reaches[other])
        apart +=
            fmt::format("{}{} and {}", apart.empty() ? "" : ", ", k, other);
    }
    if (machine.cards.size() > 1)
      report.lines.push_back(
          {fmt::format("peers of {}", k), reached.empty() ? "none" : reached});
  }
  if (!apart.empty())
    report.problems.push_back(
        fmt::format("fast collectives of cards {}: they do not reach each "
                    "other's memory, and NCCL goes through the host's",
                    apart));
  report.out["cards"] = std::move(cards);
  report.out["peer_access"] = std::move(peers);
}

void reportMachine(const Result<device::CudaMachine> &machine, Report &report,
                   int &driverMajor) {
  if (!machine) {
    report.add("driver", "driver", {{"error", machine.error().message}},
               "no: " + machine.error().message);
    report.problems.push_back("--target cuda: there is no usable driver");
    return;
  }
  driverMajor = std::atoi(machine->driver.c_str());
  report.add("driver", "driver",
             {{"cuda", machine->driver}, {"logs", machine->logs}},
             fmt::format("knows CUDA {}{}", machine->driver,
                         machine->logs ? "" : ", does not explain errors"));
  if (machine->cards.empty())
    report.problems.push_back("--target cuda: no card is visible");
  reportCards(*machine, report);
}

} // namespace mgpu::tune
