// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/CalibrationKernels.h"

#include "pipeline/build/HostMicrokernels.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/program/Load.h"
#include "planner/cost/HostRates.h"
#include "support/FileIO.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::pipeline {

namespace {

using planner::DagNode;
using planner::KernelCall;

constexpr std::string_view hostText =
#include "pipeline/Calibrate-host.inc"
    ;
constexpr std::string_view gpuText =
#include "pipeline/Calibrate-gpu.inc"
    ;

/// The work of calibrate.mlir's kernels, in its order: for each number of the
/// second four chains of 512 multiplications and additions; products of square
/// matrices.
constexpr double flopsOfNumber = 4 * 512 * 2;
struct Element {
  const char *type;
  uint64_t bytes;
};
constexpr Element products[] = {{"f32", 4}, {"bf16", 2}};

Result<LoadedProgram> loadText(LoadOptions loading, std::string_view text) {
  loading.racesAreErrors = true;
  // In memory, for the importer, which takes names.
  const Descriptor file(memfd_create("calibrate.mlir", MFD_CLOEXEC));
  if (file.get() < 0 ||
      write(file.get(), text.data(), text.size()) != ssize_t(text.size()))
    return fail(ErrorKind::Absent, "there is no memory for a file of the "
                                   "kernels to compile");
  loading.file = fmt::format("/proc/self/fd/{}", file.get());
  return loadProgram(loading);
}

/// A call has what it needs beside its arguments as one more
/// (planner/plan/Workspace.h).
bench::CalibrationKernel kernelOf(const planner::Dag &dag, const DagNode &node,
                                  const std::vector<std::byte> &object) {
  const auto &call = std::get<KernelCall>(node.work);
  bench::CalibrationKernel out;
  out.name = dag.kernels[call.kernel.value].name;
  out.object = object;
  out.grid = call.grid;
  out.flops = node.flops;
  out.bytes = double(node.bytesRead) + double(node.bytesWritten);
  for (const planner::KernelArgument &argument : call.arguments) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      out.arguments.push_back({0, *bits});
      continue;
    }
    const planner::Buffer &buffer =
        dag.buffer(std::get<planner::BufferId>(argument.value));
    out.arguments.push_back({std::max<uint64_t>(buffer.sizeBytes, 1),
                             uint64_t(argument.offsetBytes)});
  }
  if (const uint64_t bytes = kernels::workspaceBytesOf(object); bytes > 0)
    out.arguments.push_back({bytes, 0});
  return out;
}

/// The kernels of HostMicrokernels.h, and what they do by their facts.
Result<void> addHostKernels(LoadOptions options, CalibrationKernels &out) {
  options.fuse = false;
  MGPU_TRY_ASSIGN(const LoadedProgram program,
                  loadText(options, hostMicrokernels()));
  MGPU_TRY_ASSIGN(const HostKernels kernels,
                  pipeline::hostKernels(program, ""));
  for (const DagNode &node : program.dag.nodes) {
    const auto *call = std::get_if<KernelCall>(&node.work);
    if (!call)
      continue;
    bench::CalibrationKernel kernel =
        kernelOf(program.dag, node, kernels.objects[call->kernel.value]);
    if (const auto product = planner::hostProduct(program.dag, node))
      out.matmuls.push_back({std::string(toString(product->factors)),
                             uint32_t(product->m), uint32_t(product->n),
                             uint32_t(product->k), std::move(kernel),
                             product->isTurned});
    else
      out.host.push_back(
          {std::move(kernel), planner::hostCounts(program.dag, node)});
  }
  return {};
}

} // namespace

uint64_t bytesOf(const bench::CalibrationKernel &kernel) {
  return kernel.arguments.empty() ? 0 : kernel.arguments.front().memoryBytes;
}

Result<CalibrationKernels> compileCalibration(const LoadOptions &options,
                                              const std::string &architecture) {
  MGPU_TRY_ASSIGN(
      LoadedProgram program,
      options.file.empty()
          ? loadText(options, architecture.empty() ? hostText : gpuText)
          : loadProgram(options));
  std::vector<std::vector<std::byte>> objects;
  if (architecture.empty()) {
    MGPU_TRY_ASSIGN(HostKernels kernels, pipeline::hostKernels(program, ""));
    objects = std::move(kernels.objects);
  } else {
    auto cache = openCubinCache(options.database);
    MGPU_TRY_ASSIGN(objects, cudaKernels(program, architecture, cache.get()));
  }
  std::vector<bench::CalibrationKernel> kernels;
  for (const DagNode &node : program.dag.nodes)
    if (const auto *call = std::get_if<KernelCall>(&node.work))
      kernels.push_back(
          kernelOf(program.dag, node, objects[call->kernel.value]));
  if (kernels.size() != 2 + std::size(products))
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has {} kernels: give a bundle of "
                            "pipeline/calibrate.mlir of this version",
                            options.file, kernels.size()));
  kernels[1].flops = flopsOfNumber * double(bytesOf(kernels[1]) / 4);
  CalibrationKernels out{std::move(kernels[0]), std::move(kernels[1]), {}, {}};
  for (size_t k = 0; k < std::size(products); ++k) {
    const auto [type, bytes] = products[k];
    const auto edge =
        uint32_t(std::lround(std::sqrt(bytesOf(kernels[2 + k]) / bytes)));
    out.matmuls.push_back({type, edge, edge, edge, std::move(kernels[2 + k])});
  }
  if (architecture.empty() && options.file.empty())
    MGPU_TRY(addHostKernels(options, out));
  return out;
}

} // namespace mgpu::pipeline
