// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ranks meet that torchrun or srun has started.
#include "device/tcp/Secret.h"
#include "device/tcp/TcpChannel.h"

#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <vector>

namespace mgpu::device {

namespace {

using Names = std::vector<const char *>;

/// The first of these that is set; null: none is.
const char *firstSet(const Names &names) {
  for (const char *name : names)
    if (std::getenv(name))
      return name;
  return nullptr;
}

Result<uint32_t> numberOf(const char *name, uint32_t most) {
  const char *text = std::getenv(name);
  const std::string_view value = text ? text : "";
  uint32_t number = 0;
  auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() ||
      number > most)
    return fail(ErrorKind::Usage,
                fmt::format("{} is '{}': it must be a number of at most {}",
                            name, value, most));
  return number;
}

/// The first name of a list of Slurm's: of "gpu[007-009,12],login", "gpu007".
std::string firstNode(std::string_view list) {
  const size_t bracket = list.find_first_of("[,");
  if (bracket == std::string_view::npos || list[bracket] == ',')
    return std::string(list.substr(0, bracket));
  const std::string_view numbers = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) +
         std::string(numbers.substr(0, numbers.find_first_of("-,]")));
}

/// Whether such a list is of more nodes than one: "gpu-a[3]" is not.
bool hasSeveral(std::string_view list) {
  bool isInside = false;
  for (char c : list) {
    isInside = c == '[' || (isInside && c != ']');
    if (c == ',' || (isInside && c == '-'))
      return true;
  }
  return false;
}

/// Where rank 0 is, by this variable; null: nothing says it. Nobody has to be
/// reached from outside where all ranks are on one node.
std::string addressIn(const char *name) {
  const std::string_view value = name ? std::getenv(name) : "127.0.0.1";
  if (!name || std::string_view(name) == "MASTER_ADDR")
    return std::string(value);
  return hasSeveral(value) ? firstNode(value) : "127.0.0.1";
}

/// Slurm names no port, so it is of the job and of the step.
Result<uint16_t> portOfStep() {
  constexpr uint32_t first = 15000, count = 15000, most = uint32_t(-1);
  MGPU_TRY_ASSIGN(const uint32_t job, numberOf("SLURM_JOB_ID", most));
  uint32_t step = 0;
  if (firstSet({"SLURM_STEP_ID"})) {
    MGPU_TRY_ASSIGN(step, numberOf("SLURM_STEP_ID", most));
  }
  return uint16_t(first + (job % count * 31 + step % count) % count);
}

/// Workers of torchrun find its own store at MASTER_PORT, so theirs is the
/// next.
Result<uint16_t> portOfMaster() {
  constexpr uint32_t most = 65535;
  MGPU_TRY_ASSIGN(const uint32_t port, numberOf("MASTER_PORT", most));
  const char *store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const bool isTaken = store && std::string_view(store) == "True";
  return uint16_t(isTaken ? port % most + 1 : port);
}

} // namespace

Result<std::optional<TcpPlace>> tcpPlaceOfEnvironment() {
  struct Fact {
    const char *name;
    Names asked;
  };
  const Fact facts[] = {
      {"RANK", {"RANK", "SLURM_PROCID"}},
      {"WORLD_SIZE", {"WORLD_SIZE", "SLURM_NTASKS"}},
      {"MASTER_ADDR",
       {"MASTER_ADDR", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}},
      {"MASTER_PORT", {"MGPU_PORT", "MASTER_PORT", "SLURM_JOB_ID"}}};
  constexpr size_t addressFact = 2;
  const char *found[4];
  std::string missing;
  size_t numFound = 0;
  for (size_t k = 0; k < 4; ++k) {
    found[k] = firstSet(facts[k].asked);
    numFound += found[k] ? 1 : 0;
    if (!found[k] && missing.empty() && k != addressFact)
      missing = facts[k].name;
  }
  if (numFound == 0)
    return std::optional<TcpPlace>();
  if (!missing.empty())
    return fail(ErrorKind::Usage,
                fmt::format("{} is not set: ranks that meet without MPI need "
                            "MASTER_PORT, RANK and WORLD_SIZE, and MASTER_ADDR "
                            "where rank 0 is not on this machine, or Slurm's "
                            "variables",
                            missing));
  TcpPlace place;
  MGPU_TRY_ASSIGN(place.rank, numberOf(found[0], 1 << 16));
  MGPU_TRY_ASSIGN(place.count, numberOf(found[1], 1 << 16));
  place.address = addressIn(found[addressFact]);
  MGPU_TRY_ASSIGN(place.secret, secretOfEnvironment());
  const std::string_view port = found[3];
  if (port == "MGPU_PORT") {
    MGPU_TRY_ASSIGN(place.port, numberOf(found[3], 65535));
  } else {
    MGPU_TRY_ASSIGN(place.port,
                    port == "MASTER_PORT" ? portOfMaster() : portOfStep());
  }
  if (place.rank >= place.count)
    return fail(ErrorKind::Usage,
                fmt::format("{} is {}, and {} {}: ranks are below it", found[0],
                            place.rank, found[1], place.count));
  return std::optional(std::move(place));
}

} // namespace mgpu::device
