// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/mpi/StartWatch.h"

#include "support/Number.h"
#include "support/Result.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace mgpu::device {

namespace {

std::string textOf(const std::filesystem::path &file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Process {
  char state = '?';
  pid_t parent = 0;
};

/// From /proc/PID/stat, whose second word may hold anything.
Process processOf(const std::string &pid) {
  const std::string text = textOf("/proc/" + pid + "/stat");
  Process out;
  if (const size_t end = text.rfind(')'); end != std::string::npos)
    std::istringstream(text.substr(end + 1)) >> out.state >> out.parent;
  return out;
}

/// The value that a process was given for a variable, if it may be read.
std::optional<std::string> variableOf(const std::string &pid,
                                      const std::string &name) {
  std::istringstream all(textOf("/proc/" + pid + "/environ"));
  for (std::string each; std::getline(all, each, '\0');)
    if (each.starts_with(name + "="))
      return each.substr(name.size() + 1);
  return std::nullopt;
}

} // namespace

std::string stoppedRanks() {
  std::string out;
  std::error_code error;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename().string();
    if (!numberFrom<uint32_t>(pid))
      continue;
    const Process process = processOf(pid);
    if (process.parent != getppid() || process.state != 'T')
      continue;
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
      if (const auto rank = variableOf(pid, name)) {
        out += fmt::format("{}rank {} (process {})", out.empty() ? "" : ", ",
                           *rank, pid);
        break;
      }
  }
  return out;
}

StartWatch::StartWatch(std::string mpi, std::chrono::milliseconds deadline)
    : mpi(std::move(mpi)), deadline(deadline) {
  if (deadline.count() > 0)
    thread = std::thread([this] { watch(); });
}

StartWatch::~StartWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasStarted = true;
  }
  wake.notify_one();
  if (thread.joinable())
    thread.join();
}

void StartWatch::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  auto hasStartedIn = [&](std::chrono::milliseconds time) {
    return wake.wait_for(lock, time, [this] { return hasStarted; });
  };
  // Once one rank has ended, mpirun ends those that are stopped: so this looks
  // before the first one does.
  const std::chrono::milliseconds rest = deadline / 10;
  if (hasStartedIn(deadline - rest))
    return;
  std::string stopped = stoppedRanks();
  if (hasStartedIn(rest))
    return;
  if (stopped.empty())
    stopped = stoppedRanks();
  fmt::print(stderr,
             "mgpu: error: waited {} ms for {} to start in all ranks; {}\n",
             deadline.count(), mpi,
             stopped.empty()
                 ? "no rank that was started beside this one is stopped: look "
                   "at those of other machines, and at what is between"
                 : stopped + " is stopped");
  std::fflush(stderr);
  std::_Exit(int(ErrorKind::Absent));
}

} // namespace mgpu::device
