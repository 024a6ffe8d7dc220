// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/HostCompiler.h"

#include "kernels/abi/HostKernelAbi.h"
#include "support/FileIO.h"
#include "support/LineText.h"
#include "support/Sha256.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mgpu::kernels {

using planner::CudaFile;

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

static const char *numberType(ElementType type) {
  switch (type) {
  case ElementType::I1:
    return "bool";
  case ElementType::I8:
    return "int8_t";
  case ElementType::I16:
    return "int16_t";
  case ElementType::I32:
    return "int32_t";
  case ElementType::I64:
  case ElementType::Index:
    return "int64_t";
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    return "uint8_t";
  case ElementType::F16:
  case ElementType::BF16:
    return "uint16_t";
  case ElementType::F32:
    return "float";
  case ElementType::F64:
    return "double";
  }
  return "void";
}

// HostLaunch (kernels/abi/HostKernelAbi.h) as the text has it.
static constexpr const char *before = R"(#include <stdint.h>
struct mgpu_dim3 { uint32_t x, y, z; };
struct mgpu_block { mgpu_dim3 index, size, grid; };
)";
static constexpr const char *after = R"(
#line 1 "mgpu"
namespace {
struct mgpu_pointer {
  uint64_t bits;
  template <typename T> operator T *() const { return reinterpret_cast<T *>(bits); }
};
template <typename T> T mgpu_number(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
struct mgpu_launch { uint32_t grid[3], reserved; uint64_t first_block, last_block; uint32_t first[3], count[3]; };
struct mgpu_shape { uint32_t block[3], covered[3]; };
}
)";

std::string hostSourceText(const planner::KernelSpec &kernel,
                           const HostMacros &macros) {
  static_assert(sizeof(HostLaunch) == 56 && sizeof(HostKernelShape) == 24,
                "mgpu_launch and mgpu_shape above are these");
  const CudaFile &file = std::get<CudaFile>(kernel.source);
  std::string text = before;
  for (const auto &[name, value] : macros)
    text += fmt::format("#define {} {}\n", name, value);
  for (const auto &[name, values] : file.tunables)
    text += fmt::format("#ifndef {0}\n#define {0} {1}\n#endif\n", name,
                        values.front());
  text +=
      fmt::format("#line 1 {}\n{}", quoteText(kernel.name + ".cpp"), file.host);
  text += after;
  std::string arguments;
  for (size_t k = 0; k < file.parameters.size(); ++k) {
    const auto &[type, isPointer] = file.parameters[k];
    arguments += isPointer ? fmt::format(", mgpu_pointer{{arguments[{}]}}", k)
                           : fmt::format(", mgpu_number<{}>(arguments[{}])",
                                         numberType(type), k);
  }
  const auto [x, y, z] = kernel.block;
  text += fmt::format(
      R"(#define MGPU_SHOWN extern "C" __attribute__((visibility("default")))
extern "C" {{ extern const mgpu_shape {0} __attribute__((visibility("default"))); }}
const mgpu_shape {0} = {{{{{3}, {4}, {5}}}, {{{3}, {4}, {5}}}}};
MGPU_SHOWN void {1}(const uint64_t *arguments, const mgpu_launch *launch) {{
  const uint32_t *first = launch->first, *count = launch->count, *grid = launch->grid;
  for (uint64_t b = launch->first_block; b < launch->last_block; ++b) {{
    const mgpu_dim3 index = {{uint32_t(first[0] + b % count[0]), uint32_t(first[1] + b / count[0] % count[1]),
                             uint32_t(first[2] + b / count[0] / count[1])}};
    {2}(mgpu_block{{index, {{{3}, {4}, {5}}}, {{grid[0], grid[1], grid[2]}}}}{6});
  }}
  (void)arguments;
}}
)",
      hostKernelShapeName, hostKernelEntryName, file.hostEntry, x, y, z,
      arguments);
  return text;
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

namespace {

/// A folder of this call's own, gone with it.
class Folder {
public:
  static Result<Folder> make() {
    const char *root = std::getenv("TMPDIR");
    std::string path =
        fmt::format("{}/mgpu-XXXXXX", root && *root ? root : "/tmp");
    if (!mkdtemp(path.data()))
      return fail(ErrorKind::Absent,
                  fmt::format("no folder can be made as {} ({}): set TMPDIR",
                              path, std::strerror(errno)));
    return Folder(std::move(path));
  }
  Folder(Folder &&other) noexcept : path(std::exchange(other.path, {})) {}
  ~Folder() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const char *name) const { return path + "/" + name; }

private:
  explicit Folder(std::string path) : path(std::move(path)) {}
  std::string path;
};

/// The file that a word of a command line starts; "" where there is none.
std::string programOf(const std::string &word) {
  auto runs = [](const std::string &path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos)
    return runs(word) ? word : "";
  const char *path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (std::string file = fmt::format("{}/{}", folder, word); runs(file))
      return file;
  }
  return "";
}

Result<std::vector<std::string>> findCompiler(const std::string &kernel) {
  std::vector<std::string> chosen;
  if (const char *named = std::getenv("CXX"))
    for (std::string_view rest = named; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (!word.empty())
        chosen.emplace_back(word);
    }
  if (!chosen.empty() && !programOf(chosen.front()).empty())
    return chosen;
  if (chosen.empty())
    for (const char *name : {"c++", "g++", "clang++"})
      if (!programOf(name).empty())
        return std::vector<std::string>{name};
  return fail(
      ErrorKind::Absent,
      fmt::format("kernel '{}' is C++ for the host, and there is no "
                  "compiler for it: {}; install g++, or name one in CXX",
                  kernel,
                  chosen.empty() ? "c++, g++ and clang++ are not in PATH"
                                 : fmt::format("CXX names '{}', which is no "
                                               "program",
                                               chosen.front())));
}

/// Tells one compiler from another, without asking it.
std::string identityOf(const std::vector<std::string> &compiler) {
  std::string identity;
  for (const std::string &word : compiler) {
    identity += word + "\n";
    struct stat status {};
    if (::stat(programOf(word).c_str(), &status) == 0)
      identity += fmt::format("{} {} {}\n", status.st_size,
                              status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return identity;
}

/// Runs it with its words to `log`; the exit status, or an error of the system.
Result<int> run(const std::vector<std::string> &words, const std::string &log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                  arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return fail(ErrorKind::Absent,
                fmt::format("'{}' cannot be started: {}", words[0],
                            std::strerror(failed)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return fail(ErrorKind::Internal,
                  fmt::format("'{}' was waited for by another: {}", words[0],
                              std::strerror(errno)));
  return status;
}

/// The line of the compiler's words that says what is wrong.
std::string complaintIn(const std::string &log) {
  auto text = readText(log, 16 << 20);
  if (!text || text->empty())
    return "it says nothing";
  size_t at = text->find("error:");
  at = at == std::string::npos ? 0 : text->rfind('\n', at) + 1;
  return text->substr(at, text->find('\n', at) - at);
}

} // namespace

Result<std::vector<std::byte>>
compileHostSource(const planner::KernelSpec &kernel, const HostMacros &macros,
                  const std::string &cpu, device::BlobCache *cache) {
  const std::string text = hostSourceText(kernel, macros);
  MGPU_TRY_ASSIGN(std::vector<std::string> words, findCompiler(kernel.name));
  const std::string identity = identityOf(words);
  for (const char *flag :
       {"-x", "c++", "-std=c++17", "-O3", "-ffp-contract=off", "-fPIC",
        "-shared", "-fvisibility=hidden", "-Wl,--as-needed",
        "-Wl,--build-id=none"})
    words.push_back(flag);
  words.push_back("-march=" + cpu);
  Sha256 hash;
  hash.addField("host kernel 1").addField(identity).addField(text);
  for (const std::string &word : words)
    hash.addField(word);
  const std::string key = hash.hex();
  if (cache)
    if (auto known = cache->find(key))
      return std::move(*known);
  MGPU_TRY_ASSIGN(const Folder folder, Folder::make());
  MGPU_TRY(writeFileAtomic(folder / "kernel.cpp", text));
  for (const std::string &word :
       {folder / "kernel.cpp", std::string("-o"), folder / "kernel.so"})
    words.push_back(word);
  MGPU_TRY_ASSIGN(const int status, run(words, folder / "log"));
  if (status != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("kernel '{}': {} refuses its C++ for the host: {}",
                            kernel.name, words[0],
                            complaintIn(folder / "log")));
  MGPU_TRY_ASSIGN(std::vector<std::byte> object,
                  readFile(folder / "kernel.so"));
  if (cache)
    cache->store(key, object);
  return object;
}

} // namespace mgpu::kernels
