// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CudaTwin.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaText.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/lower/KernelDialects.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

namespace mgpu::kernels {

Result<CudaKernel> emitCudaText(const std::string &text,
                                const CudaEmitOptions &options) {
  mlir::DialectRegistry registry;
  registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!parsed)
    return fail(ErrorKind::Invalid, "the test's kernel does not parse");
  return emitCudaKernel(*parsed, options);
}

/// Knows the types that the tests' files have.
static std::string cTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "float";
  case ElementType::F64:
    return "double";
  case ElementType::I32:
    return "int";
  default:
    return "long long";
  }
}

Result<CudaKernel> emitCudaText(const planner::KernelSpec &spec,
                                const CudaEmitOptions &options) {
  const planner::CudaFile *file = spec.cudaFile();
  if (!file) {
    MGPU_TRY_ASSIGN(const std::string *text, spec.hostText());
    return emitCudaText(*text, options);
  }
  CudaText text = fileText(*file, options.name, options.block, options.maxGrid);
  CudaKernel kernel;
  kernel.name = text.name;
  kernel.image = std::move(text.image);
  kernel.reason = text.reason;
  for (size_t k = 0; k < file->parameters.size(); ++k) {
    const auto &[type, isPointer] = file->parameters[k];
    kernel.parameters.push_back(
        {"p" + std::to_string(k), cTypeOf(type) + (isPointer ? " *" : "")});
  }
  return kernel;
}

/// What `of` makes of the module.
template <typename Of>
static auto withModule(const std::string &text, Of of) {
  mlir::DialectRegistry registry;
  registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!parsed)
    std::abort();
  return of(*parsed);
}

std::pair<CudaKernel, KernelSpace> tensorText(const std::string &text,
                                              const CudaEmitOptions &options) {
  return withModule(text, [&](mlir::ModuleOp module) {
    return std::pair(std::move(*emitTensorMatmul(module, options)),
                     tensorMatmulSpace(module, options.block, options.maxGrid));
  });
}

std::string tensorRefusal(const std::string &text) {
  return withModule(text, tensorMatmulRefusal);
}

std::pair<CudaKernel, KernelSpace> wgmmaText(const std::string &text,
                                             const CudaEmitOptions &options) {
  return withModule(text, [&](mlir::ModuleOp module) {
    return std::pair(std::move(*emitWgmmaMatmul(module, options)),
                     wgmmaMatmulSpace(module, options.block, options.maxGrid));
  });
}

std::string wgmmaRefusal(const std::string &text) {
  return withModule(text, wgmmaMatmulRefusal);
}

std::optional<MatrixProduct> libraryProduct(const std::string &text) {
  return withModule(text, [](mlir::ModuleOp module) {
    return libraryMatmulRefusal(module).empty()
               ? std::optional(libraryMatmul(module))
               : std::nullopt;
  });
}

uint32_t TwinConfig::dynamicSharedBytes() const {
  return space.sharedIsDynamic ? uint32_t(space.sharedBytesOf(config))
                               : kernel.image.dynamicSharedBytes;
}

const TensorMap *TwinConfig::tensorMap(size_t k) const {
  size_t added = kernel.parameters.size(); // those are the last ones
  for (const TensorMap &map : kernel.image.tensorMaps)
    added -= map.isAdded;
  for (const TensorMap &map : kernel.image.tensorMaps)
    if (k == (map.isAdded ? added++ : map.argument))
      return &map;
  return nullptr;
}

std::vector<KernelConfig> cornersOf(const KernelSpace &space, size_t limit,
                                    const char *arch) {
  const device::DeviceProfile *gpu = device::profileOfArchitecture(arch);
  const std::vector<KernelConfig> legal = onDevice(space, *gpu).legal();
  std::vector<size_t> axes; // that have a choice
  for (size_t k = 0; k < space.axes.size(); ++k)
    if (std::any_of(legal.begin(), legal.end(), [&](const auto &config) {
          return config.at(k) != legal.front().at(k);
        }))
      axes.push_back(k);
  std::set<KernelConfig> found;
  for (size_t greatest = 0; greatest < size_t(1) << axes.size(); ++greatest)
    for (bool isReversed : {false, true}) {
      std::vector<KernelConfig> left = legal;
      for (size_t n = 0; n < axes.size() && left.size() > 1; ++n) {
        const size_t at = isReversed ? axes.size() - 1 - n : n;
        uint32_t most = left.front().at(axes[at]);
        for (const KernelConfig &config : left) {
          const uint32_t value = config.at(axes[at]);
          most = greatest >> at & 1 ? std::max(most, value)
                                    : std::min(most, value);
        }
        std::erase_if(left, [&](const KernelConfig &config) {
          return config.at(axes[at]) != most;
        });
      }
      found.insert(left.begin(), left.end());
    }
  std::vector<KernelConfig> corners(found.begin(), found.end());
  std::mt19937 random(7);
  std::shuffle(corners.begin(), corners.end(), random);
  corners.resize(std::min(corners.size(), limit));
  return corners;
}

static ptx::TensorMap fakeMapOf(const TensorMap &map, uint64_t address) {
  ptx::TensorMap fake{};
  fake.magic = ptx::TensorMap::theMagic;
  fake.address = address + map.offsetBytes;
  std::copy(map.sizes.begin(), map.sizes.end(), fake.sizes);
  std::copy(map.strideBytes.begin(), map.strideBytes.end(), fake.strideBytes);
  std::copy(map.box.begin(), map.box.end(), fake.box);
  fake.elementBytes = sizeBytes(map.type);
  fake.swizzleBytes = map.swizzleBytes;
  fake.rank = map.rank();
  // The numbers of FLOAT16, BFLOAT16 and FLOAT32 in cuda.h.
  fake.dataType = map.type == ElementType::F16    ? 6
                  : map.type == ElementType::BF16 ? 9
                                                  : 7;
  return fake;
}

static std::string sharedOf(size_t k) {
  return "mgpu_dynamic_shared_" + std::to_string(k);
}

std::vector<BatchItem> CudaTwins::items(bool forShim) const {
  std::vector<BatchItem> result;
  // Emitted text writes "static __shared__"; people leave the first word out.
  const std::string sharedIsStatic = "#undef __shared__\n"
                                     "#define __shared__ static\n",
                    asBefore = "#undef __shared__\n#define __shared__\n";
  for (const TwinConfig &config : configs) {
    result.push_back({forShim && !config.kernel.image.takesPart
                          ? sharedIsStatic + config.kernel.image.blob + asBefore
                          : config.kernel.image.blob,
                      config.kernel.image.entry, config.entry,
                      macrosOf(config.space, config.config)});
    // Each has its own, whichever scope declares it.
    if (forShim)
      result.back().macros.push_back(
          {"mgpu_dynamic_shared", sharedOf(result.size() - 1)});
    if (onAwait && !leavesOutWaits)
      result.back().macros.push_back({"MGPU_PDL", "1"});
  }
  return result;
}

Result<void> CudaTwins::compile() {
  std::string text =
      "#include \"CudaShim.h\"\n" + batchSource(items(/*forShim=*/true));
  text += "#line 1 \"adapters\"\n";
  for (size_t k = 0; k < configs.size(); ++k) {
    const TwinConfig &config = configs[k];
    std::string space = "mgpu_batch_" + std::to_string(k) + "::";
    std::string sharedBytes = std::to_string(config.dynamicSharedBytes());
    if (config.dynamicSharedBytes() > 0)
      text += "namespace mgpu_batch_" + std::to_string(k) +
              " { alignas(128) unsigned char " + sharedOf(k) + "[" +
              sharedBytes + "]; }\n";
    // In the kernel's namespace, where its types are.
    text += "namespace mgpu_batch_" + std::to_string(k) +
            " { static void shimCall() {\n  " + config.entry + "(";
    size_t numParameters = config.kernel.parameters.size();
    for (size_t a = 0; a < numParameters; ++a) {
      const std::string &type = config.kernel.parameters[a].type;
      bool isLast = a + 1 == numParameters && !config.kernel.image.takesPart;
      std::string bits = "shimArguments[" + std::to_string(a) + "]";
      text +=
          (config.tensorMap(a) ? "*(const MgpuTensorMap *)" + bits
           : type.find('*') != std::string::npos ? "(" + type + ")" + bits
                                                 : "*(" + type + "*)&" + bits) +
          (isLast ? "" : ", ");
    }
    if (config.kernel.image.takesPart)
      text += space + "MgpuLaunch{shimGrid[0], shimGrid[1], shimGrid[2], "
                      "shimGrid[3], shimGrid[4], shimGrid[5], shimGrid[6], "
                      "shimGrid[7], shimGrid[8], shimGrid[9], shimGrid[10], "
                      "shimGrid[11]}";
    text +=
        ");\n} }\n"
        "extern \"C\" void shim_" +
        config.entry +
        "(const uint64_t *arguments, const unsigned *grid, const unsigned "
        "*blocks, const unsigned *threads, void (*onAwait)()) {\n"
        "  shimOnAwait = onAwait;\n"
        "  shimHasAwaited = false;\n"
        "  shimArguments = arguments;\n"
        "  memcpy(shimGrid, grid, sizeof shimGrid);\n"
        "  shimShared = " +
        (config.dynamicSharedBytes() > 0 ? space + sharedOf(k) : "nullptr") +
        ";\n  shimSharedBytes = " + sharedBytes +
        ";\n"
        "  shimLaunch({blocks[0], blocks[1], blocks[2]}, {threads[0], "
        "threads[1], threads[2]}, " +
        space + "shimCall);\n}\n";
    text += "extern \"C\" const size_t shim_sizes_" + config.entry + "[] = {";
    for (size_t a = 0; a < numParameters; ++a) {
      const std::string &type = config.kernel.parameters[a].type;
      text += "sizeof(" +
              (config.tensorMap(a)                   ? "char[128]"
               : type.find('*') != std::string::npos ? "void *"
                                                     : type) +
              "), ";
    }
    text += "0};\n";
  }
  std::string pattern =
      (std::filesystem::temp_directory_path() / "mgpu-twin-XXXXXX").string();
  std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "twins.cpp") << text;
  std::string command =
      std::string(MGPU_SHIM_CXX) + " -std=c++17 " + (runsLong ? "-O1" : "-O0") +
      " -ffp-contract=off -w -shared -fPIC "
      "-fsanitize=alignment -fsanitize-trap=alignment " // as a GPU traps
      "-I" MGPU_SHIM_INCLUDE " " +
      (folder / "twins.cpp").string() + " -o " + (folder / "twins.so").string();
  int code = std::system(command.c_str());
  if (code != 0)
    return fail(ErrorKind::Invalid, command + " failed; its input is kept");
  library = dlopen((folder / "twins.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ErrorKind::Internal, dlerror());
  std::filesystem::remove_all(folder);
  return {};
}

CudaTwins::~CudaTwins() {
  if (library)
    dlclose(library);
}

void CudaTwins::launch(const std::string &entry,
                       const std::vector<uint64_t> &arguments,
                       const unsigned launch[12], const unsigned blocks[3],
                       const unsigned threads[3]) const {
  using Run = void (*)(const uint64_t *, const unsigned *, const unsigned *,
                       const unsigned *, void (*)());
  auto call = reinterpret_cast<Run>(dlsym(library, ("shim_" + entry).c_str()));
  if (!call)
    std::abort();
  call(arguments.data(), launch, blocks, threads, onAwait);
}

std::vector<size_t> CudaTwins::parameterSizes(const std::string &entry) const {
  auto *sizes = static_cast<const size_t *>(
      dlsym(library, ("shim_sizes_" + entry).c_str()));
  if (!sizes)
    std::abort();
  std::vector<size_t> out;
  for (; *sizes; ++sizes)
    out.push_back(*sizes);
  return out;
}

void CudaTwins::run(const std::string &entry, Dim3 grid,
                    std::vector<uint64_t> arguments) const {
  const TwinConfig *config = nullptr;
  for (const TwinConfig &each : configs)
    if (each.entry == entry)
      config = &each;
  if (!config)
    std::abort();
  const Dim3 block = config->config.block();
  const unsigned threads[3] = {block.x, block.y, block.z};
  std::vector<ptx::TensorMap> maps;
  for (const Part &part : partsOf(*config, grid, std::move(arguments), maps))
    launch(entry, part.arguments, part.launch, part.blocks, threads);
}

std::vector<CudaTwins::Part>
CudaTwins::partsOf(const TwinConfig &config, Dim3 grid,
                   std::vector<uint64_t> arguments,
                   std::vector<ptx::TensorMap> &maps) {
  maps.assign(config.kernel.parameters.size(), {});
  arguments.resize(maps.size());
  for (size_t k = 0; k < maps.size(); ++k)
    if (const TensorMap *map = config.tensorMap(k)) {
      maps[k] = fakeMapOf(*map, arguments[map->argument]);
      arguments[k] = uintptr_t(&maps[k]);
    }
  // Parts along the longest axis.
  uint32_t *ends[3] = {&grid.x, &grid.y, &grid.z};
  const auto axis =
      unsigned(std::max_element(ends, ends + 3,
                                [](auto *a, auto *b) { return *a < *b; }) -
               ends);
  const unsigned middle = *ends[axis] * 2 / 3;
  std::vector<Part> parts;
  for (auto [from, to] :
       {std::pair(0u, middle), std::pair(middle, *ends[axis])}) {
    unsigned chunk[12] = {grid.x, grid.y, grid.z, 0,      0,      0,
                          0,      0,      0,      grid.x, grid.y, grid.z};
    chunk[6 + axis] = from;
    chunk[9 + axis] = to;
    const Dim3 blocks = config.space.launchGrid(
        config.config,
        {chunk[9] - chunk[6], chunk[10] - chunk[7], chunk[11] - chunk[8]});
    const unsigned first = blocks.x / 2;
    for (auto [start, count] :
         {std::pair(0u, first), std::pair(first, blocks.x - first)}) {
      Part part{arguments, {}, {count, blocks.y, blocks.z}};
      chunk[3] = start;
      std::copy_n(chunk, 12, part.launch);
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

} // namespace mgpu::kernels
