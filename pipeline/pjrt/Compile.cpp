// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Compile.h"

#include "device/host/CpuLevel.h"
#include "kernels/compile/KernelCache.h"
#include "pipeline/c/mgt.h"
#include "pipeline/pjrt/SpawnedCommand.h"
#include "pipeline/program/Version.h"
#include "support/FileIO.h"
#include "support/Sha256.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace mgpu::pipeline::pjrt {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  std::string name =
      (fs::temp_directory_path(error) / "mgpu-pjrt-XXXXXX").string();
  if (error || !::mkdtemp(name.data()))
    return fail(ErrorKind::Absent,
                fmt::format("no folder for files can be made in '{}': name "
                            "another one in TMPDIR",
                            error ? std::string(std::getenv("TMPDIR")
                                                    ? std::getenv("TMPDIR")
                                                    : "/tmp")
                                  : fs::path(name).parent_path().string()));
  return TemporaryFolder(std::move(name));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder &&other) noexcept
    : path(std::exchange(other.path, "")) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path.empty())
    fs::remove_all(path, ignored);
}

namespace {

/// mgpu-tune: MGPU_TUNE, else the one of the build, the prefix or the wheel
/// that this library is in, else the one in PATH. "" where there is none.
std::string findCommand() {
  if (const char *named = std::getenv("MGPU_TUNE"); named && *named)
    return std::string_view(named).find('/') == std::string_view::npos
               ? named
               : fs::absolute(named).string();
  Dl_info here{};
  ::dladdr(reinterpret_cast<const void *>(&findCommand), &here);
  const fs::path folder =
      fs::path(here.dli_fname ? here.dli_fname : "").parent_path();
  std::vector<fs::path> places;
  for (const char *way : {"bin", "../bin", "../../bin"})
    places.push_back(folder / way);
  const char *paths = std::getenv("PATH");
  std::string_view rest = paths ? paths : "";
  while (!rest.empty()) {
    const size_t size = std::min(rest.find(':'), rest.size());
    places.emplace_back(rest.substr(0, size));
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  for (const fs::path &place : places)
    if (const std::string file = (place / "mgpu-tune").string();
        ::access(file.c_str(), X_OK) == 0)
      return fs::absolute(file).string(); // it starts in another folder
  return "";
}

/// A hash of all that a bundle depends on.
std::string keyOf(std::string_view program, const CompileOptions &compile,
                  const std::string &code, const std::string &target) {
  return Sha256()
      .addField(versionText("mgpu", ""))
      .addField(program)
      .addField(fmt::format("{},{}", compile.replicas, compile.partitions))
      .addField(code)
      .addField(target)
      .hex();
}

/// The sentences of a compiler that refused a program.
std::string sentencesOf(std::string said) {
  constexpr size_t most = 4000;
  while (!said.empty() && said.back() == '\n')
    said.pop_back();
  constexpr std::string_view only = "mgpu-tune: error: ";
  if (said.starts_with(only) && said.find('\n') == said.npos)
    said.erase(0, only.size());
  if (said.size() > most)
    said = said.substr(0, most / 2) + "\n...\n" +
           said.substr(said.size() - most / 2);
  return said;
}

PJRT_Error *whyNot(const CommandEnd &end, double seconds) {
  const std::string said = sentencesOf(end.said);
  switch (end.how) {
  case CommandEnd::Late:
    return refuse(PJRT_Error_Code_DEADLINE_EXCEEDED,
                  fmt::format("the program was not compiled within {} s: allow "
                              "more (MGPU_PJRT_COMPILE_SECONDS){}{}",
                              seconds, said.empty() ? "" : "\n", said));
  case CommandEnd::Killed:
    return refuse(PJRT_Error_Code_INTERNAL,
                  fmt::format("the compiler was ended by signal {}: the "
                              "program is damaged, or too large{}{}",
                              end.code, said.empty() ? "" : "\n", said));
  case CommandEnd::Exited:
  case CommandEnd::Unknown:
    break;
  }
  if (end.code >= int(ErrorKind::Invalid) &&
      end.code <= int(ErrorKind::Unsupported))
    return refuse(Error{ErrorKind(end.code), said});
  return refuse(PJRT_Error_Code_INTERNAL,
                fmt::format("the compiler ended with {}{}{}", end.code,
                            said.empty() ? "" : "\n", said));
}

/// `code` is a level of the processor, or "sm_90".
PJRT_Error *spawnCompiler(std::string_view program,
                          const CompileOptions &compile,
                          const std::string &target, const std::string &code,
                          double seconds, device::Blob &bundle) {
  const std::string command = findCommand();
  if (command.empty())
    return refuse(PJRT_Error_Code_NOT_FOUND,
                  "mgpu-tune, which compiles programs, is not beside this "
                  "library, nor in PATH: name it in MGPU_TUNE");
  auto folder = TemporaryFolder::make();
  MGPU_PJRT_TRY(folder);
  constexpr const char *name = "program.mlir", *made = "program.mgpu";
  MGPU_PJRT_TRY(writeFileAtomic(folder->file(name), program));
  std::vector<std::string> words{
      command,
      "bundle",
      name,
      "-o",
      made,
      "--per-device",
      fmt::format("{},{}", compile.replicas, compile.partitions),
      "--target",
      target};
  if (code.starts_with("sm_"))
    words.insert(words.end(), {"--arch", code, "--cpu", "none"});
  else
    words.insert(words.end(), {"--cpu", code});
  auto end = runCommand(words, folder->folder(), seconds);
  MGPU_PJRT_TRY(end);
  std::error_code error;
  if (end->how == CommandEnd::Unknown)
    end->code = fs::exists(folder->file(made), error) ? 0 : -1;
  else if (end->how != CommandEnd::Exited)
    return whyNot(*end, seconds);
  if (end->code != 0)
    return whyNot(*end, seconds);
  auto bytes = readFile(folder->file(made));
  MGPU_PJRT_TRY(bytes);
  bundle = std::move(*bytes);
  return nullptr;
}

/// Says what kernels are compiled for on the client's devices: a level of this
/// processor, or the architecture of its GPUs.
Result<std::string> codeOf(const ClientOptions &client) {
  if (client.gpus)
    return device::architectureOf(client.gpus->gpus);
  const std::vector<std::string_view> levels = device::cpuLevels();
  if (levels.empty())
    return fail(ErrorKind::Absent, "no kernels are made for this processor");
  return std::string(levels.front());
}

} // namespace

PJRT_Error *compileProgram(std::string_view program,
                           const CompileOptions &compile,
                           const ClientOptions &client, device::Blob &bundle,
                           std::function<void()> &keep) {
  const auto code = codeOf(client);
  MGPU_PJRT_TRY(code);
  const std::string target = client.targetOf(compile.devicesUsed());
  std::shared_ptr<kernels::KernelCache> cache;
  if (!client.cache.empty())
    cache =
        std::make_shared<kernels::KernelCache>(client.cache, uint64_t(1) << 30);
  const std::string key = keyOf(program, compile, *code, target);
  if (cache)
    if (auto known = cache->find(key)) {
      bundle = std::move(*known);
      return nullptr;
    }
  MGPU_PJRT_PASS(spawnCompiler(program, compile, target, *code,
                               client.compileSeconds, bundle));
  keep = [cache, key, bundle] {
    if (cache)
      cache->store(key, bundle);
  };
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
