// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TUNE_TUNETOGETHER_H
#define MGPU_PIPELINE_TUNE_TUNETOGETHER_H

// A search of several processes that share the devices. Rank 0 searches, and
// alone writes to the database. Candidates of the host it checks in processes
// of its own, which have all devices; those of GPUs all ranks check. All ranks
// open, agree on and measure a candidate that is measured; each time is the
// slowest rank's.

#include "bench/measure/Sampler.h"
#include "pipeline/build/TuneContext.h"
#include "pipeline/run/JoinRanks.h"

#include <condition_variable>
#include <map>
#include <thread>

namespace mgpu::pipeline {

// A candidate on the GPUs of several ranks, which check and measure it
// together. All ranks make the same calls in the same order.

class GpuCandidate {
public:
  /// All but `nccl` are referred to; the realization has its workspaces.
  GpuCandidate(const tuner::Realization &realization,
               const tuner::ProgramData &data, const GpuRanks &gpus,
               std::string nccl, bench::CacheMode cache)
      : realization(realization), data(data), gpus(gpus), nccl(std::move(nccl)),
        others(*gpus.here.part.others), cache(cache) {}

  /// Opens what is measured. Errors, here and below: what loses all ranks.
  Result<void> open();
  /// The fault is that of the first rank that has one, on all of them.
  Result<Outcome<Bytes>> answer(std::span<const std::byte> request);
  Result<void> close();

private:
  /// A plan on all GPUs, with guard zones around the memory of each or without.
  struct Opened {
    std::unique_ptr<capture::Runner> runner;
    capture::Ranks *ranks = nullptr; ///< those here
    std::shared_ptr<bool> arms;      ///< what Ranks::work() is to do
    bool hasRun = false;
  };
  Result<Opened> start(planner::Plan plan, bool isGuarded);
  Result<void> bind(Opened &on, uint64_t seed);
  Result<Outcome<Bytes>> run(Opened &on, uint64_t seed);
  Result<Outcome<Bytes>> runSpread(uint64_t seed);
  Result<Outcome<Bytes>> check(uint64_t seed, std::span<const std::byte> body);
  Result<Outcome<void>> agree(const Outcome<void> &mine);
  Result<Bytes> sample();
  Result<std::vector<bench::Spans>> timedReplays(double seconds);

  const tuner::Realization &realization;
  const tuner::ProgramData &data;
  const GpuRanks &gpus;
  const std::string nccl;
  device::MessageRendezvous &others;
  const bench::CacheMode cache;
  Opened timed;
  std::optional<bench::Sampler> sampler;
};

/// The work with candidates that all ranks do alike.
class RankCandidates {
public:
  /// All are referred to. `gpus` are this rank's; null: the host's devices.
  RankCandidates(const planner::Dag &dag, const tuner::ProgramData &data,
                 bool coldCaches, device::MessageRendezvous &others,
                 const GpuRanks *gpus);
  /// All ranks call it. `mine` is rank 0's; null elsewhere. A fault where one
  /// of them cannot open it. Errors: those of the ranks.
  Result<Outcome<void>> open(uint64_t id, const tuner::Realization *mine);
  /// A fault is the same on all ranks. Errors: what loses them all.
  Result<Outcome<Bytes>> answer(uint64_t id,
                                std::span<const std::byte> request);
  void drop(uint64_t id);

private:
  struct Each {
    tuner::Realization realization;
    std::optional<tuner::CandidateRun> run; ///< on the host
    std::unique_ptr<GpuCandidate> onGpus;
  };
  const planner::Dag &dag;
  const tuner::ProgramData &data;
  device::MessageRendezvous &others;
  const GpuRanks *const gpus;
  tuner::CandidateOptions options;
  std::map<uint64_t, Each> all;
};

/// Rank 0's side. From when it is made on, the others are told now and then
/// that it lives.
class TuneLeader {
public:
  TuneLeader(device::MessageRendezvous &others,
             std::chrono::milliseconds deadline);
  ~TuneLeader();
  /// Lets all ranks measure the candidates of `subject`, which with its data
  /// and `gpus` must outlive the search. `gpus` as of RankCandidates.
  void lead(tuner::TuningSubject &subject, bool coldCaches,
            const GpuRanks *gpus);
  /// Tells the others that the search is over.
  Result<void> end();

private:
  enum class Step : uint8_t { Idle, Open, Ask, Drop, End };
  struct Led;
  friend Result<void> followTuning(const planner::Dag &,
                                   const tuner::ProgramData &, bool,
                                   device::MessageRendezvous &,
                                   const GpuRanks *);

  Result<void> tell(Step step, uint64_t id = 0,
                    std::span<const std::byte> body = {});
  Outcome<Bytes> ask(Led &led, std::span<const std::byte> request);
  Result<void> checkWhole();
  void giveSigns(std::chrono::milliseconds period);

  device::MessageRendezvous &others;
  std::unique_ptr<RankCandidates> candidates;
  uint64_t numOpened = 0;
  std::mutex mutex; ///< of all below, and of what the ranks do together
  std::condition_variable wake;
  bool isOver = false;
  std::optional<Error> lost;
  std::thread signs;
};

/// The other ranks' side: does what rank 0 says until the search is over.
Result<void> followTuning(const planner::Dag &dag,
                          const tuner::ProgramData &data, bool coldCaches,
                          device::MessageRendezvous &others,
                          const GpuRanks *gpus);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_TUNETOGETHER_H
