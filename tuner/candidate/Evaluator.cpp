// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/Evaluator.h"

#include "kernels/space/ErrorSeeds.h"
#include "support/Clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace mgpu::tuner {

Result<ChildProcess> CompilePool::startProcess() const {
  return ChildProcess::start(
      [build =
           buildKernel](std::span<const std::byte> request) -> Outcome<Bytes> {
        Job job;
        if (request.size() != sizeof job)
          return fault(FaultKind::Refused, "was asked nothing");
        std::memcpy(&job, request.data(), sizeof job);
        auto object = build(job.kernel, job.config, job.variant);
        if (!object)
          return fault(FaultKind::Refused, object.error().message);
        return std::move(*object);
      });
}

Result<CompilePool> CompilePool::start(BuildKernel build, uint32_t numProcesses,
                                       double secondsPerKernel) {
  CompilePool pool(std::move(build), secondsPerKernel);
  for (uint32_t k = 0; k < std::max(numProcesses, 1u); ++k) {
    MGPU_TRY_ASSIGN(ChildProcess process, pool.startProcess());
    pool.processes.push_back(std::move(process));
  }
  return pool;
}

Result<std::vector<Outcome<KernelObject>>>
CompilePool::build(std::span<const Job> jobs) {
  std::vector<Job> missing;
  for (const Job &job : jobs)
    if (!known.contains(job))
      missing.push_back(job);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  auto seconds = [&] { return atMost(limit, secondsPerKernel); };
  auto isOver = [&] { return limit && limit->isOver(); };
  for (size_t first = 0; first < missing.size() && !isOver();
       first += processes.size()) {
    auto wave = std::span(missing).subspan(
        first, std::min(processes.size(), missing.size() - first));
    for (size_t k = 0; k < wave.size(); ++k)
      (void)processes[k].post(std::as_bytes(wave.subspan(k, 1)),
                              seconds()); // its fault comes with receive()
    for (size_t k = 0; k < wave.size(); ++k) {
      auto object = processes[k].receive(seconds());
      ++compiled;
      if (object) {
        known.emplace(wave[k], std::make_shared<Bytes>(std::move(*object)));
        continue;
      }
      object.error().what = "the compiler " + object.error().what;
      if (object.error().kind != FaultKind::Refused) {
        MGPU_TRY_ASSIGN(processes[k], startProcess());
      }
      if (object.error().kind == FaultKind::Refused || !isOver())
        known.emplace(wave[k], tl::make_unexpected(object.error()));
    }
  }
  std::vector<Outcome<KernelObject>> results;
  for (const Job &job : jobs) {
    auto at = known.find(job); // what was cut short may be asked for again
    results.push_back(at != known.end()
                          ? at->second
                          : fault(FaultKind::Hang,
                                  "the compiler was stopped, as time was up"));
  }
  return results;
}

using namespace planner;

/// Sets of fresh data that candidates are checked on in turn.
static constexpr uint64_t numFreshSets = 4;
/// Beyond what the reference takes: a candidate 20 times slower than that is
/// not a candidate.
static constexpr double slack = 20, leastSeconds = 2;
/// The most that one run in f64 may take.
static constexpr double mostWideSeconds = 20;

ProgramConfig defaultConfig(const Dag &dag,
                            std::span<const kernels::KernelSpace> kernels,
                            const SpaceLimits &limits) {
  ProgramConfig config;
  config.threads =
      std::max(std::min(limits.mostThreads, limits.defaultThreads), 1u);
  while (config.streams > std::max(limits.mostStreams, 1u))
    config.streams /= 2;
  for (size_t k = 0; k < dag.kernels.size(); ++k)
    config.kernels.push_back(kernels[k].defaults);
  return config;
}

Result<std::unique_ptr<Evaluator>>
Evaluator::create(const TuningSubject &subject,
                  const EvaluatorOptions &options) {
  auto evaluator = std::unique_ptr<Evaluator>(new Evaluator(subject, options));
  MGPU_TRY(evaluator->open());
  return evaluator;
}

/// The program's own fault: there is nothing to tune.
static tl::unexpected<Error> itself(const char *which, const Fault &found) {
  return fail(ErrorKind::Invalid,
              fmt::format("the program cannot be tuned: its {} {}{}", which,
                          found.what,
                          found.kind == FaultKind::Crash
                              ? "; `mgpu-tune run` says where"
                              : ""));
}

Result<void> Evaluator::open() {
  original = std::make_shared<const Dag>(about.dag);
  defaultChoice = defaultConfig(about.dag, about.kernels, about.limits());
  MGPU_TRY_ASSIGN(CompilePool made,
                  CompilePool::start(about.build, options.compilers));
  pool.emplace(std::move(made));
  pool->setLimit(&limit);
  candidateOptions.limit = &limit;
  for (uint32_t k = 0; k < about.compiled.size(); ++k)
    pool->add({k, defaultChoice.kernels[k], variantOf(defaultChoice)},
              about.compiled[k]);

  candidateOptions.openDriver = about.openDriver;
  candidateOptions.together = about.together;
  candidateOptions.checksTogether = about.checksTogether;
  candidateOptions.sampling.cache = options.cache;
  candidateOptions.limits.memoryBytes = options.memoryBytes;
  if (options.pinThreads)
    candidateOptions.cpus = bench::cpusInOrder();
  // Nothing is known of how long it takes; a user waits, and can interrupt.
  candidateOptions.secondsToPrepare = 600;
  candidateOptions.secondsPerSample = 600;

  ProgramConfig serial = defaultChoice;
  serial.scheduler = "serial";
  serial.streams = serial.threads = 1;
  MGPU_TRY_ASSIGN(auto realized, realize(serial));
  if (!realized)
    return itself("kernel", realized.error());
  objects = realized->kernels;
  MGPU_TRY_ASSIGN(Candidate referenceRun,
                  Candidate::start(*realized, about.data, candidateOptions));
  reference.emplace(std::move(referenceRun));
  Clock::time_point start = Clock::now();
  for (uint64_t k = 0; k <= numFreshSets; ++k) {
    uint64_t seed = k == 0 ? 0 : options.freshSeed + k;
    auto outputs = reference->outputs(seed);
    if (!outputs)
      return itself("reference, a serial plan,", outputs.error());
    expected[seed] = std::move(*outputs);
  }
  double each = secondsSince(start) / double(numFreshSets + 1);
  candidateOptions.secondsToPrepare = leastSeconds + slack * each;
  candidateOptions.secondsPerSample = leastSeconds + slack * each;

  MGPU_TRY_ASSIGN(realized, realize(defaultChoice));
  if (!realized)
    return itself("default plan", realized.error());
  start = Clock::now();
  MGPU_TRY_ASSIGN(auto admitted, admit(*realized));
  if (!admitted)
    return itself("default plan", admitted.error());
  admitSeconds = secondsSince(start);
  defaultRun.emplace(std::move(*admitted));
  return {};
}

Result<std::shared_ptr<const Dag>>
Evaluator::programAfter(const TransformList &transforms) {
  if (transforms.empty())
    return original;
  if (!lastProgram || transforms != lastTransforms) {
    MGPU_TRY_ASSIGN(Dag made, transformed(about.dag, transforms));
    lastProgram = std::make_shared<const Dag>(std::move(made));
    lastTransforms = transforms;
  }
  return lastProgram;
}

Result<Outcome<Realization>> Evaluator::realize(const ProgramConfig &config) {
  Realization made;
  auto dag = programAfter(config.transforms);
  if (!dag && dag.error().kind == ErrorKind::Invalid)
    return Outcome<Realization>(
        fault(FaultKind::Refused, std::move(dag.error().message)));
  if (!dag)
    return fail(std::move(dag.error()));
  made.dag = std::move(*dag);
  made.threads = config.threads;
  made.settings = config.settings;
  std::vector<CompilePool::Job> jobs;
  for (uint32_t k = 0; k < config.kernels.size(); ++k)
    jobs.push_back({k, config.kernels[k], variantOf(config)});
  MGPU_TRY_ASSIGN(auto built, pool->build(jobs));
  for (Outcome<KernelObject> &object : built) {
    if (!object)
      return Outcome<Realization>(tl::make_unexpected(object.error()));
    made.kernels.push_back(std::move(*object));
  }
  MGPU_TRY_ASSIGN(made.plan, planOf(*made.dag, config, about.machine));
  return Outcome<Realization>(std::move(made));
}

std::string Evaluator::identity(const Realization &realization,
                                const ProgramConfig &config) {
  // Nodes and buffers are numbers of the program as it was changed.
  std::string text = fmt::format("{}; {} threads;", toText(config.transforms),
                                 realization.threads);
  for (auto &[name, value] : config.settings)
    text += fmt::format(" {}={};", name, value);
  for (const PlanStep &step : realization.plan.steps) {
    text += fmt::format(" {}@", step.node.value);
    for (PlanStream stream : step.streams)
      text += fmt::format("{}.{},", stream.device.value, stream.stream.value);
    for (NodeId wait : step.waits)
      text += fmt::format("<{}", wait.value);
  }
  for (const Placement &placement : realization.plan.placements)
    text += fmt::format(" {}:{}", placement.buffer.value, placement.offset);
  for (const kernels::KernelConfig &kernel : config.kernels)
    text += ";" + toText(kernel);
  return text;
}

Result<bool> Evaluator::realizeWide() {
  if (!noTolerance.empty() || !wide.empty())
    return noTolerance.empty();
  MGPU_TRY_ASSIGN(
      CompilePool builders,
      CompilePool::start([build = about.accuracy->build](
                             uint32_t kernel, const kernels::KernelConfig &,
                             uint32_t) { return build(kernel); },
                         options.compilers));
  builders.setLimit(&limit);
  std::vector<CompilePool::Job> jobs;
  for (uint32_t k = 0; k < about.dag.kernels.size(); ++k)
    jobs.push_back({k, {}});
  MGPU_TRY_ASSIGN(auto built, builders.build(jobs));
  Realization each;
  each.threads = 1;
  for (Outcome<KernelObject> &object : built) {
    if (!object) {
      if (!isTimeUp()) // else a later one may have the time
        noTolerance = object.error().what;
      return false;
    }
    each.kernels.push_back(std::move(*object));
  }
  ProgramConfig serial = defaultChoice;
  serial.scheduler = "serial";
  serial.streams = serial.threads = 1;
  MGPU_TRY_ASSIGN(each.plan, planOf(about.dag, serial, about.machine));
  for (unsigned k = 0; k <= kernels::numErrorTrials; ++k) {
    each.dag = std::make_shared<const Dag>(kernels::withErrorSeeds(
        about.dag, k == 0 ? std::nullopt : std::optional(k - 1)));
    wide.push_back(each);
  }
  return true;
}

Result<const Tolerances *> Evaluator::tolerancesOf(uint64_t seed,
                                                   const Bytes &outputs) {
  const Tolerances *none = nullptr;
  if (!about.accuracy)
    return none;
  if (auto known = tolerances.find(seed); known != tolerances.end())
    return &known->second;
  MGPU_TRY_ASSIGN(bool ready, realizeWide());
  if (!ready)
    return none;
  CandidateOptions running = candidateOptions;
  running.openDriver = about.accuracy->openHost;
  running.checksTogether = false;
  running.secondsToPrepare = mostWideSeconds;
  MGPU_TRY_ASSIGN(auto runs, outputsOfEach(wide, about.data, seed, running));
  if (!runs) {
    if (!isTimeUp())
      noTolerance = "the program in f64 " + runs.error().what;
    return none;
  }
  return &tolerances
              .emplace(seed, about.data.tolerances(runs->front(),
                                                   std::span(*runs).subspan(1),
                                                   outputs))
              .first->second;
}

Result<Outcome<void>> Evaluator::check(Candidate &candidate, uint64_t seed) {
  auto known = expected.find(seed);
  Bytes fresh;
  if (known == expected.end()) {
    auto outputs = reference->outputs(seed);
    if (!outputs && isTimeUp()) // it was cut short
      return Outcome<void>(tl::make_unexpected(outputs.error()));
    if (!outputs)
      return itself("reference, a serial plan,", outputs.error());
    fresh = std::move(*outputs);
  }
  const Bytes &outputs = known == expected.end() ? fresh : known->second;
  auto agreed = candidate.check(seed, outputs);
  // Tolerances cost runs of their own: only where bits do not agree.
  if (!agreed && agreed.error().kind == FaultKind::WrongResult) {
    MGPU_TRY_ASSIGN(const Tolerances *within, tolerancesOf(seed, outputs));
    if (within)
      agreed = candidate.check(seed, outputs, within);
  }
  if (!agreed)
    return Outcome<void>(tl::make_unexpected(agreed.error()));
  return Outcome<void>();
}

Result<Outcome<Candidate>> Evaluator::admit(const Realization &realization) {
  MGPU_TRY_ASSIGN(Candidate candidate,
                  Candidate::start(realization, about.data, candidateOptions));
  uint64_t fresh = options.freshSeed + 1 + numAdmitted++ % numFreshSets;
  for (uint64_t seed : {uint64_t(0), fresh}) {
    MGPU_TRY_ASSIGN(auto outcome, check(candidate, seed));
    if (!outcome)
      return Outcome<Candidate>(tl::make_unexpected(outcome.error()));
  }
  return Outcome<Candidate>(std::move(candidate));
}

Result<Outcome<void>> Evaluator::checkFresh(Candidate &candidate) {
  return check(candidate, options.freshSeed + numFreshSets + 1 + numFresh++);
}

bench::Subject subjectOf(Candidate &candidate, std::optional<Fault> &fault) {
  return [&candidate, &fault]() -> Result<bench::Sample> {
    auto sample = candidate.sample();
    if (sample)
      return *sample;
    fault = sample.error();
    return fail(ErrorKind::Invalid, sample.error().what);
  };
}

} // namespace mgpu::tuner
