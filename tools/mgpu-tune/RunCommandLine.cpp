// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command lines of `check`, `run`, `plan`, `replay` and `bundle`.
#include "support/Number.h"
#include "tools/mgpu-tune/CommonOptions.h"

namespace mgpu::tools {

void addCheckCommand(CommandLine &line) {
  auto [command, options] =
      addCommand<CheckOptions>(line, "check",
                               "Find races, deadlocks, mismatched "
                               "collectives and bad shapes",
                               runCheck);
  addProgram(command, options);
  addTarget(command, options.load);
  command->add_flag("--sharding-report", options.load.reportSharding,
                    "Print the layout of each tensor of an annotated program, "
                    "and what each collective costs");
  command->add_flag("--probe", options.probe,
                    "Run each launch on the host, in memory of its own, and "
                    "compare what it touches with what the program says");
  addValue(command, "--plan", options.planFile, "FILE",
           "Verify a plan of the program, written by `plan -o`");
  addValue(command, "--certificate", options.certificateFile, "FILE",
           "Verify the proof of that plan's bound, written by `plan "
           "--certificate`");
  addOneDevice(command, options.load);
}

/// Adds the options that `run` and `replay` have in common.
static void addRun(CLI::App *command, RunOptions &options) {
  addTarget(command, options.load);
  addPairs(
      command, "--out", options.outputs,
      "Write argument or result K after the run to FILE.npy. Of both --arg "
      "and --out, K@2=V is of a second round, which is replayed with the "
      "program as it is loaded; K@3=V of a third");
  takeWord(addValue(command, "--cpu", options.prepare.cpu, "LEVEL",
                    "Level of the kernels; else the best here"),
           cpuLevels);
  takeWhole(addValue(command, "--threads", options.prepare.threads, "N",
                     "Threads that replay on the host; else as many as are "
                     "worth it"),
            1, 1024);
  takeWhole(command
                ->add_option("--repeat", options.repeat,
                             "Replays; each starts with what the one before "
                             "left in the arguments")
                ->capture_default_str(),
            1, 1'000'000'000);
  addValue(command, "--trace", options.traceFile, "FILE",
           "Write a Chrome/Perfetto trace of one more replay");
  addValue(command, "--metrics", options.metricsFile, "FILE",
           "Write the times of the replays as the text that Prometheus reads");
  command->add_flag("--guard", options.guard,
                    "Put guard zones around all buffers and poison into "
                    "devices' memory, and fail where a kernel wrote into a "
                    "zone; slower, and of one target");
  command->add_flag("--pin", options.pin,
                    "Keep each thread that replays on a CPU of its own, and "
                    "say which; of one target");
  command->add_flag("--random", options.random,
                    "Random numbers of [0, 1) for arrays that --arg does not "
                    "give, and zeros for those of integers");
  addGpus(command, options);
  addDistributed(command, options);
}

void addRunCommand(CommandLine &line) {
  auto [command, options] = addCommand<RunOptions>(
      line, "run", "Plan, compile and run a program", runRun);
  addProgram(command, options);
  addScheduling(command, options.prepare);
  addTuned(command, options.load, options.prepare.useTuned);
  addRun(command, options);
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
}

void addPlanCommand(CommandLine &line) {
  auto [command, options] = addCommand<PlanCommandOptions>(
      line, "plan", "Show the schedule and why", runPlan);
  addProgram(command, options);
  addTarget(command, options.load);
  addScheduling(command, options.prepare);
  addValue(command, "--memory", options.prepare.memory, "SIZE",
           "Memory of each device, as 100GB, or none; by default a GPU's own");
  addValue(command, "--budget", options.prepare.budget, "TIME|N",
           "How long to search: 60s, or a number of schedules; by default 1s "
           "for sim targets, else by the size of the program");
  addValue(command, "--collectives", options.prepare.collectivesFile, "FILE",
           "Measured times of collectives (.csv), instead of the "
           "curves built in; of GPUs");
  command->add_flag("--explain", options.explain, "Say why each step is where");
  command->add_flag("--steps", options.steps,
                    "List the steps after the summary, with their lines in the "
                    "source");
  addValue(command, "--dot", options.dotFile, "FILE",
           "Write the plan as Graphviz");
  addValue(command, "--trace", options.traceFile, "FILE",
           "Write the predicted timeline as a Chrome/Perfetto trace");
  addValue(command, "--svg", options.svgFile, "FILE",
           "Write the predicted timeline as a picture");
  addValue(command, "--dag", options.dagFile, "FILE",
           "Write what was planned, with its durations, as an mgpu-dag/2 file");
  addValue(command, "--certificate", options.certificateFile, "FILE",
           "Write the proof of the plan's bound, which `check` verifies");
  addValue(command, "--what-if", options.whatIf, "CHANGE",
           "Plan again for link=2x, link.nvlink=2x, nic=2x, "
           "host_link=2x, memory=2x, flops=2x or op:NAME=0.5x (NAME* "
           "for all that begin so), and compare")
      ->expected(1)
      ->take_all();
  takeNumber(addValue(command, "--noise", options.noisePercent, "PERCENT",
                      "The makespan's 50th and 95th percentile where each "
                      "duration varies by so much"),
             0, 100);
  command->add_flag(
      "--pareto", options.pareto,
      "Plan under less and less memory, and list time over memory");
  takeWhole(addValue(command, "--shardings", options.shardings, "N",
                     "Plan up to N other annotations of an annotated "
                     "program's arguments, and print the program with the "
                     "shortest plan's"),
            1, 1'000'000);
  addOneDevice(command, options.load);
  addValue(command, "--step", options.load.step, "NAME",
           "Of a recorded trace, the step ProfilerStep#N alone");
  addValue(command, "-o,--output", options.output, "FILE",
           "Write the plan's text form to FILE; - is the standard output");
  addDistributed(command, options);
  addDeadline(command, options);
  addVariants(command, options.load);
  addTuned(command, options.load, options.prepare.useTuned);
}

void addReplayCommand(CommandLine &line) {
  auto [command, options] = addCommand<RunOptions>(
      line, "replay", "Run a program with a stored plan", runRun);
  options.prepare.mustBeStored = true;
  addProgram(command, options);
  addValue(command, "--plan", options.prepare.planFile, "FILE",
           "A plan written by `plan -o`; a bundle has its own");
  addTuned(command, options.load, options.prepare.useTuned);
  addRun(command, options);
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
}

static void addPerDevice(CLI::App *command, LoadOptions &load) {
  command
      ->add_option_function<std::string>(
          "--per-device",
          [&load](const std::string &text) {
            const size_t comma = std::min(text.find(','), text.size());
            const auto replicas = numberFrom<uint32_t>(text.substr(0, comma));
            const auto partitions = numberFrom<uint32_t>(
                text.substr(std::min(comma + 1, text.size())));
            constexpr uint32_t most = 1024;
            if (!replicas || !partitions || *replicas < 1 || *partitions < 1 ||
                *replicas > most || *partitions > most / *replicas)
              throw CLI::ValidationError(
                  "--per-device", "'" + text +
                                      "' is not two numbers as 2,1, of 1024 "
                                      "devices at most");
            load.replicas = *replicas;
            load.partitions = *partitions;
          },
          "Each device has arguments and results of its own, as a client of "
          "PJRT calls the program (docs/pjrt.md)")
      ->type_name("REPLICAS,PARTITIONS");
}

void addBundleCommand(CommandLine &line) {
  auto [command, options] = addCommand<BundleCommandOptions>(
      line, "bundle", "Put a program, planned and compiled, into one file",
      runBundle);
  addProgram(command, options);
  addValue(command, "-o,--output", options.output, "FILE",
           "The bundle to write, as x.mgpu")
      ->required();
  addTarget(command, options.load);
  addScheduling(command, options.prepare);
  addValue(command, "--plan", options.prepare.planFile, "FILE",
           "Store this plan, written by `plan -o`");
  options.bundle.levels = cpuLevels;
  std::vector<std::string> levelsOrNone = cpuLevels;
  levelsOrNone.push_back("none");
  takeWord(
      command
          ->add_option("--cpu", options.bundle.levels,
                       "CPU levels to compile the host's kernels for; none: a "
                       "bundle for GPUs alone")
          ->delimiter(',')
          ->type_name("LEVEL,...")
          ->capture_default_str(),
      levelsOrNone);
  addValue(command, "--arch", options.bundle.archs, "ARCH",
           "Architectures to compile cubins for: sm_80,sm_90,...")
      ->delimiter(',')
      ->type_name("ARCH,...");
  command
      ->add_option("--alternatives", options.bundle.alternatives,
                   "Other variants of each of the host's kernels, which "
                   "`tune` may choose of a bundle (default 0)")
      ->type_name("N")
      ->check(CLI::Validator(CLI::Range(0, 64)).description(""));
  addPerDevice(command, options.load);
  addPairs(command, "--prefix-map", options.bundle.prefixMap,
           "Paths in the bundle that begin with K begin with V instead; those "
           "in the program's own folder lose it");
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
  addTuned(command, options.load, options.prepare.useTuned);
}

} // namespace mgpu::tools
