// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/CudaTarget.h"

#include "device/cuda/Libraries.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

/// The whole of `text` as a number of at least `least`.
template <typename T>
static bool parseNumber(std::string_view text, T least, T &into) {
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, into);
  return error == std::errc() && end == last && into >= least;
}

Result<CudaTarget> parseCudaTarget(const std::string &target) {
  auto unknown = [&] {
    return fail(ErrorKind::Usage,
                fmt::format("target '{}': the forms are cuda, cuda:K (card K), "
                            "cuda:K,L (several cards) and cuda:K/N (card K as "
                            "N devices, at most {})",
                            target, maxDevicesOnCard));
  };
  CudaTarget out;
  if (target == "cuda")
    return out;
  constexpr std::string_view head = "cuda:";
  std::string_view rest = target;
  if (!rest.starts_with(head))
    return unknown();
  rest.remove_prefix(head.size());
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    if (!parseNumber(rest.substr(slash + 1), 1u, out.devicesOnCard) ||
        out.devicesOnCard > maxDevicesOnCard ||
        !parseNumber(rest.substr(0, slash), 0, out.cards[0]))
      return unknown();
    return out;
  }
  out.cards.clear();
  while (true) {
    size_t comma = rest.find(',');
    int card = 0;
    if (!parseNumber(rest.substr(0, comma), 0, card) ||
        std::find(out.cards.begin(), out.cards.end(), card) != out.cards.end())
      return unknown();
    out.cards.push_back(card);
    if (comma == std::string_view::npos)
      return out;
    rest.remove_prefix(comma + 1);
  }
}

bool isCudaTarget(const std::string &target) {
  return target.substr(0, target.find(':')) == "cuda";
}

Result<std::optional<std::vector<int>>> severalCards(const std::string &target,
                                                     uint32_t numDevices) {
  using None = std::optional<std::vector<int>>;
  if (!isCudaTarget(target))
    return None();
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  std::vector<int> cards = cuda.cards;
  if (target == "cuda") // as many as it takes
    while (cards.size() < numDevices)
      cards.push_back(int(cards.size()));
  if (cards.size() == 1 || numDevices <= 1)
    return None();
  if (cards.size() < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {} "
                            "cards: cuda:{}/{} makes as many of one",
                            numDevices, target, cards.size(), cards[0],
                            numDevices));
  cards.resize(numDevices);
  return None(std::move(cards));
}

Result<CudaTarget> oneCard(const std::string &target, uint32_t numDevices) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  if (cuda.devicesOnCard < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {}: "
                            "cuda:{}/{} makes as many of the card",
                            numDevices, target, cuda.devicesOnCard,
                            cuda.cards[0], numDevices));
  return cuda;
}

Result<std::string> architectureOf(const std::vector<int> &cards) {
  MGPU_TRY_ASSIGN(CudaMachine machine, inspectCuda());
  MGPU_TRY(findNccl());
  std::string arch;
  for (int card : cards) {
    if (size_t(card) >= machine.cards.size())
      return fail(ErrorKind::Absent,
                  fmt::format("there is no card {}: this machine shows {} (see "
                              "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                              card, machine.cards.size()));
    const CudaMachine::Card &each = machine.cards[size_t(card)];
    if (arch.empty())
      arch = each.arch;
    if (arch != each.arch)
      return fail(ErrorKind::Absent,
                  fmt::format("card {} ({}) is {}, card {} {}: choose cards of "
                              "one architecture",
                              card, each.name, each.arch, cards[0], arch));
  }
  return arch;
}

Result<void> checkNcclMixing() {
  const char *mixing = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  if (mixing && std::strcmp(mixing, "0") == 0)
    return {};
  return fail(ErrorKind::Usage,
              "NCCL_GRAPH_MIXING_SUPPORT must be 0 in a process that replays "
              "graphs with collectives among cards: set it before the program "
              "starts");
}

Result<NcclOptions> parseNccl(std::string_view text) {
  using Ctas = NcclOptions::Ctas;
  constexpr uint32_t mostCtas = 64; // NCCL's own limit (MAXCHANNELS)
  NcclOptions out;
  auto wrong = [&](std::string_view word) {
    return fail(ErrorKind::Usage,
                fmt::format("NCCL setting '{}': there are overlap, windows, "
                            "min-ctas=N and max-ctas=N (1 to {}), and "
                            "ctas=default|efficiency|zero",
                            word, mostCtas));
  };
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals),
                           value = equals == std::string_view::npos
                                       ? ""
                                       : word.substr(equals + 1);
    if (word == "overlap")
      out.overlaps = true;
    else if (word == "windows")
      out.windows = true;
    else if (key == "min-ctas" && parseNumber(value, 1u, out.leastCtas) &&
             out.leastCtas <= mostCtas)
      continue;
    else if (key == "max-ctas" && parseNumber(value, 1u, out.mostCtas) &&
             out.mostCtas <= mostCtas)
      continue;
    else if (word == "ctas=default")
      out.ctas = Ctas::Default;
    else if (word == "ctas=efficiency")
      out.ctas = Ctas::Efficiency;
    else if (word == "ctas=zero")
      out.ctas = Ctas::Zero;
    else
      return wrong(word);
  }
  if (out.mostCtas && out.leastCtas > out.mostCtas)
    return fail(
        ErrorKind::Usage,
        fmt::format("NCCL settings: min-ctas={} is more than max-ctas={}",
                    out.leastCtas, out.mostCtas));
  return out;
}

} // namespace mgpu::device
