// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelRunner.h"

#include "kernels/host/HostEmitter.h"
#include "kernels/lower/KernelDialects.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::kernels {

Result<std::unique_ptr<LoadedKernel>>
LoadedKernel::fromText(const std::string &text, Dim3 block,
                       const std::string &cpu,
                       std::optional<KernelConfig> config) {
  mlir::DialectRegistry registry;
  registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!parsed)
    return fail(ErrorKind::Invalid, "the test's kernel does not parse");
  MGPU_TRY_ASSIGN(auto bytes, emitHostKernel(*parsed, block, {cpu, config}));
  int file = memfd_create("kernel", MFD_CLOEXEC);
  if (file < 0 ||
      write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    return fail(ErrorKind::Internal, "memfd failed");
  auto kernel = std::make_unique<LoadedKernel>();
  // Open while it is loaded: dlopen knows libraries by their path.
  kernel->file = file;
  std::string path = "/proc/self/fd/" + std::to_string(file);
  kernel->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!kernel->library)
    return fail(ErrorKind::Internal, dlerror());
  kernel->entry = reinterpret_cast<HostKernelEntry>(
      dlsym(kernel->library, hostKernelEntryName));
  if (!kernel->entry)
    return fail(ErrorKind::Internal, "no entry symbol");
  const void *shape = dlsym(kernel->library, hostKernelShapeName);
  if (!shape)
    return fail(ErrorKind::Internal, "no shape symbol");
  std::memcpy(&kernel->shape, shape, sizeof(kernel->shape));
  return kernel;
}

std::unique_ptr<LoadedKernel> load(const std::string &text, Dim3 block,
                                   const std::string &cpu,
                                   std::optional<KernelConfig> config) {
  auto kernel = LoadedKernel::fromText(text, block, cpu, config);
  EXPECT_TRUE(kernel) << cpu << ": " << (kernel ? "" : kernel.error().message)
                      << "\n"
                      << text;
  return kernel ? std::move(*kernel) : nullptr;
}

LoadedKernel::~LoadedKernel() {
  if (library)
    dlclose(library);
  if (file >= 0)
    close(file);
}

void LoadedKernel::run(Dim3 grid, std::vector<uint64_t> arguments,
                       uint64_t first, uint64_t last,
                       std::optional<GridPart> part) const {
  auto [from, count] = part.value_or(GridPart::whole(grid));
  HostLaunch launch{
      {grid.x, grid.y, grid.z},   0, first, last, {from.x, from.y, from.z},
      {count.x, count.y, count.z}};
  if (first < last)
    entry(arguments.data(), &launch);
}

void LoadedKernel::runParts(Dim3 grid,
                            const std::vector<uint64_t> &arguments) const {
  auto cut = [](uint32_t size, unsigned which) {
    uint32_t middle = (size + 2) / 3;
    return which == 0 ? std::pair(0u, middle)
                      : std::pair(middle, size - middle);
  };
  for (unsigned which = 0; which < 8; ++which) {
    auto [x, nx] = cut(grid.x, which & 1);
    auto [y, ny] = cut(grid.y, which >> 1 & 1);
    auto [z, nz] = cut(grid.z, which >> 2);
    run(grid, arguments, GridPart{{x, y, z}, {nx, ny, nz}});
  }
}

std::vector<float> randomFloats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-8, 8);
  std::vector<float> result(count);
  for (float &value : result)
    value = values(engine);
  return result;
}

planner::KernelSpec specOf(const std::string &text, Dim3 block) {
  planner::KernelSpec spec;
  spec.name = "k";
  spec.source = planner::MlirKernel{text};
  spec.location = "test";
  spec.block = block;
  return spec;
}

std::string module(const std::string &arguments, const std::string &body,
                   const std::string &others) {
  return "func.func @entry(" + arguments + ") {\n" + body + "\nreturn\n}\n" +
         others;
}

} // namespace mgpu::kernels
