// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/CardTuning.h"

#include "device/cuda/CudaDriver.h"
#include "kernels/compile/CubinElf.h"
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaObjects.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "tools/mgpu-tune/AskInProcess.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/Target.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace mgpu::tune {

using nlohmann::json;

/// The identity as JSON, as one process tells it another.
static Result<std::string> describeCard(const std::string &target) {
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  const size_t number = size_t(cuda.cards[0]);
  if (number >= machine.cards.size())
    return fail(ErrorKind::Absent,
                fmt::format("there is no card {}: this machine shows {} (see "
                            "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                            number, machine.cards.size()));
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open());
  const device::CudaMachine::Card &card = machine.cards[number];
  return json{{"device", card.name},
              {"architecture", card.arch},
              {"software",
               fmt::format("CUDA driver {}, NVRTC {}, clocks {}/{} MHz",
                           machine.driver, compiler.version(),
                           card.clockKhz / 1000, card.memoryClockKhz / 1000)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<tuner::TargetIdentity> identifyCard(const std::string &target,
                                           bool inHere) {
  auto describe = [&] { return describeCard(target); };
  MGPU_TRY_ASSIGN(const std::string text,
                  inHere ? describe() : askInProcess(describe));
  const json found = json::parse(text, nullptr, false);
  if (!found.is_object())
    return fail(ErrorKind::Internal, "the card's description is not read back");
  return tuner::TargetIdentity{found.value("device", ""),
                               found.value("architecture", ""),
                               found.value("software", "")};
}

static constexpr const char *pdl = "pdl";

tuner::TargetSetting pdlSetting(const std::string &arch) {
  Result<void> has = checkPdl(true, arch);
  return {pdl,
          has ? std::vector<std::string>{"off", "on"}
              : std::vector<std::string>{"off"},
          has ? "" : "cards before sm_90 have no kernels that wait"};
}

bool usesPdl(const std::map<std::string, std::string> &settings) {
  auto at = settings.find(pdl);
  return at != settings.end() && at->second == "on";
}

Result<std::vector<std::byte>>
buildCardKernel(kernels::CudaText text, const planner::KernelConfig &config,
                const std::string &arch, bool awaits,
                device::BlobCache *cache) {
  text.image.awaits = awaits;
  if (!text.space)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("kernel {} has no space to choose from", text.name));
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open(cache));
  kernels::CompileJob job{text.image.blob, text.name + ".cu",
                          kernels::compileOptions(text),
                          kernels::archOf(text, arch)};
  auto macros = kernels::macrosOf(*text.space, config);
  std::ranges::move(kernels::awaitMacros(text, arch),
                    std::back_inserter(macros));
  for (auto &[name, value] : macros)
    job.options.push_back(fmt::format("-D{}={}", name, value));
  MGPU_TRY_ASSIGN(kernels::CompiledKernel compiled, compiler.compile(job));
  text.image.block = config.block();
  text.image.covers = text.space->covered(config);
  if (text.space->stagesAreDynamic)
    text.image.dynamicSharedBytes = uint32_t(text.space->sharedBytesOf(config));
  text.image.product.reset(); // it is mgpu's own kernel that is tuned
  MGPU_TRY(checkEntry(text, compiled, kernels::readCubin(compiled.cubin)));
  text.image.clusterX = config[planner::KernelParameter::ClusterX];
  return encodeImage(kernels::cubinImage(text, compiled.cubin, arch));
}

} // namespace mgpu::tune
