// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CommonOptions.h"

#include "support/Number.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace mgpu::tools {

void addCommands(CommandLine &line) {
  for (auto add :
       {addCheckCommand, addRunCommand, addPlanCommand, addReplayCommand,
        addBundleCommand, addTuneCommand, addCompareCommand, addProfileCommand,
        addCalibrateCommand, addReportCommand, addKernelsCommand, addDbCommand,
        addSecretCommand, addDevicesCommand, addDoctorCommand,
        addOptionsCommand})
    add(line);
}

/// `take` gets each K and V, and says whether it is there for the first time.
static void
addEachPair(CLI::App *command, const char *name,
            std::function<bool(const std::string &, const std::string &)> take,
            const char *help) {
  command
      ->add_option_function<std::vector<std::string>>(
          name,
          [name,
           take = std::move(take)](const std::vector<std::string> &pairs) {
            for (const std::string &pair : pairs) {
              size_t equals = pair.find('=');
              if (equals == 0 || equals == std::string::npos ||
                  equals + 1 == pair.size())
                throw CLI::ValidationError(
                    name, "'" + pair + "' is not of the form K=V");
              if (!take(pair.substr(0, equals), pair.substr(equals + 1)))
                throw CLI::ValidationError(name, "'" + pair.substr(0, equals) +
                                                     "' is given twice");
            }
          },
          help)
      ->type_name("K=V")
      ->expected(1)
      ->allow_extra_args(false) // what follows the one value is not its
      ->take_all();
}

void addPairs(CLI::App *command, const char *name, Pairs &into,
              const char *help) {
  addEachPair(
      command, name,
      [&into](const std::string &key, const std::string &value) {
        return into.emplace(key, value).second;
      },
      help);
}

static void addRoles(CLI::App *command, RoleOptions &options) {
  addEachPair(
      command, "--role",
      [&options](const std::string &key, const std::string &role) {
        if (key.find('*') == std::string::npos)
          return options.roles.emplace(key, role).second;
        options.rolePatterns.emplace_back(key, role);
        return true;
      },
      "Role of argument K: input, output, resident; of a scalar: specialised, "
      "dynamic. In K, * is any letters: the last such K that matches holds, "
      "and a name goes before it");
  command
      ->add_option_function<std::string>(
          "--resident-except",
          [&options](const std::string &names) {
            std::vector<std::string> &into = options.residentExcept.emplace();
            for (const std::string &name : CLI::detail::split(names, ','))
              if (name != "true" && !name.empty()) // CLI11's word for nothing
                into.push_back(name);
          },
          "Arrays that nothing writes are resident, which copies them once and "
          "not in each replay: all but these, or all; * is any letters")
      ->type_name("NAMES")
      ->expected(0, 1);
}

void addJson(CLI::App *command, bool &json) {
  command->add_flag("--json", json, "Print the result as JSON");
}

static void addShardings(CLI::App *command, planner::GivenShardings &given) {
  addValue(command, "--grid", given.grid, "SIZES",
           "Sizes of the program's shard.grid, as 2x4, instead of those it "
           "says");
  addValue(command, "--mesh", given.mesh, "AXES",
           "Devices, as data=4,model=2, for a program over tensors that names "
           "none");
  addEachPair(
      command, "--shard",
      [&given](const std::string &key, const std::string &axes) {
        given.cuts.emplace_back(key, axes);
        return true;
      },
      "The axes of the mesh that cut each dimension of argument K, as data,-; "
      "in K, * is any letters: the last such K that matches holds, and a name "
      "goes before it");
}

void addProgramOptions(CLI::App *command, ProgramOptions &options) {
  LoadOptions &load = options.load;
  addValue(command, "--entry", load.entry, "NAME", "The entry function")
      ->capture_default_str();
  addPairs(command, "--arg", load.arguments,
           "Value of argument K, a name or number (docs/arguments.md lists the "
           "forms)");
  addRoles(command, load);
  addPairs(command, "--dim", load.dims,
           "Size V of dimension K, which a .pt2 file leaves open");
  takeWhole(command->add_option("--devices", load.devices,
                                "How many devices run a function over tensors; "
                                "else as many as its layouts say, or one"),
            1, 65536);
  addShardings(command, load.shardings);
  addPairs(command, "--assign", load.meshes,
           "Mesh V runs the named computation K of an mpmd program");
  addPairs(
      command, "--custom", load.customs,
      "The custom call K is the kernel of CUDA C++ V, FILE.cu:ENTRY, or on "
      "the host the function V, LIB.so:FUNCTION (docs/from-jax.md)");
  addEachPair(
      command, "--cost",
      [&load](const std::string &name, const std::string &text) {
        const auto us = numberFrom<double>(text);
        if (!us || !(*us >= 0 && *us <= 1e9))
          throw CLI::ValidationError("--cost", "'" + text +
                                                   "' is no number of "
                                                   "microseconds, 0 to 1e9");
        return load.costs.emplace(name, *us).second;
      },
      "The custom call K, of which no kernel is known, takes V microseconds");
  command->add_option(
      "--schedule", load.schedule,
      "The order of an mpmd program's microbatches: gpipe, 1f1b, "
      "eager-1f1b, interleaved, circular, zb-h1, zb-h2, dualpipev; auto is "
      "the best of them and the planner's own, which is taken "
      "without this option");
  command->add_flag("--remat", load.remat,
                    "Backward work of an mpmd program computes the forward "
                    "work of its microbatch again, rather than keep its "
                    "results; with --schedule");
  takeWhole(command
                ->add_option("--node-limit", load.nodeLimit,
                             "Most nodes the unrolled program may have")
                ->capture_default_str(),
            1, 1'000'000'000);
  takeWhole(command
                ->add_option("--roll-from", load.rollFrom,
                             "Trips from which the program's loop stays "
                             "rolled; 0: never")
                ->capture_default_str());
  command->add_flag("--exact", load.exact,
                    "Nothing takes a form that gives other bits than its "
                    "operations one by one, as attention in one launch does");
  command->add_flag(
      "!--no-fusion", load.fuse,
      "A launch for each linalg operation and parallel loop, even "
      "where several could share one");
  addJson(command, options.json);
}

void addProgram(CLI::App *command, ProgramOptions &options) {
  command
      ->add_option("FILE", options.load.file,
                   "The program (.mlir, .pt2) or bundle")
      ->required();
  addProgramOptions(command, options);
}

void addScheduling(CLI::App *command, PlanOptions &options) {
  auto chosen = [&options](const auto &) { options.isChosen = true; };
  takeWord(command
               ->add_option("--scheduler", options.scheduler,
                            "serial, list, or shuffled (a random legal plan, "
                            "for tests)")
               ->capture_default_str()
               ->each(chosen),
           {"serial", "list", "shuffled"});
  takeWhole(command
                ->add_option("--seed", options.seed,
                             "Seed of --scheduler shuffled, and of what is "
                             "random of plans for sim targets")
                ->capture_default_str()
                ->each(chosen));
  addValue(command, "--transforms", options.transforms, "LIST",
           "Changes to the program and its schedule that keep its bits: none, "
           "a list of algorithm, copies, scatter, bucket, chunk, split, order, "
           "early, nofork; auto: for sim targets those that gain; auto,-NAME: "
           "all but one")
      ->capture_default_str()
      ->each([&options](const std::string &list) {
        options.isChosen |= list != "none" && list != "auto";
      });
  takeWhole(
      command->add_option("--streams", options.streams, "Streams per device")
          ->capture_default_str()
          // The number that is the default in any case is not a choice.
          ->each([&options](const std::string &streams) {
            options.isChosen |=
                streams != std::to_string(PlanOptions().streams);
          }),
      1, 8);
}

void addDatabase(CLI::App *command, std::string &database) {
  addValue(command, "--db", database, "FILE",
           "The database; else MGPU_DB, else mgpu/mgpu.db in the "
           "user's state directory");
}

void addTuned(CLI::App *command, LoadOptions &load, bool &useTuned) {
  addDatabase(command, load.database);
  command->add_flag("!--no-tuned", useTuned,
                    "Do not look for a tuned configuration");
}

void addCompileTimeout(CLI::App *command, LoadOptions &load) {
  takeWhole(addValue(command, "--compile-timeout", load.compileSeconds,
                     "SECONDS", "Of each program that NVRTC compiles; 0: none")
                ->capture_default_str(),
            0, 1'000'000);
}

void addOneDevice(CLI::App *command, LoadOptions &load) {
  command->add_flag("--one-device", load.oneDevice,
                    "Device 0 of a function over tensors stands for all "
                    "devices, in a plan for a sim target");
}

void addVariants(CLI::App *command, LoadOptions &load) {
  auto take = [&load](const std::vector<std::string> &words) {
    for (const std::string &word : words)
      if (auto taken = load.variants.take(word); !taken)
        throw CLI::ValidationError("--variant", taken.error().message);
  };
  command
      ->add_option_function<std::vector<std::string>>(
          "--variant", take,
          fmt::format("On GPUs, how kernels are made and launched: {} is on, "
                      "off, or auto, which is by what has passed on this GPU "
                      "(db variant); NAME alone is on",
                      fmt::join(variantNames(), ", ")))
      ->type_name("NAME[=on|off|auto],...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void addCold(CLI::App *command, MeasureOptions &options) {
  command->add_flag("--cold", options.coldCaches, "Measure with cold caches");
}

void addPinning(CLI::App *command, MeasureOptions &options) {
  command->add_flag(
      "!--no-pin", options.pinThreads,
      "Leave it to the system on which CPUs threads are measured");
}

void addTarget(CLI::App *command, LoadOptions &load) {
  addValue(command, "--target", load.target, "TARGET",
           "The machine: host[:N], N virtual devices; cuda:K[/N], GPU "
           "K as N devices; cuda:K,L, several GPUs; plan takes "
           "sim:NAME|FILE as well");
}

void addGpus(CLI::App *command, GpuOptions &options) {
  addValue(command, "--nccl", options.nccl, "SETTING,...",
           "Of several GPUs: overlap (communicators that share at "
           "most one rank run at once), windows (arenas in NCCL's "
           "symmetric memory, from 2.27 on), min-ctas=N, max-ctas=N, "
           "ctas=default|efficiency|zero");
  addDeadline(command, options);
}

void addDistributed(CLI::App *command, RankOptions &options) {
  takeWord(command->add_flag(
               "--distributed{auto}", options.distributed,
               "This is one of several processes that run the program "
               "together, each some of its devices: as mpirun, srun or "
               "torchrun's variables say (docs/distributed.md)"),
           {"auto", "openmpi", "mpich", "tcp"});
}

void addDeadline(CLI::App *command, RankOptions &options) {
  takeWhole(addValue(command, "--deadline", options.deadlineSeconds, "SECONDS",
                     "Of each replay on a GPU, and of each wait for another "
                     "rank, after which it is given up; 0: none")
                ->capture_default_str(),
            0, 1'000'000);
}

std::set<std::string> givenOptions(const CLI::App *command) {
  std::set<std::string> given;
  for (const CLI::Option *option : command->get_options())
    if (option->count() > 0)
      given.insert(option->get_name());
  return given;
}

} // namespace mgpu::tools
