// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks, plans, opens and saves a built program.
#include "pipeline/build/MakeBundle.h"
#include "pipeline/c/BuilderHandle.h"
#include "pipeline/c/MeetingOf.h"
#include "pipeline/c/OpenedBuilt.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/run/Probe.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "planner/schedule/Timeline.h"

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::pipeline;

namespace {

struct PlanChoice : pipeline::PrepareOptions {
  bool pins = false;
  std::chrono::milliseconds deadline{};     ///< 0: the target's own
  std::string machine;                      ///< "": the host
  std::optional<pipeline::Meeting> meeting; ///< of several processes
};

Result<PlanChoice> planChoice(const char *call, const mgt_plan_options *given) {
  PlanChoice out;
  out.transforms = "none";
  if (!given)
    return out;
  MGPU_TRY_ASSIGN(const auto options,
                  sized(given, call, "mgt_plan_options",
                        MGPU_SIZE_UP_TO(mgt_plan_options, budget)));
  constexpr uint32_t mostStreams = 1024;
  if (options.streams > mostStreams || options.threads > mostStreams)
    return usage(fmt::format("{}: {} streams and {} threads; {} are the most",
                             call, options.streams, options.threads,
                             mostStreams));
  if (options.scheduler)
    out.scheduler = options.scheduler;
  if (out.scheduler != "list" && out.scheduler != "serial" &&
      out.scheduler != "shuffled")
    return usage(fmt::format("{}: '{}' is no scheduler; there are list, serial "
                             "and shuffled",
                             call, out.scheduler));
  if (options.transforms)
    out.transforms = options.transforms;
  else if (isElsewhere(textOf(options.machine)))
    out.transforms = "auto";
  out.machine = textOf(options.machine);
  out.memory = textOf(options.memory);
  if (options.budget)
    out.budget = options.budget;
  else if (isElsewhere(out.machine))
    out.budget = "100";
  out.seed = options.seed;
  if (options.streams > 0)
    out.streams = options.streams;
  out.threads = options.threads;
  out.cpu = textOf(options.cpu);
  out.pins = options.pin != 0;
  out.isChosen = options.scheduler || options.streams > 0 ||
                 options.transforms || options.threads > 0 || options.memory;
  out.useTuned = options.no_tuned == 0;
  out.deadline = std::chrono::milliseconds(options.deadline_ms);
  if (options.ranks) {
    MGPU_TRY_ASSIGN(out.meeting, meetingOf(call, options.ranks));
  }
  return out;
}

Result<void> requireHere(const char *call, const PlanChoice &choice) {
  if (choice.machine.empty())
    return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("{}: '{}' can be planned for, not run on: leave the "
                          "machine out",
                          call, choice.machine));
}

/// Gives `take(program, plan)` what was built so far.
template <typename Take>
mgt_status givePlan(mgt_builder *builder, const mgt_plan_options *options,
                    const char *call, Take take) {
  return onBuilder(builder, call, [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const PlanChoice choice, planChoice(call, options));
    MGPU_TRY_ASSIGN(const Program *program, builder->program.program());
    auto loaded = pipeline::loadBuilt(*program, "");
    loaded.from.target = choice.machine;
    MGPU_TRY_ASSIGN(const TargetPlan made,
                    pipeline::makePlan(loaded, {choice}));
    return take(loaded, made.plan);
  });
}

/// Gives `write(plan, dag)` as text.
template <typename Write>
mgt_status giveText(mgt_builder *builder, const mgt_plan_options *options,
                    const char **text, const char *call, Write write) {
  return givePlan(
      builder, options, call,
      [&](const Program &program, const Plan &plan) -> Result<void> {
        MGPU_TRY(requireNotNull(call, {text}));
        builder->text = write(plan, program.dag);
        *text = builder->text.c_str();
        return {};
      });
}

Result<std::vector<std::string>> wordsWith(const char *call, const char *list,
                                           std::string_view begin) {
  std::vector<std::string> words = wordsOf(list ? list : "");
  for (const std::string &word : words)
    if (!word.starts_with(begin))
      return usage(
          fmt::format("{}: '{}' does not begin with '{}'", call, word, begin));
  return words;
}

Result<void> save(mgt_builder &builder, const char *path,
                  const mgt_save_options *given) {
  const char *call = "mgt_builder_save";
  MGPU_TRY(requireNotNull(call, {path}));
  mgt_save_options options{};
  if (given) {
    MGPU_TRY_ASSIGN(options, sized(given, call, "mgt_save_options"));
  }
  MGPU_TRY_ASSIGN(const PlanChoice choice, planChoice(call, options.plan));
  MGPU_TRY(requireHere(call, choice));
  MGPU_TRY_ASSIGN(const Program *program, builder.program.program());
  pipeline::BundleOptions forms;
  constexpr uint32_t mostAlternatives = 1 << 16;
  forms.alternatives = std::min(options.alternatives, mostAlternatives);
  MGPU_TRY_ASSIGN(forms.archs, wordsWith(call, options.arch, "sm_"));
  const std::vector<KernelSpec> &kernels = program->dag.kernels;
  const bool forHost = std::ranges::all_of(kernels, [](const KernelSpec &each) {
    return !each.cudaFile()->host.empty();
  });
  if (textOf(options.cpu) != "none") {
    MGPU_TRY_ASSIGN(forms.levels, wordsWith(call, options.cpu, "x86-64-v"));
    if (forms.levels.empty() && forHost)
      forms.levels = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  }
  if (!kernels.empty() && forms.levels.empty() && forms.archs.empty())
    return usage(fmt::format("{}: the bundle would run nowhere: give every "
                             "kernel C++ for the host, or name GPUs in arch",
                             call));
  MGPU_TRY_ASSIGN(
      const auto made,
      pipeline::makeBundle(pipeline::loadBuilt(*program, ""), choice, forms));
  return capture::writeBundle(path, made.contents);
}

} // namespace

mgt_status mgt_builder_check(mgt_builder *builder) {
  return onBuilder(builder, "mgt_builder_check", [&]() -> Result<void> {
    MGPU_TRY(builder->program.program());
    return {};
  });
}

mgt_status mgt_builder_probe(mgt_builder *builder) {
  return onBuilder(builder, "mgt_builder_probe", [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const Program *program, builder->program.program());
    return pipeline::probeAccesses(pipeline::loadBuilt(*program, ""));
  });
}

mgt_status mgt_builder_plan_text(mgt_builder *builder,
                                 const mgt_plan_options *options,
                                 const char **text) {
  return giveText(
      builder, options, text, "mgt_builder_plan_text",
      [](const Plan &plan, const Dag &dag) { return toText(plan, dag); });
}

mgt_status mgt_builder_explain(mgt_builder *builder,
                               const mgt_plan_options *options,
                               const char **text) {
  return giveText(
      builder, options, text, "mgt_builder_explain",
      [](const Plan &plan, const Dag &dag) { return explain(plan, dag); });
}

mgt_status mgt_builder_figures(mgt_builder *builder,
                               const mgt_plan_options *options,
                               mgt_figures *figures) {
  const char *call = "mgt_builder_figures";
  return givePlan(builder, options, call,
                  [&](const Program &program, const Plan &plan) {
                    return giveFigures(program, plan, call, figures);
                  });
}

mgt_status mgt_builder_open(mgt_builder *builder, const char *target,
                            const mgt_plan_options *options,
                            mgt_program **program) {
  const char *call = "mgt_builder_open";
  return onBuilder(builder, call, [&]() -> Result<void> {
    MGPU_TRY(requireNotNull(call, {program}));
    *program = nullptr;
    MGPU_TRY_ASSIGN(const PlanChoice choice, planChoice(call, options));
    MGPU_TRY(requireHere(call, choice));
    MGPU_TRY(pipeline::checkWorkersOf(textOf(target), choice.threads,
                                      choice.cpu, choice.pins));
    MGPU_TRY_ASSIGN(const Program *built, builder->program.program());
    if (choice.meeting) {
      if (!choice.cpu.empty() || choice.pins)
        return usage("cpu and pin are of a program that is alone: leave them "
                     "out with ranks");
      MGPU_TRY_ASSIGN(auto shared, pipeline::OpenedBuilt::openShared(
                                       *built, textOf(target), choice,
                                       choice.deadline, *choice.meeting));
      return giveProgram(std::move(shared), {}, {}, program);
    }
    MGPU_TRY_ASSIGN(auto opened, pipeline::OpenedBuilt::open(
                                     *built, textOf(target), choice,
                                     {.pins = choice.pins}, choice.deadline));
    return giveProgram(std::move(opened), {choice.deadline}, {}, program);
  });
}

mgt_status mgt_builder_save(mgt_builder *builder, const char *path,
                            const mgt_save_options *options) {
  return onBuilder(builder, "mgt_builder_save",
                   [&] { return save(*builder, path, options); });
}
