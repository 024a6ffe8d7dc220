// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Compile.h"

#include "device/host/CpuLevel.h"
#include "kernels/compile/KernelCache.h"
#include "pipeline/c/mgt.h"
#include "pipeline/program/Version.h"
#include "support/ChildProcess.h"
#include "support/FileIO.h"
#include "support/Result.h"
#include "support/Sha256.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

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

/// How a command ended, and what it said on its standard error. It is Unknown
/// to a process that ignores SIGCHLD or waits for its children elsewhere.
struct CommandEnd {
  enum How { Exited, Killed, Late, Unknown } how = Exited;
  int code = 0; ///< its exit code, or the signal that ended it
  std::string said;
};

using Clock = std::chrono::steady_clock;

/// The state that the child begins with.
class Spawn {
public:
  Spawn(const std::string &folder, int standardError) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, standardError, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn &) = delete;
  Spawn &operator=(const Spawn &) = delete;

  int start(std::vector<std::string> words, pid_t &child) {
    std::vector<char *> pointers;
    for (std::string &word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return posix_spawn(&child, pointers[0], &actions, &attributes,
                       pointers.data(), environ);
  }

private:
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void limitMemory(pid_t child) {
  if (!memoryLimitWorks)
    return;
  const auto bytes =
      rlim_t(::sysconf(_SC_PHYS_PAGES)) * rlim_t(::sysconf(_SC_PAGESIZE));
  const rlimit limit{bytes / 4 * 3, bytes / 4 * 3};
  (void)::prlimit(child, RLIMIT_DATA, &limit, nullptr);
}

/// Milliseconds until `end`, rounded up; 0 once it is past.
int untilEnd(Clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return int(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

/// Reads what the child says until it closes its end, or the time is over.
void listen(int pipe, Clock::time_point end, std::string &said) {
  constexpr size_t most = 1 << 20; // more is read, and forgotten
  char buffer[4096];
  for (int left = untilEnd(end); left > 0; left = untilEnd(end)) {
    pollfd ready{pipe, POLLIN, 0};
    const int found = ::poll(&ready, 1, left);
    if (found < 0 && errno == EINTR)
      continue;
    if (found <= 0)
      return;
    const ssize_t size = ::read(pipe, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return;
    if (said.size() < most)
      said.append(buffer, size_t(size));
  }
}

/// Waits for the child; after `end` it is killed with all that it started.
CommandEnd waitFor(pid_t child, Clock::time_point end) {
  CommandEnd out;
  int status = 0;
  for (bool isKilled = false;;) {
    const pid_t ended = ::waitpid(child, &status, isKilled ? 0 : WNOHANG);
    if (ended == child)
      break;
    if (ended < 0 && errno != EINTR) { // the caller has no news of its children
      out.how = CommandEnd::Unknown;
      return out;
    }
    if (ended == 0 && untilEnd(end) == 0) {
      ::kill(-child, SIGKILL);
      isKilled = true;
      out.how = CommandEnd::Late;
    } else if (ended == 0) {
      ::usleep(500);
    }
  }
  if (out.how == CommandEnd::Late)
    return out;
  out.how = WIFEXITED(status) ? CommandEnd::Exited : CommandEnd::Killed;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  return out;
}

/// Runs a command in a folder and waits for its end, `seconds` at most. It is
/// spawned: this process may have threads, and is not copied. It has no input,
/// none of this process's files, a process group of its own, and three quarters
/// of the machine's memory at most. Absent where it cannot be started.
Result<CommandEnd> runCommand(const std::vector<std::string> &words,
                              const std::string &folder, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return fail(ErrorKind::Absent,
                fmt::format("no pipe can be made: {}", std::strerror(errno)));
  // The child's first three are its own.
  for (int &side : pipe)
    if (side < 3) {
      const int higher = ::fcntl(side, F_DUPFD_CLOEXEC, 3);
      ::close(side);
      side = higher;
    }
  pid_t child = -1;
  const int error = Spawn(folder, pipe[1]).start(words, child);
  ::close(pipe[1]);
  if (error != 0) {
    ::close(pipe[0]);
    return fail(ErrorKind::Absent, fmt::format("'{}' cannot be started: {}",
                                               words[0], std::strerror(error)));
  }
  limitMemory(child);
  std::string said;
  listen(pipe[0], end, said);
  ::close(pipe[0]);
  CommandEnd out = waitFor(child, end);
  out.said = std::move(said);
  return out;
}

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
