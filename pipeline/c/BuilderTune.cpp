// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A built program is tuned.
#include "pipeline/c/BuilderHandle.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/tune/Tune.h"
#include "support/Units.h"

#include <atomic>

using namespace mgpu;
using namespace mgpu::pipeline;

namespace {

/// The caller's callback: it hears of the search, and may end it.
class Listener {
public:
  explicit Listener(const mgt_tune_options &options) : options(options) {}
  void operator()(const tuner::Progress &now) {
    const std::string line = fmt::format(
        "{} tried, {} failed; best {}, default {}", now.evaluated, now.failed,
        durationText(now.bestUs), durationText(now.defaultUs));
    if (options.progress(options.user, line.c_str()) != 0)
      stop = true;
  }
  std::atomic<bool> stop = false;

private:
  const mgt_tune_options &options;
};

Result<pipeline::TuneRequest> requestOf(const char *call,
                                        const mgt_tune_options &options) {
  pipeline::TuneRequest out;
  MGPU_TRY_ASSIGN(out.budget,
                  parseBudget(options.budget ? options.budget : "60s"));
  out.seed = options.seed;
  if (options.num_inputs > 0 && !options.inputs)
    return usage(fmt::format("{}: {} inputs and no memory of them", call,
                             options.num_inputs));
  for (size_t k = 0; k < options.num_inputs; ++k) {
    const mgt_input &input = options.inputs[k];
    MGPU_TRY(requireNotNull(call, {input.name, input.data}));
    auto *data = static_cast<const std::byte *>(input.data);
    out.values[input.name].assign(data, data + input.bytes);
  }
  return out;
}

Result<void> tune(mgt_builder &builder, const char *target,
                  const mgt_tune_options *given, mgt_tuned *out,
                  const char **text) {
  const char *call = "mgt_builder_tune";
  mgt_tune_options options{};
  if (given) {
    MGPU_TRY_ASSIGN(options, sized(given, call, "mgt_tune_options"));
  }
  if (out)
    MGPU_TRY(sized(out, call, "mgt_tuned"));
  MGPU_TRY_ASSIGN(pipeline::TuneRequest request, requestOf(call, options));
  std::vector<std::string> madeUp;
  request.madeUp = &madeUp;
  Listener listener(options);
  request.stop = &listener.stop;
  if (options.progress)
    request.progress = std::ref(listener);
  MGPU_TRY_ASSIGN(const planner::Program *program, builder.program.program());
  const pipeline::LoadedProgram loaded =
      pipeline::loadBuilt(*program, textOf(target));
  MGPU_TRY_ASSIGN(const pipeline::TuneContext context,
                  pipeline::makeTuneContext(loaded));
  MGPU_TRY_ASSIGN(const tuner::TuningResult result,
                  pipeline::tuneProgram(loaded, context, request));
  if (out) {
    out->default_us = result.times.before.us;
    out->tuned_us = result.times.after.us;
    out->is_default = result.isDefault;
    out->is_known = result.fromStore;
  }
  builder.text = tuner::decidedText(result.times);
  if (text)
    *text = builder.text.c_str();
  return {};
}

} // namespace

mgt_status mgt_builder_tune(mgt_builder *builder, const char *target,
                            const mgt_tune_options *options, mgt_tuned *tuned,
                            const char **text) {
  return onBuilder(builder, "mgt_builder_tune", [&] {
    return tune(*builder, target, options, tuned, text);
  });
}
