// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/KernelObject.h"

#include "support/FileIO.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::device {

namespace {

/// In use from when `end` is set; nothing is locked, as a handler of signals
/// may come at any time.
struct Code {
  std::atomic<bool> isTaken{false};
  std::atomic<uintptr_t> end{0};
  uintptr_t begin = 0;
  char name[104] = {};
};
std::array<Code, 8192> codes;

} // namespace

size_t addKernelCode(std::string_view name, void *handle, uint64_t bytes) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&map)) != 0 || !map)
    return codes.size();
  for (size_t k = 0; k < codes.size(); ++k) {
    Code &code = codes[k];
    if (code.isTaken.exchange(true))
      continue;
    code.begin = uintptr_t(map->l_addr);
    const size_t length = std::min(name.size(), sizeof code.name - 1);
    std::copy_n(name.data(), length, code.name);
    code.name[length] = '\0';
    code.end.store(code.begin + bytes, std::memory_order_release);
    return k;
  }
  return codes.size();
}

void removeKernelCode(size_t slot) {
  if (slot >= codes.size())
    return;
  codes[slot].end.store(0, std::memory_order_release);
  codes[slot].isTaken.store(false);
}

const char *kernelNameAt(uintptr_t address) {
  for (const Code &code : codes) {
    const uintptr_t end = code.end.load(std::memory_order_acquire);
    if (address < end && address >= code.begin)
      return code.name;
  }
  return nullptr;
}

namespace ptx = kernels::ptx;

Result<std::shared_ptr<PtxKernel>>
PtxKernel::load(std::string_view name, std::span<const std::byte> bytes) {
  auto kernel = std::make_shared<PtxKernel>();
  MGPU_TRY_ASSIGN(kernel->image, kernels::decodeImage(name, bytes));
  const std::string before = fmt::format("kernel '{}': ", name);
  Result<ptx::Module> module = ptx::parse(kernel->image.blob);
  if (!module)
    return failIn(before, module.error());
  auto program = ptx::decode(std::make_shared<ptx::Module>(std::move(*module)),
                             kernel->image.entry);
  if (!program)
    return failIn(before, program.error());
  kernel->program = std::make_shared<ptx::Program>(std::move(*program));
  return kernel;
}

Result<ptx::LaunchOptions>
PtxKernel::launchOf(const KernelNodeParams &params) const {
  const std::vector<ptx::Parameter> &taken = program->parameters;
  if (taken.size() != params.arguments.size())
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}': the PTX of '{}' takes {} parameters, "
                            "and the launch gives {}",
                            params.name, image.entry, taken.size(),
                            params.arguments.size()));
  if (params.part && *params.part != GridPart::whole(params.grid))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' runs a part of a grid, which a kernel "
                            "given as PTX does not",
                            params.name));
  ptx::LaunchOptions options;
  options.grid = params.grid;
  options.block = image.block;
  options.cluster = image.cluster;
  const auto &needed = program->cluster;
  if (image.cluster == Dim3{} && needed[0])
    options.cluster = {needed[0], needed[1], needed[2]};
  options.sharedBytes = image.dynamicSharedBytes;
  options.parameters.resize(program->parameterBytes);
  for (size_t k = 0; k < taken.size(); ++k)
    std::memcpy(options.parameters.data() + taken[k].offset,
                &params.arguments[k], std::min(taken[k].bytes, 8u));
  for (const KernelMemory &memory : params.memory) {
    ptx::Region region;
    region.at = memory.base;
    region.bytes = memory.bytes;
    region.isWritable = memory.isWritten;
    region.name = fmt::format("buffer '{}'", memory.name);
    options.regions.push_back(std::move(region));
  }
  return options;
}

Result<void> PtxKernel::run(DeviceId device,
                            const ptx::LaunchOptions &options) {
  OnDevice *own = nullptr;
  {
    const std::lock_guard guard(lock);
    own = &devices[device.value];
  }
  const std::lock_guard guard(own->lock);
  if (!own->instance)
    own->instance = std::make_unique<ptx::Instance>(program);
  MGPU_TRY(ptx::run(*own->instance, options));
  return {};
}

namespace {

#if defined(__x86_64__)
constexpr uint16_t thisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t thisMachine = EM_AARCH64;
#else
#error "host kernels: name this machine's ELF number"
#endif

/// Why `bytes` is not a shared object the loader can take safely, or null. The
/// loader trusts these fields: a truncated file would be a bus error in it.
const char *damage(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header))
    return "it is too short";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "it is not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != thisMachine)
    return "it was built for another machine";
  if (header.e_type != ET_DYN)
    return "it is not a shared object";
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phoff > bytes.size() ||
      (bytes.size() - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    return "its program headers lie outside the file";
  bool hasDynamic = false;
  uint64_t lastAddress = 0;
  for (uint16_t k = 0; k < header.e_phnum; ++k) {
    Elf64_Phdr segment;
    std::memcpy(&segment,
                bytes.data() + header.e_phoff + k * sizeof(Elf64_Phdr),
                sizeof(segment));
    if (segment.p_offset > bytes.size() ||
        segment.p_filesz > bytes.size() - segment.p_offset)
      return "it is cut short: a segment ends beyond the file";
    if (segment.p_type == PT_DYNAMIC)
      hasDynamic = true;
    if (segment.p_type != PT_LOAD)
      continue;
    if (segment.p_memsz < segment.p_filesz || segment.p_vaddr < lastAddress ||
        segment.p_memsz >= (uint64_t(1) << 40) ||
        segment.p_vaddr >= (uint64_t(1) << 40))
      return "its segments are damaged";
    lastAddress = segment.p_vaddr;
  }
  return hasDynamic ? nullptr : "it has no dynamic section";
}

/// Bytes from the object's base to the end of its last segment. damage() must
/// have passed the header.
uint64_t reach(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  uint64_t end = 0;
  for (uint16_t k = 0; k < header.e_phnum; ++k) {
    Elf64_Phdr segment;
    std::memcpy(&segment,
                bytes.data() + header.e_phoff + k * sizeof(Elf64_Phdr),
                sizeof(segment));
    if (segment.p_type == PT_LOAD)
      end = segment.p_vaddr + segment.p_memsz;
  }
  return end;
}

/// A path to `fd` never used before in this process: the loader takes a path
/// it has seen for the library it loaded then, and fd numbers are reused.
std::string uniquePath(int fd) {
  static std::atomic<uint32_t> counter{0};
  uint32_t number = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  std::string path = "/proc/self/fd";
  for (; number != 0; number >>= 1)
    path += number & 1 ? "/." : "//.";
  return path + "/" + std::to_string(fd);
}

} // namespace

Result<KernelObject> KernelObject::load(std::string_view name,
                                        std::span<const std::byte> bytes) {
  if (kernels::unframeBytes(bytes)) {
    KernelObject object;
    MGPU_TRY_ASSIGN(object.asPtx, PtxKernel::load(name, bytes));
    return object;
  }
  if (isCall(bytes)) {
    KernelObject object;
    MGPU_TRY_ASSIGN(object.asCall, decodeCall(bytes));
    return object;
  }
  if (const char *reason = damage(bytes))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel '{}' cannot be loaded: {}: compile it "
                            "again for this machine",
                            name, reason));
  const Descriptor file(memfd_create("mgpu-kernel", MFD_CLOEXEC));
  const int code = file.isOpen() ? writeFully(file.get(), bytes) : errno;
  if (code != 0)
    return fail(ErrorKind::Absent,
                fmt::format("kernel '{}' cannot be put into memory ({}): "
                            "raise the limits on memory or open files",
                            name, std::strerror(code)));
  void *handle = dlopen(uniquePath(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return fail(ErrorKind::Invalid,
                fmt::format("kernel '{}' cannot be loaded: {}", name,
                            reason ? reason : "unknown reason"));
  }
  KernelObject object;
  const size_t slot = addKernelCode(name, handle, reach(bytes));
  object.library = std::shared_ptr<void>(handle, [slot](void *p) {
    removeKernelCode(slot);
    dlclose(p);
  });
  object.function = reinterpret_cast<kernels::HostKernelEntry>(
      dlsym(handle, kernels::hostKernelEntryName));
  if (!object.function) {
    object.function = reinterpret_cast<kernels::HostKernelEntry>(
        dlsym(handle, kernels::hostKernelEntryNameV1));
    object.isVersion1 = true;
  }
  if (!object.function)
    return fail(ErrorKind::Invalid,
                fmt::format("kernel '{}' has no function '{}': it was built "
                            "for another version; compile it again",
                            name, kernels::hostKernelEntryName));
  if (const void *shape = dlsym(handle, kernels::hostKernelShapeName))
    std::memcpy(&object.cut, shape, sizeof(object.cut));
  object.isAwaiting = dlsym(handle, kernels::hostKernelAwaitsName) != nullptr;
  for (unsigned k = 0; k < 3; ++k)
    if (object.cut.block[k] == 0 || object.cut.block[k] > 1024 ||
        object.cut.covered[k] == 0)
      return fail(ErrorKind::Invalid,
                  fmt::format("kernel '{}' covers {} threads of blocks of {} "
                              "along {}: compile it again",
                              name, object.cut.covered[k], object.cut.block[k],
                              "xyz"[k]));
  return object;
}

} // namespace mgpu::device
