// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/cuda/Bandwidth.h"

#include "bench/measure/Summary.h"
#include "capture/replay/Bundle.h"
#include "kernels/compile/KernelRecipe.h"
#include "support/Clock.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::bench {

using nlohmann::json;

namespace {

/// Launches that follow each other, so that what begins and ends them is a
/// small part.
constexpr uint32_t perSample = 8;
/// Are tried however long they take.
constexpr size_t leastShapes = 4;

using P = kernels::KernelParameter;

json toJson(const kernels::KernelConfig &config) {
  return {{"block_x", config[P::BlockX]},
          {"items", config[P::Items]},
          {"vector", config[P::Vector]}};
}

/// The configurations that differ from the source's in these three alone, with
/// whole warps; those of the source's block first, of these those where a
/// thread does least.
std::vector<kernels::KernelConfig> shapesOf(const kernels::KernelSpace &space) {
  std::vector<kernels::KernelConfig> shapes;
  for (uint32_t block : space.choice(P::BlockX).values)
    for (uint32_t items : space.choice(P::Items).values)
      for (uint32_t vector : space.choice(P::Vector).values) {
        kernels::KernelConfig config = space.defaults;
        config[P::BlockX] = block;
        config[P::Items] = items;
        config[P::Vector] = vector;
        if (block % 32 == 0 && config != space.defaults && space.check(config))
          shapes.push_back(config);
      }
  auto rank = [&](const kernels::KernelConfig &config) {
    return std::tuple(config[P::BlockX] != space.block.x,
                      config[P::Items] * config[P::Vector], config);
  };
  std::sort(shapes.begin(), shapes.end(),
            [&](const auto &one, const auto &other) {
              return rank(one) < rank(other);
            });
  shapes.insert(shapes.begin(), space.defaults);
  return shapes;
}

/// A kernel with memory of its own, and its forms.
class Subject {
public:
  Subject(const planner::Dag &dag, const planner::KernelCall &call,
          kernels::CudaText text, uint64_t bytes)
      : name(dag.kernels[call.kernel.value].name), bytes(bytes), dag(dag),
        call(call), text(std::move(text)) {}

  Result<void> prepare(device::Driver &driver) {
    std::map<uint32_t, std::byte *> memory;
    for (const planner::KernelArgument &argument : call.arguments) {
      if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
        arguments.push_back(*bits);
        continue;
      }
      const auto id = std::get<planner::BufferId>(argument.value);
      if (!memory.contains(id.value)) {
        MGPU_TRY_ASSIGN(memory[id.value],
                        driver.allocate({0}, dag.buffer(id).sizeBytes));
      }
      arguments.push_back(uint64_t(uintptr_t(memory[id.value])) +
                          uint64_t(argument.offsetBytes));
    }
    return {};
  }

  Result<std::unique_ptr<device::GraphExec>>
  build(device::Driver &driver, const kernels::KernelRecipe &recipe,
        const kernels::CompiledKernel &compiled) const {
    MGPU_TRY_ASSIGN(
        const kernels::KernelImage object,
        recipe.imageOf(compiled, kernels::readCubin(compiled.cubin)));
    MGPU_TRY_ASSIGN(device::KernelHandle handle,
                    driver.loadKernel(name, kernels::encodeImage(object)));
    auto graph = driver.createGraph();
    std::vector<device::GraphNodeId> before;
    for (uint32_t k = 0; k < perSample; ++k) {
      MGPU_TRY_ASSIGN(
          device::GraphNodeId node,
          graph->addKernel({name, {0}, handle, call.grid, arguments}, before));
      before = {node};
    }
    return graph->instantiate();
  }

  kernels::KernelRecipe recipeOf(const kernels::KernelConfig &config,
                                 const std::string &arch) const {
    return kernels::recipeOf(text, config, arch);
  }
  const kernels::KernelSpace &space() const { return *text.space; }
  std::string name;
  uint64_t bytes; ///< that a launch reads and writes

private:
  const planner::Dag &dag;
  const planner::KernelCall &call;
  kernels::CudaText text;
  std::vector<uint64_t> arguments;
};

/// Bytes each microsecond of a sample of one, and of the copy right after it.
struct Pair {
  double kernel = 0, copy = 0;
};

class Copies {
public:
  Copies(BareGpu &gpu, device::Driver &driver) : gpu(gpu), driver(driver) {}
  Result<void> prepare(uint64_t size) {
    bytes = size;
    MGPU_TRY_ASSIGN(to, driver.allocate({0}, bytes));
    MGPU_TRY_ASSIGN(from, driver.allocate({0}, bytes));
    return {};
  }
  Result<double> bytesPerUs() {
    MGPU_TRY_ASSIGN(double us,
                    gpu.copyUs(CUdeviceptr(uintptr_t(to)),
                               CUdeviceptr(uintptr_t(from)), bytes, perSample));
    return 2 * double(bytes) / us;
  }

private:
  BareGpu &gpu;
  device::Driver &driver;
  std::byte *to = nullptr, *from = nullptr;
  uint64_t bytes = 0;
};

Result<Pair> sample(const Subject &subject, device::GraphExec &exec,
                    Copies &copies) {
  MGPU_TRY_ASSIGN(std::optional<double> us, exec.launchSpan());
  if (!us || *us <= 0)
    return fail(ErrorKind::Internal, "a GPU has no clock");
  MGPU_TRY_ASSIGN(double copied, copies.bytesPerUs());
  return Pair{double(subject.bytes) * perSample / *us, copied};
}

/// The median of `count` shares, after one that warms up.
Result<Summary> shareOf(const Subject &subject, device::GraphExec &exec,
                        Copies &copies, int count, double &kernelRate,
                        double &copyRate) {
  std::vector<double> shares, rates, copied;
  for (int k = -1; k < count; ++k) {
    MGPU_TRY_ASSIGN(Pair pair, sample(subject, exec, copies));
    if (k < 0)
      continue;
    shares.push_back(pair.kernel / pair.copy);
    rates.push_back(pair.kernel);
    copied.push_back(pair.copy);
  }
  kernelRate = median(rates);
  copyRate = median(copied);
  return summarize(std::move(shares));
}

/// A kernel in all its shapes, as long as there is time, beside copies.
Result<json> measureKernel(const planner::Dag &dag,
                           const planner::DagNode &node,
                           std::span<const kernels::CudaText> texts,
                           const kernels::NvrtcCompiler &compiler,
                           device::Driver &driver, Copies &copies,
                           const std::string &bundle, double seconds) {
  const Clock::time_point start = Clock::now();
  const auto &call = std::get<planner::KernelCall>(node.work);
  if (!texts[call.kernel.value].space)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has no space for kernel '{}': make it anew",
                            bundle, dag.kernels[call.kernel.value].name));
  Subject subject(dag, call, texts[call.kernel.value],
                  node.bytesRead + node.bytesWritten);
  MGPU_TRY(subject.prepare(driver));
  const std::vector<kernels::KernelConfig> shapes = shapesOf(subject.space());
  std::vector<kernels::KernelRecipe> recipes;
  std::vector<kernels::CompileJob> jobs;
  for (const kernels::KernelConfig &config : shapes) {
    recipes.push_back(subject.recipeOf(config, driver.architecture()));
    jobs.push_back(recipes.back().job());
  }
  auto compiled = compiler.compileAll(jobs);
  std::vector<std::unique_ptr<device::GraphExec>> execs;
  json all = json::array();
  size_t best = 0, leftOut = 0;
  double bestShare = 0, rate = 0, copied = 0;
  for (size_t k = 0; k < shapes.size(); ++k) {
    execs.push_back(nullptr);
    if (k >= leastShapes && secondsSince(start) > seconds) {
      ++leftOut;
      continue;
    }
    MGPU_TRY_ASSIGN(kernels::CompiledKernel kernel, std::move(compiled[k]));
    MGPU_TRY_ASSIGN(execs[k], subject.build(driver, recipes[k], kernel));
    MGPU_TRY_ASSIGN(Summary share,
                    shareOf(subject, *execs[k], copies, 5, rate, copied));
    json one = toJson(shapes[k]);
    one["share"] = share.median.middle;
    all.push_back(std::move(one));
    if (share.median.middle > bestShare) {
      bestShare = share.median.middle;
      best = k;
    }
  }
  // The best was chosen by its samples, which flatter it: new ones.
  json out{{"kernel", subject.name}, {"bytes", subject.bytes}};
  for (auto [what, k] : {std::pair("source", size_t(0)), {"best", best}}) {
    MGPU_TRY_ASSIGN(Summary share,
                    shareOf(subject, *execs[k], copies, 25, rate, copied));
    out[what] = toJson(shapes[k]);
    out[what].update({{"share", share.median.middle},
                      {"share_p25", share.p25},
                      {"share_p75", share.p75},
                      {"gb_per_s", rate / 1e3},
                      {"copy_gb_per_s", copied / 1e3}});
  }
  out["shapes"] = std::move(all);
  out["shapes_left_out"] = leftOut;
  return out;
}

} // namespace

Result<void> measureBandwidth(BareGpu &gpu, device::Driver &driver,
                              const BandwidthOptions &options,
                              const std::function<void(const json &)> &report) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle,
                  capture::Bundle::open(options.bundle));
  MGPU_TRY_ASSIGN(std::vector<kernels::CudaText> texts, bundle.cudaTexts());
  MGPU_TRY_ASSIGN(auto compiler, kernels::NvrtcCompiler::open());
  const planner::Dag &dag = bundle.program().dag;
  std::vector<const planner::DagNode *> calls;
  uint64_t largest = 0;
  for (const planner::DagNode &node : dag.nodes)
    if (std::holds_alternative<planner::KernelCall>(node.work))
      calls.push_back(&node);
  for (const planner::Buffer &buffer : dag.buffers)
    largest = std::max(largest, buffer.sizeBytes);
  Copies copies(gpu, driver);
  MGPU_TRY(copies.prepare(largest));
  for (const planner::DagNode *node : calls) {
    MGPU_TRY_ASSIGN(json out,
                    measureKernel(dag, *node, texts, compiler, driver, copies,
                                  options.bundle,
                                  options.seconds / double(calls.size())));
    report(out);
  }
  return {};
}

} // namespace mgpu::bench
