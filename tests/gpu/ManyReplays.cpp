// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program replayed many times on a card and on the host:
//   gpu-replays FILE COUNT SECONDS ENTRY [NAME=VALUE ...] -- TARGET...
// FILE is a bundle, or with the compiler half a program. After 1, 10, 100, ...
// and COUNT replays all results must have the host's bits, and from the
// hundredth replay on neither the card's free memory may shrink nor this
// process grow. Prints a JSON object on a line for each target. SECONDS is for
// each target: where they are over before COUNT, the line says how many replays
// there were and that they are not all (`complete`). Exit code 1 after a
// difference or growth, 3 without a card.
#include "device/cuda/CudaApi.h"
#include "support/Clock.h"
#include "tools/mgpu-tune/Arguments.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Tuned.h"

#include "capture/replay/Replayer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace {

using namespace mgpu;
using nlohmann::json;

/// A process that is measured from its hundredth replay on may still touch
/// pages for the first time. Of ten thousand replays this is less than the
/// least block malloc has, for each.
constexpr int64_t hostSlackBytes = 256 << 10;
constexpr uint64_t settledAfter = 100;

/// Memory of this process that is its own: without pages of files.
int64_t residentBytes() {
  long size = 0, resident = 0, shared = 0;
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  if (!file)
    return 0;
  if (std::fscanf(file, "%ld %ld %ld", &size, &resident, &shared) != 3)
    resident = shared = 0;
  std::fclose(file);
  return int64_t(resident - shared) * sysconf(_SC_PAGESIZE);
}

/// What the card has left, asked in its primary context.
Result<int64_t> freeBytes(int card) {
  MGPU_TRY_ASSIGN(auto api, device::openCuda());
  CUdevice device = 0;
  CUcontext context = nullptr, popped = nullptr;
  size_t free = 0, total = 0;
  const bool isKnown =
      api->cuDeviceGet(&device, card) == CUDA_SUCCESS &&
      api->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
      api->cuCtxPushCurrent(context) == CUDA_SUCCESS &&
      api->cuMemGetInfo(&free, &total) == CUDA_SUCCESS &&
      api->cuCtxPopCurrent(&popped) == CUDA_SUCCESS &&
      api->cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS;
  if (!isKnown)
    return fail(ErrorKind::Absent, "the card does not say what is free");
  return int64_t(free);
}

/// The program on one target, with its arguments bound and loaded.
class Side {
public:
  static Result<std::unique_ptr<Side>> open(const tune::Options &given,
                                            const std::string &target) {
    auto side = std::make_unique<Side>();
    tune::Options options = given;
    options.target = target;
    options.useTuned = false;
    MGPU_TRY_ASSIGN(side->program, tune::loadProgram(options, false));
    // Random numbers for every array without a value, the same on all targets.
    int seed = 0;
    for (const tune::Binding &binding : side->program.bindings)
      if (binding.buffer && !binding.isResult &&
          !options.arguments.contains(binding.name))
        options.arguments[binding.name] = fmt::format("random:{}", seed++);
    const uint32_t devices = side->program.dag.numDevices;
    const bool isCard = tune::isCudaTarget(target);
    if (isCard) {
      MGPU_TRY_ASSIGN(side->driver, tune::openTarget(target, devices));
    }
    MGPU_TRY_ASSIGN(side->prepared,
                    tune::prepare(side->program, options,
                                  isCard ? side->driver->architecture() : ""));
    if (!isCard) {
      tune::OpenOptions how;
      how.lanes = side->prepared.lanes;
      MGPU_TRY_ASSIGN(side->driver, tune::openTarget(target, devices, how));
    }
    MGPU_TRY_ASSIGN(
        capture::Replayer replayer,
        capture::Replayer::create(side->program.dag, side->prepared.plan,
                                  side->prepared.kernels, *side->driver));
    side->replayer.emplace(std::move(replayer));
    MGPU_TRY_ASSIGN(auto values, tune::loadArguments(side->program, options));
    for (const auto &[binding, array] : values)
      std::copy(array.bytes.begin(), array.bytes.end(),
                side->replayer->hostBuffer(*binding->buffer).begin());
    MGPU_TRY(side->replayer->load());
    return side;
  }

  /// The name and bytes of every array a user sees.
  Result<std::vector<std::pair<std::string, std::span<const std::byte>>>>
  results() {
    MGPU_TRY(replayer->fetch());
    std::vector<std::pair<std::string, std::span<const std::byte>>> all;
    for (const tune::Binding &binding : program.bindings)
      if (binding.buffer)
        all.push_back({binding.name, replayer->hostBuffer(*binding.buffer)});
    return all;
  }

  tune::Program program;
  std::unique_ptr<device::Driver> driver;
  tune::Prepared prepared;
  std::optional<capture::Replayer> replayer;
};

/// The first array whose bytes differ, or empty.
Result<std::string> difference(Side &host, Side &card) {
  MGPU_TRY_ASSIGN(auto expected, host.results());
  MGPU_TRY_ASSIGN(auto got, card.results());
  for (size_t k = 0; k < expected.size(); ++k)
    if (expected[k].second.size() != got[k].second.size() ||
        std::memcmp(expected[k].second.data(), got[k].second.data(),
                    expected[k].second.size()) != 0)
      return expected[k].first;
  return std::string();
}

Result<json> compare(const tune::Options &options, const std::string &target,
                     uint64_t count, double seconds) {
  tune::Options asHost = options;
  MGPU_TRY_ASSIGN(auto card, Side::open(options, target));
  MGPU_TRY_ASSIGN(
      auto host,
      Side::open(asHost, fmt::format("host:{}", card->program.dag.numDevices)));
  MGPU_TRY_ASSIGN(tune::CudaTarget where, tune::parseCudaTarget(target));
  const Clock::time_point start = Clock::now();
  json checked = json::array();
  std::string differs;
  double cardUs = 0;
  uint64_t done = 0;
  int64_t settledHost = 0, settledCard = 0;
  bool isSettled = false;
  auto settle = [&]() -> Result<void> {
    malloc_trim(0); // what was freed is not growth
    settledHost = residentBytes();
    MGPU_TRY_ASSIGN(settledCard, freeBytes(where.cards[0]));
    isSettled = true;
    return {};
  };
  for (uint64_t next = 1;
       done < count && differs.empty() && secondsSince(start) < seconds;
       next = std::min(next * 10, count)) {
    const Clock::time_point before = Clock::now();
    for (; done < next && secondsSince(start) < seconds; ++done) {
      MGPU_TRY(card->replayer->replay());
      MGPU_TRY(host->replayer->replay());
    }
    cardUs = microsecondsSince(before);
    MGPU_TRY_ASSIGN(differs, difference(*host, *card));
    checked.push_back(done);
    if (done >= settledAfter && !isSettled)
      MGPU_TRY(settle());
    if (next == count)
      break;
  }
  malloc_trim(0);
  json out{{"example", options.file},   {"entry", options.entry},
           {"target", target},          {"replays", done},
           {"complete", done == count}, {"compared_after", checked}};
  int64_t hostGrowth = 0, cardGrowth = 0;
  if (isSettled) {
    hostGrowth = residentBytes() - settledHost;
    MGPU_TRY_ASSIGN(int64_t left, freeBytes(where.cards[0]));
    cardGrowth = settledCard - left;
    out["host_growth_bytes"] = hostGrowth;
    out["card_growth_bytes"] = cardGrowth;
  }
  if (!differs.empty())
    out["differs"] = differs;
  out["last_step_us"] = cardUs;
  out["seconds"] = secondsSince(start);
  out["ok"] =
      differs.empty() && hostGrowth <= hostSlackBytes && cardGrowth <= 0;
  return out;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (words.size() < 6 || dashes == words.end()) {
    std::fprintf(stderr, "usage: gpu-replays FILE COUNT SECONDS ENTRY "
                         "[NAME=VALUE ...] -- TARGET...\n");
    return 2;
  }
  tune::Options options;
  options.file = words[0];
  options.entry = words[3];
  for (auto word = words.begin() + 4; word < dashes; ++word)
    options.arguments[word->substr(0, word->find('='))] =
        word->substr(word->find('=') + 1);
  const uint64_t count = std::strtoull(words[1].c_str(), nullptr, 10);
  const double seconds = std::atof(words[2].c_str());
  int code = 0;
  for (auto target = dashes + 1; target < words.end(); ++target) {
    Result<json> line = compare(options, *target, count, seconds);
    if (!line) {
      code = std::max(code, line.error().kind == ErrorKind::Absent ? 3 : 1);
      line = json{{"example", options.file},
                  {"entry", options.entry},
                  {"target", *target},
                  {"ok", false},
                  {"error", line.error().message}};
    } else if (!line->value("ok", false)) {
      code = 1;
    }
    fmt::print("{}\n", line->dump());
    std::fflush(stdout);
  }
  return code;
}
