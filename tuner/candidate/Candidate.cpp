// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/Candidate.h"

#include "capture/replay/Workspaces.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mgpu::tuner {

using namespace planner;

namespace {

/// Reads `exact`, then `bound`; none if nothing was sent.
std::optional<Tolerances> readTolerances(std::span<const std::byte> from,
                                         size_t count) {
  if (from.size() != 2 * count * sizeof(double) || count == 0)
    return std::nullopt;
  Tolerances made{std::vector<double>(count), std::vector<double>(count)};
  std::memcpy(made.exact.data(), from.data(), from.size() / 2);
  std::memcpy(made.bound.data(), from.data() + from.size() / 2,
              from.size() / 2);
  return made;
}

tl::unexpected<Fault> faultOf(const Error &error) {
  return fault(error.kind == ErrorKind::Absent ? FaultKind::OverLimit
                                               : FaultKind::Refused,
               error.message);
}

/// The fault of a run under way: a GPU's driver comes back from a kernel that
/// faults, where the host's process dies of it.
tl::unexpected<Fault> faultOfRun(const Error &error) {
  return fault(FaultKind::Crash, error.message);
}

#define TRY_RUN(expression)                                                    \
  do {                                                                         \
    if (auto outcome = (expression); !outcome)                                 \
      return faultOfRun(outcome.error());                                      \
  } while (0)
#define TRY_OUTCOME(expression)                                                \
  do {                                                                         \
    if (auto outcome = (expression); !outcome)                                 \
      return faultOf(outcome.error());                                         \
  } while (0)

} // namespace

Bytes requestOf(Command command, uint64_t number,
                std::span<const std::byte> body) {
  Bytes request;
  append(request, command);
  append(request, number);
  append(request, body);
  return request;
}

CandidateRun::CandidateRun(Realization given, const ProgramData &data,
                           const CandidateOptions &options)
    : realization(std::move(given)), data(data), options(options) {
  std::vector<Bytes> kernels;
  for (const KernelObject &kernel : realization.kernels)
    kernels.push_back(*kernel);
  capture::addWorkspaces(realization.dag, realization.plan, kernels);
}

Outcome<Bytes> CandidateRun::answer(std::span<const std::byte> request) {
  ByteReader reader(request);
  Command command;
  uint64_t number = 0;
  if (!reader.take(command) || !reader.take(number))
    return fault(FaultKind::Refused, "was asked nothing");
  switch (command) {
  case Command::Check:
    return check(number, reader.rest());
  case Command::Outputs:
    return outputs(number);
  case Command::Sample:
    return sample();
  case Command::NodeTimes:
    return nodeTimes(std::bit_cast<double>(number));
  case Command::Timeline:
    return timeline(std::bit_cast<double>(number));
  }
  return fault(FaultKind::Refused, "was asked what it does not know");
}

/// CPUs of the threads; none where they are not pinned.
std::vector<int> CandidateRun::cpus() const {
  return bench::cpusFor(options.cpus, realization.threads);
}

Outcome<void> CandidateRun::open(Guarded &into, Plan plan) {
  pinned.reset(); // workers are born with what this thread may use
  const std::vector<int> all = cpus();
  auto driver = options.openDriver(
      realization.dag->numDevices, realization.threads,
      std::span<const int>(all).subspan(std::min<size_t>(all.size(), 1)));
  if (!driver)
    return faultOf(driver.error());
  into.driver = std::make_unique<GuardedDriver>(std::move(*driver));
  into.plan = std::move(plan);
  std::vector<Bytes> kernels;
  for (const KernelObject &kernel : realization.kernels)
    kernels.push_back(*kernel);
  auto replayer = capture::Replayer::create(*realization.dag, into.plan,
                                            kernels, *into.driver);
  if (!replayer)
    return faultOf(replayer.error());
  into.replayer = std::move(*replayer);
  return {};
}

/// Two replays: what the first one leaves behind is there in the second.
Outcome<Bytes> CandidateRun::run(Guarded &guarded, uint64_t seed) {
  capture::Replayer &replayer = *guarded.replayer;
  TRY_OUTCOME(guarded.driver->arm(guarded.plan, *realization.dag));
  data.bind(replayer, seed);
  TRY_RUN(replayer.load());
  TRY_RUN(replayer.replay());
  TRY_RUN(replayer.replay());
  TRY_RUN(replayer.fetch());
  if (auto intact = guarded.driver->check(); !intact)
    return tl::make_unexpected(intact.error());
  return data.outputs(replayer);
}

Outcome<void> CandidateRun::openTimed() {
  return timed.replayer ? Outcome<void>() : open(timed, realization.plan);
}

void CandidateRun::pin() {
  if (const std::vector<int> all = cpus(); !pinned && !all.empty())
    pinned.emplace(all[0]);
}

Outcome<Agreement> compareWith(std::span<const std::byte> body,
                               std::span<const std::byte> found,
                               const ProgramData &data) {
  if (body.size() < data.outputBytes())
    return fault(FaultKind::Refused, "was not told what to give");
  const std::optional<Tolerances> tolerances =
      readTolerances(body.subspan(data.outputBytes()), data.numFloats());
  return data.compare(found, body.first(data.outputBytes()),
                      tolerances ? &*tolerances : nullptr);
}

Outcome<Bytes> CandidateRun::check(uint64_t seed,
                                   std::span<const std::byte> body) {
  Guarded spread;
  if (auto ok = open(spread, spreadBuffers(realization.plan, *realization.dag));
      !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = openTimed(); !ok)
    return tl::make_unexpected(ok.error());
  Agreement furthest;
  for (Guarded *guarded : {&spread, &timed}) {
    auto found = run(*guarded, seed);
    if (!found)
      return found;
    auto agreement = compareWith(body, *found, data);
    if (!agreement)
      return tl::make_unexpected(agreement.error());
    furthest.add(*agreement);
  }
  Bytes answer;
  append(answer, furthest);
  return answer;
}

Outcome<Bytes> CandidateRun::outputs(uint64_t seed) {
  Guarded spread;
  if (auto ok = open(spread, spreadBuffers(realization.plan, *realization.dag));
      !ok)
    return tl::make_unexpected(ok.error());
  return run(spread, seed);
}

Result<void> CandidateRun::prepare() {
  data.bind(*timed.replayer, 0);
  return timed.replayer->load();
}

Outcome<Bytes> CandidateRun::sample() {
  if (auto ok = openTimed(); !ok)
    return tl::make_unexpected(ok.error());
  pin();
  if (!sampler)
    sampler.emplace([this] { return prepare(); },
                    [this] { return timed.replayer->replay(); },
                    options.sampling);
  auto sample = sampler->sample();
  if (!sample)
    return faultOfRun(sample.error());
  Bytes answer;
  append(answer, *sample);
  return answer;
}

/// Timed replays for about `seconds`, three at least, after one that warms
/// up.
Outcome<std::vector<bench::Spans>> CandidateRun::timedReplays(double seconds) {
  if (auto ok = openTimed(); !ok)
    return tl::make_unexpected(ok.error());
  pin();
  TRY_RUN(prepare());
  TRY_RUN(timed.replayer->replay());
  device::Rendezvous *others = options.sampling.others;
  auto replays = bench::timedFor(seconds, others, [&] {
    return bench::replayTimed(*timed.replayer, others);
  });
  if (!replays)
    return faultOfRun(replays.error());
  return std::move(*replays);
}

Bytes nodeTimesOf(const Dag &dag, std::span<const bench::Spans> replays) {
  Bytes answer;
  for (const double us : bench::medianTimes(dag.nodes.size(), replays))
    append(answer, us);
  return answer;
}

Bytes timelineOf(std::vector<bench::Spans> replays) {
  Bytes answer;
  for (const capture::NodeSpan &span : bench::medianReplay(std::move(replays)))
    append(answer, span);
  return answer;
}

Outcome<Bytes> CandidateRun::nodeTimes(double seconds) {
  auto replays = timedReplays(seconds);
  if (!replays)
    return tl::make_unexpected(replays.error());
  return nodeTimesOf(*realization.dag, *replays);
}

Outcome<Bytes> CandidateRun::timeline(double seconds) {
  auto replays = timedReplays(seconds);
  if (!replays)
    return tl::make_unexpected(replays.error());
  return timelineOf(std::move(*replays));
}

Result<Candidate> Candidate::start(const Realization &realization,
                                   const ProgramData &data,
                                   const CandidateOptions &options) {
  if (options.checksTogether)
    return Candidate(std::nullopt, options, options.together(realization));
  // References suffice: the child has them as they are at the fork.
  auto runner = std::make_shared<CandidateRun>(realization, data, options);
  MGPU_TRY_ASSIGN(ChildProcess process,
                  ChildProcess::start(
                      [runner](std::span<const std::byte> request) {
                        return runner->answer(request);
                      },
                      options.limits));
  return Candidate(std::move(process), options,
                   options.together ? options.together(realization) : nullptr);
}

Outcome<Bytes> Candidate::askTimed(std::span<const std::byte> request,
                                   double seconds) {
  return together ? together(request) : process->ask(request, within(seconds));
}

Outcome<Bytes> Candidate::askChecked(std::span<const std::byte> request) {
  return process ? process->ask(request, within(options.secondsToPrepare))
                 : together(request);
}

Outcome<Agreement> Candidate::check(uint64_t seed,
                                    std::span<const std::byte> expected,
                                    const Tolerances *tolerances) {
  Bytes request = requestOf(Command::Check, seed, expected);
  if (tolerances) {
    append(request, std::as_bytes(std::span(tolerances->exact)));
    append(request, std::as_bytes(std::span(tolerances->bound)));
  }
  auto answer = askChecked(request);
  if (!answer)
    return tl::make_unexpected(answer.error());
  Agreement agreement;
  if (!ByteReader(*answer).take(agreement))
    return fault(FaultKind::Crash, "answered with no agreement");
  furthest.add(agreement);
  return agreement;
}

Outcome<Bytes> Candidate::outputs(uint64_t seed) {
  return askChecked(requestOf(Command::Outputs, seed));
}

Outcome<bench::Sample> Candidate::sample() {
  auto answer =
      askTimed(requestOf(Command::Sample, 0), options.secondsPerSample);
  if (!answer)
    return tl::make_unexpected(answer.error());
  bench::Sample sample;
  if (!ByteReader(*answer).take(sample) || !(sample.seconds > 0))
    return fault(FaultKind::Crash, "answered with no sample");
  return sample;
}

Outcome<std::vector<double>> Candidate::nodeTimes(double seconds) {
  auto answer =
      askTimed(requestOf(Command::NodeTimes, std::bit_cast<uint64_t>(seconds)),
               options.secondsToPrepare + 2 * seconds);
  if (!answer)
    return tl::make_unexpected(answer.error());
  std::vector<double> times(answer->size() / sizeof(double));
  std::memcpy(times.data(), answer->data(), times.size() * sizeof(double));
  return times;
}

Outcome<std::vector<capture::NodeSpan>> Candidate::timeline(double seconds) {
  auto answer =
      askTimed(requestOf(Command::Timeline, std::bit_cast<uint64_t>(seconds)),
               options.secondsToPrepare + 2 * seconds);
  if (!answer)
    return tl::make_unexpected(answer.error());
  std::vector<capture::NodeSpan> spans(answer->size() /
                                       sizeof(capture::NodeSpan));
  std::memcpy(spans.data(), answer->data(),
              spans.size() * sizeof(capture::NodeSpan));
  return spans;
}

Result<Outcome<std::vector<Bytes>>>
outputsOfEach(std::span<const Realization> realizations,
              const ProgramData &data, uint64_t seed,
              const CandidateOptions &options) {
  using All = Outcome<std::vector<Bytes>>;
  MGPU_TRY_ASSIGN(
      ChildProcess process,
      ChildProcess::start(
          [&](std::span<const std::byte> request) -> Outcome<Bytes> {
            Bytes all;
            for (const Realization &each : realizations) {
              auto outputs = CandidateRun(each, data, options).answer(request);
              if (!outputs)
                return outputs;
              append(all, *outputs);
            }
            return all;
          },
          options.limits));
  const double seconds = options.secondsToPrepare * double(realizations.size());
  auto answer = process.ask(requestOf(Command::Outputs, seed),
                            atMost(options.limit, seconds));
  if (!answer)
    return All(tl::make_unexpected(answer.error()));
  const uint64_t each = data.outputBytes();
  if (answer->size() != each * realizations.size())
    return All(fault(FaultKind::Crash, "answered with other outputs"));
  std::vector<Bytes> parts;
  for (auto at = answer->begin(); parts.size() < realizations.size();
       at += ptrdiff_t(each))
    parts.emplace_back(at, at + ptrdiff_t(each));
  return All(std::move(parts));
}

} // namespace mgpu::tuner
