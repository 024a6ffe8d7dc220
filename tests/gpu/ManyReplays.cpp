// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program replayed many times on a GPU, or with the first word "spans"
// what replays take there (Spans.h):
//   gpu-replays FILE COUNT SECONDS ENTRY RULE [NAME=VALUE ...] -- TARGET...
// FILE is a bundle, or with the compiler half a program. After 1, 10, 100, ...
// and COUNT replays all results are compared, as RULE says:
//   bits     with those of as many replays on the host, bit for bit
//   same:T   the first with the host's, of which no number may be further off
//            than T of the array's largest; all others with the GPU's own
//            first, bit for bit: of a program that carries no state
//   again:T  the first as with same; all of them with those of a second run on
//            the GPU, bit for bit
// Between a tenth of the replays and all of them neither the GPU's free memory
// may go on shrinking nor this process go on growing (Growth.h). Prints a JSON
// object on a line for each target. SECONDS is for each target: where they are
// over before COUNT, the line says how many replays there were and that they
// are not all (`complete`). Exit code 1 after a difference or growth, 3 without
// a GPU.
#include "device/cuda/api/CudaApi.h"
#include "support/Clock.h"
#include "tests/gpu/Growth.h"
#include "tests/gpu/Side.h"
#include "tests/gpu/Spans.h"
#ifdef MGPU_TUNE_COMPILES
#include "pipeline/compiler/MlirCompiler.h"
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <set>
#include <unistd.h>

namespace {

using namespace mgpu;
using gpu::Seen;
using gpu::Side;
using nlohmann::json;

/// In a half of ten thousand replays less than the least block that malloc has,
/// for each; pages are touched for the first time later, too.
constexpr int64_t hostSlackBytes = 128 << 10;

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

/// What the GPU has left, asked in its primary context.
Result<int64_t> freeBytes(int gpu) {
  MGPU_TRY_ASSIGN(auto api, device::openCuda());
  CUdevice device = 0;
  CUcontext context = nullptr, popped = nullptr;
  size_t free = 0, total = 0;
  const bool isKnown =
      api->cuDeviceGet(&device, gpu) == CUDA_SUCCESS &&
      api->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
      api->cuCtxPushCurrent(context) == CUDA_SUCCESS &&
      api->cuMemGetInfo(&free, &total) == CUDA_SUCCESS &&
      api->cuCtxPopCurrent(&popped) == CUDA_SUCCESS &&
      api->cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS;
  if (!isKnown)
    return fail(ErrorKind::Absent, "the GPU does not say what is free");
  return int64_t(free);
}

/// How a program's results are compared.
struct Rule {
  bool isBits = true;   ///< with the host's, after each replay
  bool isAgain = false; ///< with a second run's; else with the first replay's
  double tolerance = 0; ///< how far the first replay may be off the host's
};

std::optional<Rule> parseRule(const std::string &word) {
  if (word == "bits")
    return Rule{};
  const size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  if (colon == std::string::npos || (name != "same" && name != "again"))
    return std::nullopt;
  char *end = nullptr;
  const double tolerance = std::strtod(word.c_str() + colon + 1, &end);
  if (*end || !(tolerance > 0))
    return std::nullopt;
  return Rule{false, name == "again", tolerance};
}

/// The first array whose bytes differ, or empty.
std::string difference(const std::vector<Seen> &got,
                       const std::vector<Seen> &expected) {
  for (size_t k = 0; k < expected.size(); ++k)
    if (got[k].bytes != expected[k].bytes)
      return expected[k].name;
  return "";
}

/// How far apart they are at most, as a share of the array's largest number;
/// infinite where something else than finite f32 differs.
double furthest(const std::vector<Seen> &got,
                const std::vector<Seen> &expected) {
  double most = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const std::vector<std::byte> &mine = got[k].bytes;
    const std::vector<std::byte> &theirs = expected[k].bytes;
    if (mine == theirs)
      continue;
    if (expected[k].type != ElementType::F32 || mine.size() != theirs.size())
      return INFINITY;
    double apart = 0, largest = 0;
    for (size_t at = 0; at < mine.size(); at += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, &mine[at], sizeof a);
      std::memcpy(&b, &theirs[at], sizeof b);
      if (!std::isfinite(a) || !std::isfinite(b))
        return INFINITY;
      apart = std::max(apart, std::abs(double(a) - b));
      largest = std::max(largest, std::abs(double(b)));
    }
    most = std::max(most, largest > 0 ? apart / largest : INFINITY);
  }
  return most;
}

/// What goes on beside the GPU's replays, and what its results are held to.
class Other {
public:
  static Result<Other> open(const pipeline::LoadOptions &options,
                            const Rule &rule, const std::string &target,
                            uint32_t devices) {
    Other other;
    other.rule = rule;
    MGPU_TRY_ASSIGN(other.host,
                    Side::open(options, fmt::format("host:{}", devices)));
    if (rule.isAgain) {
      MGPU_TRY_ASSIGN(other.again, Side::open(options, target));
    }
    return other;
  }

  Result<void> replay() {
    if (rule.isBits || first.empty())
      MGPU_TRY(host->replayer->replay());
    if (again)
      MGPU_TRY(again->replayer->replay());
    return {};
  }
  /// The array that is wrong, or empty. After the first replay `line` also says
  /// what there is to say.
  Result<std::string> compare(Side &gpu, json &line) {
    MGPU_TRY_ASSIGN(auto got, gpu.results());
    std::string wrong;
    if (rule.isBits || first.empty()) {
      MGPU_TRY_ASSIGN(auto expected, host->results());
      wrong = difference(got, expected);
      if (!rule.isBits) {
        const double apart = furthest(got, expected);
        line["host_bits"] = wrong.empty();
        line["furthest"] = std::isfinite(apart) ? json(apart) : "no number";
        if (apart <= rule.tolerance)
          wrong.clear();
      }
    }
    if (wrong.empty() && again) {
      MGPU_TRY_ASSIGN(auto expected, again->results());
      wrong = difference(got, expected);
    } else if (wrong.empty() && !rule.isBits && !first.empty()) {
      wrong = difference(got, first);
    }
    if (first.empty())
      first = std::move(got);
    return wrong;
  }

private:
  Rule rule;
  std::unique_ptr<Side> host, again;
  std::vector<Seen> first; ///< the GPU's own, after one replay
};

Result<json> compare(const pipeline::LoadOptions &options, const Rule &rule,
                     const std::string &target, uint64_t count,
                     double seconds) {
  MGPU_TRY_ASSIGN(auto gpu, Side::open(options, target));
  MGPU_TRY_ASSIGN(Other other, Other::open(options, rule, target,
                                           gpu->program.dag.numDevices));
  MGPU_TRY_ASSIGN(pipeline::CudaTarget where,
                  pipeline::parseCudaTarget(target));
  // When memory is looked at, and when results are; at the one also the other,
  // so that what comparing takes is not growth.
  const std::array<uint64_t, 3> looks{count / 10, count / 10 + count * 9 / 20,
                                      count};
  std::set<uint64_t> stops(looks.begin(), looks.end());
  for (uint64_t stop = 1; stop < count; stop *= 10)
    stops.insert(stop);
  stops.erase(0);
  const Clock::time_point start = Clock::now();
  json out{{"example", options.file},
           {"entry", options.entry},
           {"target", target},
           {"compared", rule.isBits    ? "bits"
                        : rule.isAgain ? "close, then with a second run"
                                       : "close, then with the first replay"}};
  json checked = json::array();
  gpu::Growth host, onGpu;
  std::string differs;
  uint64_t done = 0;
  size_t looked = 0;
  for (uint64_t stop : stops) {
    for (; done < stop && secondsSince(start) < seconds; ++done) {
      MGPU_TRY(gpu->replayer->replay());
      MGPU_TRY(other.replay());
    }
    if (done == 0)
      break;
    MGPU_TRY_ASSIGN(differs, other.compare(*gpu, out));
    checked.push_back(done);
    if (!differs.empty() || done < stop)
      break;
    if (done == looks[looked]) {
      malloc_trim(0); // what was freed is not growth
      host.bytes[looked] = residentBytes();
      MGPU_TRY_ASSIGN(const int64_t left, freeBytes(where.gpus[0]));
      onGpu.bytes[looked++] = -left;
    }
  }
  out["replays"] = done;
  out["complete"] = done == count;
  out["compared_after"] = checked;
  bool grows = false;
  if (looked == looks.size()) {
    out["host_growth_bytes"] = host.halves();
    out["gpu_growth_bytes"] = onGpu.halves();
    grows = host.goesOn(hostSlackBytes) || onGpu.goesOn(0);
  }
  if (!differs.empty())
    out["differs"] = differs;
  out["seconds"] = secondsSince(start);
  out["ok"] = differs.empty() && !grows && done > 0;
  return out;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "spans")
    return gpu::measureSpans(std::span(words).subspan(1));
  const auto dashes = std::find(words.begin(), words.end(), "--");
  const auto rule = words.size() < 5 ? std::nullopt : parseRule(words[4]);
  if (words.size() < 7 || dashes == words.end() || !rule) {
    std::fprintf(stderr, "usage: gpu-replays FILE COUNT SECONDS ENTRY "
                         "bits|same:T|again:T [NAME=VALUE ...] -- TARGET...\n");
    return 2;
  }
  pipeline::LoadOptions options;
#ifdef MGPU_TUNE_COMPILES
  options.compiler = &pipeline::mlirCompiler();
#endif
  options.file = words[0];
  options.entry = words[3];
  for (auto word = words.begin() + 5; word < dashes; ++word)
    options.arguments[word->substr(0, word->find('='))] =
        word->substr(word->find('=') + 1);
  const uint64_t count = std::strtoull(words[1].c_str(), nullptr, 10);
  const double seconds = std::atof(words[2].c_str());
  int code = 0;
  for (auto target = dashes + 1; target < words.end(); ++target) {
    Result<json> line = compare(options, *rule, *target, count, seconds);
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
