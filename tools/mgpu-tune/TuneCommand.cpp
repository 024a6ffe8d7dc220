// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune tune`.
#include "db/FileSystem.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Load.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/tune/Tune.h"
#include "pipeline/tune/TuneTogether.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"
#include "tools/mgpu-tune/TuneProgress.h"
#include "tools/mgpu-tune/TuneResultText.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace mgpu::tools {

using tuner::TuningResult;

namespace {

std::atomic<bool> interrupted = false;
std::atomic<int> interruptedBy = 0;

/// The first interrupt ends the search; a second one the program.
void onInterrupt(int number) {
  constexpr char words[] =
      "\nmgpu-tune: stopping: what was found so far is compared with the "
      "default and stored; once more to stop at once\n";
  interrupted = true;
  interruptedBy = number;
  std::signal(number, SIG_DFL);
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, words, sizeof words - 1);
}

class CatchInterrupt {
public:
  CatchInterrupt() {
    interrupted = false;
    interruptedBy = 0;
    for (size_t k = 0; k < std::size(numbers); ++k)
      before[k] = std::signal(numbers[k], onInterrupt);
  }
  ~CatchInterrupt() {
    for (size_t k = 0; k < std::size(numbers); ++k)
      std::signal(numbers[k], before[k]);
  }

private:
  static constexpr int numbers[] = {SIGINT, SIGTERM};
  void (*before[2])(int);
};

/// Takes part as another rank than 0, which alone searches, prints and stores.
Result<int> followTune(const LoadedProgram &program, const TuneOptions &options,
                       const GpuRanks *gpus) {
  std::vector<std::string> madeUp; // rank 0 says it
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, {}, &madeUp));
  const tuner::ProgramData data(program.dag, std::move(inputs));
  MGPU_TRY(
      followTuning(program.dag, data, options.coldCaches, *theRanks(), gpus));
  return 0;
}

} // namespace

Result<int> runTune(const TuneOptions &options) {
  const Clock::time_point started = Clock::now();
  CatchInterrupt catching;
  MGPU_TRY_ASSIGN(const SearchBudget budget, parseBudget(options.budget));
  MGPU_TRY(checkDeadline(options, options.load));
  MGPU_TRY(joinAsked(options));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(options.load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  device::Facts facts{{"--cold", std::to_string(options.coldCaches)}};
  std::optional<GpuRanks> gpus; // of this rank, where their devices are GPUs
  if (haveGpus(options.load)) {
    MGPU_TRY_ASSIGN(gpus, agreedGpus(program, options, std::move(facts)));
  } else if (theRanks()) {
    MGPU_TRY(agreeOnProgram(program.dag, *theRanks(),
                            factsOf(options.load, std::move(facts))));
  }
  if (!isFirstRank())
    return followTune(program, options, gpus ? &*gpus : nullptr);
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  noteEarlierPlace(options.load.database);
  MGPU_TRY_ASSIGN(const std::string path,
                  db::databasePath(options.load.database));
  const auto search = [&]() -> Result<TuningResult> {
    ProgressLine line; // is gone before anything is printed
    std::optional<TuneLeader> leader;
    if (theRanks())
      leader.emplace(*theRanks(),
                     std::chrono::seconds(options.deadlineSeconds));
    MGPU_TRY_ASSIGN(
        TuningResult found,
        tuneProgram(program, context,
                    {.budget = budget,
                     .started = started,
                     .strategy = options.strategy,
                     .seed = options.seed,
                     .coldCaches = options.coldCaches,
                     // Ranks are bound to CPUs by whoever starts them.
                     .pinThreads = options.pinThreads && !leader,
                     .progress = std::ref(line),
                     .stop = &interrupted,
                     .leader = leader ? &*leader : nullptr,
                     .gpus = gpus ? &*gpus : nullptr}));
    if (leader)
      MGPU_TRY(leader->end());
    return found;
  };
  MGPU_TRY_ASSIGN(const TuningResult result, search());
  MGPU_TRY_ASSIGN(const planner::Dag dag,
                  tuner::transformed(program.dag, result.config.transforms));
  MGPU_TRY_ASSIGN(const planner::Plan plan,
                  tuner::planOf(dag, result.config, context.machine));
  if (options.json)
    tools::printJson(
        toJson(result, program, context, path, plan.verdictLine()));
  else
    print(result, program, context, path, plan.verdictLine());
  // The result is whole; the search is not, and a script must know.
  return result.interrupted ? 128 + interruptedBy : 0;
}

} // namespace mgpu::tools
