// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/gpu/Spans.h"

#include "bench/measure/Summary.h"
#include "bench/profile/Profile.h"
#include "support/Clock.h"
#include "support/FileIO.h"
#include "tests/gpu/BareProduct.h"
#ifdef MGPU_TUNE_COMPILES
#include "pipeline/compiler/MlirCompiler.h"
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::gpu {

namespace {

using nlohmann::json;

constexpr size_t leastRounds = 3;
constexpr int timedReplays = 5;

struct Request {
  size_t rounds = 0;
  double seconds = 0;
  bool isBare = false, hasNodes = false;
  std::map<std::string, std::string> values, files; ///< by name
  std::vector<std::string> subjects;
};

/// What was measured of one program.
struct Subject {
  std::string file;
  std::unique_ptr<Side> side;
  std::unique_ptr<BareProduct> bare;
  std::vector<double> spans, calls, bares;
  json line;
};

std::optional<Request> parse(std::span<const std::string> words) {
  Request request;
  if (words.size() < 4)
    return std::nullopt;
  request.rounds = std::strtoull(words[0].c_str(), nullptr, 10);
  request.seconds = std::atof(words[1].c_str());
  size_t at = 2;
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string &word = words[at];
    const size_t equals = word.find('='), above = word.find('>');
    if (word == "bare")
      request.isBare = true;
    else if (word == "nodes")
      request.hasNodes = true;
    else if (equals != std::string::npos)
      request.values[word.substr(0, equals)] = word.substr(equals + 1);
    else if (above != std::string::npos)
      request.files[word.substr(0, above)] = word.substr(above + 1);
    else
      return std::nullopt;
  }
  if (at + 1 >= words.size() || request.rounds == 0)
    return std::nullopt;
  request.subjects.assign(words.begin() + std::ptrdiff_t(at) + 1, words.end());
  return request;
}

json toJson(const std::vector<double> &us) {
  const bench::Summary all = bench::summarize(us);
  return {all.median.middle, all.p25, all.p75};
}

Result<void> open(Subject &subject, const Request &request,
                  bench::BareGpu *gpu) {
  constexpr std::string_view tuned = "tuned:";
  pipeline::LoadOptions options;
#ifdef MGPU_TUNE_COMPILES
  options.compiler = &pipeline::mlirCompiler();
#endif
  const bool isTuned = subject.file.starts_with(tuned);
  options.file = subject.file.substr(isTuned ? tuned.size() : 0);
  options.arguments = request.values;
  const Clock::time_point start = Clock::now();
  MGPU_TRY_ASSIGN(subject.side, Side::open(options, "cuda:0", isTuned));
  subject.line["open_s"] = secondsSince(start);
  subject.line["nodes_in_plan"] = subject.side->program.dag.nodes.size();
  if (isTuned)
    subject.line["configuration"] = subject.side->prepared.configuration;
  if (gpu && request.isBare) {
    MGPU_TRY_ASSIGN(subject.bare, BareProduct::make(*subject.side, *gpu));
  }
  return {};
}

/// One sample of a program, which counts if `counts`.
Result<void> sample(Subject &subject, bool counts) {
  const Clock::time_point start = Clock::now();
  MGPU_TRY(subject.side->replayer->replay());
  const double call = 1e6 * secondsSince(start);
  MGPU_TRY_ASSIGN(std::optional<double> span,
                  subject.side->replayer->replaySpan());
  if (!span)
    return fail(ErrorKind::Internal, "a GPU has no clock");
  double bare = 0;
  if (subject.bare) {
    MGPU_TRY_ASSIGN(bare, subject.bare->us());
  }
  if (!counts)
    return {};
  subject.calls.push_back(call);
  subject.spans.push_back(*span);
  if (subject.bare)
    subject.bares.push_back(bare);
  return {};
}

Result<void> timeNodes(Subject &subject) {
  std::vector<bench::Spans> replays;
  for (int k = 0; k < timedReplays; ++k) {
    MGPU_TRY_ASSIGN(capture::TimedReplay timed,
                    subject.side->replayer->replayTimed());
    replays.push_back(std::move(timed.nodes));
  }
  const planner::Dag &dag = subject.side->program.dag;
  const std::vector<double> us = bench::medianTimes(dag.nodes.size(), replays);
  json nodes = json::array();
  for (size_t k = 0; k < us.size(); ++k)
    if (us[k] > 0)
      nodes.push_back({{"node", dag.nodes[k].name},
                       {"kernel", std::holds_alternative<planner::KernelCall>(
                                      dag.nodes[k].work)},
                       {"us", us[k]}});
  subject.line["nodes"] = std::move(nodes);
  subject.line["timed_by"] = subject.side->driver->timedBy();
  return {};
}

/// Writes what was asked for, and says what of it is not as in `first`.
Result<void> take(Subject &subject, const Request &request, size_t number,
                  std::map<std::string, std::vector<std::byte>> &first) {
  capture::Replayer &replayer = *subject.side->replayer;
  MGPU_TRY(replayer.fetch());
  json differs = json::array();
  const pipeline::LoadedProgram &program = subject.side->program;
  for (const auto *list : {&program.arguments, &program.results})
    for (const planner::ProgramArgument &argument : *list) {
      auto file = request.files.find(argument.name);
      if (!argument.buffer || file == request.files.end())
        continue;
      auto bytes = replayer.hostBuffer(*argument.buffer);
      MGPU_TRY(writeFileAtomic(
          number == 0 ? file->second
                      : fmt::format("{}.{}", file->second, number),
          {reinterpret_cast<const char *>(bytes.data()), bytes.size()}));
      auto [known, isFirst] = first.try_emplace(argument.name);
      if (isFirst)
        known->second.assign(bytes.begin(), bytes.end());
      else if (!std::equal(bytes.begin(), bytes.end(), known->second.begin(),
                           known->second.end()))
        differs.push_back(argument.name);
    }
  if (number > 0)
    subject.line["differs_from_first"] = std::move(differs);
  return {};
}

void summarize(Subject &subject) {
  subject.line["rounds"] = subject.spans.size();
  subject.line["span_us"] = toJson(subject.spans);
  subject.line["call_us"] = toJson(subject.calls);
  if (subject.bares.empty())
    return;
  std::vector<double> shares;
  for (size_t k = 0; k < subject.bares.size(); ++k)
    shares.push_back(subject.bares[k] / subject.spans[k]);
  subject.line["bare_us"] = toJson(subject.bares);
  subject.line["share_of_bare"] = bench::median(shares);
}

/// Keeps what is wrong with a program in its line, which ends it.
bool keeps(Subject &subject, Result<void> ok, int &code) {
  if (ok)
    return true;
  code = std::max(code, ok.error().kind == ErrorKind::Absent ? 3 : 1);
  subject.line["error"] = ok.error().message;
  subject.bare.reset();
  subject.side.reset();
  return false;
}

void measure(std::vector<Subject> &subjects, const Request &request,
             int &code) {
  const Clock::time_point start = Clock::now();
  for (size_t round = 0; round <= request.rounds; ++round) {
    if (round > leastRounds && secondsSince(start) > request.seconds)
      break;
    for (Subject &subject : subjects)
      if (subject.side)
        keeps(subject, sample(subject, round > 0), code);
  }
}

} // namespace

int measureSpans(std::span<const std::string> words) {
  const std::optional<Request> request = parse(words);
  if (!request) {
    std::fprintf(stderr, "usage: gpu-replays spans ROUNDS SECONDS [bare] "
                         "[nodes] [NAME=VALUE ...] [NAME>FILE ...] -- "
                         "[tuned:]FILE...\n");
    return 2;
  }
  int code = 0;
  auto gpu = bench::BareGpu::open();
  if (!gpu) {
    std::fprintf(stderr, "%s\n", gpu.error().message.c_str());
    return 3;
  }
  std::vector<Subject> subjects(request->subjects.size());
  for (size_t k = 0; k < subjects.size(); ++k) {
    subjects[k].file = request->subjects[k];
    subjects[k].line = {{"file", subjects[k].file}};
    keeps(subjects[k], open(subjects[k], *request, gpu->get()), code);
  }
  measure(subjects, *request, code);
  std::map<std::string, std::vector<std::byte>> first;
  for (size_t k = 0; k < subjects.size(); ++k) {
    Subject &subject = subjects[k];
    if (subject.side && keeps(subject, take(subject, *request, k, first), code))
      summarize(subject);
    // Records of nodes may be missing, which says nothing of the rest.
    if (subject.side && request->hasNodes)
      if (Result<void> ok = timeNodes(subject); !ok)
        subject.line["nodes_error"] = ok.error().message;
    fmt::print("{}\n", subject.line.dump());
    std::fflush(stdout);
  }
  for (Subject &subject : subjects)
    subject.bare.reset();
  return code;
}

} // namespace mgpu::gpu
