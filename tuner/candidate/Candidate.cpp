// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/Candidate.h"

#include <bit>
#include <cstring>

namespace mgpu::tuner {

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
