// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/CudaTarget.h"

#include "device/cuda/api/Libraries.h"
#include "support/Number.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

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
    auto devices = numberFrom<uint32_t>(rest.substr(slash + 1));
    auto card = numberFrom<int>(rest.substr(0, slash));
    if (!devices || *devices < 1 || *devices > maxDevicesOnCard || !card ||
        *card < 0)
      return unknown();
    out.cards[0] = *card;
    out.devicesOnCard = *devices;
    return out;
  }
  out.cards.clear();
  while (true) {
    size_t comma = rest.find(',');
    auto card = numberFrom<int>(rest.substr(0, comma));
    if (!card || *card < 0 ||
        std::find(out.cards.begin(), out.cards.end(), *card) != out.cards.end())
      return unknown();
    out.cards.push_back(*card);
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

} // namespace mgpu::device
