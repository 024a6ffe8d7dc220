// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune bundle`.
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Load.h"
#include "pipeline/target/Target.h"
#include "support/FileIO.h"
#include "support/Units.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

using nlohmann::json;

/// Without kernels for the host where --cpu says none.
static Result<BundleOptions> formsOf(BundleOptions options) {
  if (std::ranges::find(options.levels, "none") == options.levels.end())
    return options;
  if (options.levels.size() > 1 || options.archs.empty())
    return fail(ErrorKind::Usage,
                "--cpu none stands alone, and --arch names the GPUs that the "
                "bundle is for");
  options.levels.clear();
  return options;
}

Result<int> runBundle(const BundleCommandOptions &options) {
  FileUses uses =
      filesRead(options.load, {{"--plan", options.prepare.planFile}});
  MGPU_TRY(uses.write("-o", options.output));
  MGPU_TRY(checkScheduler(options.prepare, options.load.given));
  LoadOptions load = options.load;
  load.usesRecord = mayUseRecord(options.prepare);
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  MGPU_TRY(chooseOrder(program, options.prepare));
  if (program.bundle)
    return fail(ErrorKind::Usage,
                fmt::format("'{}' is a bundle already: give the program it was "
                            "made of, {}",
                            load.file, program.bundle->origin().source));
  MGPU_TRY(checkHasKernels(program, "cannot run"));
  if (!load.target.empty())
    MGPU_TRY(targetDevices(load.target, program.dag.numDevices));
  PrepareOptions prepare = options.prepare;
  prepare.needsDatabase = true;
  MGPU_TRY_ASSIGN(const BundleOptions asked, formsOf(options.bundle));
  MGPU_TRY_ASSIGN(const MadeBundle made,
                  makeBundle(std::move(program), prepare, asked));
  for (const std::string &note : made.notes)
    fmt::print(stderr, "mgpu-tune: note: {}\n", note);
  const capture::BundleContents &contents = made.contents;
  MGPU_TRY(capture::writeBundle(options.output, contents));

  uint64_t bytes = fileSize(options.output).value_or(0);
  std::vector<std::string> levels, archs;
  if (!contents.kernels.empty()) {
    for (const auto &[level, object] : contents.kernels[0].host)
      levels.push_back(level);
    for (const auto &[arch, cubin] : contents.kernels[0].cubins)
      archs.push_back(arch);
  }
  if (options.json) {
    json out{{"file", options.output},
             {"source", load.file},
             {"bytes", bytes},
             {"nodes", contents.program.dag.nodes.size()},
             {"kernels", contents.kernels.size()},
             {"plan", contents.plan.verdictLine()},
             {"tuned", made.isTuned},
             {"cpu", levels},
             {"arch", archs}};
    tools::printJson(out);
    return 0;
  }
  std::string forms;
  for (const auto *each : {&levels, &archs})
    for (const std::string &form : *each)
      forms += (forms.empty() ? " for " : ", ") + form;
  fmt::print("{}: {} bytes: {}, {}{}\n", options.output, bytes,
             counted(contents.program.dag.nodes.size(), "node"),
             counted(contents.kernels.size(), "kernel"), forms);
  fmt::print("plan: {}\n", contents.plan.verdictLine());
  return 0;
}

} // namespace mgpu::tools
