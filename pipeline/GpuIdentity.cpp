// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/GpuIdentity.h"

#include "device/cuda/CudaTarget.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "tuner/session/Worker.h"

#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>

namespace mgpu::pipeline {

using device::CudaTarget;
using nlohmann::json;

/// Asks `question` in a process of its own, within a minute. Its errors come
/// back with their kind; Absent where the process fails.
static Result<std::string>
askInProcess(const std::function<Result<std::string>()> &question) {
  using tuner::Bytes;
  auto handler = [&](std::span<const std::byte>) -> tuner::Outcome<Bytes> {
    Result<std::string> found = question();
    const std::string &text = found ? *found : found.error().message;
    Bytes answer{std::byte(found ? 0 : 1 + uint8_t(found.error().kind))};
    for (char c : text)
      answer.push_back(std::byte(c));
    return answer;
  };
  MGPU_TRY_ASSIGN(tuner::Worker worker, tuner::Worker::start(handler));
  constexpr double seconds = 60;
  auto answer = worker.ask({}, seconds);
  if (!answer)
    return fail(ErrorKind::Absent,
                fmt::format("asking the NVIDIA driver for its cards: the "
                            "process {}",
                            answer.error().what));
  auto code = uint8_t(answer->at(0));
  std::string text(reinterpret_cast<const char *>(answer->data()) + 1,
                   answer->size() - 1);
  if (code)
    return fail(ErrorKind(code - 1), text);
  return text;
}

static Result<device::CudaMachine::Card>
cardOf(const device::CudaMachine &machine, int number) {
  if (size_t(number) < machine.cards.size())
    return machine.cards[size_t(number)];
  return fail(ErrorKind::Absent,
              fmt::format("there is no card {}: this machine shows {} (see "
                          "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                          number, machine.cards.size()));
}

static std::string textOf(const json &found) {
  return found.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The identity as JSON, as one process tells it another.
static Result<std::string> describeCard(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, device::parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  MGPU_TRY_ASSIGN(const auto card, cardOf(machine, cuda.cards[0]));
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open());
  return textOf({{"device", card.name},
                 {"architecture", card.arch},
                 {"software", fmt::format("CUDA driver {}, NVRTC {}, clocks "
                                          "{}/{} MHz",
                                          machine.driver, compiler.version(),
                                          card.clockKhz / 1000,
                                          card.memoryClockKhz / 1000)}});
}

Result<tuner::TargetIdentity> identifyCard(const std::string &target,
                                           bool inHere) {
  auto describe = [&] { return describeCard(target); };
  MGPU_TRY_ASSIGN(const std::string text,
                  inHere ? describe() : askInProcess(describe));
  const json found = json::parse(text, nullptr, false);
  if (!found.is_object())
    return fail(ErrorKind::Internal, "the card's description is not read back");
  return tuner::TargetIdentity{found.value("device", ""),
                               found.value("architecture", ""),
                               found.value("software", "")};
}

static Result<std::string> describeCards(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, device::parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  json cards = json::array();
  for (int number : cuda.cards) {
    MGPU_TRY_ASSIGN(const auto card, cardOf(machine, number));
    cards.push_back({card.name, card.arch, machine.driver});
  }
  return textOf(cards);
}

Result<std::vector<CardIdentity>> cardsOfTarget(const std::string &target) {
  MGPU_TRY_ASSIGN(const std::string text,
                  askInProcess([&] { return describeCards(target); }));
  const json found = json::parse(text, nullptr, false);
  std::vector<CardIdentity> cards;
  for (const json &card : found)
    if (card.is_array() && card.size() == 3)
      cards.push_back({card[0], card[1], card[2]});
  if (cards.empty())
    return fail(ErrorKind::Internal, "the cards are not read back");
  return cards;
}

Result<std::string> architectureOf(const std::vector<int> &cards) {
  return askInProcess([&] { return device::architectureOf(cards); });
}

} // namespace mgpu::pipeline
